// SPDX-License-Identifier: Apache-2.0
#include "runner/replay/options.h"

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fncache::runner::replay {
namespace {

using insight::whatif::CacheSettings;
using insight::whatif::SettingTexts;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Knows two settings; `bad` is a value that it refuses.
class TwoSettings : public insight::whatif::SettingsReader {
 public:
  std::vector<std::string> Names() const override {
    return {"ttl.max", "mask"};
  }
  bool Takes(absl::string_view name) const override {
    return name == "ttl.max" || name == "mask";
  }
  std::vector<std::string> Split(absl::string_view /*name*/,
                                 absl::string_view text) const override {
    return {std::string(text)};
  }
  absl::StatusOr<CacheSettings> Read(const SettingTexts& texts) const override {
    for (const auto& [name, values] : texts) {
      if (!Takes(name) || values[0] == "bad") {
        return absl::InvalidArgumentError(absl::StrCat(name, ": no"));
      }
    }
    return CacheSettings();
  }
  std::vector<std::string> NotPlayed(
      const std::map<std::string, std::string>& /*settings*/) const override {
    return {};
  }
};

std::vector<std::string> LabelsOf(const ReplayFlags& flags) {
  const auto questions = QuestionsOf(flags, TwoSettings());
  EXPECT_TRUE(questions.ok()) << questions.status();
  std::vector<std::string> labels;
  for (const Question& question : *questions) {
    labels.push_back(question.Label());
  }
  return labels;
}

std::string Refused(const ReplayFlags& flags) {
  const auto questions = QuestionsOf(flags, TwoSettings());
  EXPECT_FALSE(questions.ok());
  return std::string(questions.status().message());
}

TEST(QuestionsOf, WhatIfsAreOneSetAndSweepsManyOfThem) {
  ReplayFlags flags;
  EXPECT_THAT(LabelsOf(flags), ElementsAre("as recorded"));
  flags.what_if = {"mask=a", "mask=b"};
  EXPECT_THAT(LabelsOf(flags), ElementsAre("mask=a mask=b"));
  flags.sweep = {"ttl.max=1h,2h"};
  EXPECT_THAT(LabelsOf(flags), ElementsAre("mask=a mask=b ttl.max=1h",
                                           "mask=a mask=b ttl.max=2h"));
}

TEST(QuestionsOf, RangesHaveEightValues) {
  ReplayFlags flags;
  flags.sweep = {"ttl.max=1m..128m"};
  EXPECT_THAT(LabelsOf(flags),
              ElementsAre("ttl.max=1m0s", "ttl.max=2m0s", "ttl.max=4m0s",
                          "ttl.max=8m0s", "ttl.max=16m0s", "ttl.max=32m0s",
                          "ttl.max=1h4m0s", "ttl.max=2h8m0s"));
  flags.sweep = {"ttl.max=0..0.7"};
  EXPECT_EQ(LabelsOf(flags)[1], "ttl.max=0.1");
  flags.sweep = {"ttl.max=1MiB..128MiB"};
  EXPECT_EQ(LabelsOf(flags)[1], "ttl.max=2048KiB");
}

TEST(QuestionsOf, RefusesByName) {
  ReplayFlags flags;
  flags.what_if = {"ttl.max"};
  EXPECT_THAT(Refused(flags), HasSubstr("--what-if ttl.max: accepted: KEY="));
  flags.what_if = {"listen=1"};
  EXPECT_THAT(Refused(flags), HasSubstr("--what-if: listen: no"));
  flags.what_if = {"ttl.max=bad"};
  EXPECT_THAT(Refused(flags), HasSubstr("--what-if: ttl.max: no"));
  flags.what_if.clear();
  flags.sweep = {"ttl.max=1h,bad"};
  EXPECT_THAT(Refused(flags), HasSubstr("--sweep: ttl.max: no"));
  flags.sweep = {"ttl.max=1h..much"};
  EXPECT_THAT(Refused(flags), HasSubstr("two durations"));
}

}  // namespace
}  // namespace fncache::runner::replay
