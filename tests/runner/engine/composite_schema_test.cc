// SPDX-License-Identifier: Apache-2.0
#include "runner/engine/composite_schema.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "google/protobuf/struct.pb.h"
#include "gtest/gtest.h"
#include "tests/runner/messages.h"

namespace fncache::runner::engine {
namespace {

constexpr CompositeSchema kModern = CompositeSchema::kModern;
constexpr CompositeSchema kLegacy = CompositeSchema::kLegacy;

Struct Object(absl::string_view json) { return FromJson<Struct>(json); }

constexpr char kComposite[] =
    R"({"apiVersion": "ex.org/v1", "kind": "XShop", "metadata": {"name": "a"}})";

std::string Definition(const std::string& version, const std::string& scope,
                       const std::string& group = "ex.org",
                       const std::string& kind = "XShop") {
  return absl::StrCat(
      R"({"apiVersion": "apiextensions.crossplane.io/)", version,
      R"(", "kind": "CompositeResourceDefinition",
          "metadata": {"name": "xshops.ex.org"},
          "spec": {"group": ")",
      group, R"(", "names": {"kind": ")", kind, R"(", "plural": "xshops"})",
      scope.empty() ? "" : R"(, "scope": )" + scope,
      R"(, "versions": [{"name": "v1"}]}})");
}

absl::StatusOr<CompositeSchema> SchemaWith(const std::string& definition,
                                           const char* composite = kComposite) {
  const Struct object = Object(definition);
  return SchemaOf(&object, Object(composite));
}

TEST(SchemaOfTest, WithoutADefinitionItIsModern) {
  EXPECT_EQ(*SchemaOf(nullptr, Object(kComposite)), CompositeSchema::kModern);
  EXPECT_EQ(*SchemaOf(nullptr, Struct()), CompositeSchema::kModern);
}

TEST(SchemaOfTest, VersionAndScopeTellLegacyFromModern) {
  const struct {
    const char* version;
    const char* scope;
    CompositeSchema schema;
  } cases[] = {
      {"v1", "", CompositeSchema::kLegacy},
      {"v1", "null", CompositeSchema::kLegacy},
      {"v1", R"("LegacyCluster")", CompositeSchema::kLegacy},
      {"v1", R"("Cluster")", CompositeSchema::kModern},
      {"v1", R"("Namespaced")", CompositeSchema::kModern},
      {"v2", "", CompositeSchema::kModern},
      {"v2", "null", CompositeSchema::kModern},
      {"v2", R"("LegacyCluster")", CompositeSchema::kLegacy},
      {"v2", R"("Cluster")", CompositeSchema::kModern},
      {"v2", R"("Namespaced")", CompositeSchema::kModern},
  };
  for (const auto& test : cases) {
    const auto schema = SchemaWith(Definition(test.version, test.scope));
    ASSERT_TRUE(schema.ok()) << schema.status();
    EXPECT_EQ(*schema, test.schema) << test.version << " " << test.scope;
  }
}

TEST(SchemaOfTest, GroupAndKindMustMatch) {
  EXPECT_EQ(SchemaWith(Definition("v1", "", "other.org")).status().message(),
            "cannot select composite resource schema: "
            "CompositeResourceDefinition \"xshops.ex.org\" (composite "
            "Group=other.org Kind=XShop) does not match the input XR's "
            "Group=ex.org Kind=XShop");
  EXPECT_EQ(
      SchemaWith(Definition("v2", "", "ex.org", "XCart")).status().message(),
      "cannot select composite resource schema: "
      "CompositeResourceDefinition \"xshops.ex.org\" (composite "
      "Group=ex.org Kind=XCart) does not match the input XR's "
      "Group=ex.org Kind=XShop");
}

TEST(SchemaOfTest, TheVersionNeedNotMatch) {
  EXPECT_TRUE(SchemaWith(Definition("v1", ""),
                         R"({"apiVersion": "ex.org/v9", "kind": "XShop"})")
                  .ok());
}

TEST(SchemaOfTest, AnotherApiVersionIsAnError) {
  const auto schema = SchemaWith(Definition("v3", ""));
  EXPECT_EQ(schema.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(schema.status().message(),
            "cannot select composite resource schema: "
            "CompositeResourceDefinition \"xshops.ex.org\" has unrecognized "
            "apiVersion \"apiextensions.crossplane.io/v3\" (expected one of "
            "[apiextensions.crossplane.io/v1 apiextensions.crossplane.io/v2])");
  EXPECT_FALSE(SchemaWith("{}").ok());
}

TEST(OwnFieldTest, OwnFieldsAreBelowSpecCrossplaneOfAModernOne) {
  Struct composite;
  EXPECT_TRUE(
      SetOwnField(kModern, "compositionRef", text::TextValue("x"), &composite));
  ExpectJson(composite, R"({"spec": {"crossplane": {"compositionRef": "x"}}})");
  EXPECT_NE(FindOwnField(composite, kModern, "compositionRef"), nullptr);
  EXPECT_EQ(FindOwnField(composite, kLegacy, "compositionRef"), nullptr);
}

TEST(OwnFieldTest, OwnFieldsAreDirectlyBelowSpecOfALegacyOne) {
  Struct composite;
  EXPECT_TRUE(
      SetOwnField(kLegacy, "compositionRef", text::TextValue("x"), &composite));
  ExpectJson(composite, R"({"spec": {"compositionRef": "x"}})");
  EXPECT_NE(FindOwnField(composite, kLegacy, "compositionRef"), nullptr);
  EXPECT_EQ(FindOwnField(composite, kModern, "compositionRef"), nullptr);
}

}  // namespace
}  // namespace fncache::runner::engine
