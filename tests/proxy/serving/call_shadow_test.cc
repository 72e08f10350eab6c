// SPDX-License-Identifier: Apache-2.0
// `mode: shadow`: everything is forwarded, entries are kept as under `on`, and
// what they would have said is compared with what the function says.
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proxy/telemetry/shadow_text.h"
#include "proxy/telemetry/shadow_verdict.h"
#include "tests/proxy/serving/call_testing.h"

namespace fncache::proxy::serving {
namespace {

using telemetry::Judge;
using telemetry::ShadowBy;
using telemetry::ShadowJudgement;
using telemetry::ShadowReport;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kVersion[] =
    "observed.composite.resource.metadata.resourceVersion";
constexpr char kConditions[] = "observed.composite.resource.status.conditions";

class ShadowTest : public CallTest {
 protected:
  ShadowTest() {
    options_.policy.mode = cache::Mode::kShadow;
    Mask({kVersion, kConditions});
  }

  void Mask(const std::vector<std::string>& paths) {
    options_.masks = *cache::key::MaskSet::Parse(paths);
  }

  // A composite's request: its name, what it wants, and what masks hide.
  static std::string Composite(const std::string& name,
                               const std::string& version,
                               const std::string& condition = "False") {
    fnv1::RunFunctionRequest request;
    request.mutable_meta()->set_tag(absl::StrCat(name, version, condition));
    auto* const fields = request.mutable_observed()
                             ->mutable_composite()
                             ->mutable_resource()
                             ->mutable_fields();
    (*fields)["kind"].set_string_value("XBucket");
    auto* const metadata =
        (*fields)["metadata"].mutable_struct_value()->mutable_fields();
    (*metadata)["name"].set_string_value(name);
    (*metadata)["resourceVersion"].set_string_value(version);
    (*(*(*fields)["status"]
            .mutable_struct_value()
            ->mutable_fields())["conditions"]
          .mutable_list_value()
          ->add_values()
          ->mutable_struct_value()
          ->mutable_fields())["status"]
        .set_string_value(condition);
    return request.SerializeAsString();
  }

  // A response that holds `texts` under keys of their numbers.
  static fnv1::RunFunctionResponse Answer(const std::vector<std::string>& texts,
                                          int ttl = 60) {
    fnv1::RunFunctionResponse response = Response("t", "done", ttl);
    auto* const fields = (*response.mutable_desired()->mutable_resources())["r"]
                             .mutable_resource()
                             ->mutable_fields();
    for (size_t i = 0; i < texts.size(); ++i) {
      (*fields)[absl::StrCat("field", i)].set_string_value(texts[i]);
    }
    return response;
  }

  // A call that the function answers so, and that is expected to be forwarded.
  CallerPtr Call(const std::string& request,
                 const fnv1::RunFunctionResponse& response,
                 const Metadata& metadata = {}) {
    const std::string bytes = response.SerializeAsString();
    auto caller = Send(request, metadata);
    function_.Next()->Answer(bytes);
    EXPECT_TRUE(caller->Wait().ok());
    EXPECT_EQ(caller->bytes(), bytes);
    return caller;
  }

