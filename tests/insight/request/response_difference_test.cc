// SPDX-License-Identifier: Apache-2.0
#include "insight/request/response_difference.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "proto/function_v1.pb.h"
#include "tests/cache/key/key_oracle.h"
#include "tests/cache/key/random_encoding.h"
#include "tests/cache/key/random_request.h"

namespace fncache::insight::request {
namespace {

namespace fn = ::apiextensions::fn::proto::v1;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

fn::RunFunctionResponse FromJson(const std::string& json) {
  fn::RunFunctionResponse response;
  const auto status =
      google::protobuf::util::JsonStringToMessage(json, &response);
  EXPECT_TRUE(status.ok()) << status.ToString();
  return response;
}

class ResponseDifferenceTest : public ::testing::Test {
 protected:
  std::vector<ResponseDifference> Compare(const std::string& a,
                                          const std::string& b,
                                          size_t most = 8) {
    return comparer_.Compare({FromJson(a).SerializeAsString()},
                             {FromJson(b).SerializeAsString()}, most);
  }
  std::vector<std::string> Paths(const std::string& a, const std::string& b,
                                 size_t most = 8) {
    std::vector<std::string> paths;
    for (const auto& difference : Compare(a, b, most)) {
      paths.push_back(difference.path);
    }
    return paths;
  }

  ResponseComparer comparer_{FingerprintSecret::Random(), {1, 2, 3}};
};

TEST_F(ResponseDifferenceTest, PathsAreInTheOrderOfTheFirst) {
  EXPECT_THAT(
      Paths(R"({"results": [{"message": "a"}, {"message": "b"}],
                "desired": {"resources": {"r": {"resource": {"x": 1, "y": 2}}}}})",
            R"({"results": [{"message": "a"}, {"message": "c"}],
                "desired": {"resources": {"r": {"resource": {"x": 3, "y": 2}}}}})"),
      ElementsAre("desired.resources.r.resource.x", "results[1].message"));
}

TEST_F(ResponseDifferenceTest, OfWhatOneLacksItsOutermostPartIsTold) {
  const std::string with =
      R"({"desired": {"resources": {"r": {"resource": {"x": {"y": {"z": 1}}}},
                                    "s": {"resource": {"x": 1}}}}})";
  const std::string without =
      R"({"desired": {"resources": {"r": {"resource": {}}}}})";
  EXPECT_THAT(
      Paths(with, without),
      ElementsAre("desired.resources.r.resource.x", "desired.resources.s"));
  EXPECT_THAT(
      Paths(without, with),
      ElementsAre("desired.resources.r.resource.x", "desired.resources.s"));
  EXPECT_EQ(Compare(with, without)[0].second, "absent");
  EXPECT_EQ(Compare(without, with)[0].first, "absent");
  EXPECT_THAT(Paths(with, "{}"), ElementsAre("desired"));
}

TEST_F(ResponseDifferenceTest, ListsOfTwoLengthsDifferInTheirElements) {
  const auto differences = Compare(R"({"context": {"l": [1, 2]}})",
                                   R"({"context": {"l": [1, 2, 3]}})");
  ASSERT_EQ(differences.size(), 1);
  EXPECT_EQ(differences[0].path, "context.l[2]");
  EXPECT_EQ(differences[0].pattern, "context.l.*");
}

TEST_F(ResponseDifferenceTest, HashesTellValuesApartAndShowNone) {
  const auto value = [&](const std::string& a, const std::string& b) {
    return Compare(absl::StrCat(R"({"context": {"v": )", a, "}}"),
                   absl::StrCat(R"({"context": {"v": )", b, "}}"))
        .at(0);
  };
  const auto one = value("\"p\"", "\"q\"");
  EXPECT_NE(one.first, one.second);
  EXPECT_EQ(one.first.size(), 8);
  EXPECT_EQ(value("\"p\"", "\"r\"").first, one.first);
  EXPECT_NE(value("1", "\"1\"").first, value("1", "\"1\"").second);
  EXPECT_EQ(value("null", "{\"a\": 1}").second, "present");
}

TEST_F(ResponseDifferenceTest, SecretsHaveNoKeysAndNoHashes) {
  const auto differences =
      Compare(R"({"desired": {"composite": {"connectionDetails":
                    {"password": "YQ=="}}, "resources": {"s": {"resource":
                    {"apiVersion": "v1", "kind": "Secret",
                     "data": {"password": "YQ=="}}}}}})",
              R"({"desired": {"composite": {"connectionDetails":
                    {"password": "Yg=="}}, "resources": {"s": {"resource":
                    {"apiVersion": "v1", "kind": "Secret",
                     "data": {"password": "Yg=="}}}}}})");
  ASSERT_EQ(differences.size(), 2);
  for (const auto& difference : differences) {
    EXPECT_THAT(difference.path, Not(HasSubstr("password")));
    EXPECT_EQ(difference.first, "present");
    EXPECT_EQ(difference.second, "present");
  }
}

TEST_F(ResponseDifferenceTest, ThereAreAsManyAsWereAskedFor) {
  EXPECT_EQ(Paths(R"({"context": {"a": 1, "b": 1, "c": 1}})",
                  R"({"context": {"a": 2, "b": 2, "c": 2}})", 2)
                .size(),
            2);
}

TEST_F(ResponseDifferenceTest, EmptyIfAndOnlyIfTheMessagesAreEqual) {
  cache::key::Random random(7);
  int equal = 0, different = 0;
  for (int i = 0; i < 3000; ++i) {
    const fn::RunFunctionResponse response =
        cache::key::RandomResponse(&random);
    fn::RunFunctionResponse changed = response;
    cache::key::Mutate(&changed, &random);
    const std::string a =
        Encode(response, cache::key::Style::kAnyEncoder, &random);
    const std::string b = Encode(changed, cache::key::Style::kWild, &random);
    const auto differences = comparer_.Compare({a}, {b}, 8);
    const bool none = differences.empty();
    const bool same = cache::key::SameMessage(response, changed);
    ASSERT_EQ(none, same) << i << ": " << (none ? "" : differences[0].path)
                          << "\n"
                          << response.ShortDebugString();
    ++(same ? equal : different);
  }
  EXPECT_GT(equal, 100);
  EXPECT_GT(different, 1000);
}

}  // namespace
}  // namespace fncache::insight::request
