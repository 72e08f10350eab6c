// SPDX-License-Identifier: Apache-2.0
// RunFunction end to end in one process: look-ups, misses, hits, and what
// passes untouched. Joined callers and the lower tier have files of their own.
#include "proxy/serving/call.h"

#include <string>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/proxy/serving/call_testing.h"

namespace fncache::proxy::serving {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST_F(CallTest, AMissGoesToTheFunctionAndTheNextCallIsAHit) {
  const auto response = Response("tag-1", "hello", 60);
  auto miss = Fill(Request("a", "tag-1"), response);
  EXPECT_EQ(miss->cache_status(), "fncache; fwd=miss; stored");
  EXPECT_EQ(miss->bytes(), response.SerializeAsString());

  Proxy().clock.Advance(absl::Seconds(20));
  auto hit = Send(Request("a", "tag-2"));
  ASSERT_TRUE(hit->Wait().ok());
  // 60 s less the last tenth, less 20 s of age.
  EXPECT_EQ(hit->cache_status(), "fncache; hit; ttl=34");
  EXPECT_EQ(hit->response().meta().tag(), "tag-2");
  EXPECT_EQ(hit->response().meta().ttl().seconds(), 40);
  EXPECT_EQ(hit->response().results(0).message(), "hello");
  EXPECT_EQ(function_.calls(), 1);

