// SPDX-License-Identifier: Apache-2.0
// Canonicalizer: the canonical form (docs/key-format.md) of any encoding of a
// request or response, by the fast path or, where that refuses, the slow one:
//
//   bytes -> CanonicalWalk -> canonical form
//              | refuses
//              v
//            Reencode -> bytes of the same message -> CanonicalWalk
//
// It belongs to one thread and keeps its buffers from one run to the next; what
// it keeps is bounded if Shrink is called.
#ifndef FNCACHE_CACHE_KEY_CANONICALIZER_H_
#define FNCACHE_CACHE_KEY_CANONICALIZER_H_

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "cache/key/canonical_walk.h"
#include "cache/key/mask.h"

namespace fncache::cache::key {

class Canonicalizer {
 public:
  // Buffers larger than this do not outlive Shrink.
  static constexpr size_t kKeptBytes = 4 << 20;

  // Bytes of no particular value.
  class Buffer {
   public:
    // Never null.
    char* Reserve(size_t size) {
      if (data_ == nullptr || size > capacity_) {
        capacity_ = std::max(size, std::min(2 * capacity_, kKeptBytes));
        data_.reset(new char[capacity_]);
      }
      return data_.get();
    }
    char* data() { return data_.get(); }
    void Shrink() {
      if (capacity_ <= kKeptBytes) return;
      data_.reset();
      capacity_ = 0;
    }

   private:
    std::unique_ptr<char[]> data_;
    size_t capacity_ = 0;
  };

  // The slices as one: a copy, if there are several.
  absl::string_view Join(absl::Span<const absl::string_view> slices);

  // The result for a request: views of it, or of buffers that stay until the
  // next run.
  struct Form {
    absl::string_view bytes;   // the prefix, and behind it the canonical form
    absl::string_view tag;     // meta.tag
    absl::string_view drifts;  // all drift (drift.h), if it was taken out
    bool reencoded = false;    // the slow path was needed
  };
  // Writes the canonical form of the request behind `prefix`, without what
  // `masks` masks; if `drift`, with marks instead of drift (`masks` is a
  // MaskSet's drift_root then). False: protobuf would not parse it, or it is
  // nested more than 1,000 deep.
  bool Request(absl::string_view request, absl::string_view prefix,
               const MaskNode* masks, bool drift, Form* form);
  // The same of a response, which is to have no meta.
  bool Response(absl::string_view response, absl::string_view* form);

  // The form, to be changed.
  char* data() { return canonical_.data(); }

  // Frees what an unusually large message needed.
  void Shrink();

 private:
  CanonicalWalk walk_;
  Buffer joined_;
  Buffer canonical_;
  std::string plain_;  // what the slow path makes
  std::string drifts_;
};

}  // namespace fncache::cache::key

#endif  // FNCACHE_CACHE_KEY_CANONICALIZER_H_
