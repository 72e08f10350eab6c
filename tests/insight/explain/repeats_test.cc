// SPDX-License-Identifier: Apache-2.0
// Repeats: misses that got the answer of before.
#include "insight/explain/repeats.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "cache/key/mask.h"
#include "common/clock.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "insight/explain/miss_memory.h"
#include "proto/function_v1.pb.h"

namespace fncache::insight::explain {
namespace {

using ::apiextensions::fn::proto::v1::RunFunctionRequest;
using ::apiextensions::fn::proto::v1::RunFunctionResponse;
using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::IsEmpty;
using ::testing::Optional;
using ::testing::Pair;
using trace::Reason;

constexpr absl::Duration kTtl = absl::Seconds(60);

// A request for the composite `name` with a composed resource. Its
// resourceVersion and its managedFields are of `version`.
std::string Request(const std::string& version, const std::string& status = "",
                    const std::string& rest = "",
                    const std::string& name = "a") {
  RunFunctionRequest request;
  const auto parsed = google::protobuf::util::JsonStringToMessage(
      absl::StrCat(R"({"observed": {"composite": {"resource": {
          "apiVersion": "example.org/v1", "kind": "XApp", "metadata": {
          "name": ")",
                   name, R"("}}}, "resources": {"r": {"resource": {
          "apiVersion": "v1", "kind": "R", "metadata": {"resourceVersion": ")",
                   version, R"(", "managedFields": [{"manager": "m)", version,
                   R"("}]}, "status": {)", status, "}}}}}", rest, "}"),
      &request);
  EXPECT_TRUE(parsed.ok()) << parsed.message();
  return request.SerializeAsString();
}

constexpr char kStatus[] = "observed.resources.r.resource.status.";

class RepeatsTest : public testing::Test {
 protected:
  RepeatsTest() {
    options_.paths_bytes_per_second = MissMemoryOptions::kUnbounded;
    options_.bytes_per_second = MissMemoryOptions::kUnbounded;
  }

  MissMemory& memory() {
    if (memory_ == nullptr) {
      memory_ = std::make_unique<MissMemory>(options_, &clock_);
    }
    return *memory_;
  }
  Explanation Miss(uint64_t key, const std::string& request,
                   const Lookup& lookup = {},
                   const std::string& generation = "g") {
    return memory().Explain("f", Method::kV1, generation, {key, key},
                            cache::key::MaskSet(), {request}, lookup);
  }
  // The function says `text`.
  absl::optional<RepeatOver> Answer(uint64_t key, const std::string& text,
                                    absl::optional<absl::Duration> ttl = kTtl) {
    RunFunctionResponse response;
    response.add_results()->set_message(text);
    return memory().OnAnswer({key, key}, {response.SerializeAsString()}, ttl);
  }
  void Store(uint64_t key, absl::Duration lifetime = kTtl) {
    memory().OnStored({key, key}, clock_.Now() + lifetime);
  }
  // A miss whose answer is stored.
  absl::optional<RepeatOver> Run(uint64_t key, const std::string& request,
                                 const std::string& text,
                                 const Lookup& lookup = {}) {
    Miss(key, request, lookup);
    const auto over = Answer(key, text);
    Store(key);
    return over;
  }
  MissMemory::Top Unread() {
    MissMemory::Top paths;
    for (const MissMemory::FunctionTop& top : memory().Tops(10)) {
      for (const UnreadPath& one : top.unread) {
        EXPECT_EQ(one.mask, one.path);
        paths.emplace_back(one.path, one.count);
      }
    }
    return paths;
  }

  SimulatedClock clock_{absl::FromUnixSeconds(1'000'000)};
  MissMemoryOptions options_;
  std::unique_ptr<MissMemory> memory_;
};

