// SPDX-License-Identifier: Apache-2.0
// Marks: what a canonical form has instead of drift (drift.h), and where a path
// to drift or of a mask leads into a Struct or list.
//
// The walk writes an entry of a Struct or an element of a list, and then asks
// here whether it is drift. The mask that leads there says where drift may be
// (MaskNode::drifts). Drift goes to the bytes of the drift digest, and a mark
// of its type takes its position.
//
// A mark is a Value of two bytes: a zero, and the type. No field has the number
// 0, so protobuf refuses each message with such bytes there, and no request
// with a key contains a mark. It takes no more bytes than any drift.
//
// A Struct or list that a path leads into has no length, which would change
// with the drift in it. Its Value is a tag alone (and unknown fields), which
// protobuf refuses as well. Its entries or elements end with kEndMark. The two
// take no more bytes than the lengths in the request.
//
// Pure functions; thread-safe.
#ifndef FNCACHE_CACHE_KEY_DRIFT_MARKS_H_
#define FNCACHE_CACHE_KEY_DRIFT_MARKS_H_

#include <string>

#include "absl/strings/string_view.h"
#include "cache/key/drift.h"
#include "cache/key/mask.h"

namespace fncache::cache::key {

// Follows the last entry, element or unknown field of what a path leads into.
inline constexpr char kEndMark = 0;

inline constexpr size_t kMarkSize = 2;
char* WriteMark(DriftType type, char* out);

// Writes an element of a list, or an entry of a Struct, up to its Value, of
// which `value_size` bytes will follow. Returns its end.
char* WriteElementHead(size_t value_size, char* out);
char* WriteLedHead(absl::string_view key, size_t value_size, char* out);

// The bytes from `head` to `end` are an entry of a Struct in canonical form,
// which holds no Struct or list. If it is drift by `node`, appends it to
// `drifts` (AppendDrift) and replaces its value by a mark. Returns the entry's
// end.
char* MarkEntry(const MaskNode& node, char* head, char* end,
                std::string* drifts);
// Whether an entry may be drift, by its key in the request, of which 20 bytes
// more may be read: false for most that are not.
inline bool MayBeDrift(absl::string_view key) {
  const char* const value = key.data() + key.size();
  // Tag and length, then the tag of a text, its length, and itself.
  // Numbers, so that there is no branch.
  const int is_time = int{value[8] == '-'} & int{value[14] == 'T'};
  return (is_time | int{key.size() == kVersionKey.size()} |
          int{key.size() == kManagedFieldsKey.size()}) != 0;
}
// The same of an element of a list. `key` is the map key above the list.
char* MarkElement(const MaskNode& node, absl::string_view key, char* head,
                  char* end, std::string* drifts);

// Whether a list is drift, whatever it holds, where `node` is that of the entry
// with this key.
inline bool IsDriftList(const MaskNode& node, absl::string_view key) {
  return node.drifts == MaskNode::Drifts::kManagedFields ||
         (node.drifts == MaskNode::Drifts::kStatus && key == kManagedFieldsKey);
}
// Whether the path leads into that list.
inline bool IsLedList(const MaskNode& node, absl::string_view key) {
  return node.element() != nullptr && !IsDriftList(node, key);
}

}  // namespace fncache::cache::key

#endif  // FNCACHE_CACHE_KEY_DRIFT_MARKS_H_
