// SPDX-License-Identifier: Apache-2.0
#include "sdk/schema/input.h"

#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "fncache/function/value.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fncache::sdk::schema {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kSchema[] = R"({
  "type": "object",
  "required": ["spec"],
  "properties": {
    "apiVersion": {"type": "string"},
    "kind": {"type": "string"},
    "metadata": {"type": "object"},
    "spec": {
      "type": "object",
      "required": ["name"],
      "properties": {
        "name": {"type": "string", "description": "\u00e4\/\ud83d\ude00"},
        "size": {"type": "integer", "default": 3}}}}})";

std::vector<std::string> Messages(absl::string_view schema,
                                  const function::Value& input) {
  std::vector<std::string> messages;
  for (const auto& problem : CheckInput(schema, input.ref().get())) {
    messages.push_back(InputMessage(problem));
  }
  return messages;
}

TEST(InputTest, ProblemsHaveThePathInTheRequest) {
  EXPECT_THAT(
      Messages(kSchema, function::Yaml("{apiVersion: a/v1, kind: B, metadata: "
                                       "{name: x}, spec: {name: a, size: 1}}")),
      IsEmpty());
  EXPECT_THAT(
      Messages(kSchema, function::Yaml("{spec: {size: large, nmae: a}}")),
      ElementsAre("input.spec.name: is required",
                  "input.spec.nmae: is not known",
                  "input.spec.size: must be a number, is text"));
  EXPECT_THAT(Messages(R"({"minProperties": 2})", function::Yaml("{a: 1}")),
              ElementsAre("input: must have at least 2 fields"));
}

TEST(InputTest, AStepWithoutInputLacksWhatIsRequired) {
  EXPECT_THAT(Messages(kSchema, function::Value()),
              ElementsAre("input.spec: is required"));
  EXPECT_THAT(Messages("{\"type\": \"object\"}", function::Value()), IsEmpty());
}

TEST(InputTest, BrokenSchemasAllowAll) {
  std::string deep = "1";
  for (int i = 0; i < 400; ++i) deep = absl::StrCat("{\"not\":", deep, "}");
  for (const std::string& schema :
       {std::string(), std::string("{"), std::string("[]"), std::string("null"),
        std::string("{\"type\": 5}"), deep}) {
    EXPECT_THAT(Messages(schema, function::Yaml("{a: 1}")), IsEmpty())
        << schema;
  }
}

TEST(InputTest, ManySchemasAreFine) {
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 200; ++i) {
      EXPECT_THAT(Messages(absl::StrCat("{\"required\": [\"f", i, "\"]}"),
                           function::Yaml("{}")),
                  ElementsAre(absl::StrCat("input.f", i, ": is required")));
    }
  }
}

TEST(InputTest, ThreadsShareASchema) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      for (int j = 0; j < 100; ++j) {
        EXPECT_EQ(Messages(kSchema, function::Yaml("{spec: {size: x}}")).size(),
                  2u);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace fncache::sdk::schema
