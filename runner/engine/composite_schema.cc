// SPDX-License-Identifier: Apache-2.0
#include "runner/engine/composite_schema.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/struct.pb.h"
#include "runner/engine/metadata.h"
#include "text/quoted.h"

namespace fncache::runner::engine {

namespace {

constexpr absl::string_view kV1 = "apiextensions.crossplane.io/v1";
constexpr absl::string_view kV2 = "apiextensions.crossplane.io/v2";
constexpr absl::string_view kLegacyScope = "LegacyCluster";

}  // namespace

absl::StatusOr<CompositeSchema> SchemaOf(const Struct* definition,
                                         const Struct& composite) {
  if (definition == nullptr) return CompositeSchema::kModern;
  const auto error = [definition](const auto&... parts) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot select composite resource schema: "
        "CompositeResourceDefinition ",
        text::Quoted(text::FindText(*definition, {"metadata", "name"})),
        parts...));
  };
  const std::string& api_version = text::FindText(*definition, {"apiVersion"});
  if (api_version != kV1 && api_version != kV2) {
    return error(" has unrecognized apiVersion ", text::Quoted(api_version),
                 " (expected one of [", kV1, " ", kV2, "])");
  }
  const std::string& group = text::FindText(*definition, {"spec", "group"});
  const std::string& kind =
      text::FindText(*definition, {"spec", "names", "kind"});
  const absl::string_view wanted_group =
      text::GroupOf(text::FindText(composite, {"apiVersion"}));
  const std::string& wanted_kind = text::FindText(composite, {"kind"});
  if (group != wanted_group || kind != wanted_kind) {
    return error(" (composite Group=", group, " Kind=", kind,
                 ") does not match the input XR's Group=", wanted_group,
                 " Kind=", wanted_kind);
  }
  const Value* const scope = text::Find(*definition, {"spec", "scope"});
  const bool absent = scope == nullptr || text::IsNull(*scope);
  const bool legacy =
      (absent && api_version == kV1) ||
      text::FindText(*definition, {"spec", "scope"}) == kLegacyScope;
  return legacy ? CompositeSchema::kLegacy : CompositeSchema::kModern;
}

const Value* FindOwnField(const Struct& composite, CompositeSchema schema,
                          absl::string_view field) {
  return schema == CompositeSchema::kLegacy
             ? text::Find(composite, {"spec", field})
             : text::Find(composite, {"spec", "crossplane", field});
}

bool SetOwnField(CompositeSchema schema, absl::string_view field, Value value,
                 Struct* composite) {
  return schema == CompositeSchema::kLegacy
             ? SetNested(composite, {"spec", field}, std::move(value))
             : SetNested(composite, {"spec", "crossplane", field},
                         std::move(value));
}

}  // namespace fncache::runner::engine
