// SPDX-License-Identifier: Apache-2.0
#include "insight/explain/miss_memory.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cache/key/mask.h"
#include "common/clock.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "insight/explain/proposed_mask.h"
#include "insight/request/outline.h"
#include "proto/function_v1.pb.h"
#include "tests/cache/key/random_request.h"

namespace fncache::insight::explain {
namespace {

using ::apiextensions::fn::proto::v1::RunFunctionRequest;
using ::testing::ElementsAre;
using ::testing::Pair;
using trace::Reason;

// A request for the composite `name`, with what is given below its metadata.
std::string Request(const std::string& name, const std::string& version,
                    const std::string& rest = "") {
  RunFunctionRequest request;
  const auto status = google::protobuf::util::JsonStringToMessage(
      absl::StrCat(R"({"observed": {"composite": {"resource": {
          "apiVersion": "example.org/v1", "kind": "XApp", "metadata": {
          "name": ")",
                   name, R"(", "uid": "u-)", name, R"(", "resourceVersion": ")",
                   version, R"(", "managedFields": [{"manager": "who",
          "operation": "Apply", "time": "2026-01-01T00:00:00Z"}]}}}})",
                   rest, "}"),
      &request);
  EXPECT_TRUE(status.ok()) << status.message();
  return request.SerializeAsString();
}

// The rest of a request that has a desired resource of `fields` fields.
std::string DesiredOf(int fields) {
  std::string rest = R"(, "desired": {"resources": {"r": {"resource": {)";
  for (int i = 0; i < fields; ++i) {
    absl::StrAppend(&rest, i == 0 ? "" : ",", "\"k", i, "\": \"v\"");
  }
  return rest + "}}}}";
}

class MissMemoryTest : public testing::Test {
 protected:
  MissMemoryTest() {
    options_.paths_bytes_per_second = MissMemoryOptions::kUnbounded;
    options_.bytes_per_second = MissMemoryOptions::kUnbounded;
  }

  MissMemory& memory() {
    if (memory_ == nullptr) {
      memory_ = std::make_unique<MissMemory>(options_, &clock_);
    }
    return *memory_;
  }
  Explanation Explain(const std::string& request, uint64_t key,
                      const std::string& generation = "g",
                      const std::vector<std::string>& masks = {}) {
    return memory().Explain("f", Method::kV1, generation, {key, key},
                            *cache::key::MaskSet::Parse(masks), {request});
  }
  void Store(uint64_t key, absl::Duration lifetime = absl::Seconds(10)) {
    memory().OnStored({key, key}, clock_.Now() + lifetime);
  }

  SimulatedClock clock_{absl::FromUnixSeconds(1'000'000)};
  MissMemoryOptions options_;
  std::unique_ptr<MissMemory> memory_;
};

TEST_F(MissMemoryTest, TheFirstRequestOfACompositeIsNew) {
  EXPECT_EQ(Explain(Request("a", "1"), 1).reason, Reason::kNew);
  EXPECT_EQ(Explain(Request("b", "1"), 2).reason, Reason::kNew);
}

// It shares no entries with those of the other method.
TEST_F(MissMemoryTest, ARequestOfAnotherMethodIsNew) {
  const auto by = [this](Method method, uint64_t key,
                         const std::string& version) {
    return memory()
        .Explain("f", method, "g", {key, key}, {}, {Request("a", version)})
        .reason;
  };
  EXPECT_EQ(by(Method::kV1, 1, "1"), Reason::kNew);
  EXPECT_EQ(by(Method::kV1beta1, 2, "1"), Reason::kNew);
  EXPECT_EQ(by(Method::kV1, 3, "2"), Reason::kChanged);
  EXPECT_EQ(by(Method::kV1beta1, 4, "2"), Reason::kChanged);
}

