// SPDX-License-Identifier: Apache-2.0
#include "runner/engine/document_schemas.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "text/json.h"

namespace fncache::runner::engine {
namespace {

using ::testing::HasSubstr;

text::Json Parsed(absl::string_view text) {
  auto json = text::ParseJson(text);
  EXPECT_TRUE(json.ok()) << json.status() << "\n" << text;
  return json.ok() ? *std::move(json) : text::Json();
}

// A document of `components`, each `"NAME": {...}`.
text::Json Document(absl::string_view components) {
  return Parsed(
      absl::StrCat(R"({"openapi": "3.0.0", "components": {"schemas": {)",
                   components, "}}}"));
}

std::string Kind(absl::string_view group, absl::string_view version,
                 absl::string_view kind) {
  return absl::StrCat(R"("x-kubernetes-group-version-kind": [{"group": ")",
                      group, R"(", "version": ")", version, R"(", "kind": ")",
                      kind, R"("}])");
}

// Returns what a source finds, as JSON; "none" or the error.
std::string Find(SchemaSource* source, const std::string& api_version,
                 const std::string& kind) {
  std::string result = "not called";
  source->Find(
      api_version, kind, absl::InfiniteFuture(), [&](FoundSchema found) {
        EXPECT_EQ(result, "not called");
        result = !found.ok()          ? std::string(found.status().message())
                 : found->has_value() ? text::FromStruct(**found).dump()
                                      : "none";
      });
  return result;
}

TEST(DocumentSchemasTest, FindsKindsInTheDocumentOfTheirGroupVersion) {
  std::vector<text::Json> documents;
  documents.push_back(Document(
      absl::StrCat(R"("A": {"type": "a", )", Kind("", "v1", "Foo"), "}")));
  documents.push_back(Document(
      absl::StrCat(R"("B": {"type": "b", )", Kind("apps", "v1", "Foo"), "}")));
  const auto source = MakeDocumentSchemas(std::move(documents));
  EXPECT_THAT(Find(source.get(), "v1", "Foo"), HasSubstr(R"("type":"a")"));
  EXPECT_THAT(Find(source.get(), "apps/v1", "Foo"), HasSubstr(R"("type":"b")"));
  EXPECT_EQ(Find(source.get(), "apps/v1", "Bar"), "none");
  EXPECT_EQ(Find(source.get(), "apps/v2", "Foo"), "none");
  EXPECT_EQ(Find(source.get(), "", ""), "none");
  EXPECT_THAT(Find(source.get(), "a/b/c", "Foo"),
              HasSubstr("unexpected GroupVersion string: a/b/c"));
}

TEST(DocumentSchemasTest, FirstDocumentThatNamesAGroupVersionKeepsIt) {
  std::vector<text::Json> documents;
  // Its DeleteOptions is of many groups, so it hides the next one's kinds.
  documents.push_back(Document(
      R"("Options": {"x-kubernetes-group-version-kind": [
           {"group": "", "version": "v1", "kind": "DeleteOptions"},
           {"group": "apps", "version": "v1", "kind": "DeleteOptions"}]})"));
  documents.push_back(Document(
      absl::StrCat(R"("B": {"type": "b", )", Kind("apps", "v1", "Foo"), "}, ",
                   R"("C": {"type": "c", )", Kind("batch", "v1", "Bar"), "}")));
  const auto source = MakeDocumentSchemas(std::move(documents));
  EXPECT_EQ(Find(source.get(), "apps/v1", "Foo"), "none");
  EXPECT_THAT(Find(source.get(), "batch/v1", "Bar"),
              HasSubstr(R"("type":"c")"));
}

TEST(DocumentSchemasTest, BrokenKindFailsAloneAndEachTime) {
  std::vector<text::Json> documents;
  documents.push_back(Document(absl::StrCat(
      R"("A": {"items": {"$ref": "gone"}, )", Kind("", "v1", "Broken"), "}, ",
      R"("B": {"type": "b", )", Kind("", "v1", "Whole"), "}")));
  const auto source = MakeDocumentSchemas(std::move(documents));
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(Find(source.get(), "v1", "Broken"),
                HasSubstr("cannot resolve Ref \"gone\": schema not found"));
    EXPECT_THAT(Find(source.get(), "v1", "Whole"), HasSubstr("\"b\""));
  }
}

TEST(DocumentSchemasTest, WithoutDocumentsThereIsNothing) {
  const auto source = MakeDocumentSchemas({});
  EXPECT_EQ(Find(source.get(), "v1", "Pod"), "none");
  EXPECT_THAT(Find(source.get(), "a/b/c", "Foo"), HasSubstr("cannot parse"));
}

}  // namespace
}  // namespace fncache::runner::engine
