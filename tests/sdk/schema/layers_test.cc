// SPDX-License-Identifier: Apache-2.0
// Validate on desired documents: what earlier steps desire, and what is
// awaited.
#include <string>

#include "fncache/function/value.h"
#include "google/protobuf/struct.pb.h"
#include "gtest/gtest.h"
#include "sdk/model/node.h"
#include "sdk/schema/validate.h"
#include "tests/sdk/schema/schema_testing.h"
#include "text/json.h"

namespace fncache::sdk::schema {
namespace {

using function::Value;
using function::Yaml;

class LayersTest : public ::testing::Test {
 protected:
  LayersTest() {
    desired_->section = Section::kDesiredResource;
    desired_->base = Parsed(
        R"({"spec": {"region": "eu", "zones": ["a", 1], "old": {"x": 1}}})");
    observed_->section = Section::kObservedResource;
    observed_->awaits = true;
    observed_->writable = false;
  }
  ~LayersTest() override { arena_->Unref(); }

  Document* Parsed(const char* json) {
    Document* const document = arena_->NewDocument();
    document->section = Section::kDesiredResource;
    bytes_ = text::ParseJsonStruct(json)->SerializeAsString();
    document->SetBytes(bytes_);
    document->writable = false;
    return document;
  }
  static Value Of(Document* document) {
    return Value(function::internal::Ref(document->root()));
  }
  // The problems of the desired spec with this schema.
  std::string Spec(absl::string_view schema) {
    return Found(Yaml(absl::StrCat("{properties: {spec: ", schema, "}}")),
                 Of(desired_));
  }
  Value Awaited() { return Of(observed_)["status"]["id"]; }

  std::string bytes_;
  Arena* const arena_ = Arena::New();
  Document* const desired_ = arena_->NewDocument();
  Document* const observed_ = arena_->NewDocument();
};

TEST_F(LayersTest, EarlierStepsCountToo) {
  constexpr char kSchema[] =
      "{required: [region, size], properties: {region: {enum: [us]}, size: "
      "{type: number}, zones: {items: {type: string}}}}";
  EXPECT_EQ(Spec(kSchema),
            "spec.old: is not known\n"
            "spec.region: must be \"us\"\n"
            "spec.size: is required\n"
            "spec.zones[1]: must be text, is a number");
  Value spec = Of(desired_)["spec"];
  spec["region"] = "us";
  spec["size"] = "large";
  spec["zones"].add("b");
  spec["old"].clear();
  EXPECT_EQ(Spec(kSchema),
            "spec.size: must be a number, is text\n"
            "spec.zones[1]: must be text, is a number");
  spec["zones"] = {"c"};
  spec["size"].clear();
  EXPECT_EQ(Spec(kSchema), "spec.size: is required");
}

TEST_F(LayersTest, AwaitedFieldsArePresentAndRight) {
  Value spec = Of(desired_)["spec"];
  spec["id"] = Awaited();
  spec["old"] = Awaited();
  spec["zones"][1] = Awaited();
  EXPECT_EQ(Spec("{required: [id, old], minProperties: 4, maxProperties: 4, "
                 "properties: {region: {}, id: {type: number}, old: "
                 "{required: [k]}, zones: {items: {type: string}}}}"),
            "");
  EXPECT_EQ(Spec("{properties: {region: {}, old: {}, zones: {}}, required: "
                 "[other]}"),
            "spec.other: is required");
  EXPECT_EQ(Spec("{maxProperties: 3}"), "spec: must have at most 3 fields");
}

TEST_F(LayersTest, FormsWithAwaitedFieldsAreNoProblem) {
  Value spec = Of(desired_)["spec"];
  spec["id"] = Awaited();
  // It will be present.
  EXPECT_EQ(Spec("{oneOf: [{required: [id]}, {required: [other]}]}"), "");
  EXPECT_EQ(Spec("{not: {required: [id]}}"),
            "spec: has a form that is not accepted");
  // Its value is not known.
  for (const char* const schema :
       {"{not: {properties: {id: {enum: [x]}}}}",
        "{oneOf: [{properties: {id: {enum: [x]}}}, {properties: {id: {enum: "
        "[k]}}}]}",
        "{anyOf: [{properties: {id: {enum: [x]}}}, {required: [other]}]}",
        "{properties: {zones: {uniqueItems: true}}}",
        "{not: {enum: [{region: eu, zones: [a, 1], old: {x: 1}, id: 1}]}}"}) {
    EXPECT_EQ(Spec(absl::StrCat("{additionalProperties: true, allOf: [", schema,
                                "]}")),
              "")
        << schema;
  }
  spec["zones"].add(Awaited());
  spec["zones"].add(Awaited());
  EXPECT_EQ(Spec("{additionalProperties: true, properties: {zones: "
                 "{uniqueItems: true, minItems: 4, maxItems: 4}}}"),
            "");
}

TEST_F(LayersTest, AnObjectThatIsAwaitedCanHaveWhatIsRequired) {
  Value spec = Of(desired_)["spec"];
  spec["new"] = Awaited();
  spec["new"]["x"] = 1;
  EXPECT_EQ(Spec("{properties: {new: {required: [k], minProperties: 2, "
                 "properties: {x: {type: string}}}, region: {}, zones: {}, "
                 "old: {}}}"),
            "spec.new.x: must be text, is a number");
}

TEST_F(LayersTest, ObservedDocumentsThatAreAbsentAreAwaited) {
  EXPECT_EQ(Found(Yaml("{required: [status]}"), Of(observed_)), "");
}

TEST_F(LayersTest, ReadsOfObservedDocumentsAreNoted) {
  Document* const observed = Parsed(R"({"spec": {"a": 1}})");
  observed->section = Section::kObservedResource;
  observed->name = "bucket";
  EXPECT_EQ(Found(Yaml("{properties: {spec: {}}}"), Of(observed)), "");
  std::set<std::string> reads;
  AddReads(observed, &reads);
  EXPECT_EQ(reads.size(), 1u);
}

}  // namespace
}  // namespace fncache::sdk::schema
