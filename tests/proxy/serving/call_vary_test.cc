// SPDX-License-Identifier: Apache-2.0
// `vary: on`: which requests an answer with a hint serves, and which of several
// entries of one request (docs/depends.md).
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "proxy/serving/call.h"
#include "tests/proxy/serving/call_testing.h"

namespace fncache::proxy::serving {
namespace {

constexpr char kReadsSize[] =
    "reads=(\"observed.composite.resource.spec.size\")";
constexpr char kReadsName[] =
    "reads=(\"observed.composite.resource.spec.name\")";

class CallVaryTest : public CallTest {
 protected:
  void SetUp() override { options_.vary = true; }

  static std::string Of(const std::string& size, const std::string& name,
                        const std::string& input = "i",
                        const std::string& tag = "t") {
    fnv1::RunFunctionRequest request;
    request.mutable_meta()->set_tag(tag);
    auto& object = *request.mutable_observed()
                        ->mutable_composite()
                        ->mutable_resource()
                        ->mutable_fields();
    auto& spec = *object["spec"].mutable_struct_value()->mutable_fields();
    spec["size"].set_string_value(size);
    spec["name"].set_string_value(name);
    (*request.mutable_input()->mutable_fields())["k"].set_string_value(input);
    return request.SerializeAsString();
  }
  static std::string Says(const std::string& text, int ttl = 60) {
    fnv1::RunFunctionResponse response;
    response.mutable_meta()->set_tag("t");
    if (ttl >= 0) response.mutable_meta()->mutable_ttl()->set_seconds(ttl);
    response.add_results()->set_message(text);
    return response.SerializeAsString();
  }

