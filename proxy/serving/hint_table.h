// SPDX-License-Identifier: Apache-2.0
// HintTable: the hints of a function's responses (cache/key/hint.h), the last
// four distinct ones for each input. They belong to the process.
//
// An entry that is older than a fill of its request must never come back
// because another hint leads to it. A hint that was dropped may lead to entries
// that later fills did not remove. When it comes again, entries of calls before
// that time count as none (KnownHint::since).
//
// Thread-safe. Bounded in inputs and bytes.
#ifndef FNCACHE_PROXY_SERVING_HINT_TABLE_H_
#define FNCACHE_PROXY_SERVING_HINT_TABLE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "cache/key/hint.h"
#include "cache/key/key.h"
#include "common/mutex.h"
#include "proxy/telemetry/function_facts.h"

namespace fncache::proxy::serving {

// A hint of one function, generation and input. Immutable.
struct KnownHint {
  cache::key::Hint hint;
  std::string text;    // as the function sent it
  std::string prefix;  // Digester::HintPrefix
  // Entries of calls that started at or before it count as none.
  absl::Time since = absl::InfinitePast();
};
using KnownHintPtr = std::shared_ptr<const KnownHint>;

class HintTable {
 public:
  static constexpr size_t kHintsOfInput = 4;
  static constexpr size_t kMostInputs = 4096;
  static constexpr size_t kMostBytes = 16 << 20;

  // Newest first.
  using Hints = absl::InlinedVector<KnownHintPtr, kHintsOfInput>;
  // `input` is Digester::ComputeInput.
  Hints Of(const cache::key::Key& input) const;
  // A response to a request with this input had the hint, and is stored. It is
  // the newest from now on.
  void Learn(const cache::key::Key& input, KnownHintPtr hint, absl::Time now);

  // Forgets all hints. When they come again, entries of calls up to `now` count
  // as none.
  void Drop(absl::Time now);

  // A hint cannot be used. True for the first of the function: it is logged.
  bool Refuse() {
    return refused_.fetch_add(1, std::memory_order_relaxed) == 0;
  }
  void CountHit() { hits_.fetch_add(1, std::memory_order_relaxed); }

  telemetry::VaryFigures Read() const;

 private:
  struct Input {
    Hints hints;
    // A hint was dropped then.
    absl::Time dropped = absl::InfinitePast();
    // Was looked up since it was last spared.
    mutable bool used = false;
    std::list<cache::key::Key>::iterator place;
  };

  static size_t BytesOf(const KnownHint& hint);
  void DropInputs(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  absl::flat_hash_map<cache::key::Key, Input> inputs_ ABSL_GUARDED_BY(mutex_);
  // The inputs, the last learned first. One that is in use is spared once.
  std::list<cache::key::Key> order_ ABSL_GUARDED_BY(mutex_);
  size_t hints_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time inputs_dropped_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  std::atomic<uint64_t> hits_{0};
  std::atomic<uint64_t> refused_{0};
};

}  // namespace fncache::proxy::serving

#endif  // FNCACHE_PROXY_SERVING_HINT_TABLE_H_