TEST_F(RepeatsTest, DriftOnlyIsWhatTuningSaves) {
  EXPECT_THAT(Run(1, Request("1"), "x"), Optional(RepeatOver::kNone));
  EXPECT_THAT(Run(2, Request("2"), "x"), Optional(RepeatOver::kDrift));
  EXPECT_THAT(Run(3, Request("3"), "y"), Optional(RepeatOver::kNone));
  EXPECT_THAT(Run(4, Request("4"), "y"), Optional(RepeatOver::kDrift));
  // The newest answer counts, not any.
  EXPECT_THAT(Run(5, Request("5"), "x"), Optional(RepeatOver::kNone));
  EXPECT_THAT(Unread(), IsEmpty());
}

TEST_F(RepeatsTest, AnotherTtlIsAnotherAnswer) {
  Run(1, Request("1"), "x");
  Miss(2, Request("2"));
  EXPECT_THAT(Answer(2, "x", 2 * kTtl), Optional(RepeatOver::kNone));
  Miss(3, Request("3"));
  EXPECT_THAT(Answer(3, "x", absl::nullopt), Optional(RepeatOver::kNone));
  Miss(4, Request("4"));
  EXPECT_THAT(Answer(4, "x", absl::ZeroDuration()),
              Optional(RepeatOver::kNone));
}

TEST_F(RepeatsTest, AnAnswerWhoseTimeIsOverIsWhatALongerTtlSaves) {
  Run(1, Request("1"), "x");
  clock_.Advance(kTtl);
  EXPECT_THAT(Run(1, Request("1"), "x"), Optional(RepeatOver::kTime));
  // Tuning alone does not save this one.
  clock_.Advance(kTtl);
  EXPECT_THAT(Run(2, Request("2"), "x"), Optional(RepeatOver::kTime));
  EXPECT_THAT(Run(3, Request("3"), "x"), Optional(RepeatOver::kDrift));
  // Under tuning, the entry of 3 answers this one.
  EXPECT_THAT(Run(1, Request("1"), "x"), Optional(RepeatOver::kDrift));
  // The store knows better when an entry ends.
  EXPECT_THAT(Run(1, Request("1"), "x", {Reason::kExpired}),
              Optional(RepeatOver::kTime));
}

TEST_F(RepeatsTest, OtherPathsAreNamedByTheMasksThatHideThem) {
  Run(1, Request("1", R"("x": 1)"), "x");
  EXPECT_THAT(Run(2, Request("2", R"("x": 2)"), "x"),
              Optional(RepeatOver::kOther));
  EXPECT_THAT(Unread(), ElementsAre(Pair(absl::StrCat(kStatus, "x"), 1)));
  // Another answer names nothing.
  EXPECT_THAT(Run(3, Request("3", R"("x": 3)"), "y"),
              Optional(RepeatOver::kNone));
  EXPECT_THAT(Unread(), ElementsAre(Pair(absl::StrCat(kStatus, "x"), 1)));
  EXPECT_THAT(
      Run(4, Request("3", R"("x": 4)", R"(, "context": {"c": 1})"), "y"),
      Optional(RepeatOver::kOther));
  // No mask hides that a context is there, so no mask helps.
  EXPECT_THAT(Unread(), ElementsAre(Pair(absl::StrCat(kStatus, "x"), 1)));
  // A managed field more is drift.
  const auto grown = [](const std::string& version, int x) {
    std::string request = Request(version, absl::StrCat("\"x\": ", x));
    RunFunctionRequest message;
    EXPECT_TRUE(message.ParseFromString(request));
    auto& metadata = (*(*message.mutable_observed()->mutable_resources())["r"]
                           .mutable_resource()
                           ->mutable_fields())["metadata"];
    (*metadata.mutable_struct_value()->mutable_fields())["managedFields"]
        .mutable_list_value()
        ->add_values()
        ->set_string_value("more");
    return message.SerializeAsString();
  };
  EXPECT_THAT(Run(5, grown("5", 4), "y"), Optional(RepeatOver::kOther));
  EXPECT_THAT(Run(6, grown("5", 5), "y"), Optional(RepeatOver::kOther));
  EXPECT_THAT(Run(7, Request("5", R"("x": 6)"), "y"),
              Optional(RepeatOver::kOther));
  EXPECT_THAT(Unread(), ElementsAre(Pair(absl::StrCat(kStatus, "x"), 4)));
}