  const auto summary = Counted();
  EXPECT_EQ(summary.hits, 1u);
  EXPECT_EQ(summary.misses, 1u);
  EXPECT_EQ(summary.fills, 1u);
  EXPECT_GT(summary.saved, absl::ZeroDuration());
}

TEST_F(CallTest, TheFunctionsBytesHeadersAndTrailersPassAMissUntouched) {
  auto caller = Send(Request("a", "t"), {{"x-mine", "1"}});
  auto call = function_.Next();
  EXPECT_EQ(call->bytes, Request("a", "t"));
  EXPECT_EQ(call->metadata.find("x-mine")->second, "1");
  call->AddHeader("x-head", "h");
  call->AddTrailer("x-trail", "t");
  // Another tag, out of order, and an unknown field.
  const std::string bytes = Response("", "x", -1).SerializeAsString() +
                            Response("other", "y", 60).SerializeAsString() +
                            "\xba\x3e\x02hi";
  call->Answer(bytes);
  ASSERT_TRUE(caller->Wait().ok());
  EXPECT_EQ(caller->bytes(), bytes);
  EXPECT_THAT(caller->Headers("x-head"), ElementsAre("h"));
  EXPECT_THAT(caller->Trailers("x-trail"), ElementsAre("t"));

  auto hit = Send(Request("a", "mine"));
  ASSERT_TRUE(hit->Wait().ok());
  EXPECT_EQ(hit->response().meta().tag(), "mine");
  EXPECT_EQ(hit->response().results_size(), 2);
  EXPECT_THAT(hit->Headers("x-head"), IsEmpty());
  EXPECT_THAT(hit->Trailers("x-trail"), IsEmpty());
}

TEST_F(CallTest, BothVersionsAreLookedUpApart) {
  Fill(Request("a", "t"), Response("t", "v1", 60));
  auto beta = Send(Request("a", "t"), {}, absl::InfiniteDuration(),
                   kRunFunctionV1beta1);
  auto call = function_.Next();
  EXPECT_EQ(call->path, kRunFunctionV1beta1);
  call->Answer(Response("t", "beta", 60).SerializeAsString());
  ASSERT_TRUE(beta->Wait().ok());
  beta = Send(Request("a", "u"), {}, absl::InfiniteDuration(),
              kRunFunctionV1beta1);
  ASSERT_TRUE(beta->Wait().ok());
  EXPECT_EQ(beta->response().results(0).message(), "beta");
  EXPECT_EQ(beta->cache_status(), "fncache; hit; ttl=54");
}

TEST_F(CallTest, AnEntryPastItsServedTimeIsStale) {
  Fill(Request("a", "t"), Response("t", "old", 60));
  Proxy().clock.Advance(absl::Seconds(54));
  auto margin = Fill(Request("a", "t"), Response("t", "new", 60));
  EXPECT_EQ(margin->cache_status(), "fncache; fwd=stale; stored");
  Proxy().clock.Advance(absl::Seconds(61));
  auto expired = Fill(Request("a", "t"), Response("t", "newer", 0));
  EXPECT_EQ(expired->cache_status(), "fncache; fwd=stale");
}

TEST_F(CallTest, AuthorizationAndBypassMetadataAreBypasses) {
  options_.bypass_metadata = {"x-skip"};
  Fill(Request("a", "t"), Response("t", "stored", 60));
  for (const auto& metadata :
       {Metadata{{"authorization", "me"}}, Metadata{{"x-skip", ""}},
        Metadata{{"authorization", "me"}, {"cache-control", "no-cache"}}}) {
    auto caller = Fill(Request("a", "t"), Response("t", "fresh", 60), metadata);
    EXPECT_EQ(caller->cache_status(), "fncache; fwd=bypass");
    EXPECT_EQ(caller->response().results(0).message(), "fresh");
  }
  EXPECT_EQ(store_->fills, 1);
  using cache::Reason;
  EXPECT_EQ(Bypassed(Reason::kAuthorization), 2u);
  EXPECT_EQ(Bypassed(Reason::kMetadata), 1u);
}

// Requests as the runner makes them for the three kinds of operations: equal
// operations make equal ones. And two that lack no more than the resource.
std::vector<std::string> OperationRequests() {
  fnv1::RunFunctionRequest operation;
  operation.mutable_meta()->set_tag("t");
  (*operation.mutable_input()->mutable_fields())["kind"].set_string_value(
      "Backup");
  (*operation.mutable_context()->mutable_fields())["by"].set_string_value("x");
  // A CronOperation makes an Operation that says so in its context alone.
  fnv1::RunFunctionRequest cron = operation;
  (*cron.mutable_context()->mutable_fields())["by"].set_string_value("cron");
  fnv1::RunFunctionRequest watch = operation;
  (*(*watch.mutable_required_resources())["ops.crossplane.io/watched-resource"]
        .add_items()
        ->mutable_resource()
        ->mutable_fields())["kind"]
      .set_string_value("ConfigMap");
  fnv1::RunFunctionRequest no_composite = operation;
  (*no_composite.mutable_observed()->mutable_resources())["one"]
      .mutable_resource();
  fnv1::RunFunctionRequest no_resource = operation;
  no_resource.mutable_observed()->mutable_composite();
  // One that is looked at on another thread.
  fnv1::RunFunctionRequest large = operation;
  (*large.mutable_context()->mutable_fields())["by"].set_string_value(
      std::string(2 << 20, 'x'));
  return {operation.SerializeAsString(),   cron.SerializeAsString(),
          watch.SerializeAsString(),       no_composite.SerializeAsString(),
          no_resource.SerializeAsString(), large.SerializeAsString()};
}

TEST_F(CallTest, EachCallOfAnOperationRunsTheFunction) {
  uint64_t calls = 0;
  for (const std::string& request : OperationRequests()) {
    for (const Metadata& metadata :
         {Metadata{}, Metadata{}, Metadata{{"cache-control", "no-cache"}},
          Metadata{{"cache-control", "no-store"}}}) {
      auto caller = Fill(request, Response("t", "done", 60), metadata);
      EXPECT_EQ(caller->cache_status(),
                "fncache; fwd=bypass; detail=operation");
      EXPECT_EQ(caller->bytes(), Response("t", "done", 60).SerializeAsString());
      ++calls;
    }
  }
  EXPECT_EQ(store_->fills, 0);
  EXPECT_EQ(Bypassed(cache::Reason::kOperation), calls);
  EXPECT_EQ(Counted().Calls(telemetry::Outcome::kBypass), calls);
}

TEST_F(CallTest, OperationsOfATagRunEachTimeToo) {
  options_.key = cache::key::KeySource::kTag;
  for (const std::string& request : OperationRequests()) {
    auto caller = Fill(request, Response("t", "done", 60));
    EXPECT_EQ(caller->cache_status(), "fncache; fwd=bypass; detail=operation");
  }
}

TEST_F(CallTest, EqualOperationsAtOnceShareNoRun) {
  const std::string request = OperationRequests()[0];
  auto first = Send(request);
  auto first_call = function_.Next();
  auto second = Send(request);
  auto second_call = function_.Next();
  first_call->Answer(Response("t", "one", 60).SerializeAsString());
  second_call->Answer(Response("t", "two", 60).SerializeAsString());
  ASSERT_TRUE(first->Wait().ok());
  ASSERT_TRUE(second->Wait().ok());
  EXPECT_EQ(first->response().results(0).message(), "one");
  EXPECT_EQ(second->response().results(0).message(), "two");
}

TEST_F(CallTest, AFailedOperationSaysWhatItIs) {
  auto failed = Send(OperationRequests()[0]);
  function_.Next()->Fail(grpc::Status(grpc::StatusCode::INTERNAL, "no"));
  EXPECT_EQ(failed->Wait().error_code(), grpc::StatusCode::INTERNAL);
  EXPECT_EQ(failed->cache_status(), "fncache; fwd=bypass; detail=operation");
}

TEST_F(CallTest, OperationsAreLikeAllOthersWhereTheyAreToBeCached) {
  options_.cache_operations = true;
  for (const std::string& request : OperationRequests()) {
    auto miss = Fill(request, Response("t", "done", 60));
    EXPECT_EQ(miss->cache_status(), "fncache; fwd=miss; stored");
    auto hit = Send(request);
    ASSERT_TRUE(hit->Wait().ok());
    EXPECT_EQ(hit->cache_status(), "fncache; hit; ttl=54");
  }
  EXPECT_EQ(Counted().Calls(telemetry::Outcome::kBypass), 0u);
}

TEST_F(CallTest, ShadowComparesNoOperations) {
  options_.policy.mode = cache::Mode::kShadow;
  for (int i = 0; i < 2; ++i) {
    auto caller = Fill(OperationRequests()[0], Response("t", "done", 60));
    EXPECT_EQ(caller->cache_status(), "fncache; fwd=bypass; detail=operation");
  }
  EXPECT_EQ(Proxy().shadow().lookups, 0);
  auto other = Fill(Request("a", "t"), Response("t", "x", 60));
  EXPECT_EQ(other->cache_status(),
            "fncache; fwd=bypass; stored; detail=shadow");
  EXPECT_EQ(Bypassed(cache::Reason::kOperation), 2u);
  EXPECT_EQ(Bypassed(cache::Reason::kShadow), 1u);
}

TEST_F(CallTest, ModeOffIsAPureProxy) {
  options_.policy.mode = cache::Mode::kOff;
  options_.policy.requeue_ttl.kind = cache::RequeueTtl::Kind::kFixed;
  options_.policy.requeue_ttl.fixed = absl::Seconds(5);
  for (int i = 0; i < 2; ++i) {
    auto caller = Fill(Request("a", "t"), Response("t", "x", 60));
    EXPECT_EQ(caller->cache_status(), "fncache; fwd=bypass");
    EXPECT_EQ(caller->bytes(), Response("t", "x", 60).SerializeAsString());
  }
  EXPECT_EQ(store_->fills, 0);
  EXPECT_EQ(Bypassed(cache::Reason::kModeOff), 2u);
}

TEST_F(CallTest, NoCacheLooksNothingUpAndStoresTheAnswer) {
  Fill(Request("a", "t"), Response("t", "old", 60));
  Proxy().clock.Advance(absl::Seconds(1));
  for (const char* text :
       {"no-cache", "max-age=0, No-Cache", "NO-CACHE=\"x\""}) {
    auto caller = Fill(Request("a", "t"), Response("t", text, 60),
                       {{"cache-control", text}});
    EXPECT_EQ(caller->cache_status(), "fncache; fwd=request; stored");
    Proxy().clock.Advance(absl::Seconds(1));
    auto hit = Send(Request("a", "t"));
    ASSERT_TRUE(hit->Wait().ok());
    EXPECT_EQ(hit->response().results(0).message(), text);
  }
}

TEST_F(CallTest, NoStoreNeitherLooksUpNorStores) {
  Fill(Request("a", "t"), Response("t", "old", 60));
  auto caller =
      Fill(Request("a", "t"), Response("t", "new", 60),
           {{"cache-control", "no-cache"}, {"cache-control", "x, no-store"}});
  EXPECT_EQ(caller->cache_status(), "fncache; fwd=request");
  auto hit = Send(Request("a", "t"));
  ASSERT_TRUE(hit->Wait().ok());
  EXPECT_EQ(hit->response().results(0).message(), "old");
  EXPECT_EQ(store_->fills, 1);
}

TEST_F(CallTest, ARequestThatCannotBeKeyedReachesTheFunctionAsItIs) {
  const std::string broken("\x0a\xff not protobuf", 15);
  for (int i = 0; i < 2; ++i) {
    auto caller = Send(broken);
    auto call = function_.Next();
    EXPECT_EQ(call->bytes, broken);
    call->Answer(Response("t", "x", 60).SerializeAsString());
    ASSERT_TRUE(caller->Wait().ok());
    EXPECT_EQ(caller->cache_status(), "fncache; fwd=bypass");
  }
  EXPECT_EQ(store_->fills, 0);
  EXPECT_EQ(Bypassed(cache::Reason::kUnreadable), 2u);
}

TEST_F(CallTest, WhatPolicyDoesNotAcceptIsNotStored) {
  auto fatal = Response("t", "x", 60);
  fatal.mutable_results(0)->set_severity(fnv1::SEVERITY_FATAL);
  options_.policy.max_entry_bytes = 1000;
  for (const auto& response :
       {Response("t", "no TTL", -1), Response("t", "zero", 0), fatal,
        Response("t", std::string(1000, 'x'), 60)}) {
    for (int i = 0; i < 2; ++i) {
      auto caller = Fill(Request("a", "t"), response);
      EXPECT_EQ(caller->cache_status(), "fncache; fwd=miss");
      EXPECT_EQ(caller->bytes(), response.SerializeAsString());
    }
  }
  EXPECT_EQ(store_->fills, 0);
}

TEST_F(CallTest, AResponseThatCannotBeReadPassesUntouched) {
  for (int i = 0; i < 2; ++i) {
    auto caller = Send(Request("a", "t"));
    function_.Next()->Answer("\xff\xff");
    ASSERT_TRUE(caller->Wait().ok());
    EXPECT_EQ(caller->bytes(), "\xff\xff");
    EXPECT_EQ(caller->cache_status(), "fncache; fwd=miss");
  }
}

TEST_F(CallTest, AnOkWithoutAMessagePassesAsSuchAndIsNotStored) {
  // Nor is it an empty response, which these would store.
  options_.policy.ttl_default = absl::Seconds(60);
  options_.policy.ttl_override = absl::Seconds(60);
  for (const Metadata& metadata :
       {Metadata{}, Metadata{{"cache-control", "no-cache"}},
        Metadata{{"cache-control", "no-store"}},
        Metadata{{"authorization", "me"}}}) {
    auto caller = Send(Request("a", "t"), metadata);
    auto call = function_.Next();
    call->AddHeader("x-head", "h");
    call->AddTrailer("x-trail", "t");
    call->AnswerNothing();
    EXPECT_TRUE(caller->Wait().ok());
    EXPECT_FALSE(caller->has_message());
    EXPECT_THAT(caller->Headers("x-head"), ElementsAre("h"));
    EXPECT_THAT(caller->Trailers("x-trail"), ElementsAre("t"));
    EXPECT_THAT(caller->cache_status(), Not(HasSubstr("stored")));
  }
  EXPECT_EQ(Counted().fills, 0u);
}

TEST_F(CallTest, AnErrorPassesWithItsDetailsHeadersAndTrailers) {
  auto caller = Send(Request("a", "t"));
  auto call = function_.Next();
  call->AddHeader("x-head", "h");
  call->AddTrailer("x-trail", "t");
  call->Fail(grpc::Status(grpc::StatusCode::ABORTED, "why", "details"));
  const grpc::Status status = caller->Wait();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::ABORTED);
  EXPECT_EQ(status.error_message(), "why");
  EXPECT_EQ(status.error_details(), "details");
  EXPECT_EQ(caller->cache_status(), "fncache; fwd=miss");
  EXPECT_THAT(caller->Headers("x-head"), ElementsAre("h"));
  EXPECT_THAT(caller->Trailers("x-trail"), ElementsAre("t"));
  EXPECT_EQ(Counted().misses, 1u);
}

