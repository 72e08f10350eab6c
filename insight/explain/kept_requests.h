// SPDX-License-Identifier: Apache-2.0
// KeptRequests: the last misses of each identity, their sums and, where memory
// suffices, the hashes of their paths and values. Beyond the memory limit,
// composites are sampled: their paths are forgotten first, then all.
//
// Used by one thread at a time.
#ifndef FNCACHE_INSIGHT_EXPLAIN_KEPT_REQUESTS_H_
#define FNCACHE_INSIGHT_EXPLAIN_KEPT_REQUESTS_H_

#include <array>
#include <cstdint>
#include <limits>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "cache/key/key.h"
#include "insight/explain/explanation.h"
#include "insight/explain/repeats.h"
#include "insight/explain/request_reader.h"
#include "insight/request/outline.h"

namespace fncache::insight::explain {

// A threshold of hashes that accepts all composites, and one that accepts twice
// as many.
inline constexpr uint64_t kAll = std::numeric_limits<uint64_t>::max();
uint64_t Twice(uint64_t threshold);

// A hash table has two slots for each entry after it has grown, and a control
// byte for each slot.
inline constexpr size_t kSlots = 2;

// The paths of a request's nodes, in the order of nodes. Most requests have the
// paths of the one before, which share one Shape.
struct Shape {
  struct Name {
    uint32_t parent;  // index in the shape, or request::kNoParent
    uint32_t at;      // start of its text in `text`
  };
  std::vector<uint64_t> paths;
  std::vector<Name> names;
  std::string text;

  uint64_t bytes() const {
    return sizeof *this + paths.capacity() * sizeof paths[0] +
           names.capacity() * sizeof names[0] + text.capacity() +
           kSlots * (sizeof(uint64_t) + sizeof(void*) + 1);
  }
  // The path, written as a mask.
  std::string Spell(uint32_t index) const;
};

enum class Fate : uint8_t { kPending, kStored, kNotStored, kPurged };

// The answer that a run's is compared with, and what the run is over if they
// are the same.
struct AnswerBefore {
  uint64_t answer = 0;  // 0: there is none
  RepeatOver over = RepeatOver::kNone;
  // With kOther: the paths that differ besides drift, written as masks, at most
  // kMostUnread. Empty: there are none, or one of them has no mask.
  std::vector<std::string> paths;
};
inline constexpr size_t kMostUnread = 8;

struct KeptRequest {
  cache::key::Key key;
  uint64_t generation = 0;
  Fate fate = Fate::kPending;
  bool secrets = false;  // in the stored answer
  NotStored why = NotStored::kError;
  absl::Time until = absl::InfinitePast();
  std::array<uint64_t, request::kSections> sums{};
  std::shared_ptr<const Shape> shape;  // null: only the sums are known
  std::vector<uint64_t> values;        // of the shape's nodes
  // RequestReader's. 0: only the outline was read.
  uint64_t driftless = 0;
  // A hash of the newest answer of the function. 0: there is none.
  uint64_t answer = 0;
  bool awaited = false;  // a run was examined, and has not ended
  bool counts = false;   // its end counts
  AnswerBefore before;   // while it is awaited

  uint64_t path_bytes() const { return values.capacity() * sizeof values[0]; }
  uint64_t unread_bytes() const {
    uint64_t bytes = before.paths.capacity() * sizeof before.paths[0];
    for (const std::string& path : before.paths) bytes += path.capacity() + 1;
    return bytes;
  }
  uint64_t bytes() const {
    return sizeof *this + 2 * sizeof(void*) + path_bytes() + unread_bytes() +
           kSlots * (sizeof(std::pair<cache::key::Key, uint64_t>) + 1);
  }
};

struct Identity {
  std::string function;
  uint64_t composite = 0;
  absl::Time seen;
  std::list<KeptRequest> requests;  // the newest first

  uint64_t bytes() const {
    return kSlots * (sizeof(std::pair<uint64_t, Identity>) + 1) +
           function.capacity();
  }
};

class KeptRequests {
 public:
  // `bound`: the most bytes of all that is kept, overhead included.
  explicit KeptRequests(uint64_t bound) : bound_(bound) {}

  // Null if it is not kept.
  KeptRequest* Find(const cache::key::Key& key);
  // The requests of an identity, the newest first; null or not empty.
  const std::list<KeptRequest>* OfIdentity(uint64_t identity) const {
    const auto found = identities_.find(identity);
    if (found == identities_.end() || found->second.requests.empty()) {
      return nullptr;
    }
    return &found->second.requests;
  }
  // `change` gets each request of a function; of all if that is "".
  template <typename Do>
  void ForEach(absl::string_view function, Do change) {
    for (auto& identity : identities_) {
      if (!function.empty() && identity.second.function != function) continue;
      for (KeptRequest& kept : identity.second.requests) change(&kept);
    }
  }

  // `reader`: null where only the outline was read. `counts`: the run's end
  // counts, if it is compared.
  void Remember(absl::string_view function, absl::string_view generation,
                const cache::key::Key& key, const request::Outline& outline,
                uint64_t identity_hash, uint64_t composite,
                const RequestReader* reader, AnswerBefore before, bool counts,
                absl::Time now);
  // The run of a kept request has ended. Returns what it was compared with.
  AnswerBefore TakeBefore(KeptRequest* kept);
  // The function of a kept request.
  const std::string& FunctionOf(const KeptRequest& kept) const {
    return identities_.find(keys_.find(kept.key)->second)->second.function;
  }
  // Other bytes that count towards the bound.
  void SetOther(uint64_t bytes, absl::Time now) {
    used_ = used_ - other_ + bytes;
    other_ = bytes;
    Shrink(now);
  }
  // Accepts more composites again if there is memory.
  void Grow();

  uint64_t used() const { return used_; }
  // Composites whose hash is at most this are remembered, and their paths.
  uint64_t threshold() const { return threshold_; }
  uint64_t paths_threshold() const { return paths_threshold_; }

 private:
  void Charge(uint64_t bytes, bool paths) {
    used_ += bytes;
    if (paths) used_for_paths_ += bytes;
  }
  void Refund(uint64_t bytes, bool paths) {
    used_ -= bytes;
    if (paths) used_for_paths_ -= bytes;
  }
  void ForgetPaths(KeptRequest* kept);
  void Forget(KeptRequest* kept);
  void Forget(Identity* identity);
  template <typename Which>
  void ForgetIdentities(Which which);
  void Shrink(absl::Time now);
  std::shared_ptr<const Shape> ShapeOf(const RequestReader& reader);

  const uint64_t bound_;
  absl::flat_hash_map<uint64_t, Identity> identities_;
  absl::flat_hash_map<cache::key::Key, uint64_t> keys_;
  absl::flat_hash_map<uint64_t, std::shared_ptr<const Shape>> shapes_;
  uint64_t used_ = 0;
  uint64_t used_for_paths_ = 0;  // of `used_`
  uint64_t other_ = 0;           // of `used_`
  uint64_t threshold_ = kAll;
  uint64_t paths_threshold_ = kAll;
};

}  // namespace fncache::insight::explain

#endif  // FNCACHE_INSIGHT_EXPLAIN_KEPT_REQUESTS_H_
