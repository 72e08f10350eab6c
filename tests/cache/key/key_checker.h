// SPDX-License-Identifier: Apache-2.0
// KeyChecker: compares keys with their plain reference (key_oracle.h). Each
// check returns what is wrong, or nothing.
//
// A KeyChecker belongs to one thread.
#ifndef FNCACHE_TESTS_CACHE_KEY_KEY_CHECKER_H_
#define FNCACHE_TESTS_CACHE_KEY_KEY_CHECKER_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "cache/key/digest.h"
#include "cache/key/mask.h"
#include "tests/cache/key/key_oracle.h"

namespace fncache::cache::key {

class KeyChecker {
 public:
  // Precondition: neither masks nor drift with KeySource::kTag.
  explicit KeyChecker(const MaskSet& masks,
                      KeySource source = KeySource::kContent,
                      KeyHash hash = KeyHash::kXxh3, bool drift = false);

  // A request is keyed if and only if the reference says so. It has the same
  // key by the slow path, in slices, and on machines with fewer instructions.
  // The tag is the message's. `*fast`, if given, is set to whether the request
  // is plain.
  std::string CheckOne(absl::string_view bytes, bool* fast = nullptr);
  // Keys are equal if and only if the reference says so, and so are the drift
  // digests of equal keys. `*equal`, if given, is set to whether the keys are,
  // if both requests can be keyed.
  std::string CheckPair(absl::string_view a, absl::string_view b,
                        bool* equal = nullptr);

  // Whether keys are made with `key: tag`.
  bool by_tag() const { return source_ == KeySource::kTag; }

 private:
  Digest Compute(absl::string_view bytes);
  // The same in three slices, each of exactly its size.
  std::string CheckSlices(absl::string_view bytes, const Digest& whole);
  // The rest of a request without the skipped fields, where the tag decides.
  std::string CheckTagPart(absl::string_view bytes, const Judged& judged,
                           const Key& key);
  // The canonical form, where content decides.
  std::string CheckForm(absl::string_view bytes, const Judged& judged,
                        const Key& key, bool* fast);
  // The canonical form by the fast path; none if that refuses. `*wrong` is set
  // if machines with fewer instructions make another one.
  absl::optional<std::string> Walk(absl::string_view bytes, int depth,
                                   std::string* wrong) const;

  const MaskSet masks_;
  const KeySource source_;
  const bool drift_;
  const Digester digester_;
  DigestScratch scratch_;
};

}  // namespace fncache::cache::key

#endif  // FNCACHE_TESTS_CACHE_KEY_KEY_CHECKER_H_
