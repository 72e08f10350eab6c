// Policy: which responses are stored, for how long and where, when a stored one
// is served, and which TTL the runner is told. One per function; DESIGN's table
// of settings is this file's options.
//
// Thread-safe: immutable after construction.
#ifndef FNCACHE_CACHE_POLICY_H_
#define FNCACHE_CACHE_POLICY_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "cache/entry.h"
#include "cache/response.h"

namespace fncache::cache {

enum class Mode { kOn, kOff };
enum class StoreSecrets { kMemory, kAll, kNone };

// What the runner is told of a response's TTL.
struct RequeueTtl {
  enum class Kind { kRemaining, kOriginal, kFixed };
  Kind kind = Kind::kRemaining;
  absl::Duration fixed;  // kFixed only; positive
};

struct PolicyOptions {
  Mode mode = Mode::kOn;
  absl::Duration ttl_max = absl::Hours(24);       // 0 = no clamp
  absl::optional<absl::Duration> ttl_override;    // >= 0... see Validate
  absl::optional<absl::Duration> ttl_default;
  absl::optional<absl::Duration> ttl_min;
  double ttl_jitter = 0;                          // [0, 1)
  double ttl_margin = 0.1;                        // [0, 1)
  RequeueTtl requeue_ttl;
  bool store_fatal = false;
  StoreSecrets store_secrets = StoreSecrets::kMemory;
  uint64_t max_entry_bytes = 16ull << 20;
  int max_released = 16;                          // >= 1

  // InvalidArgument naming the setting and its accepted range.
  absl::Status Validate() const;
};

class Policy {
 public:
  explicit Policy(const PolicyOptions& options) : options_(options) {}

  struct Storing {
    bool store = false;        // at all, that is: in memory
    bool lower_tiers = false;  // on disk too
    absl::Duration lifetime;   // L, if store
  };
  // What to do with a response that arrived with status OK. `random` in [0, 1)
  // draws the jitter.
  Storing Decide(const ResponseFacts& response, size_t bytes,
                 double random) const;

  // For how long from `now` an entry will still be served: positive while it
  // is, zero or less once it is not (the margin applied).
  absl::Duration ServedFor(const EntryInfo& entry, absl::Time now) const;

  // The TTL that the runner is told with a hit; absent where the function gave
  // none. Never zero unless the function's was.
  absl::optional<absl::Duration> HitTtl(const EntryInfo& entry,
                                        absl::Time now) const;

  // The TTL that the runner is told with a response that just arrived. Absent:
  // leave the response's bytes as they are.
  absl::optional<absl::Duration> MissTtl(const ResponseFacts& response,
                                         const Storing& storing) const;

  const PolicyOptions& options() const { return options_; }

 private:
  const PolicyOptions options_;
};

}  // namespace fncache::cache

#endif  // FNCACHE_CACHE_POLICY_H_