TEST_F(MissMemoryTest, AKnownKeyMissesForWhatBecameOfItsAnswer) {
  const std::string request = Request("a", "1");
  Explain(request, 1);
  EXPECT_EQ(Explain(request, 1).reason, Reason::kUnknown) << "still running";
  Store(1);
  EXPECT_EQ(Explain(request, 1).reason, Reason::kEvicted);
  Store(1);
  clock_.Advance(absl::Seconds(10));
  EXPECT_EQ(Explain(request, 1).reason, Reason::kExpired);
  for (const NotStored why :
       {NotStored::kNoTtl, NotStored::kFatal, NotStored::kSecrets,
        NotStored::kTooLarge, NotStored::kModeOff, NotStored::kError,
        NotStored::kAbandoned}) {
    memory().OnNotStored({1, 1}, why);
    const Explanation said = Explain(request, 1);
    EXPECT_EQ(said.reason, Reason::kNotStored);
    EXPECT_EQ(said.detail, NotStoredName(why));
  }
  Store(1);
  memory().OnPurged({1, 1});
  EXPECT_EQ(Explain(request, 1).reason, Reason::kPurged);
  Store(1);
  memory().OnPurgedFunction("other");
  EXPECT_EQ(Explain(request, 1).reason, Reason::kEvicted);
  Store(1);
  memory().OnPurgedFunction("f");
  EXPECT_EQ(Explain(request, 1).reason, Reason::kPurged);
}

TEST_F(MissMemoryTest, OfAPurgedGenerationOnlyWhatThatAnsweredIsPurged) {
  const std::string request = Request("a", "1");
  Explain(request, 1, "old");
  Store(1);
  Explain(request, 2, "new");
  Store(2);
  memory().OnPurgedGeneration("other", "old");
  memory().OnPurgedGeneration("f", "old");
  EXPECT_EQ(Explain(request, 2, "new").reason, Reason::kEvicted);
  EXPECT_EQ(Explain(request, 1, "old").reason, Reason::kPurged);
}

TEST_F(MissMemoryTest, ErasedSecretsAreNotStoredAndTheRestIs) {
  const std::string request = Request("a", "1");
  for (const uint64_t key : {1, 2, 3}) Explain(request, key);
  memory().OnStored({1, 1}, absl::InfiniteFuture(), /*secrets=*/true);
  memory().OnStored({2, 2}, absl::InfiniteFuture());
  memory().OnNotStored({3, 3}, NotStored::kError);
  memory().OnSecretsErased("other");
  EXPECT_EQ(Explain(request, 1).reason, Reason::kEvicted);
  memory().OnStored({1, 1}, absl::InfiniteFuture(), /*secrets=*/true);
  memory().OnSecretsErased("f");
  const Explanation said = Explain(request, 1);
  EXPECT_EQ(said.reason, Reason::kNotStored);
  EXPECT_EQ(said.detail, "secrets");
  EXPECT_EQ(Explain(request, 2).reason, Reason::kEvicted);
  EXPECT_EQ(Explain(request, 3).detail, "error");
}

TEST_F(MissMemoryTest, AChangedRequestIsToldByItsFirstPathAndWhoWrote) {
  Explain(Request("a", "1"), 1);
  Explanation said = Explain(Request("a", "2"), 2);
  EXPECT_EQ(said.reason, Reason::kChanged);
  EXPECT_EQ(said.detail,
            "observed.composite.resource.metadata.resourceVersion");
  EXPECT_EQ(said.section, "composite");
  EXPECT_EQ(said.writer, "who");
  // A path that is added, and one that is removed.
  const std::string more = Request("a", "2", R"(, "context": {"x": {"y": 1}})");
  said = Explain(more, 3);
  EXPECT_EQ(said.detail, "context");
  said = Explain(Request("a", "5"), 4);
  EXPECT_EQ(said.detail,
            "observed.composite.resource.metadata.resourceVersion");
  EXPECT_THAT(
      memory().Tops(1),
      ElementsAre(testing::AllOf(
          testing::Field(&MissMemory::FunctionTop::function, "f"),
          testing::Field(
              &MissMemory::FunctionTop::paths,
              ElementsAre(Pair(
                  "observed.composite.resource.metadata.resourceVersion", 2))),
          testing::Field(&MissMemory::FunctionTop::writers,
                         ElementsAre(Pair("who", 2))))));
}

TEST_F(MissMemoryTest, WhatIsGoneIsToldByTheHighestOfItsPaths) {
  Explain(Request("a", "1", R"(, "context": {"x": {"y": 1}})"), 1);
  const Explanation said = Explain(Request("a", "1"), 2);
  EXPECT_EQ(said.reason, Reason::kChanged);
  EXPECT_EQ(said.detail, "context");
  EXPECT_EQ(said.section, "context");
}

