// SPDX-License-Identifier: Apache-2.0
// GoType: the structs of the reference that typed_object.h reads into.
//
// Immutable once made, thread-safe.
#ifndef FNCACHE_TEXT_GO_TYPES_H_
#define FNCACHE_TEXT_GO_TYPES_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace fncache::text {

struct GoType {
  enum class Kind {
    kText,
    kInt32,
    kInt64,
    kBool,
    kBytes,  // base64 in JSON
    kTime,   // RFC 3339, or null
    kAny,    // kept as it is
    kList,
    kMap,  // with keys of text
    kStruct,
  };
  struct Field {
    std::string name;  // in JSON
    const GoType* type = nullptr;
    bool pointer = false;     // null is not the type's zero
    bool omit_empty = false;  // left out when it is empty
    // The struct that Go embeds here and that the field is one of; null = none.
    const GoType* embedded = nullptr;
  };

  Kind kind = Kind::kAny;
  std::string name;  // as Go prints it: `[]string`, `v1.ObjectMeta`
  const GoType* element = nullptr;  // of a list or a map
  std::vector<Field> fields;        // of a struct

  // A struct's name without its package.
  absl::string_view ShortName() const;
  // The field of this name, or else of this name in another case; null if there
  // is none.
  const Field* Find(absl::string_view field) const;
};

// The struct of this name, such as `v1.Composition`.
const GoType& GoStruct(absl::string_view name);

}  // namespace fncache::text

#endif  // FNCACHE_TEXT_GO_TYPES_H_
