// SPDX-License-Identifier: Apache-2.0
#include "runner/probe/spelled_paths.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fncache::runner::probe {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<SpelledPath> PathsIn(const std::string& text) {
  google::protobuf::Struct input;
  (*input.mutable_fields())["source"].set_string_value(text);
  return SpelledPaths(input);
}

std::vector<std::string> Names(const std::string& text) {
  std::vector<std::string> names;
  for (const SpelledPath& path : PathsIn(text)) {
    names.push_back(absl::StrJoin(path.names, "/"));
  }
  return names;
}

// Texts that the path is compared with.
std::vector<std::string> Compared(const std::string& text,
                                  const std::string& path) {
  std::vector<std::string> values;
  for (const SpelledPath& one : PathsIn(text)) {
    if (absl::StrJoin(one.names, "/") != path) continue;
    for (const auto& value : one.values) {
      values.push_back(
          value.has_number_value()
              ? std::to_string(static_cast<int>(value.number_value()))
              : value.string_value());
    }
  }
  return values;
}

TEST(SpelledPaths, OfEachLanguage) {
  const struct {
    const char* text;
    const char* path;
  } kCases[] = {
      {"{{ .observed.resources.vpc.resource.status.atProvider.vpcId }}",
       "observed/resources/vpc/resource/status/atProvider/vpcId"},
      {"{{ (index .observed.resources \"my-vpc\").resource.status.vpcId }}",
       "my-vpc/resource/status/vpcId"},
      {"{{ dig \"status\" \"atProvider\" \"vpcId\" \"\" $vpc }}",
       "status/atProvider/vpcId"},
      {"ocds.vpc.Resource.status?.atProvider?.vpcId",
       "ocds/vpc/Resource/status/atProvider/vpcId"},
      {"oxr[\"status\"]['atProvider'].vpcId", "oxr/status/atProvider/vpcId"},
      {"r.get(\"status\", {}).get(\"vpcId\")", "r/status/vpcId"},
      {"metadata.annotations[example.org/zone]",
       "metadata/annotations/example.org/zone"},
      {"metadata.annotations[\"example.org/zone\"]",
       "metadata/annotations/example.org/zone"},
      {"status.conditions[0].reason", "status/conditions/reason"},
      {"path: 'status.atProvider.arn'", "status/atProvider/arn"},
  };
  for (const auto& one : kCases) {
    EXPECT_THAT(Names(one.text), Contains(one.path)) << one.text;
  }
}

TEST(SpelledPaths, WhatFollowsIsAnotherPath) {
  EXPECT_THAT(Names(".a.b\n.c.d"), Contains("c/d"));
  EXPECT_THAT(Names("list .a .b"), Contains("b"));
}

TEST(SpelledPaths, WhatAPathIsComparedWith) {
  EXPECT_THAT(Compared("{{ if eq .status.phase \"Active\" }}", "status/phase"),
              ElementsAre("Active"));
  EXPECT_THAT(Compared("s['status']['phase'] == 'Active'", "s/status/phase"),
              ElementsAre("Active"));
  EXPECT_THAT(Compared("status.replicas >= 3", "status/replicas"),
              ElementsAre("3", "4"));
  EXPECT_THAT(Compared(".status.phase .other", "status/phase"), IsEmpty());
}

// It scans, so that nothing breaks it.
TEST(SpelledPaths, AnyTextIsTaken) {
  std::mt19937_64 random(5);
  const std::string bytes = "ab.[]\"'`(){}?=, \n\\0/-";
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (uint64_t i = 0, n = random() % 60; i < n; ++i) {
      text += bytes[random() % bytes.size()];
    }
    EXPECT_LE(PathsIn(text).size(), kMostSpelledPaths);
  }
  std::string nested;
  for (int i = 0; i < 10000; ++i) nested += "\"'`";
  PathsIn(nested);
}

}  // namespace
}  // namespace fncache::runner::probe