TEST_F(MissMemoryTest, TheNearestOfTheLastFourIsCompared) {
  const auto of = [](const std::string& x, const std::string& y) {
    return Request(
        "a", "1",
        absl::StrCat(R"(, "context": {"x": ")", x, R"(", "y": ")", y, R"("})"));
  };
  Explain(of("1", "1"), 1);
  Explain(of("2", "2"), 2);
  EXPECT_EQ(Explain(of("1", "3"), 3).detail, "context.y");
  EXPECT_EQ(Explain(of("4", "2"), 4).detail, "context.x");
  EXPECT_EQ(Explain(of("5", "5"), 5).detail, "context.x");
  // The first one is forgotten by now, so that both differ from all.
  EXPECT_EQ(Explain(of("1", "9"), 6).detail, "context.y");
}

TEST_F(MissMemoryTest, WhatMasksHideIsNotCompared) {
  const std::vector<std::string> masks = {
      "observed.composite.resource.metadata.resourceVersion"};
  Explain(Request("a", "1", R"(, "context": {"x": 1})"), 1, "g", masks);
  EXPECT_EQ(
      Explain(Request("a", "2", R"(, "context": {"x": 2})"), 2, "g", masks)
          .detail,
      "context.x");
}

TEST_F(MissMemoryTest, AnotherGenerationIsOne) {
  Explain(Request("a", "1"), 1);
  EXPECT_EQ(Explain(Request("a", "1"), 2, "h").reason, Reason::kGeneration);
}

TEST_F(MissMemoryTest, OtherInputsAreOtherIdentities) {
  Explain(Request("a", "1", R"(, "input": {"a": 1})"), 1);
  EXPECT_EQ(Explain(Request("a", "2", R"(, "input": {"a": 2})"), 2).reason,
            Reason::kNew);
}

TEST_F(MissMemoryTest, WhatIsNoRequestIsUnknown) {
  EXPECT_EQ(Explain("\x12\x7f", 1).reason, Reason::kUnknown);
}

TEST_F(MissMemoryTest, BeyondItsBudgetItTellsTheReasonAndTheSection) {
  options_.paths_bytes_per_second = 0;
  Explain(Request("a", "1", R"(, "desired": {"resources": {"r": {}}})"), 1);
  Explanation said =
      Explain(Request("a", "2", R"(, "desired": {"resources": {"r": {}}})"), 2);
  EXPECT_EQ(said.reason, Reason::kChanged);
  EXPECT_EQ(said.section, "composite");
  EXPECT_EQ(said.detail, "");
  said =
      Explain(Request("a", "2", R"(, "desired": {"resources": {"s": {}}})"), 3);
  EXPECT_EQ(said.section, "desired");
  // A section that masks lead into is reported only if no other can have
  // changed.
  const std::vector<std::string> masks = {
      "observed.composite.resource.metadata.resourceVersion",
      "context.\"now\""};
  Explain(Request("m", "1", R"(, "context": {"a": 1, "now": 1})"), 4, "g",
          masks);
  EXPECT_EQ(Explain(Request("m", "1", R"(, "context": {"a": 2, "now": 1})"), 5,
                    "g", masks)
                .section,
            "context");
  EXPECT_EQ(Explain(Request("m", "3", R"(, "context": {"a": 4, "now": 1})"), 6,
                    "g", masks)
                .section,
            "");
  EXPECT_EQ(
      Explain(Request("m", "5", R"(, "context": {"a": 4}, "desired": {})"), 7,
              "g", masks)
          .section,
      "desired");
  EXPECT_EQ(
      Explain(Request("a", "2", R"(, "desired": {"resources": {"s": {}}})"), 8,
              "h")
          .reason,
      Reason::kGeneration);
}

TEST_F(MissMemoryTest, ReadsThePathsOfNoMoreBytesThanItsBudgetHas) {
  const std::string rest = DesiredOf(2000);
  std::string request = Request("a", "1000", rest);
  const size_t version = request.find("1000");
  // One request in five, in the long run; and four seconds' worth at the start.
  options_.paths_bytes_per_second = 10 * request.size();
  constexpr int kCalls = 500;
  int paths = 0;
  int sections = 0;
  for (int i = 0; i < kCalls; ++i) {
    request.replace(version, 4, absl::StrCat(1000 + i));
    clock_.Advance(absl::Milliseconds(20));
    const Explanation said = Explain(request, i + 1);
    if (i == 0) continue;
    ASSERT_EQ(said.reason, Reason::kChanged);
    ++(said.detail.empty() ? sections : paths);
  }
  // A path is reported if the paths of the request before were read, too. So
  // those of the start are, and none of those that come one by one.
  EXPECT_EQ(paths, 50);
  EXPECT_EQ(sections, kCalls - 1 - paths);
  EXPECT_GT(memory().cpu(), absl::ZeroDuration());
}

