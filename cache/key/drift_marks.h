// SPDX-License-Identifier: Apache-2.0
// DriftMarks: takes the drift (drift.h) of a request out of its key.
//
// Two steps, around the walk that writes the canonical form:
//
// 1. Replace makes a copy of an object's bytes. Each drift in it is replaced by
//    a placeholder with its number. Then the object is walked like any other.
// 2. Collect finds the placeholders in the canonical form, which is where the
//    order of an encoder is gone. It replaces each by a mark, and appends its
//    drift to the bytes of the drift digest.
//
// A placeholder is a number (a NaN) with 25 bits that are random for each
// DriftMarks. So a request cannot contain one but by a guess. A mark takes as
// many bytes. It is a text that is not UTF-8, and no request with such a text
// has a key: no request contains a mark.
//
// Belongs to one thread, and keeps its buffers from one request to the next.
#ifndef FNCACHE_CACHE_KEY_DRIFT_MARKS_H_
#define FNCACHE_CACHE_KEY_DRIFT_MARKS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "cache/key/drift.h"
#include "cache/key/mask.h"

namespace fncache::cache::key {

class DriftMarks {
 public:
  DriftMarks();

  // Begins a request.
  void Begin();

  // How many bytes a list in canonical form may be longer than the list.
  static constexpr size_t ListGrowth(size_t size) { return size / 4 + 4096; }
  // Writes the canonical form of the list with these contents to `out`, which
  // has room for the size of the list, ListGrowth and 64 bytes. `depth` is how
  // many messages may be nested in it. Returns its end; null if it is not of a
  // form that the walk takes.
  using WriteList = absl::FunctionRef<char*(
      absl::string_view contents, int depth, const MaskNode* node, char* out)>;

  // Replaces an object, the contents of a Struct that may be read up to
  // *readable_end, by a copy with placeholders for its drift; if it has none,
  // it stays. The copy is valid until the next call. `depth` is how many
  // messages may be nested in the object, and `node` what is masked in it, if
  // anything. Drift that is masked stays; the walk leaves it out. False: the
  // object is not of a form that the walk takes.
  bool Replace(DriftSection section, int depth, const MaskNode* node,
               WriteList write_list, absl::string_view* object,
               const char** readable_end);

  // Puts marks into the canonical form for the placeholders in it. Returns all
  // drift (AppendDrift), valid until Begin.
  absl::string_view Collect(char* form, size_t size);

  // Frees what an unusually large request needed.
  void Shrink();

 private:
  // How many bytes behind a copy may be read.
  static constexpr size_t kReadable = 256;

  // Some bytes of the object that others replace.
  struct Edit {
    const char* at;
    uint32_t size;  // of what is replaced
    bool is_mark;   // else a varint
    uint64_t value;
  };
  // What a visit of a message did to its size, in bytes. Kept in a signed
  // number, because a placeholder may be longer than what it replaces.
  using Change = int64_t;
  // One visit of an object.
  struct Visit {
    DriftSection section;
    WriteList write_list;
    // An entry that begins before it can be read without looking where it ends.
    const char* safe_end;
    bool refused;
  };

  // Below, `p` to `end` is what a message holds, `depth` how many messages may
  // be nested in it, and `node` what is masked in it, if anything.

  Change VisitObject(const char* p, const char* end, int depth,
                     const MaskNode* node, Visit* visit);
  Change VisitMetadata(const char* p, const char* end, int depth,
                       const MaskNode* node, Visit* visit);
  // All of a status. `key` is the map key that the Value is under.
  Change VisitStruct(const char* p, const char* end, int depth,
                     const MaskNode* node, Visit* visit);
  Change VisitValue(const char* p, const char* end, absl::string_view key,
                    bool in_list, int depth, const MaskNode* node,
                    Visit* visit);
  // The Struct or list in a Value that begins at `p`, which `inner` visits.
  template <typename Inner>
  Change VisitHolder(const char* p, const char* end, const Inner& inner,
                     Visit* visit);
  // Entries of a Struct, all that drift may be in; `visit_value(key, value,
  // value_end)` returns the change of the value.
  template <typename VisitEntry>
  Change VisitEntries(const char* p, const char* end, Visit* visit,
                      const VisitEntry& visit_value);
  Change AddManagedFields(const char* p, const char* end, absl::string_view key,
                          int depth, const MaskNode* node, Visit* visit);
  // A placeholder instead of the Value from `p` to `end`.
  Change Add(const Drift& drift, const char* p, const char* end);
  // A length at `at` that grows by `change`, which is of `size` now. Returns
  // the change with the length's own.
  Change Lengthen(size_t edit, const char* at, uint32_t size, Change change);

  // Room for this many bytes, which stays until Begin.
  char* Reserve(size_t size);

  const uint64_t nonce_;
  std::vector<Drift> drifts_;  // by their numbers
  std::vector<Edit> edits_;
  // Canonical forms of lists, and below them the copy of one object. A request
  // that needs more than the first block gets others, which Begin frees.
  std::vector<std::unique_ptr<char[]>> blocks_;
  char* free_ = nullptr;
  char* free_end_ = nullptr;
  std::string collected_;
};

}  // namespace fncache::cache::key

#endif  // FNCACHE_CACHE_KEY_DRIFT_MARKS_H_
