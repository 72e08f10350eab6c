// SPDX-License-Identifier: Apache-2.0
// Digester: a request's bytes -> its key and the caller's tag.
//
// The key contract (DESIGN, docs/key-format.md): equal keys if and only if the
// requests go to the same function, method and generation under the same masks,
// and are equal messages once `meta.tag` and the masked paths are gone, with
// maps unordered. With `key: tag` a key is made of the tag and of the fields
// that Crossplane changes after computing it. The bulk of the bytes is not
// read.
//
// How a key is made:
//
//   bytes -> CanonicalWalk -> canonical form -> hash under the seed -> key
//              | refuses                          (XXH3-128 or HMAC-SHA-256)
//              v
//            Reencode -> bytes of the same message -> CanonicalWalk
//
// A key by hint is made in the same way of what the hint says that counts
// (read_fields.h).
//
// The canonical form is the scope and then the request's own bytes. All
// encodings of a message have the same order there (canonical_walk.h).
// StructWalk copies Structs, which contain nearly all bytes. The walk accepts
// the encodings that encoders write; Reencode parses other legal encodings and
// encodes them anew first (reencode.h). With `key: tag` the walk reads only
// some fields of the request (tag_fields.h).
//
// One Digester per function, method and configuration. Thread-safe; each thread
// passes its own DigestScratch.
#ifndef FNCACHE_CACHE_KEY_DIGEST_H_
#define FNCACHE_CACHE_KEY_DIGEST_H_

#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "cache/key/hint.h"
#include "cache/key/key.h"
#include "cache/key/mask.h"

namespace fncache::cache::key {

// A key is made of this besides the request.
struct KeyScope {
  std::string function;
  std::string method;  // full method name, "/package.Service/Method"
  std::string generation;
  KeySource source = KeySource::kContent;
  KeyHash hash = KeyHash::kXxh3;
  // Drift (drift.h) is not of the key, but of the drift digest. Needs
  // KeySource::kContent.
  bool drift = false;
};

// Buffers reused from one digest to the next. One per thread. Their size is
// bounded: after a very large request they shrink again.
class DigestScratch {
 public:
  DigestScratch();
  ~DigestScratch();

 private:
  friend class Digester;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

struct Digest {
  // False: the request cannot be keyed. Protobuf would refuse it, or it is
  // nested more than 1,000 deep. With `key: tag` this concerns only the fields
  // that are read. Such a request is forwarded unchanged and never cached.
  bool keyed = false;
  Key key;
  // With KeyScope::drift: 16 bytes, equal if and only if all drift is equal, of
  // two requests with the same key.
  Key drift;
  // All of it (TakeDrift), valid as the tag is; empty for a very large request.
  absl::string_view drifts;
  // It was parsed and encoded anew, which is slow.
  bool reencoded = false;
  // The caller's meta.tag ("" if absent). Refers to the scratch or to the
  // request's bytes: valid until either goes or the scratch is used again.
  absl::string_view tag;
};

class Digester {
 public:
  // Precondition: neither masks nor drift with KeySource::kTag, which reads too
  // little to leave something out of it.
  Digester(const Seed& seed, const KeyScope& scope, MaskSet masks);
  ~Digester();

  // `slices` in order are the request.
  Digest Compute(absl::Span<const absl::string_view> slices,
                 DigestScratch* scratch) const;

  // The bytes that keys by this hint begin with, in this scope.
  std::string HintPrefix(const Hint& hint) const;
  // The key of `request` by a hint with this prefix, without drift. Content
  // that does not count is not read, so it may be anything. Like the next one,
  // not with KeySource::kTag.
  Digest ComputeByHint(absl::string_view request, const Hint& hint,
                       absl::string_view prefix, DigestScratch* scratch) const;
  // A digest of the request's `input` alone, in this scope. It is no key.
  Digest ComputeInput(absl::string_view request, DigestScratch* scratch) const;

 private:
  struct Impl;
  std::unique_ptr<const Impl> impl_;
};

}  // namespace fncache::cache::key

#endif  // FNCACHE_CACHE_KEY_DIGEST_H_