TEST_F(CallTest, UnimplementedIsNoMissOfTheBuiltInsMetric) {
  auto caller = Send(Request("a", "t"));
  function_.Next()->Fail(grpc::Status(grpc::StatusCode::UNIMPLEMENTED, ""));
  EXPECT_EQ(caller->Wait().error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(caller->cache_status(), "fncache; fwd=miss");
  EXPECT_EQ(Counted().misses, 0u);
}

TEST_F(CallTest, ACacheBehindUsSpeaksFirst) {
  auto caller = Send(Request("a", "t"));
  auto call = function_.Next();
  call->AddHeader("cache-status", "fncache; hit; ttl=3");
  call->Answer(Response("t", "x", 60).SerializeAsString());
  ASSERT_TRUE(caller->Wait().ok());
  EXPECT_THAT(caller->Headers("cache-status"),
              ElementsAre("fncache; hit; ttl=3", "fncache; fwd=miss; stored"));
}

TEST_F(CallTest, AFixedRequeueTtlIsToldOnMissesAndHits) {
  options_.policy.requeue_ttl.kind = cache::RequeueTtl::Kind::kFixed;
  options_.policy.requeue_ttl.fixed = absl::Seconds(5);
  auto miss = Fill(Request("a", "t"), Response("t", "x", 60));
  EXPECT_EQ(miss->response().meta().ttl().seconds(), 5);
  EXPECT_EQ(miss->response().meta().tag(), "t");
  EXPECT_EQ(miss->response().results(0).message(), "x");
  auto hit = Send(Request("a", "u"));
  ASSERT_TRUE(hit->Wait().ok());
  EXPECT_EQ(hit->response().meta().ttl().seconds(), 5);
  // Not stored, but the function gave a TTL; and none where it gave none.
  auto passed = Fill(Request("b", "t"), Response("t", "x", 60),
                     {{"cache-control", "no-store"}});
  EXPECT_EQ(passed->response().meta().ttl().seconds(), 5);
  auto none = Fill(Request("c", "t"), Response("t", "x", -1));
  EXPECT_FALSE(none->response().meta().has_ttl());
}

TEST_F(CallTest, ACallWithoutARequestMessageIsAnswered) {
  Proxy();
  TestCall call(channel_, kRunFunctionV1);
  ASSERT_TRUE(call.Start());
  ASSERT_TRUE(call.HalfClose());
  EXPECT_EQ(call.Finish().error_code(), grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(CallTest, ACallerThatNeverHalfClosesIsAnswered) {
  Proxy();
  TestCall call(channel_, kRunFunctionV1);
  ASSERT_TRUE(call.Start());
  ASSERT_TRUE(call.Write(Request("a", "t")));
  function_.Next()->Answer(Response("t", "x", 60).SerializeAsString());
  std::string bytes;
  ASSERT_TRUE(call.Read(&bytes));
  EXPECT_EQ(bytes, Response("t", "x", 60).SerializeAsString());
  EXPECT_TRUE(call.Finish().ok());
}

TEST_F(CallTest, WhatMemoryDoesNotTakeKeepsTheTtlThatTheFunctionGave) {
  memory_.capacity = 1 << 20;
  options_.policy.ttl_override = absl::Seconds(100);
  const auto large = Response("t", std::string(400'000, 'x'), 60);
  auto miss = Fill(Request("a", "t"), large);
  EXPECT_EQ(miss->cache_status(), "fncache; fwd=miss");
  EXPECT_EQ(miss->bytes(), large.SerializeAsString());
  auto small = Fill(Request("b", "t"), Response("t", "x", 60));
  EXPECT_EQ(small->cache_status(), "fncache; fwd=miss; stored");
  EXPECT_EQ(small->response().meta().ttl().seconds(), 100);
}

}  // namespace
}  // namespace fncache::proxy::serving
