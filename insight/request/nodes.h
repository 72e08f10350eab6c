// SPDX-License-Identifier: Apache-2.0
// RequestNodes: a request as a list of nodes, one for each difference that
// counts in the key contract: the presence of a message, a value with its kind,
// the kind of a Struct, the count of a list, a null, unknown fields.
//
//   bytes -> canonical form (cache/key) -> nodes -> compared, traced, explained
//
// Two requests are the same for a cache if and only if their nodes are: equal
// sets of (path, kind, value), meta.tag left out. A mask removes the nodes at
// and below the paths that it matches. (In a list it removes the elements'
// values; the count stays in the list's node.) So nodes alone suffice to decide
// whether keys under other masks are equal.
//
// Nodes have the order of the canonical form (docs/key-format.md): parents
// before children, fields by their numbers, and a Struct's contents level by
// level, so that the entries of one Struct are contiguous.
//
// Responses are read in the same way, to find their differences.
//
// A RequestNodes belongs to one thread and keeps its buffers from one Read to
// the next.
#ifndef FNCACHE_INSIGHT_REQUEST_NODES_H_
#define FNCACHE_INSIGHT_REQUEST_NODES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace fncache::insight::request {

// They belong to the trace format: values never change their meaning.
enum class NodeKind : uint8_t {
  kMessage = 1,  // a message of the protocol is there
  kStruct = 2,
  kList = 3,  // the value is its count
  kNull = 4,
  kNumber = 5,
  kString = 6,
  kBool = 7,
  kNoKind = 8,    // a Value that has none
  kScalar = 9,    // a scalar field of the protocol: enum, string, bytes; a
                  // repeated one whole
  kUnknown = 10,  // all unknown fields of one message, under the name `[?]`
  kSecret = 11,   // credentials, connection details, data and stringData of
                  // Secrets: the key is `*`
  // A map of the protocol that has entries: for their paths only. It is not
  // compared, since an absent map and an empty one are the same.
  kMap = 12,
};

struct Node {
  uint32_t parent;  // index among the nodes; kNoParent at the top
  NodeKind kind;
  int32_t index;           // of a list's element, from 0; else -1
  absl::string_view name;  // of the field or map key; empty for elements
  uint64_t path;  // hash of the whole path, not secret, equal in all processes
  // Keyed hash of kind and value under the RequestNodes' random secret. Only
  // for comparing within this process; never written anywhere.
  uint64_t value;
  absl::string_view
      bytes;  // the value's canonical bytes; empty for kMessage, kStruct
};
inline constexpr uint32_t kNoParent = 0xffffffff;

// Secret of a process's fingerprints. Fingerprints compare only under one
// secret.
struct FingerprintSecret {
  uint8_t bytes[192];
  static FingerprintSecret Random();
};

class RequestNodes {
 public:
  explicit RequestNodes(const FingerprintSecret& secret);
  ~RequestNodes();

  // Reads the RunFunctionRequest. False: it cannot be keyed. nodes() refer to a
  // copy that is kept here until the next Read.
  bool Read(absl::Span<const absl::string_view> slices);
  // The same for a RunFunctionResponse, without its meta.
  bool ReadResponse(absl::Span<const absl::string_view> slices);
  absl::Span<const Node> nodes() const;

  // The path as masks spell it, but with indices of elements: `a."b.c"[3].d`.
  std::string Spell(size_t node) const;
  // The path written as a mask: `*` for list elements.
  std::string SpellMask(size_t node) const;

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace fncache::insight::request

#endif  // FNCACHE_INSIGHT_REQUEST_NODES_H_
