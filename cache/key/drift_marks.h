// SPDX-License-Identifier: Apache-2.0
// Marks: what a canonical form has instead of drift (drift.h).
//
// The walks write an entry of a Struct or an element of a list, and then ask
// here whether it is drift. The mask that leads there says where drift may be
// (MaskNode::drifts). Drift goes to the bytes of the drift digest, and a mark
// of its type takes its position.
//
// A mark is a Value of two bytes: a zero, and the type. No field has the number
// 0, so protobuf refuses each message with such bytes there, and no request
// with a key contains a mark. It takes no more bytes than any drift.
//
// Pure functions; thread-safe.
#ifndef FNCACHE_CACHE_KEY_DRIFT_MARKS_H_
#define FNCACHE_CACHE_KEY_DRIFT_MARKS_H_

#include <string>

#include "absl/strings/string_view.h"
#include "cache/key/mask.h"

namespace fncache::cache::key {

// The bytes from `head` to `end` are an entry of a Struct in canonical form,
// with all that it holds. If it is drift by `node`, appends it to `drifts`
// (AppendDrift) and replaces its value by a mark. Returns the entry's end.
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

// The node for what the Value of an entry holds, where `below` is that of the
// entry: managedFields are one drift, whatever times they hold.
inline const MaskNode* NodeOfList(const MaskNode& below,
                                  absl::string_view key) {
  return below.drifts == MaskNode::Drifts::kStatus && key == kManagedFieldsKey
             ? below.managed.get()
             : &below;
}

}  // namespace fncache::cache::key

#endif  // FNCACHE_CACHE_KEY_DRIFT_MARKS_H_