  ShadowReport Report() { return Proxy().shadow(); }
  std::string Metrics() {
    const std::string all = Proxy().instruments.registry()->Expose();
    std::string text;
    for (const absl::string_view line : absl::StrSplit(all, '\n')) {
      if (absl::StartsWith(line, "fncache_shadow_")) {
        absl::StrAppend(&text, line, "\n");
      }
    }
    return text;
  }
};

TEST_F(ShadowTest, EveryCallIsForwardedAndItsAnswerUntouched) {
  options_.policy.requeue_ttl.kind = cache::RequeueTtl::Kind::kFixed;
  options_.policy.requeue_ttl.fixed = absl::Seconds(5);
  options_.policy.ttl_min = absl::Hours(1);
  auto caller = Call(Composite("a", "1"), Answer({"x"}));
  EXPECT_EQ(caller->cache_status(),
            "fncache; fwd=bypass; stored; detail=shadow");
  caller = Call(Composite("a", "2"), Answer({"x"}));
  EXPECT_EQ(caller->cache_status(), "fncache; fwd=bypass; detail=shadow");
  EXPECT_EQ(function_.calls(), 2);
  const auto counts = Counted();
  EXPECT_EQ(counts.hits, 0);
  EXPECT_EQ(counts.misses, 0);
  EXPECT_EQ(counts.Calls(telemetry::Outcome::kBypass), 2);
  EXPECT_EQ(counts.Calls(), 2);
  EXPECT_EQ(counts.fills, 1);
}

TEST_F(ShadowTest, HitsByMasksAreToldFromExactRepeats) {
  Call(Composite("a", "1"), Answer({"x"}));
  Call(Composite("a", "2"), Answer({"x"}));
  Call(Composite("a", "1"), Answer({"x"}));
  Call(Composite("b", "1"), Answer({"y"}));
  const ShadowReport report = Report();
  EXPECT_EQ(report.function, options_.name);
  EXPECT_EQ(report.lookups, 4);
  EXPECT_EQ(report.of(ShadowBy::kMask).hits, 1);
  EXPECT_EQ(report.of(ShadowBy::kExact).hits, 1);
  EXPECT_EQ(report.of(ShadowBy::kUnknown).hits, 0);
  EXPECT_EQ(report.of(ShadowBy::kMask).differences, 0);
  EXPECT_EQ(report.of(ShadowBy::kExact).differences, 0);
  EXPECT_EQ(report.composites, 2);
  EXPECT_EQ(report.mask_composites, 1);
  EXPECT_EQ(report.masked_values, 2);
  ASSERT_EQ(report.masks.size(), 2);
  EXPECT_EQ(report.masks[0].path, kVersion);
  EXPECT_EQ(report.masks[0].values, 2);
  EXPECT_EQ(report.masks[0].changed.hits, 1);
  EXPECT_EQ(report.masks[0].alone.hits, 1);
  EXPECT_EQ(report.masks[1].path, kConditions);
  EXPECT_EQ(report.masks[1].values, 1);
  EXPECT_EQ(report.masks[1].changed.hits, 0);
  EXPECT_EQ(Judge(report).judgement, ShadowJudgement::kNotEnough);
  EXPECT_THAT(Metrics(),
              HasSubstr("fncache_shadow_lookups_total{function_name=\"function"
                        "\"} 4\n"));
  EXPECT_THAT(Metrics(), HasSubstr("fncache_shadow_hits_total{function_name="
                                   "\"function\",by=\"mask\"} 1\n"));
  EXPECT_THAT(Metrics(), HasSubstr("fncache_shadow_hits_total{function_name="
                                   "\"function\",by=\"exact\"} 1\n"));
}

TEST_F(ShadowTest, AMaskOverWhatTheFunctionReadsIsFoundAndNamed) {
  // It passes the condition on, and does not read the version.
  Call(Composite("a", "1", "False"), Answer({"same", "False"}));
  Call(Composite("a", "2", "False"), Answer({"same", "False"}));
  Call(Composite("a", "2", "True"), Answer({"same", "True"}));
  Call(Composite("a", "1", "Unknown"), Answer({"same", "Unknown"}));
  const ShadowReport report = Report();
  EXPECT_EQ(report.of(ShadowBy::kMask).hits, 3);
  EXPECT_EQ(report.of(ShadowBy::kMask).differences, 2);
  EXPECT_EQ(report.masks[0].changed.differences, 1);
  EXPECT_EQ(report.masks[0].alone.differences, 0);
  EXPECT_EQ(report.masks[1].changed.differences, 2);
  EXPECT_EQ(report.masks[1].alone.differences, 1);
  ASSERT_EQ(report.paths.size(), 1);
  EXPECT_EQ(report.paths[0].path, "desired.resources.r.resource.field1");
  EXPECT_EQ(report.paths[0].sum(), 2);
  // It might vary by itself.
  EXPECT_EQ(Judge(report).judgement, ShadowJudgement::kSuspect);
  for (int i = 0; i < 30; ++i) {
    Call(Composite("a", "1", "False"), Answer({"same", "False"}));
  }
  EXPECT_EQ(Judge(Report()).judgement, ShadowJudgement::kWrong);
  const std::string text = telemetry::ShadowText({Report()});
  EXPECT_THAT(text, HasSubstr(absl::StrCat("do not mask ", kConditions)));
  EXPECT_THAT(text, Not(HasSubstr(absl::StrCat("do not mask ", kVersion))));
  EXPECT_THAT(Metrics(),
              HasSubstr("fncache_shadow_differences_total{function_name="
                        "\"function\",by=\"mask\"} 2\n"));
}

TEST_F(ShadowTest, TheLogNamesPathsAndHashesAndNoValues) {
  testing::internal::CaptureStderr();
  Call(Composite("a", "1", "False"), Answer({"secret-value-1"}));
  Call(Composite("a", "1", "True"), Answer({"secret-value-2"}));
  // Within ten seconds it says no more.
  Call(Composite("a", "2", "True"), Answer({"secret-value-3"}));
  Proxy().clock.Advance(absl::Seconds(11));
  Call(Composite("a", "3", "True"), Answer({"secret-value-4"}));
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("XBucket a"));
  EXPECT_THAT(log, HasSubstr(kConditions));
  EXPECT_THAT(log, HasSubstr("desired.resources.r.resource.field0"));
  EXPECT_THAT(log, HasSubstr("unlogged=1"));
  EXPECT_THAT(log, Not(HasSubstr("secret-value")));
  size_t lines = 0;
  for (size_t at = log.find("shadow: "); at != log.npos;
       at = log.find("shadow: ", at + 1)) {
    ++lines;
  }
  EXPECT_EQ(lines, 2) << log;
}

TEST_F(ShadowTest, AFunctionThatVariesByItselfIsToldByTheControl) {
  int n = 0;
  const auto varying = [&n] { return Answer({"same", absl::StrCat(++n)}); };
  Call(Composite("a", "1"), varying());
  for (int i = 0; i < 30; ++i) Call(Composite("a", "1"), varying());
  for (int i = 0; i < 10; ++i) {
    Call(Composite("a", absl::StrCat(i + 2)), varying());
  }
  const ShadowReport report = Report();
  EXPECT_EQ(report.of(ShadowBy::kExact).differences, 30);
  EXPECT_EQ(report.of(ShadowBy::kMask).differences, 10);
  EXPECT_EQ(report.paths[0].differences[0], 10);
  EXPECT_EQ(report.paths[0].differences[1], 30);
  EXPECT_EQ(Judge(report).judgement, ShadowJudgement::kVaries);
  // The control says nothing of another composite.
  Call(Composite("b", "1"), varying());
  Call(Composite("b", "2"), varying());
  EXPECT_EQ(Report().unrepeated, 1);
  EXPECT_EQ(Judge(Report()).judgement, ShadowJudgement::kSuspect);
  Call(Composite("b", "1"), varying());
  EXPECT_EQ(Report().unrepeated, 0);
  EXPECT_EQ(Judge(Report()).judgement, ShadowJudgement::kVaries);
}

TEST_F(ShadowTest, AnAnswerThatVariesDoesNotHideAMaskThatIsWrong) {
  // It passes the condition on, and something else each time.
  int n = 0;
  const auto call = [&](const std::string& version,
                        const std::string& condition) {
    Call(Composite("a", version, condition),
         Answer({absl::StrCat(++n), condition}));
  };
  call("x", "x");
  for (int i = 0; i < 9; ++i) call("x", "x");
  for (int i = 0; i < 40; ++i) call(absl::StrCat(i), "x");
  for (int i = 0; i < 40; ++i) call("x", absl::StrCat(i));
  const ShadowReport report = Report();
  EXPECT_EQ(report.of(ShadowBy::kExact).differences, 9);
  EXPECT_EQ(report.of(ShadowBy::kMask).differences, 80);
  EXPECT_EQ(Judge(report).judgement, ShadowJudgement::kWrong);
  const std::string text = telemetry::ShadowText({report});
  EXPECT_THAT(text, HasSubstr("but not as much at desired.resources.r.resource."
                              "field1: there 40 and 0 differed"));
  EXPECT_THAT(text,
              HasSubstr(absl::StrCat("do not mask ", kConditions,
                                     ": where it alone had changed, 40 "
                                     "of 40 answers differed at desired")));
  EXPECT_THAT(text, Not(HasSubstr(absl::StrCat("do not mask ", kVersion))));
}

TEST_F(ShadowTest, ADifferenceInManyElementsOfAListIsOneOfTheAnswer) {
  const auto answer = [](const std::string& text) {
    fnv1::RunFunctionResponse response = Answer({"same"});
    for (int i = 0; i < 5; ++i) response.add_results()->set_message(text);
    return response;
  };
  Call(Composite("a", "1"), answer("x"));
  Call(Composite("a", "2"), answer("y"));
  ASSERT_EQ(Report().paths.size(), 1);
  EXPECT_EQ(Report().paths[0].path, "results.*.message");
  EXPECT_EQ(Report().paths[0].of(ShadowBy::kMask), 1);
}

TEST_F(ShadowTest, BeforeTheFirstCallThereIsNoTimeOfIt) {
  Proxy();
  EXPECT_THAT(telemetry::ShadowText({Report()}), HasSubstr("  no call yet\n"));
}

TEST_F(ShadowTest, ASoundMaskOverThreeHundredHitsIsSaidToBeSo) {
  Call(Composite("a", "0"), Answer({"x"}, 3600));
  for (int i = 1; i <= 299; ++i) {
    Call(Composite("a", absl::StrCat(i)), Answer({"x"}, 3600));
  }
  EXPECT_EQ(Judge(Report()).judgement, ShadowJudgement::kNotEnough);
  Call(Composite("a", "300"), Answer({"x"}, 3600));
  const auto verdict = Judge(Report());
  EXPECT_EQ(verdict.judgement, ShadowJudgement::kNoDifference);
  EXPECT_DOUBLE_EQ(*verdict.at_most, 0.01);
  EXPECT_NEAR(static_cast<double>(Report().masks[0].values), 301, 30);
  EXPECT_THAT(telemetry::ShadowText({Report()}),
              HasSubstr("no difference in 300 hits by the masks: at most 1 %"));
}

TEST_F(ShadowTest, FillsAreThoseThatOnWouldMake) {
  Call(Composite("a", "1"), Answer({"first"}));
  EXPECT_EQ(store_->fills, 1);
  // A hit, so that `on` would store nothing.
  Call(Composite("a", "2"), Answer({"second"}));
  EXPECT_EQ(store_->fills, 1);
  // Past the time that it is served.
  Proxy().clock.Advance(absl::Seconds(54));
  auto stale = Call(Composite("a", "3"), Answer({"third"}));
  EXPECT_EQ(stale->cache_status(),
            "fncache; fwd=bypass; stored; detail=shadow");
  EXPECT_EQ(store_->fills, 2);
  // That entry's request is the third one.
  Call(Composite("a", "3"), Answer({"third"}));
  EXPECT_EQ(Report().of(ShadowBy::kExact).hits, 1);
  EXPECT_EQ(Report().of(ShadowBy::kMask).differences, 1);
  EXPECT_EQ(Report().of(ShadowBy::kExact).differences, 0);
}

TEST_F(ShadowTest, WhatOneEntryWouldHaveAnsweredIsFilledOnceByMany) {
  auto first = Send(Composite("a", "1"));
  auto one = function_.Next();
  auto second = Send(Composite("a", "2"));
  auto two = function_.Next();  // so nothing is collapsed
  EXPECT_EQ(Proxy().flights().flights, 0);
  one->Answer(Answer({"x"}).SerializeAsString());
  ASSERT_TRUE(first->Wait().ok());
  two->Answer(Answer({"y"}).SerializeAsString());
  ASSERT_TRUE(second->Wait().ok());
  EXPECT_EQ(second->bytes(), Answer({"y"}).SerializeAsString());
  // `on` would have answered the second one with the first one's answer.
  EXPECT_EQ(store_->fills, 1);
  EXPECT_EQ(Report().of(ShadowBy::kMask).hits, 1);
  EXPECT_EQ(Report().of(ShadowBy::kMask).differences, 1);
}

TEST_F(ShadowTest, DirectivesAreHonouredAsUnderOn) {
  options_.bypass_metadata = {"x-skip"};
  Call(Composite("a", "1"), Answer({"x"}));
  for (const Metadata& metadata :
       {Metadata{{"authorization", "me"}}, Metadata{{"x-skip", ""}}}) {
    auto bypass = Call(Composite("a", "2"), Answer({"y"}), metadata);
    EXPECT_EQ(bypass->cache_status(), "fncache; fwd=bypass");
  }
  auto no_store =
      Call(Composite("a", "2"), Answer({"y"}), {{"cache-control", "no-store"}});
  EXPECT_EQ(no_store->cache_status(), "fncache; fwd=request");
  EXPECT_EQ(store_->fills, 1);
  EXPECT_EQ(Report().lookups, 1);
  Proxy().clock.Advance(absl::Seconds(1));
  // It stores its answer, and compares nothing.
  auto no_cache =
      Call(Composite("a", "2"), Answer({"y"}), {{"cache-control", "no-cache"}});
  EXPECT_EQ(no_cache->cache_status(), "fncache; fwd=request; stored");
  EXPECT_EQ(store_->fills, 2);
  EXPECT_EQ(Report().lookups, 1);
  Call(Composite("a", "2"), Answer({"y"}));
  EXPECT_EQ(Report().of(ShadowBy::kExact).hits, 1);
  EXPECT_EQ(Report().of(ShadowBy::kExact).differences, 0);
  EXPECT_EQ(Counted().Calls(telemetry::Outcome::kRequest), 2);
}

TEST_F(ShadowTest, AnswersThatAreNoneAreNotCompared) {
  Call(Composite("a", "1"), Answer({"x"}));
  auto failed = Send(Composite("a", "2"));
  function_.Next()->Fail({grpc::StatusCode::UNAVAILABLE, "down"});
  EXPECT_EQ(failed->Wait().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(failed->cache_status(), "fncache; fwd=bypass; detail=shadow");
  auto broken = Send(Composite("a", "2"));
  function_.Next()->Answer("\xff\xff");
  ASSERT_TRUE(broken->Wait().ok());
  EXPECT_EQ(broken->bytes(), "\xff\xff");
  auto gone = Send(Composite("a", "2"));
  auto call = function_.Next();
  gone->context.TryCancel();
  EXPECT_EQ(gone->Wait().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(Eventually([&] { return Report().uncompared == 3; }));
  EXPECT_TRUE(call->cancelled() ||
              Eventually([&] { return call->cancelled(); }));
  EXPECT_EQ(Report().lookups, 4);
  EXPECT_EQ(Report().of(ShadowBy::kMask).hits, 0);
  EXPECT_THAT(Metrics(), HasSubstr("fncache_shadow_uncompared_total{function_"
                                   "name=\"function\"} 3\n"));
}

TEST_F(ShadowTest, AnswersThatAreNotKeptAreComparedAllTheSame) {
  Call(Composite("a", "1"), Answer({"x"}));
  // No TTL, and meta does not count.
  Call(Composite("a", "2"), Answer({"x"}, -1));
  EXPECT_EQ(Report().of(ShadowBy::kMask).hits, 1);
  EXPECT_EQ(Report().of(ShadowBy::kMask).differences, 0);
  auto fatal = Answer({"x"});
  fatal.mutable_results(0)->set_severity(fnv1::SEVERITY_FATAL);
  Call(Composite("a", "3"), fatal);
  EXPECT_EQ(Report().of(ShadowBy::kMask).differences, 1);
  EXPECT_EQ(Report().paths[0].path, "results.*.severity");
  EXPECT_EQ(store_->fills, 1);
}

TEST_F(ShadowTest, WhatPolicyDoesNotAcceptIsNotStored) {
  Call(Composite("a", "1"), Answer({"x"}, -1));
  Call(Composite("a", "1"), Answer({"x"}, 0));
  EXPECT_EQ(store_->fills, 0);
  EXPECT_EQ(Report().lookups, 2);
  EXPECT_EQ(Report().of(ShadowBy::kExact).hits, 0);
}

TEST_F(ShadowTest, EncodingsOfOneAnswerAreOneAnswer) {
  const auto first = Answer({"x", "y"});
  Call(Composite("a", "1"), first);
  // Fields out of order, and meta in two places.
  fnv1::RunFunctionResponse meta, rest = first;
  meta.mutable_meta()->set_tag("other");
  rest.clear_meta();
  fnv1::RunFunctionResponse results, desired;
  *results.mutable_results() = rest.results();
  *desired.mutable_desired() = rest.desired();
  auto caller = Send(Composite("a", "2"));
  function_.Next()->Answer(
      results.SerializeAsString() + meta.SerializeAsString() +
      desired.SerializeAsString() + meta.SerializeAsString());
  ASSERT_TRUE(caller->Wait().ok());
  EXPECT_EQ(Report().of(ShadowBy::kMask).hits, 1);
  EXPECT_EQ(Report().of(ShadowBy::kMask).differences, 0);
}

TEST_F(ShadowTest, ARequestThatCannotBeKeyedIsABypass) {
  auto caller = Send("\x0a\xff not protobuf");
  function_.Next()->Answer(Answer({"x"}).SerializeAsString());
  ASSERT_TRUE(caller->Wait().ok());
  EXPECT_EQ(caller->cache_status(), "fncache; fwd=bypass");
  EXPECT_EQ(Report().lookups, 0);
  EXPECT_EQ(store_->fills, 0);
}

TEST_F(ShadowTest, ByTagARequestThatCannotBeReadIsForwardedToo) {
  Mask({});
  options_.key = cache::key::KeySource::kTag;
  fnv1::RunFunctionRequest request;
  request.mutable_meta()->set_tag(std::string(64, 'a'));
  request.mutable_observed()->mutable_composite()->mutable_resource();
  // Fields that the tag covers are not read, and need not be readable.
  const std::string bytes = request.SerializeAsString() + "\x12\x01\xff";
  for (int i = 0; i < 2; ++i) {
    auto caller = Send(bytes);
    function_.Next()->Answer(Answer({"x"}).SerializeAsString());
    ASSERT_TRUE(caller->Wait().ok());
  }
  EXPECT_EQ(Report().lookups, 2);
  EXPECT_EQ(Report().of(ShadowBy::kUnknown).hits, 1);
  EXPECT_EQ(function_.calls(), 2);
}

TEST_F(ShadowTest, WithoutMasksExactRepeatsAreWhatItIsAbout) {
  Mask({});
  for (int i = 0; i <= 300; ++i) Call(Composite("a", "1"), Answer({"x"}));
  EXPECT_EQ(Report().of(ShadowBy::kExact).hits, 300);
  const auto verdict = Judge(Report());
  EXPECT_EQ(verdict.about, ShadowBy::kExact);
  EXPECT_EQ(verdict.judgement, ShadowJudgement::kNoDifference);
}

TEST_F(ShadowTest, EntriesFromBelowAreOfUnknownRequests) {
  has_lower_ = true;
  auto first = Send(Composite("a", "1"));
  store_->NextLookup()({});
  function_.Next()->Answer(Answer({"x"}).SerializeAsString());
  ASSERT_TRUE(first->Wait().ok());
  EXPECT_EQ(store_->fills_below, 1);

  auto second = Send(Composite("b", "1"));
  cache::store::EntryInfo info;
  info.started = info.arrived = Proxy().clock.Now() - absl::Seconds(1);
  info.lifetime = absl::Seconds(60);
  fnv1::RunFunctionResponse body = Answer({"y"});
  body.clear_meta();
  const std::string bytes = body.SerializeAsString();
  cache::store::Found found;
  found.entry = cache::store::Entry::Create(info, "", {bytes});
  store_->NextLookup()(std::move(found));
  function_.Next()->Answer(Answer({"z"}).SerializeAsString());
  ASSERT_TRUE(second->Wait().ok());
  EXPECT_EQ(second->cache_status(), "fncache; fwd=bypass; detail=shadow");
  EXPECT_EQ(Report().lookups, 2);
  EXPECT_EQ(Report().of(ShadowBy::kUnknown).hits, 1);
  EXPECT_EQ(Report().of(ShadowBy::kUnknown).differences, 1);
  EXPECT_EQ(Report().of(ShadowBy::kMask).hits, 0);
  EXPECT_EQ(Judge(Report()).judgement, ShadowJudgement::kNotEnough);
}

TEST_F(ShadowTest, LargeAnswersAreComparedAndOnlyTheirPartIsTold) {
  const std::string large(400 << 10, 'x');
  Call(Composite("a", "1"), Answer({large, large, "one"}));
  Call(Composite("a", "2"), Answer({large, large, "one"}));
  EXPECT_EQ(Report().of(ShadowBy::kMask).differences, 0);
  Call(Composite("a", "3"), Answer({large, large, "another"}));
  EXPECT_EQ(Report().of(ShadowBy::kMask).differences, 1);
  ASSERT_EQ(Report().paths.size(), 1);
  EXPECT_EQ(Report().paths[0].path, "desired");
}

TEST_F(ShadowTest, AnAnswerTooLargeForAnEntryIsAnotherThanTheEntrys) {
  options_.policy.max_entry_bytes = 10'000;
  Call(Composite("a", "1"), Answer({"x"}));
  Call(Composite("a", "2"), Answer({std::string(20'000, 'x')}));
  EXPECT_EQ(Report().of(ShadowBy::kMask).differences, 1);
  EXPECT_EQ(Report().unexamined_of(ShadowBy::kMask), 1);
}

TEST_F(ShadowTest, LookingIntoDifferencesHasABudget) {
  const std::string large(200 << 10, 'x');
  Call(Composite("a", "0"), Answer({large, "0"}, 3600));
  for (int i = 1; i <= 20; ++i) {
    const std::string n = absl::StrCat(i);
    Call(Composite("a", n), Answer({large, n}, 3600));
  }
  // 4 MiB of it, in answers of 400 KiB together with the entry.
  EXPECT_EQ(Report().of(ShadowBy::kMask).differences, 20);
  EXPECT_EQ(Report().unexamined_of(ShadowBy::kMask), 10);
  Proxy().clock.Advance(absl::Seconds(2));
  Call(Composite("a", "21"), Answer({large, "21"}, 3600));
  EXPECT_EQ(Report().unexamined_of(ShadowBy::kMask), 10);
}

TEST_F(ShadowTest, OfManyAtOnceEachIsCountedOnce) {
  constexpr int kCalls = 400;
  const std::string large(100'000, 'x');
  std::vector<CallerPtr> callers;
  for (int i = 0; i < kCalls; ++i) {
    // Some of them are keyed, and their answers compared, by other threads.
    const std::string name = i % 4 == 0 ? large : absl::StrCat(i % 3);
    callers.push_back(Send(Composite(name, absl::StrCat(i % 7))));
    if (i % 5 != 4) continue;
    for (int answered = 0; answered < 5; ++answered) {
      function_.Next()->Answer(
          Answer({i % 2 == 0 ? large : "x"}, 60).SerializeAsString());
    }
  }
  for (const CallerPtr& caller : callers) ASSERT_TRUE(caller->Wait().ok());
  const ShadowReport report = Report();
  EXPECT_EQ(report.lookups, kCalls);
  uint64_t hits = 0;
  for (const auto& count : report.by) hits += count.hits;
  EXPECT_EQ(hits + Counted().fills, kCalls);
  EXPECT_EQ(report.uncompared, 0);
  EXPECT_EQ(report.of(ShadowBy::kUnknown).hits, 0);
  EXPECT_GT(report.of(ShadowBy::kMask).differences, 0);
}

TEST_F(ShadowTest, LargeRequestsAreKeyedAndComparedElsewhere) {
  const std::string name(100'000, 'n');
  Call(Composite(name, "1"), Answer({"x"}));
  Call(Composite(name, "2"), Answer({"x"}));
  EXPECT_EQ(Report().of(ShadowBy::kMask).hits, 1);
  EXPECT_EQ(Report().masks[0].changed.hits, 1);
  // Too large for saying which mask hides a change, but not for a hit by mask.
  const std::string larger(ShadowTrial::kMostRead, 'n');
  Call(Composite(larger, "1"), Answer({"x"}));
  Call(Composite(larger, "2"), Answer({"x"}));
  EXPECT_EQ(Report().of(ShadowBy::kMask).hits, 2);
  EXPECT_EQ(Report().masks[0].changed.hits, 1);
  EXPECT_EQ(Report().unread, 2);
}

}  // namespace
}  // namespace fncache::proxy::serving