TEST_F(RepeatsTest, WhatWasNotKeptIsNeitherDriftNorTime) {
  Run(1, Request("1"), "x");
  EXPECT_THAT(Run(1, Request("1"), "x"), Optional(RepeatOver::kOther))
      << "evicted";
  memory().OnPurged({1, 1});
  EXPECT_THAT(Run(2, Request("2"), "x"), Optional(RepeatOver::kOther))
      << "purged";
  Miss(3, Request("3"));
  Answer(3, "x");
  memory().OnNotStored({3, 3}, NotStored::kNoTtl);
  EXPECT_THAT(Run(4, Request("4"), "x"), Optional(RepeatOver::kOther))
      << "not stored";
  Miss(5, Request("5"), {}, "h");
  EXPECT_THAT(Answer(5, "x"), Optional(RepeatOver::kOther)) << "generation";
}

TEST_F(RepeatsTest, OnlyRunsThatWereExaminedCount) {
  EXPECT_THAT(Answer(1, "x"), Eq(absl::nullopt)) << "no miss";
  Run(1, Request("1"), "x");
  // A refresh is no miss, but its answer is the newest.
  EXPECT_THAT(Answer(1, "y"), Eq(absl::nullopt));
  EXPECT_THAT(Run(2, Request("2"), "y"), Optional(RepeatOver::kDrift));
  // Not compared, and neither is the next one with it.
  Miss(3, Request("3"));
  EXPECT_THAT(Answer(3, std::string(MissMemory::kMaxNodesRead, 'z')),
              Eq(absl::nullopt));
  // An answer that cannot be read ends the one before.
  Run(11, Request("1", "", "", "b"), "y");
  memory().OnAnswer({11, 11}, {"\x12\x7f"}, kTtl);
  EXPECT_THAT(Run(12, Request("2", "", "", "b"), "y"),
              Optional(RepeatOver::kNone));
  EXPECT_THAT(Run(4, Request("4"), "z"), Optional(RepeatOver::kNone));
}

TEST_F(RepeatsTest, NothingIsExaminedBeyondTheBudget) {
  options_.paths_bytes_per_second = 0;
  EXPECT_THAT(Run(1, Request("1"), "x"), Eq(absl::nullopt));
  EXPECT_THAT(Run(2, Request("2"), "x"), Eq(absl::nullopt));
}

// Comparing answers uses the budget, too: beyond it, fewer composites are
// looked at.
TEST_F(RepeatsTest, AnswersAreOfTheBudget) {
  options_.bytes_per_second = 16 << 10;
  Run(1, Request("1"), "x");
  clock_.Advance(absl::Seconds(1));
  Run(2, Request("2"), std::string(128 << 10, 'x'));
  EXPECT_EQ(memory().share(), 1);
  clock_.Advance(absl::Seconds(1));
  Run(3, Request("3"), "x");
  EXPECT_LT(memory().share(), 1);
}

TEST_F(RepeatsTest, WithTuningPathsAreNamedAndNothingCounts) {
  Lookup tuned;
  tuned.tuned = true;
  EXPECT_THAT(Run(1, Request("1", R"("x": 1)"), "x", tuned), Eq(absl::nullopt));
  EXPECT_THAT(Run(2, Request("2", R"("x": 2)"), "x", tuned), Eq(absl::nullopt));
  EXPECT_THAT(Unread(), ElementsAre(Pair(absl::StrCat(kStatus, "x"), 1)));
}