TEST_F(MissMemoryTest, ADaemonWithFewMissesTellsEveryPath) {
  options_ = MissMemoryOptions();
  const std::string rest = DesiredOf(300);
  for (int i = 0; i < 300; ++i) {
    clock_.Advance(absl::Milliseconds(20));
    const Explanation said =
        Explain(Request("a", absl::StrCat(i), rest), i + 1);
    if (i == 0) continue;
    ASSERT_EQ(said.detail,
              "observed.composite.resource.metadata.resourceVersion")
        << i;
  }
  EXPECT_EQ(memory().share(), 1);
}

TEST_F(MissMemoryTest, BeyondThatItLooksAtFewerComposites) {
  const std::string rest = absl::StrCat(R"(, "context": {"text": ")",
                                        std::string(100 << 10, 't'), R"("})");
  constexpr size_t kComposites = 64;
  std::vector<std::string> requests;
  for (size_t i = 0; i < kComposites; ++i) {
    requests.push_back(
        Request(absl::StrCat(100 + i), "version 10000000", rest));
  }
  int calls = 0;
  const auto explain = [&](size_t composite) {
    std::string* const request = &requests[composite];
    const size_t version = request->find("version 1") + 8;
    request->replace(version, 8, absl::StrCat(10'000'000 + ++calls));
    return Explain(*request, calls).reason;
  };
  options_ = MissMemoryOptions();
  options_.bytes_per_second = 2 << 20;
  memory();
  // Five times as much as the budget has: fewer and fewer composites are looked
  // at, and in the end one in 64.
  for (int round = 0; memory().share() > 1.0 / 60; ++round) {
    ASSERT_LT(round, 100);
    for (size_t i = 0; i < kComposites; ++i) {
      clock_.Advance(absl::Milliseconds(10));
      const Reason reason = explain(i);
      // The bucket has 8 MiB at the start, which is more than one round.
      if (round == 0) {
        ASSERT_EQ(reason, Reason::kNew) << i;
      }
    }
  }
  EXPECT_EQ(memory().paths_share(), memory().share());
  size_t unknown = 0;
  for (size_t i = 0; i < kComposites; ++i) {
    if (explain(i) == Reason::kUnknown) ++unknown;
  }
  EXPECT_GE(unknown, kComposites - 10);
  // Once fewer bytes have come for some seconds, all are again.
  for (int second = 0; memory().share() < 1; ++second) {
    ASSERT_LT(second, 60);
    clock_.Advance(absl::Seconds(1));
    explain(0);
  }
  for (size_t i = 0; i < kComposites; ++i) {
    EXPECT_EQ(explain(i), Reason::kChanged);
  }
  // A composite that comes for the first time now may be one that was left out.
  const auto first = [&](absl::string_view name) {
    return Explain(Request(std::string(name), "1"), ++calls).reason;
  };
  size_t not_known = 0;
  for (size_t i = 0; i < kComposites; ++i) {
    if (first(absl::StrCat("other ", i)) == Reason::kUnknown) ++not_known;
  }
  EXPECT_GE(not_known, kComposites - 10);
  // Not any more once all have been looked at for an hour.
  clock_.Advance(absl::Hours(2));
  explain(0);
  for (size_t i = 0; i < kComposites; ++i) {
    EXPECT_EQ(first(absl::StrCat("yet another ", i)), Reason::kNew);
  }
}

TEST_F(MissMemoryTest, WhoIsLeftOutForMemoryComesBack) {
  options_.bytes = 1 << 20;
  int known = 0;
  bool full = false;
  for (int i = 0; i < 20000; ++i) {
    // Another input each time: the only composite fills the memory alone.
    const std::string input = absl::StrCat(R"(, "input": {"a": )", i, "}");
    const Reason reason = Explain(Request("a", "1", input), i + 1).reason;
    full |= memory().share() < 1;
    if (i >= 15000 && reason == Reason::kNew) ++known;
  }
  EXPECT_TRUE(full);
  EXPECT_GT(known, 0);
}

