// SPDX-License-Identifier: Apache-2.0
// ShadowTrial: `mode: shadow` of one function, the rehearsal of its settings.
// Entries are kept as under `on`, every call goes to the function, and where
// the cache would have answered, what it would have said is compared with what
// the function says.
//
//   request -> Read -> ShadowCall: its exact digest, a hash for each mask
//   look-up -> ShadowCall::LookedUp
//   answer  -> ShadowCall::Judge: compares; or lets it be stored, as `on` would
//
// Two requests of one key are the same but for what masks hide. Whether they
// differ there is known from a digest without masks: of the request that filled
// an entry it is remembered in a bounded table, beside when the call started,
// which an entry says too, from whatever tier it comes. So a hit is by `mask`
// (they differ), `exact` (they are the same: the control) or `unknown` (the
// entry is older than the process, or has left the table).
//
// Answers are compared by digests of their canonical forms without meta. Where
// they differ, the first paths are sought within a budget of bytes a second,
// and not in very large answers, of which only the part is told. Paths and
// keyed hashes are kept and logged, values never are.
//
// A trial goes on for as long as what keys are made of stays the same, over
// changes of other settings. Memory is bounded: 17 MiB, 1.3 KiB for each
// mask, and a few MiB in which requests and answers are read.
//
// Thread-safe. A ShadowCall is used by one thread at a time.
#ifndef FNCACHE_PROXY_SERVING_SHADOW_H_
#define FNCACHE_PROXY_SERVING_SHADOW_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "cache/key/key.h"
#include "cache/policy.h"
#include "cache/response.h"
#include "cache/store/entry.h"
#include "cache/store/tiered_store.h"
#include "common/clock.h"
#include "proxy/settings/options.h"
#include "proxy/telemetry/instruments.h"
#include "proxy/telemetry/shadow_report.h"

namespace fncache::proxy::serving {

class ShadowCall;

class ShadowTrial : public std::enable_shared_from_this<ShadowTrial> {
 public:
  // Larger requests are not read for which masks' values changed.
  static constexpr size_t kMostRead = 1 << 20;
  // Differences of larger answers (the entry's and the function's together) are
  // told by part only.
  static constexpr size_t kMostCompared = 1 << 20;
  // Requests of entries that are remembered.
  static constexpr size_t kMostRemembered = 1 << 16;

  explicit ShadowTrial(const settings::FunctionOptions& options);
  ~ShadowTrial();

  // The trial for a function that has these options: `before`, if that is of
  // the same keys, else a new one; null unless the mode is shadow.
  static std::shared_ptr<ShadowTrial> For(
      const settings::FunctionOptions& options,
      const std::shared_ptr<ShadowTrial>& before);

  // Reads a request that is being keyed; on any thread. The instruments outlive
  // what is returned.
  std::unique_ptr<ShadowCall> Read(
      absl::Span<const absl::string_view> request,
      const telemetry::FunctionInstruments* instruments, Clock* clock);

  telemetry::ShadowReport Report() const;

 private:
  friend class ShadowCall;
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

// One call of a trial.
class ShadowCall {
 public:
  struct Parts;  // what was read of the request
  explicit ShadowCall(std::unique_ptr<Parts> parts);
  // Counts a call that would have been a hit and was not compared.
  ~ShadowCall();

  // It was looked up. `served`: the entry that the cache would have answered
  // with; null: it would have asked the function.
  void LookedUp(cache::store::EntryRef served);
  // How many bytes Judge will have to compare with the answer.
  size_t bytes() const { return served_ ? served_->body().size() : 0; }

  // Whether an entry would be served as fresh.
  using IsFresh = absl::FunctionRef<bool(const cache::store::Entry& entry)>;
  // The function's answer has come, at `now`. True: `on` would store it, if
  // policy says so. Otherwise it was compared with the entry that it looked up,
  // or that another call has filled meanwhile, which `on` would have joined.
  // Answers of more than `most_bytes` are not read.
  bool Judge(const cache::ResponseView& answer, const cache::key::Key& key,
             uint64_t most_bytes, cache::store::TieredStore* store,
             IsFresh is_fresh, absl::Time now);
  // The answer is about to be stored; the call started then.
  void Remember(const cache::key::Key& key, absl::Time started);

 private:
  const std::unique_ptr<Parts> parts_;
  cache::store::EntryRef served_;
  bool looked_up_ = false;
};

}  // namespace fncache::proxy::serving

#endif  // FNCACHE_PROXY_SERVING_SHADOW_H_