// The status of a composite is no drift.
TEST_F(RepeatsTest, TheMaskOfAConditionsTimeIsASetAndThePathSaysWhich) {
  Lookup tuned;
  tuned.tuned = true;
  const auto request = [](const std::string& time) {
    RunFunctionRequest request;
    EXPECT_TRUE(request.ParseFromString(Request("1")));
    const auto parsed = google::protobuf::util::JsonStringToMessage(
        absl::StrCat(R"({"apiVersion": "example.org/v1", "kind": "XApp",
                         "metadata": {"name": "a"}, "status": {"conditions":
                         [{"type": "Ready", "lastTransitionTime": ")",
                     time, R"("}]}})"),
        request.mutable_observed()->mutable_composite()->mutable_resource());
    EXPECT_TRUE(parsed.ok()) << parsed.ToString();
    return request.SerializeAsString();
  };
  Run(1, request("2026-11-22T09:42:57Z"), "x", tuned);
  Run(2, request("2026-11-22T09:43:57Z"), "x", tuned);
  const auto tops = memory().Tops(10);
  ASSERT_EQ(tops.size(), 1u);
  ASSERT_EQ(tops[0].unread.size(), 1u);
  EXPECT_EQ(tops[0].unread[0].mask, "@times");
  EXPECT_EQ(tops[0].unread[0].path,
            "observed.composite.resource.status.conditions.*."
            "lastTransitionTime");
  EXPECT_EQ(tops[0].unread[0].count, 1u);
}

TEST_F(RepeatsTest, AMissOverDriftIsRememberedAndNotExamined) {
  Lookup tuned;
  tuned.tuned = true;
  Lookup drifted = {Reason::kDrift, "unproven", true};
  Run(1, Request("1", R"("x": 1, "y": 1)"), "x", tuned);
  const Explanation said = Miss(1, Request("2", R"("x": 1, "y": 1)"), drifted);
  EXPECT_EQ(said.reason, Reason::kDrift);
  EXPECT_EQ(said.detail, "unproven");
  EXPECT_THAT(said.masks, IsEmpty());
  EXPECT_EQ(memory().Last(1, "f")[0].why.detail, "unproven");
  EXPECT_THAT(memory().Tops(10), IsEmpty());
  // Drift is of no key, so it is not what changed.
  const Explanation changed = Miss(2, Request("3", R"("x": 2, "y": 1)"), tuned);
  EXPECT_EQ(changed.reason, Reason::kChanged);
  EXPECT_EQ(changed.detail, absl::StrCat(kStatus, "x"));
  EXPECT_THAT(changed.masks, ElementsAre(absl::StrCat(kStatus, "x")));
  // Four other requests came since the first one, but it drifted meanwhile: it
  // is the nearest still.
  const auto of = [](int x, int y) {
    return Request("9", absl::StrCat("\"x\": ", x, ", \"y\": ", y));
  };
  Miss(3, of(5, 5), tuned);
  Miss(4, of(6, 6), tuned);
  Miss(1, Request("4", R"("x": 1, "y": 1)"), drifted);
  Miss(5, of(7, 7), tuned);
  Miss(6, of(8, 8), tuned);
  EXPECT_EQ(Miss(7, of(1, 9), tuned).detail, absl::StrCat(kStatus, "y"));
}

TEST_F(RepeatsTest, MemoryStaysBounded) {
  options_.bytes = 1 << 20;
  // Many masks wait for an answer. Some never come.
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < 500; ++i) {
      const uint64_t key = 1 + i + 1000 * round;
      std::string status;
      for (int j = 0; j < 6; ++j) {
        absl::StrAppend(&status, j == 0 ? "" : ", ", "\"",
                        std::string(100, 'a' + j), "\": ", round);
      }
      Miss(key, Request("1", status, "", absl::StrCat(i)));
      ASSERT_LE(memory().bytes(), options_.bytes);
      if (i % 3 == 0) continue;
      const uint64_t before = memory().bytes();
      Answer(key, "x");
      ASSERT_LE(memory().bytes(), before);
    }
  }
  EXPECT_EQ(Unread().size(), 6u);
  // The memory of the masks is free once the answer is there.
  options_.bytes = 16 << 20;
  memory_ = nullptr;
  Run(1, Request("1", R"("x": 1)"), "x");
  Run(2, Request("1", R"("x": 2)"), "x");
  const uint64_t least = memory().bytes();
  Miss(3, Request("1", R"("x": 3)"));
  const uint64_t most = memory().bytes();
  Answer(3, "x");
  EXPECT_LT(least, memory().bytes());
  EXPECT_LT(memory().bytes(), most);
}

}  // namespace
}  // namespace fncache::insight::explain
