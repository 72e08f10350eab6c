// SPDX-License-Identifier: Apache-2.0
#include "common/json_tree.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace fncache {
namespace {

TEST(JsonTreeTest, BracesAreObjectsWhoseFieldsKeepTheirOrder) {
  const JsonTree tree = {{"b", 1}, {"a", {{"d", true}, {"c", "text"}}}};
  EXPECT_EQ(tree.Dump(), R"({"b":1,"a":{"d":true,"c":"text"}})");
  EXPECT_EQ(tree.Dump(JsonTree::kOneLine, JsonTree::Order::kSorted),
            R"({"a":{"c":"text","d":true},"b":1})");
}

TEST(JsonTreeTest, IndentsEachLevel) {
  JsonTree list = JsonTree::Array();
  list.Append({{"a", 1}});
  list.Append(JsonTree());
  EXPECT_EQ(list.Dump(2), "[\n  {\n    \"a\": 1\n  },\n  null\n]");
}

TEST(JsonTreeTest, EmptyListsAndObjectsAreNotNull) {
  EXPECT_EQ(JsonTree::Array().Dump(), "[]");
  EXPECT_EQ(JsonTree::Object().Dump(), "{}");
  EXPECT_EQ(JsonTree(std::vector<std::string>()).Dump(), "[]");
  EXPECT_EQ(JsonTree(std::map<std::string, uint64_t>()).Dump(), "{}");
}

TEST(JsonTreeTest, TakesListsAndMaps) {
  const std::map<std::string, std::map<std::string, uint64_t>> nested = {
      {"x", {{"y", 2}}}};
  const JsonTree tree = {{"list", std::vector<std::string>{"a", "b"}},
                         {"map", nested}};
  EXPECT_EQ(tree.Dump(), R"({"list":["a","b"],"map":{"x":{"y":2}}})");
}

// Pages and scripts read what was printed so far.
TEST(JsonTreeTest, WritesNumbersAsNlohmannDoes) {
  for (const double number :
       {0.0, -0.0, 1.0, 0.1, 1e-7, 123456789.25, 1e15, 1e17, 1e22,
        std::numeric_limits<double>::max(),
        std::numeric_limits<double>::infinity(), std::nan("")}) {
    EXPECT_EQ(JsonTree(number).Dump(), nlohmann::json(number).dump());
  }
  EXPECT_EQ(JsonTree(std::numeric_limits<int64_t>::min()).Dump(),
            "-9223372036854775808");
  EXPECT_EQ(JsonTree(std::numeric_limits<uint64_t>::max()).Dump(),
            "18446744073709551615");
}

TEST(JsonTreeTest, BytesThatAreNotUtf8AreReplaced) {
  EXPECT_EQ(JsonTree("a\xff\"").Dump(), "\"a\xEF\xBF\xBD\\\"\"");
  const JsonTree name = {{"a\xff", 1}};
  EXPECT_EQ(name.Dump(), "{\"a\xEF\xBF\xBD\":1}");
}

TEST(JsonTreeTest, SetReplacesAndBracesKeepTheFirst) {
  JsonTree tree = {{"a", 1}, {"a", 2}};
  EXPECT_EQ(tree.Dump(), R"({"a":1})");
  tree.Set("a", 3);
  EXPECT_EQ(tree.Dump(), R"({"a":3})");
}

TEST(JsonTreeTest, CopiesAreIndependent) {
  JsonTree first = {{"a", 1}};
  JsonTree second = first;
  second.Set("a", 2);
  const JsonTree all = {{"first", first}, {"second", std::move(second)}};
  first.Set("a", 3);
  EXPECT_EQ(all.Dump(), R"({"first":{"a":1},"second":{"a":2}})");
}

}  // namespace
}  // namespace fncache
