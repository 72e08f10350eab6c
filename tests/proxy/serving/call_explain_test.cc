// SPDX-License-Identifier: Apache-2.0
// How calls explain their misses: in cache-status, in metrics, and about masks
// that match nothing.
#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proxy/serving/cache_headers.h"
#include "tests/proxy/serving/call_testing.h"

namespace fncache::proxy::serving {
namespace {

using insight::explain::Explanation;
using insight::trace::Reason;
using ::testing::HasSubstr;

class CallExplainTest : public CallTest {
 protected:
  CallExplainTest() { explains_ = true; }

  std::string Missed(const std::string& request,
                     const fnv1::RunFunctionResponse& response) {
    return Fill(request, response)->cache_status();
  }
  // One path changed besides drift where the answer stayed the same.
  void ExpectUnread(const std::string& path, uint64_t count) {
    const auto unread = Proxy().misses().Tops(1)[0].unread;
    ASSERT_EQ(unread.size(), 1u);
    EXPECT_EQ(unread[0].path, path);
    EXPECT_EQ(unread[0].mask, path);
    EXPECT_EQ(unread[0].count, count);
  }
  uint64_t Count(Reason reason) {
    return Counted().missed[telemetry::MissReasonIndex(reason)];
  }
};

// A request of another composite.
std::string Of(int composite) {
  fnv1::RunFunctionRequest request;
  auto* const object = request.mutable_observed()
                           ->mutable_composite()
                           ->mutable_resource()
                           ->mutable_fields();
  (*(*object)["metadata"].mutable_struct_value()->mutable_fields())["name"]
      .set_string_value(absl::StrCat(composite));
  return request.SerializeAsString();
}

// A request of one composite whose resource has this version and status.
std::string Drifted(const std::string& version, const std::string& phase = "") {
  fnv1::RunFunctionRequest request;
  fnv1::State* const observed = request.mutable_observed();
  observed->mutable_composite()->mutable_resource();
  auto* const object = (*observed->mutable_resources())["r"]
                           .mutable_resource()
                           ->mutable_fields();
  const auto set = [object](const char* in, const char* key,
                            const std::string& text) {
    (*(*object)[in].mutable_struct_value()->mutable_fields())[key]
        .set_string_value(text);
  };
  set("metadata", "resourceVersion", version);
  set("status", "phase", phase);
  return request.SerializeAsString();
}

TEST_F(CallExplainTest, RepeatsCountByWhatWouldSaveThem) {
  using insight::explain::RepeatOver;
  const auto repeats = [this](RepeatOver over) {
    return Counted().repeats[static_cast<size_t>(over)];
  };
  const auto kept = Response("", "x", 60);
  Missed(Drifted("1"), kept);
  Missed(Drifted("2"), kept);
  EXPECT_EQ(repeats(RepeatOver::kDrift), 1u);
  Missed(Drifted("3"), Response("", "y", 60));
  Missed(Drifted("4"), Response("", "y", 61));
  EXPECT_EQ(Counted().examined, 4u);
  EXPECT_EQ(repeats(RepeatOver::kDrift), 1u);
  Proxy().clock.Advance(absl::Seconds(61));
  Missed(Drifted("4"), Response("", "y", 61));
  EXPECT_EQ(repeats(RepeatOver::kTime), 1u);
  Missed(Drifted("5", "Ready"), Response("", "y", 61));
  EXPECT_EQ(repeats(RepeatOver::kOther), 1u);
  ExpectUnread("observed.resources.r.resource.status.phase", 1);
  // A large answer is read by another thread.
  const auto large = Response("", std::string(200 << 10, 'x'), 60);
  Missed(Drifted("6"), large);
  Missed(Drifted("7"), large);
  EXPECT_EQ(repeats(RepeatOver::kDrift), 2u);
  // These are no misses, or have no answer.
  EXPECT_EQ(Counted().examined, 8u);
  Fill(Drifted("7"), large, {{"cache-control", "no-cache"}});
  Fill(Drifted("7"), large, {{"cache-control", "no-store"}});
  auto failed = Send(Drifted("8"));
  function_.Next()->Fail(grpc::Status(grpc::StatusCode::INTERNAL, "no"));
  EXPECT_FALSE(failed->Wait().ok());
  EXPECT_EQ(Counted().examined, 8u);
  EXPECT_EQ(repeats(RepeatOver::kDrift), 2u);
  EXPECT_EQ(repeats(RepeatOver::kTime), 1u);
  EXPECT_EQ(repeats(RepeatOver::kOther), 1u);
}

TEST_F(CallExplainTest, AMissOverDriftIsRememberedAndNotCounted) {
  options_.tune = true;
  const auto kept = Response("", "x", 60);
  constexpr char kUnproven[] =
      "fncache; fwd=miss; stored; detail=\"drift: unproven\"";
  EXPECT_EQ(Missed(Drifted("1"), kept),
            "fncache; fwd=miss; stored; detail=new");
  EXPECT_EQ(Missed(Drifted("2"), kept), kUnproven);
  EXPECT_EQ(Count(Reason::kDrift), 1u);
  const auto last = Proxy().misses().Last(1, "");
  EXPECT_EQ(last[0].why.reason, Reason::kDrift);
  EXPECT_EQ(last[0].why.detail, "unproven");
  EXPECT_EQ(Missed(Drifted("3", "Ready"), kept),
            "fncache; fwd=miss; stored; detail=\"changed: "
            "observed.resources.r.resource.status.phase\"");
  // Paths that changed without another answer are named with tuning, too.
  EXPECT_EQ(Counted().examined, 0u);
  ExpectUnread("observed.resources.r.resource.status.phase", 1);
}

TEST_F(CallExplainTest, EachMissSaysWhy) {
  const auto kept = Response("", "x", 60);
  EXPECT_EQ(Missed(Request("a", "t"), kept),
            "fncache; fwd=miss; stored; detail=new");
  EXPECT_EQ(Missed(Request("b", "t"), Response("", "x", -1)),
            "fncache; fwd=miss; detail=\"changed: context.name\"");
  EXPECT_EQ(Missed(Request("b", "t"), kept),
            "fncache; fwd=miss; stored; detail=\"not-stored: no-ttl\"");
  Proxy().clock.Advance(absl::Seconds(60));
  EXPECT_EQ(Missed(Request("b", "t"), kept),
            "fncache; fwd=stale; stored; detail=expired");
  auto fatal = Response("", "x", 60);
  fatal.mutable_results(0)->set_severity(fnv1::SEVERITY_FATAL);
  EXPECT_EQ(Missed(Request("c", "t"), fatal),
            "fncache; fwd=miss; detail=\"changed: context.name\"");
  EXPECT_EQ(Missed(Request("c", "t"), kept),
            "fncache; fwd=miss; stored; detail=\"not-stored: fatal\"");
  EXPECT_EQ(Count(Reason::kNew), 1u);
  EXPECT_EQ(Count(Reason::kChanged), 2u);
  EXPECT_EQ(Count(Reason::kNotStored), 2u);
  EXPECT_EQ(Count(Reason::kExpired), 1u);
}

TEST_F(CallExplainTest, WhatFailedIsNotStored) {
  options_.policy.max_entry_bytes = 100;
  auto failed = Send(Request("a", "t"));
  function_.Next()->Fail(grpc::Status(grpc::StatusCode::INTERNAL, "no"));
  EXPECT_FALSE(failed->Wait().ok());
  EXPECT_EQ(failed->cache_status(), "fncache; fwd=miss; detail=new");
  EXPECT_EQ(Missed(Request("a", "t"), Response("", std::string(200, 'x'), 60)),
            "fncache; fwd=miss; detail=\"not-stored: error\"");
  EXPECT_EQ(Missed(Request("a", "t"), Response("", "x", 60)),
            "fncache; fwd=miss; stored; detail=\"not-stored: too-large\"");
}

TEST_F(CallExplainTest, ACallerThatLeftLeavesItsAnswerUnstored) {
  auto left = Send(Request("a", "t"));
  auto call = function_.Next();
  left->context.TryCancel();
  EXPECT_FALSE(left->Wait().ok());
  EXPECT_TRUE(Eventually([&] { return Proxy().flights().empty(); }));
  EXPECT_EQ(Missed(Request("a", "t"), Response("", "x", 60)),
            "fncache; fwd=miss; stored; detail=\"not-stored: abandoned\"");
}

TEST_F(CallExplainTest, WhatModeOffKeptOutMeanwhileSaysSo) {
  auto running = Send(Request("a", "t"));
  auto call = function_.Next();
  settings::FunctionOptions off = options_;
  off.policy.mode = cache::Mode::kOff;
  Proxy().handler().Replace(off);
  call->Answer(Response("", "x", 60).SerializeAsString());
  ASSERT_TRUE(running->Wait().ok());
  EXPECT_EQ(running->cache_status(), "fncache; fwd=miss; detail=new");
  Proxy().handler().Replace(options_);
  EXPECT_EQ(Missed(Request("a", "t"), Response("", "x", 60)),
            "fncache; fwd=miss; stored; detail=\"not-stored: mode-off\"");
}

TEST_F(CallExplainTest, SecretsThatSettingsKeepNoMoreSaySo) {
  auto secret = Response("", "x", 60);
  (*secret.mutable_desired()
        ->mutable_composite()
        ->mutable_connection_details())["password"] = "p";
  Missed(Request("a", "t"), secret);
  Missed(Request("b", "t"), Response("", "x", 60));
  auto running = Send(Request("c", "t"));
  auto call = function_.Next();
  settings::FunctionOptions none = options_;
  none.policy.store_secrets = cache::StoreSecrets::kNone;
  Proxy().handler().Replace(none);
  store_->EraseSecrets(0);
  call->Answer(secret.SerializeAsString());
  ASSERT_TRUE(running->Wait().ok());
  constexpr char kSecrets[] = "; detail=\"not-stored: secrets\"";
  EXPECT_EQ(Missed(Request("a", "t"), secret),
            absl::StrCat("fncache; fwd=miss", kSecrets));
  EXPECT_EQ(Missed(Request("c", "t"), secret),
            absl::StrCat("fncache; fwd=miss", kSecrets));
  auto hit = Send(Request("b", "t"));
  ASSERT_TRUE(hit->Wait().ok());
  EXPECT_EQ(hit->cache_status(), "fncache; hit; ttl=54");
}

// Its own answer could not replace a later one, whose time was over.
TEST_F(CallExplainTest, AnAnswerThatCameAfterALaterOnesTimeIsExpired) {
  auto slow = Send(Of(0));
  auto call = function_.Next();
  Proxy().clock.Advance(absl::Seconds(1));
  Fill(Of(0), Response("", "x", 60), {{"cache-control", "no-cache"}});
  Proxy().clock.Advance(absl::Seconds(57));
  call->Answer(Response("", "x", 60).SerializeAsString());
  ASSERT_TRUE(slow->Wait().ok());
  EXPECT_EQ(slow->cache_status(), "fncache; fwd=miss; detail=new");
  store_->Erase(Proxy().misses().Last(1, "")[0].key);
  EXPECT_EQ(Missed(Of(0), Response("", "x", 60)),
            "fncache; fwd=miss; stored; detail=expired");
}

TEST_F(CallExplainTest, WhatWentToMakeRoomWasEvicted) {
  memory_.capacity = 16 << 10;
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(Missed(Of(i), Response("", std::string(3000, 'x'), 60)),
              "fncache; fwd=miss; stored; detail=new");
  }
  EXPECT_EQ(Missed(Of(0), Response("", "x", 60)),
            "fncache; fwd=miss; stored; detail=evicted");
}

TEST_F(CallExplainTest, HitsAndThoseWhoAskForNewAnswersSayNothing) {
  Missed(Request("a", "t"), Response("", "x", 60));
  auto hit = Send(Request("a", "t"));
  ASSERT_TRUE(hit->Wait().ok());
  EXPECT_EQ(hit->cache_status(), "fncache; hit; ttl=54");
  EXPECT_EQ(Fill(Request("a", "t"), Response("", "x", 60),
                 {{"cache-control", "no-cache"}})
                ->cache_status(),
            "fncache; fwd=request; stored");
}

TEST_F(CallExplainTest, WithoutItsMemoryItCountsWhatItKnows) {
  explains_ = false;
  EXPECT_EQ(Missed(Request("a", "t"), Response("", "x", 60)),
            "fncache; fwd=miss; stored");
  Proxy().clock.Advance(absl::Seconds(60));
  EXPECT_EQ(Missed(Request("a", "t"), Response("", "x", 60)),
            "fncache; fwd=stale; stored");
  EXPECT_EQ(Count(Reason::kUnknown), 1u);
  EXPECT_EQ(Count(Reason::kExpired), 1u);
}

TEST_F(CallExplainTest, AMaskThatMatchesNothingIsWarnedOfOnce) {
  options_.masks = *cache::key::MaskSet::Parse(
      {"context.name", "context.other", "@times", "@versions"});
  Missed(Request("a", "t"), Response("", "x", 60));
  const auto send = [this](int count) {
    for (int i = 0; i < count; ++i) {
      auto hit = Send(Request(absl::StrCat(i), "t"));
      ASSERT_TRUE(hit->Wait().ok());
    }
  };
  testing::internal::CaptureStderr();
  send(998);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  testing::internal::CaptureStderr();
  send(1);
  const std::string log = testing::internal::GetCapturedStderr();
  constexpr char kWarning[] =
      "warning a mask matched nothing in the function's first 1,000 requests "
      "function=function mask=";
  for (const char* mask : {"context.other\n", "@times\n", "@versions\n"}) {
    EXPECT_THAT(log, HasSubstr(absl::StrCat(kWarning, mask)));
  }
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 3) << log;
  testing::internal::CaptureStderr();
  send(1100);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

// The warning names a set of which only some paths lie below another mask.
TEST_F(CallExplainTest, ASetBesideMasksThatHoldSomeOfItIsWarnedOfByItsName) {
  options_.masks =
      *cache::key::MaskSet::Parse({"@versions", "@times", "context.name",
                                   "observed.composite.resource.status"});
  Missed(Request("a", "t"), Response("", "x", 60));
  testing::internal::CaptureStderr();
  for (int i = 0; i < 1000; ++i) {
    auto hit = Send(Request(absl::StrCat(i), "t"));
    ASSERT_TRUE(hit->Wait().ok());
  }
  const std::string log = testing::internal::GetCapturedStderr();
  for (const char* mask : {"mask=@versions\n", "mask=@times\n"}) {
    EXPECT_THAT(log, HasSubstr(mask));
  }
  EXPECT_THAT(log, ::testing::Not(HasSubstr("mask=observed.resources")));
}

TEST(MissDetail, IsAStringThatHeadersMayHold) {
  const auto changed = [](const std::string& path,
                          const std::string& section = "") {
    Explanation why;
    why.reason = Reason::kChanged;
    why.detail = path;
    why.section = section;
    return MissDetail(why);
  };
  EXPECT_EQ(MissDetail({}), "; detail=unknown");
  EXPECT_EQ(changed(""), "; detail=changed");
  EXPECT_EQ(changed("", "observed resource"),
            "; detail=\"changed: in observed resource\"");
  EXPECT_EQ(changed("a.\"b\\c\""), "; detail=\"changed: a.\\\"b\\\\c\\\"\"");
  EXPECT_EQ(changed("a\r\nx: y\x80"), "; detail=\"changed: a??x: y?\"");
  const std::string cut = changed(std::string(5000, 'x'));
  EXPECT_LT(cut.size(), 300u);
  EXPECT_THAT(cut, HasSubstr("x...\""));
}

}  // namespace
}  // namespace fncache::proxy::serving