TEST_F(MissMemoryTest, MemoryIsBoundAndWhatFitsIsSampledByComposite) {
  options_.bytes = 1 << 20;
  for (int i = 0; i < 5000; ++i) {
    Explain(Request(absl::StrCat(i), "1"), i + 1);
    ASSERT_LE(memory().bytes(), options_.bytes);
  }
  EXPECT_GT(memory().bytes(), options_.bytes / 5);
  EXPECT_LT(memory().share(), 0.9);
  EXPECT_LE(memory().paths_share(), memory().share());
  // A second round, as timers make it: the same composites are known.
  int changed = 0, unknown = 0;
  for (int i = 0; i < 5000; ++i) {
    const Explanation said = Explain(Request(absl::StrCat(i), "2"), 10'000 + i);
    changed += said.reason == Reason::kChanged ? 1 : 0;
    unknown += said.reason == Reason::kUnknown ? 1 : 0;
    ASSERT_LE(memory().bytes(), options_.bytes);
  }
  EXPECT_GT(changed, 200);
  EXPECT_GT(unknown, 200);
}

TEST_F(MissMemoryTest, CompositesThatAreGoneMakeRoom) {
  options_.bytes = 1 << 20;
  for (int i = 0; i < 2000; ++i) Explain(Request(absl::StrCat(i), "1"), i + 1);
  const double before = memory().share();
  clock_.Advance(absl::Hours(25));
  for (int i = 0; i < 300; ++i) {
    Explain(Request(absl::StrCat("n", i), "1"), 10'000 + i);
  }
  EXPECT_LE(before, memory().share());
  int changed = 0;
  for (int i = 0; i < 300; ++i) {
    const auto said = Explain(Request(absl::StrCat("n", i), "2"), 20'000 + i);
    if (said.reason == Reason::kChanged) ++changed;
  }
  // As many as their fraction, within five standard deviations: hashes choose
  // them, and those differ from binary to binary.
  EXPECT_NEAR(changed, 300 * memory().share(), 45);
}

TEST_F(MissMemoryTest, TheLastMissesAreToldTheNewestFirst) {
  Explain(Request("a", "1"), 1);
  clock_.Advance(absl::Seconds(1));
  Explain(Request("a", "2"), 2);
  memory().Explain("other", Method::kV1, "g", {3, 3}, cache::key::MaskSet(),
                   {Request("b", "1")});
  const auto all = memory().Last(10, "");
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].function, "other");
  EXPECT_EQ(all[0].composite.name, "b");
  EXPECT_EQ(all[0].composite.kind, "XApp");
  EXPECT_EQ(all[1].function, "f");
  EXPECT_EQ(all[1].time, absl::FromUnixSeconds(1'000'001));
  EXPECT_EQ(all[1].why.reason, Reason::kChanged);
  EXPECT_EQ(all[1].why.detail,
            "observed.composite.resource.metadata.resourceVersion");
  EXPECT_EQ(all[1].why.writer, "who");
  EXPECT_EQ(all[1].key, (cache::key::Key{2, 2}));
  EXPECT_EQ(all[2].why.reason, Reason::kNew);
  ASSERT_EQ(memory().Last(1, "f").size(), 1u);
  EXPECT_EQ(memory().Last(1, "f")[0].key, (cache::key::Key{2, 2}));
  EXPECT_EQ(memory().Last(10, "none").size(), 0u);
}

TEST_F(MissMemoryTest, TheLastMissesAreBoundedInNumberAndMemory) {
  options_.bytes = 1 << 20;
  for (uint64_t i = 0; i < 1500; ++i) {
    Explain(Request("a", absl::StrCat(i)), i + 1);
  }
  const size_t kept = memory().Last(100'000, "").size();
  EXPECT_LE(kept, MissMemory::kLastMisses);
  EXPECT_GT(kept, 50u);
  EXPECT_EQ(memory().Last(1, "")[0].key, (cache::key::Key{1500, 1500}));
  // Names that are longer than any are cut, between characters.
  for (uint64_t i = 0; i < 300; ++i) {
    std::string name = "x";
    for (int j = 0; j < 2000; ++j) name += "\u00e4";
    Explain(Request(name, absl::StrCat(i)), 10'000 + i);
    ASSERT_LE(memory().bytes(), options_.bytes);
  }
  const std::string cut = memory().Last(1, "")[0].composite.name;
  EXPECT_EQ(cut.size(), 511u);
  EXPECT_EQ(cut.substr(509), "\u00e4");
}

TEST(ProposedMaskTest, IsALeafOfOneResource) {
  const std::string db = "observed.resources.db.resource.";
  const std::string composite = "observed.composite.resource.";
  EXPECT_EQ(ProposedMask(db + "status.atProvider.x", true),
            db + "status.atProvider.x");
  EXPECT_EQ(ProposedMask(db + "status.atProvider.list[3].x", true),
            db + "status.atProvider.list.*.x");
  EXPECT_EQ(ProposedMask("required_resources.r.items[1].resource.data.x", true),
            "required_resources.r.items.*.resource.data.x");
  EXPECT_EQ(ProposedMask("context.\"example.org/x\".now", true),
            "context.\"example.org/x\".now");
  EXPECT_EQ(ProposedMask(composite + "spec.crossplane.revision", true),
            composite + "spec.crossplane.revision");
  EXPECT_EQ(ProposedMask(db + "status.conditions.*.lastTransitionTime", true),
            "@times");
  // Objects and lists may grow; managedFields are the one exception.
  for (const char* whole :
       {"status", "status.atProvider", "status.conditions"}) {
    EXPECT_EQ(ProposedMask(db + whole, false), "") << whole;
  }
  EXPECT_EQ(ProposedMask("context.x", false), "");
  EXPECT_EQ(ProposedMask(db + "metadata.managedFields[0].time", true),
            db + "metadata.managedFields");
  EXPECT_EQ(ProposedMask(db + "metadata.managedFields", false),
            db + "metadata.managedFields");
  // Functions compare these.
  for (const char* compared :
       {"metadata.generation", "status.conditions.*.observedGeneration",
        "status.conditions.*.status", "status.conditions[0].reason",
        "status.observedGeneration"}) {
    EXPECT_EQ(ProposedMask(db + compared, true), "") << compared;
  }
  EXPECT_EQ(ProposedMask(composite + "spec.size", true), "");
  for (const char* no : {"desired.composite.resource.spec.a", "input.spec",
                         "observed resource", ""}) {
    EXPECT_EQ(ProposedMask(no, true), "") << no;
  }
  EXPECT_THAT(ProposedTogether(db + "metadata.resourceVersion"),
              ::testing::ElementsAre(db + "metadata.managedFields",
                                     db + "metadata.resourceVersion"));
  EXPECT_THAT(ProposedTogether("@times"), ::testing::ElementsAre("@times"));
}

TEST(Outline, IsTheSameForAllEncodingsOfMaps) {
  cache::key::Random random(3);
  int requests = 0;
  for (int i = 0; i < 200; ++i) {
    const RunFunctionRequest message = cache::key::RandomRequest(&random);
    const std::string bytes = message.SerializeAsString();
    RunFunctionRequest again;
    ASSERT_TRUE(again.ParseFromString(bytes));
    // Maps are written in an order that each object has of its own.
    const std::string other = again.SerializeAsString();
    request::Outline a, b;
    // Groups, which no encoder of requests writes, are refused.
    if (!request::ReadOutline({bytes}, &a)) continue;
    ASSERT_TRUE(request::ReadOutline(
        {absl::string_view(other).substr(0, other.size() / 2),
         absl::string_view(other).substr(other.size() / 2)},
        &b));
    EXPECT_EQ(a.sums, b.sums);
    EXPECT_EQ(a.identity, b.identity);
    requests += bytes.empty() ? 0 : 1;
  }
  EXPECT_GT(requests, 100);
}

TEST(Outline, NoBytesBreakIt) {
  const std::string bytes = Request("a", "1", R"(, "context": {"x": 1})");
  request::Outline outline;
  for (size_t cut = 0; cut < bytes.size(); ++cut) {
    request::ReadOutline({absl::string_view(bytes).substr(0, cut)}, &outline);
    std::string broken = bytes;
    broken[cut] = static_cast<char>(broken[cut] ^ 0x55);
    request::ReadOutline({broken}, &outline);
  }
}

}  // namespace
}  // namespace fncache::insight::explain
