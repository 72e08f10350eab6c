// SPDX-License-Identifier: Apache-2.0
#include "runner/engine/request_tag.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "tests/runner/engine/whole_tag.h"
#include "tests/runner/messages.h"
#include "text/deterministic_bytes.h"

namespace fncache::runner::engine {
namespace {

namespace fs = std::filesystem;
namespace fn = apiextensions::fn::proto::v1;

constexpr absl::string_view kRequest = R"({
    "observed": {
      "composite": {"resource": {"kind": "XR", "spec": {"a": 1, "b": [2]}}},
      "resources": {"x": {}, "y": {"ready": "READY_TRUE"}}},
    "desired": {"resources": {"d": {}, "c": {}, "e": {}}},
    "input": {"b": null, "a": {}}, "context": {"k": "v"},
    "credentials": {"c": {"credentialData": {"data": {"u": "dQ==", "p": ""}}}},
    "requiredResources": {"r": {}, "q": {"items": [{"resource": {}}]}},
    "requiredSchemas": {"s": {"openapiV3": {}}, "t": {}}})";

TEST(RequestTagTest, IsHexOfTheEmptyRequestsHash) {
  // SHA-256 of no bytes.
  EXPECT_EQ(RequestTag(fn::RunFunctionRequest()),
            "e3b0c44298fc1c149afbf4c8996fb924"
            "27ae41e4649b934ca495991b7852b855");
}

TEST(RequestTagTest, IsTheHashOfTheEncodedRequest) {
  // Field 4, a message of no bytes: printf '\x22\x00' | sha256sum
  EXPECT_EQ(RequestTag(FromJson<fn::RunFunctionRequest>(R"({"input": {}})")),
            "37aa3970b6801c9d286464f7d86e50bf"
            "41c88e54c7b4d08f3ff61935b3f59c3c");
}

TEST(RequestTagTest, DoesNotDependOnTheOrderOfMaps) {
  const auto request = FromJson<fn::RunFunctionRequest>(kRequest);
  const std::string tag = RequestTag(request);
  for (int i = 0; i < 20; ++i) {
    // Another map has another seed, and so another order.
    fn::RunFunctionRequest other;
    ASSERT_TRUE(other.ParseFromString(request.SerializeAsString()));
    EXPECT_EQ(RequestTag(other), tag);
  }
}

TEST(RequestTagTest, EveryOtherFieldCounts) {
  const auto request = FromJson<fn::RunFunctionRequest>(kRequest);
  std::set<std::string> tags = {RequestTag(request)};
  const auto* const descriptor = fn::RunFunctionRequest::descriptor();
  int cleared = 0;
  for (int i = 0; i < descriptor->field_count(); ++i) {
    fn::RunFunctionRequest other = request;
    const auto* const reflection = other.GetReflection();
    const auto* const field = descriptor->field(i);
    const bool set = field->is_repeated()
                         ? reflection->FieldSize(other, field) > 0
                         : reflection->HasField(other, field);
    if (!set) continue;
    reflection->ClearField(&other, field);
    tags.insert(RequestTag(other));
    ++cleared;
  }
  EXPECT_EQ(cleared, 7);
  EXPECT_EQ(tags.size(), 8U);
}

TEST(RequestTaggerTest, GivesTheSameTagsAsAWholeHash) {
  const auto whole = FromJson<fn::RunFunctionRequest>(kRequest);
  fn::RunFunctionRequest request;
  *request.mutable_observed() = whole.observed();
  const RequestTagger tagger(request);
  EXPECT_EQ(tagger.Tag(&request), RequestTag(request));
  request = whole;
  EXPECT_EQ(tagger.Tag(&request), RequestTag(whole));
  EXPECT_EQ(text::DeterministicBytes(request), text::DeterministicBytes(whole));
  request.clear_desired();
  request.mutable_input()->Clear();
  EXPECT_EQ(tagger.Tag(&request), RequestTag(request));
  EXPECT_NE(tagger.Tag(&request), RequestTag(whole));
}

TEST(RequestTaggerTest, TakesAnEmptyObserved) {
  fn::RunFunctionRequest request;
  request.mutable_observed();
  const RequestTagger tagger(request);
  request.mutable_context();
  EXPECT_EQ(tagger.Tag(&request), RequestTag(request));
}

// The tags that Crossplane v2.4 gave to real requests are ours, although that
// is not promised of two builds: caches in front of a function that key by the
// tag are shared by both.
TEST(RequestTagTest, RecordedFirstRequestsHaveOurTags) {
  const fs::path folder = fs::path(FNCACHE_SOURCE_DIR) / "tests/data/recorded";
  std::map<std::string, bool> seen;  // by case and tag: whether it is ours
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!absl::EndsWith(entry.path().string(), ".req.bin")) continue;
    std::stringstream bytes;
    bytes << std::ifstream(entry.path(), std::ios::binary).rdbuf();
    fn::RunFunctionRequest request;
    ASSERT_TRUE(request.ParseFromString(bytes.str())) << entry.path();
    // Repeats carry the tag of the step's first request.
    seen[entry.path().parent_path().string() + request.meta().tag()] |=
        RequestTag(request) == request.meta().tag();
  }
  EXPECT_GE(seen.size(), 10U);
  for (const auto& [name, ours] : seen) EXPECT_TRUE(ours) << name;
}

}  // namespace
}  // namespace fncache::runner::engine