  // A call that reaches the function, which answers with this hint ("" = none).
  CallerPtr Run(const std::string& request, const std::string& hint,
                const std::string& text, int ttl = 60,
                const Metadata& metadata = {}) {
    Proxy().clock.Advance(absl::Milliseconds(10));
    auto caller = Send(request, metadata);
    const auto call = function_.Next();
    if (!hint.empty()) call->AddTrailer("fncache-depends", hint);
    call->Answer(Says(text, ttl));
    EXPECT_TRUE(caller->Wait().ok());
    return caller;
  }
  // Without the time that is left.
  static std::string StatusOf(const CallerPtr& caller) {
    std::string status = caller->cache_status();
    const size_t at = status.find("; ttl=");
    if (at == status.npos) return status;
    return status.erase(at,
                        std::min(status.find(';', at + 1), status.size()) - at);
  }
  // The text of a call that is answered from the cache with this status.
  std::string Hit(const std::string& request, const std::string& status) {
    const int calls = function_.calls();
    auto caller = Send(request);
    EXPECT_TRUE(caller->Wait().ok());
    EXPECT_EQ(StatusOf(caller), status);
    EXPECT_EQ(function_.calls(), calls);
    return caller->response().results(0).message();
  }
  // As an operator does.
  void Purge(const cache::key::Key& key) {
    Proxy().clock.Advance(absl::Milliseconds(10));
    const absl::Time now = Proxy().clock.Now();
    store_->bans()
        .BanKey(key, now, /*soft=*/false, absl::InfiniteFuture())
        .reset();
    proxy_->handler().DetachFlight(key);
    store_->Purge(key, now, now);
  }
  cache::key::Key KeyOf(const std::string& request) {
    cache::key::DigestScratch scratch;
    return Proxy()
        .handler()
        .State()
        ->digester(Method::kV1)
        .Compute({request}, &scratch)
        .key;
  }
  static constexpr char kHintHit[] = "fncache; hit; detail=hint";
};

TEST_F(CallVaryTest, RequestsThatAgreeOnWhatWasReadShareAnAnswer) {
  auto first = Run(Of("1", "a"), kReadsSize, "one");
  EXPECT_EQ(first->cache_status(), "fncache; fwd=miss; stored");
  auto hit = Send(Of("1", "b", "i", "mine"));
  EXPECT_TRUE(hit->Wait().ok());
  EXPECT_EQ(StatusOf(hit), kHintHit);
  EXPECT_EQ(hit->response().meta().tag(), "mine");
  EXPECT_EQ(hit->response().results(0).message(), "one");
  // A read field, the input, and what no mask may hide.
  Run(Of("2", "a"), kReadsSize, "two");
  EXPECT_EQ(Hit(Of("2", "c"), kHintHit), "two");
  EXPECT_EQ(Run(Of("1", "a", "other"), kReadsSize, "three")->cache_status(),
            "fncache; fwd=miss; stored");
  EXPECT_EQ(Counted().Calls(telemetry::Outcome::kHit), 2u);
}

TEST_F(CallVaryTest, WithoutVaryAHintIsPassedOnAndUnused) {
  options_.vary = false;
  auto first = Run(Of("1", "a"), kReadsSize, "one");
  EXPECT_EQ(first->Trailers("fncache-depends"),
            std::vector<std::string>{kReadsSize});
  EXPECT_EQ(Run(Of("1", "b"), kReadsSize, "two")->cache_status(),
            "fncache; fwd=miss; stored");
  EXPECT_EQ(Hit(Of("1", "a"), "fncache; hit"), "one");
}

TEST_F(CallVaryTest, TheHintIsNotPassedOn) {
  EXPECT_TRUE(Run(Of("1", "a"), kReadsSize, "one")
                  ->Trailers("fncache-depends")
                  .empty());
}

TEST_F(CallVaryTest, AnAnswerWithoutAHintIsOfItsRequestAlone) {
  Run(Of("1", "a"), "", "one");
  EXPECT_EQ(Hit(Of("1", "a"), "fncache; hit"), "one");
  Run(Of("1", "b"), "", "two");
  EXPECT_EQ(Hit(Of("1", "b"), "fncache; hit"), "two");
}

TEST_F(CallVaryTest, ARefusedHintIsCountedAndItsAnswerStoredAsWithoutOne) {
  for (const char* hint : {"reads=(", "pure", "reads=(\"no.such\")"}) {
    Run(Of("1", hint), hint, hint);
    EXPECT_EQ(Hit(Of("1", hint), "fncache; hit"), hint);
  }
  EXPECT_EQ(proxy_->handler().VaryFigures().refused, 3u);
  EXPECT_EQ(proxy_->handler().VaryFigures().hints, 0u);
}

TEST_F(CallVaryTest, AHintThatIsTooLongIsRefused) {
  std::string hint = "reads=(";
  for (int i = 0; hint.size() < 6000; ++i) {
    absl::StrAppend(&hint, "\"observed.resources.r", i, "\" ");
  }
  // gRPC's own limit is 8 KiB.
  Run(Of("1", "a"), hint + ")", "one");
  EXPECT_EQ(proxy_->handler().VaryFigures().refused, 0u);
  EXPECT_EQ(Hit(Of("2", "b"), kHintHit), "one");
}

// ---- Several hints.

TEST_F(CallVaryTest, TheLastFourHintsAreTried) {
  const auto hint = [](int i) {
    return absl::StrCat(
        "reads=(\"observed.composite.resource.spec.size\" "
        "\"observed.composite.resource.status.s",
        i, "\")");
  };
  for (int i = 0; i < 5; ++i) {
    Run(Of(absl::StrCat(i), "a"), hint(i), absl::StrCat("answer ", i));
  }
  for (int i = 1; i < 5; ++i) {
    EXPECT_EQ(Hit(Of(absl::StrCat(i), "b"), kHintHit),
              absl::StrCat("answer ", i));
  }
  EXPECT_EQ(proxy_->handler().VaryFigures().hints, 4u);
  // The first is forgotten; and when it comes again, what was stored under it
  // before counts as none.
  Run(Of("8", "c"), hint(9), "other");
  Run(Of("7", "c"), hint(0), "seven");
  Run(Of("0", "b"), hint(0), "again");
  EXPECT_EQ(Hit(Of("0", "d"), kHintHit), "again");
}

TEST_F(CallVaryTest, ALaterAnswerUnderAnotherHintEndsTheEarlierOnes) {
  Run(Of("1", "a"), kReadsSize, "by size");
  Run(Of("2", "n"), kReadsName, "by name");
  // Both hints lead to an entry of this request; the last answer counts.
  Run(Of("1", "a"), kReadsName, "newer", 60, {{"cache-control", "no-cache"}});
  EXPECT_EQ(Hit(Of("1", "a"), kHintHit), "newer");
  // kReadsSize is the newest hint now, and its entry of ("1", "a") is gone.
  Run(Of("3", "x"), kReadsSize, "three");
  EXPECT_EQ(Hit(Of("1", "a"), kHintHit), "newer");
  // So is the plain one.
  Run(Of("1", "a"), "", "plain", 60, {{"cache-control", "no-cache"}});
  EXPECT_EQ(Hit(Of("1", "a"), "fncache; hit"), "plain");
  Run(Of("1", "a"), kReadsSize, "last", 60, {{"cache-control", "no-cache"}});
  EXPECT_EQ(Hit(Of("1", "a"), kHintHit), "last");
}

TEST_F(CallVaryTest, ItAlsoEndsThoseUnderAHintThatCameWhileItRan) {
  options_.policy.stale_if_error = absl::Hours(1);
  // The second time, the answer is not stored.
  for (const int ttl : {1, -1}) {
    const std::string input = absl::StrCat("i", ttl);
    Proxy().clock.Advance(absl::Milliseconds(10));
    auto earlier = Send(Of("1", "x", input));
    const auto of_earlier = function_.Next();
    Proxy().clock.Advance(absl::Milliseconds(10));
    auto later = Send(Of("1", "n", input));
    const auto of_later = function_.Next();
    of_earlier->AddTrailer("fncache-depends", kReadsSize);
    of_earlier->Answer(Says("earlier"));
    EXPECT_TRUE(earlier->Wait().ok());
    EXPECT_EQ(Hit(Of("1", "y", input), kHintHit), "earlier");
    of_later->AddTrailer("fncache-depends", kReadsName);
    of_later->Answer(Says("later", ttl));
    EXPECT_TRUE(later->Wait().ok());
    Proxy().clock.Advance(absl::Seconds(ttl > 0 ? 2 : 61));
    auto last = Send(Of("1", "n", input));
    function_.Next()->Fail(grpc::Status(grpc::StatusCode::UNAVAILABLE, "down"));
    if (ttl > 0) {
      EXPECT_TRUE(last->Wait().ok());
      EXPECT_EQ(last->response().results(0).message(), "later");
    } else {
      EXPECT_EQ(last->Wait().error_code(), grpc::StatusCode::UNAVAILABLE);
    }
  }
}

TEST_F(CallVaryTest, AnEarlierCallThatEndsLaterReplacesNothing) {
  Run(Of("9", "z"), kReadsName, "known");
  Run(Of("8", "y"), kReadsSize, "known");
  const Metadata no_cache = {{"cache-control", "no-cache"}};
  Proxy().clock.Advance(absl::Milliseconds(10));
  auto early = Send(Of("1", "a"), no_cache);
  const auto early_call = function_.Next();
  Run(Of("1", "a"), kReadsName, "late", 60, no_cache);
  early_call->AddTrailer("fncache-depends", kReadsSize);
  early_call->Answer(Says("early"));
  EXPECT_TRUE(early->Wait().ok());
  EXPECT_EQ(Hit(Of("1", "a"), kHintHit), "late");
}

TEST_F(CallVaryTest, AnUncacheableAnswerEndsServingPastTheTimeUnderAllKeys) {
  options_.policy.stale_if_error = absl::Hours(1);
  Run(Of("1", "a"), kReadsSize, "old");
  Run(Of("1", "a"), kReadsSize, "uncacheable", /*ttl=*/-1,
      {{"cache-control", "no-cache"}});
  Proxy().clock.Advance(absl::Seconds(100));
  auto caller = Send(Of("1", "b"));
  function_.Next()->Fail(grpc::Status(grpc::StatusCode::UNAVAILABLE, "down"));
  EXPECT_EQ(caller->Wait().error_code(), grpc::StatusCode::UNAVAILABLE);
}

// ---- Past their time.

TEST_F(CallVaryTest, TheNewestOfTheOldEntriesAnswersIfTheFunctionFails) {
  options_.policy.stale_if_error = absl::Hours(1);
  Run(Of("1", "x"), kReadsSize, "older");
  Proxy().clock.Advance(absl::Seconds(5));
  Run(Of("2", "a"), kReadsName, "newer");
  Proxy().clock.Advance(absl::Seconds(5));
  Run(Of("3", "y"), kReadsSize, "other");
  Proxy().clock.Advance(absl::Seconds(100));
  // kReadsSize is the newest hint, and its entry the older one.
  auto caller = Send(Of("1", "a"));
  function_.Next()->Fail(grpc::Status(grpc::StatusCode::UNAVAILABLE, "down"));
  EXPECT_TRUE(caller->Wait().ok());
  EXPECT_EQ(caller->response().results(0).message(), "newer");
}

TEST_F(CallVaryTest, AnEntryByHintIsRefreshed) {
  options_.policy.stale_while_revalidate = absl::Hours(1);
  Run(Of("1", "a"), kReadsSize, "old");
  Proxy().clock.Advance(absl::Seconds(56));
  auto stale = Send(Of("1", "b"));
  EXPECT_TRUE(stale->Wait().ok());
  EXPECT_EQ(StatusOf(stale), kHintHit);
  EXPECT_NE(stale->cache_status().find("; ttl=-"), std::string::npos);
  const auto call = function_.Next();
  call->AddTrailer("fncache-depends", kReadsSize);
  call->Answer(Says("new"));
  EXPECT_TRUE(Eventually([&] { return proxy_->flights().empty(); }));
  EXPECT_EQ(Hit(Of("1", "c"), kHintHit), "new");
}

// ---- Lifetimes.

TEST_F(CallVaryTest, APureAnswerLivesForTtlMaxAndKeepsTheFunctionsTtl) {
  options_.policy.ttl_max = absl::Hours(10);
  const std::string pure = absl::StrCat(kReadsSize, ", pure");
  auto first = Run(Of("1", "a"), pure, "one");
  EXPECT_EQ(first->response().meta().ttl().seconds(), 60);
  Proxy().clock.Advance(absl::Hours(8));
  auto hit = Send(Of("1", "b"));
  EXPECT_TRUE(hit->Wait().ok());
  EXPECT_EQ(hit->cache_status(), "fncache; hit; ttl=3600; detail=hint");
  EXPECT_EQ(hit->response().meta().ttl().seconds(), 60);
  Proxy().clock.Advance(absl::Hours(2));
  Run(Of("1", "b"), pure, "two");
}

TEST_F(CallVaryTest, WithoutTtlMaxAPureAnswerLivesUntilItIsEvicted) {
  options_.policy.ttl_max = absl::ZeroDuration();
  Run(Of("1", "a"), absl::StrCat("pure, ", kReadsSize), "one");
  Proxy().clock.Advance(absl::Hours(24 * 365 * 100));
  auto hit = Send(Of("1", "b"));
  EXPECT_TRUE(hit->Wait().ok());
  EXPECT_EQ(hit->response().results(0).message(), "one");
  EXPECT_EQ(hit->response().meta().ttl().seconds(), 60);
}

TEST_F(CallVaryTest, PureMakesNothingCacheableThatIsNot) {
  const std::string pure = absl::StrCat(kReadsSize, ", pure");
  Run(Of("1", "a"), pure, "zero", /*ttl=*/0);
  Run(Of("1", "a"), pure, "none", /*ttl=*/-1);
  Run(Of("1", "a"), pure, "third");
}

TEST_F(CallVaryTest, AnOperatorsLifetimeIsStronger) {
  options_.policy.ttl_override = absl::Seconds(100);
  Run(Of("1", "a"), absl::StrCat(kReadsSize, ", pure"), "one");
  auto hit = Send(Of("1", "b"));
  EXPECT_TRUE(hit->Wait().ok());
  EXPECT_EQ(hit->cache_status(), "fncache; hit; ttl=90; detail=hint");
}

// ---- Bypass, flights, purge.

TEST_F(CallVaryTest, NoStoreAndBypassUseNoHint) {
  Run(Of("1", "a"), kReadsSize, "one");
  for (const auto& [key, value] :
       Metadata{{"cache-control", "no-store"}, {"authorization", "me"}}) {
    Run(Of("1", "b"), kReadsSize, "two", 60, {{key, value}});
  }
  EXPECT_EQ(Hit(Of("1", "b"), kHintHit), "one");
}

TEST_F(CallVaryTest, EqualRequestsJoinOneCall) {
  auto leader = Send(Of("1", "a"));
  const auto call = function_.Next();
  auto joined = Send(Of("1", "a"));
  WaitForCallers(2);
  call->AddTrailer("fncache-depends", kReadsSize);
  call->Answer(Says("one"));
  EXPECT_TRUE(leader->Wait().ok());
  EXPECT_TRUE(joined->Wait().ok());
  EXPECT_EQ(joined->cache_status(), "fncache; fwd=miss; collapsed; stored");
  EXPECT_EQ(function_.calls(), 1);
}

// A caller that waited behind a call that brought the hint finds its entry.
TEST_F(CallVaryTest, AReleasedCallerLooksUnderHintsThatCameMeanwhile) {
  options_.policy.max_released = 1;
  auto leader = Send(Of("1", "a"));
  const auto call = function_.Next();
  auto first = Send(Of("1", "a"));
  WaitForCallers(2);
  auto second = Send(Of("1", "a"));
  WaitForCallers(3);
  call->Answer(Says("alone", /*ttl=*/-1));
  EXPECT_TRUE(leader->Wait().ok());
  const auto released = function_.Next();
  released->AddTrailer("fncache-depends", kReadsSize);
  released->Answer(Says("shared"));
  EXPECT_TRUE(first->Wait().ok());
  EXPECT_TRUE(second->Wait().ok());
  EXPECT_EQ(function_.calls(), 2);
  EXPECT_EQ(second->response().results(0).message(), "shared");
}

TEST_F(CallVaryTest, APurgedKeyLetsNoEarlierEntryComeBack) {
  Run(Of("1", "n"), "", "plain");
  // Another request brings an entry that answers this one first.
  Run(Of("1", "x"), kReadsSize, "by hint");
  EXPECT_EQ(Hit(Of("1", "n"), kHintHit), "by hint");
  const std::string request = Of("1", "n");
  const auto key =
      proxy_->handler().KeyOfHit(Method::kV1, request, KeyOf(request));
  EXPECT_NE(key, KeyOf(request));
  Purge(key);
  EXPECT_EQ(Run(request, "", "new")->cache_status(),
            "fncache; fwd=miss; stored");
  EXPECT_EQ(Hit(request, "fncache; hit"), "new");
  // Others are not affected.
  Run(Of("2", "x"), kReadsSize, "two");
  EXPECT_EQ(Hit(Of("2", "y"), kHintHit), "two");
}

TEST_F(CallVaryTest, APurgeOfTheRequestsOwnKeyEndsItsEntryByHint) {
  const std::string request = Of("1", "n");
  Run(request, kReadsSize, "old");
  Run(Of("2", "n"), kReadsSize, "other");
  EXPECT_EQ(Hit(request, kHintHit), "old");
  Purge(KeyOf(request));
  EXPECT_EQ(proxy_->handler().KeyOfHit(Method::kV1, request, KeyOf(request)),
            KeyOf(request));
  EXPECT_EQ(Hit(Of("2", "y"), kHintHit), "other");
  Run(request, kReadsSize, "new");
  EXPECT_EQ(Hit(request, kHintHit), "new");
}

TEST_F(CallVaryTest, ALookUpNamesTheEntryThatAHitTakes) {
  const std::string request = Of("1", "n");
  const auto key = [&] {
    return proxy_->handler().KeyOfHit(Method::kV1, request, KeyOf(request));
  };
  Run(request, "", "plain");
  EXPECT_EQ(key(), KeyOf(request));
  Run(Of("1", "x"), kReadsSize, "by size");
  const auto by_size = key();
  EXPECT_NE(by_size, KeyOf(request));
  Run(Of("5", "n"), kReadsName, "by name");
  EXPECT_NE(key(), by_size);
  EXPECT_EQ(Hit(request, kHintHit), "by name");
}

// ---- Below memory.

TEST_F(CallVaryTest, LooksBelowUnderEachKeyTheNewestHintFirst) {
  has_lower_ = true;
  const auto run = [&](const std::string& request, const char* hint,
                       int lookups) {
    Proxy().clock.Advance(absl::Milliseconds(10));
    auto caller = Send(request);
    for (int i = 0; i < lookups; ++i) store_->NextLookup()({});
    const auto call = function_.Next();
    call->AddTrailer("fncache-depends", hint);
    call->Answer(Says(hint));
    EXPECT_TRUE(caller->Wait().ok());
  };
  run(Of("1", "a"), kReadsSize, 1);
  run(Of("2", "b"), kReadsName, 2);
  run(Of("3", "c"), kReadsName, 3);
  // An entry that only the lower tier has.
  const std::string request = Of("1", "d");
  const auto key =
      proxy_->handler().KeyOfHit(Method::kV1, request, KeyOf(request));
  const auto entry = store_->GetMemory(key, proxy_->clock.Now()).entry;
  ASSERT_TRUE(entry);
  store_->Erase(key);
  auto caller = Send(request);
  store_->NextLookup()({});
  store_->NextLookup()({entry, false});
  EXPECT_TRUE(caller->Wait().ok());
  EXPECT_EQ(StatusOf(caller), kHintHit);
}

// ---- Large requests.

TEST_F(CallVaryTest, LargeRequestsAreTheSame) {
  for (const size_t bytes : {100u << 10, 3u << 20}) {
    const auto large = [&](const std::string& name) {
      fnv1::RunFunctionRequest request;
      EXPECT_TRUE(request.ParseFromString(Of("1", name)));
      (*(*request.mutable_observed()->mutable_resources())["r"]
            .mutable_resource()
            ->mutable_fields())["large"]
          .set_string_value(std::string(bytes, name[0]));
      (*request.mutable_input()->mutable_fields())["of"].set_number_value(
          static_cast<double>(bytes));
      return request.SerializeAsString();
    };
    Run(large("a"), kReadsSize, "one");
    EXPECT_EQ(Hit(large("b"), kHintHit), "one");
  }
}

}  // namespace
}  // namespace fncache::proxy::serving
