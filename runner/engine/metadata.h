// SPDX-License-Identifier: Apache-2.0
// The metadata of Kubernetes objects, read and written with the rules of the
// reference runner: a map of labels or annotations with any value that is no
// text and not null counts as absent, a null in it is "", and nothing is
// written below what is no map.
//
// Pure functions, thread-safe; pointers are into the object given.
#ifndef FNCACHE_RUNNER_ENGINE_METADATA_H_
#define FNCACHE_RUNNER_ENGINE_METADATA_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "proto/struct_fwd.h"
#include "text/object.h"

namespace fncache::runner::engine {

using google::protobuf::Struct;
using google::protobuf::Value;

inline constexpr absl::string_view kResourceNameAnnotation =
    "crossplane.io/composition-resource-name";
inline constexpr absl::string_view kCompositeLabel = "crossplane.io/composite";
inline constexpr absl::string_view kClaimNameLabel = "crossplane.io/claim-name";
inline constexpr absl::string_view kClaimNamespaceLabel =
    "crossplane.io/claim-namespace";

// Sets the value at `path`; levels that are absent are made. Returns false, and
// changes nothing, if one of them is there and no map.
bool SetNested(Struct* object, text::ObjectPath path, Value value);

// "" if there is none.
const std::string& NameOf(const Struct& object);
const std::string& NamespaceOf(const Struct& object);
const std::string& UidOf(const Struct& object);
const std::string& LabelOf(const Struct& object, absl::string_view key);
const std::string& AnnotationOf(const Struct& object, absl::string_view key);

// Sets metadata.FIELD, or removes it if `text` is empty.
void SetMetadataText(Struct* object, absl::string_view field,
                     absl::string_view text);

using Texts = std::vector<std::pair<absl::string_view, std::string>>;

// Adds to the labels, or the annotations; one of the same key is replaced, and
// the whole map if it counts as absent.
void AddLabels(Struct* object, const Texts& labels);
void AddAnnotations(Struct* object, const Texts& annotations);
// Does nothing if the labels count as absent.
void RemoveLabels(Struct* object, const std::vector<absl::string_view>& keys);

struct OwnerReference {
  std::string api_version;
  std::string kind;
  std::string name;
  std::string uid;
  absl::optional<bool> controller;
  absl::optional<bool> block_owner_deletion;
};

// The owner references; none at all if any of them is no map.
std::vector<OwnerReference> OwnerReferencesOf(const Struct& object);
absl::optional<OwnerReference> ControllerOf(const Struct& object);
// Makes `owner` the controller. It replaces a reference to the same UID, or
// comes last. FailedPrecondition if something else controls the object.
absl::Status SetController(const OwnerReference& owner, Struct* object);

}  // namespace fncache::runner::engine

#endif  // FNCACHE_RUNNER_ENGINE_METADATA_H_
