// SPDX-License-Identifier: Apache-2.0
// ShadowTrial: `mode: shadow` of one function, the rehearsal of its settings.
// Entries are stored as under `on`, and every call goes to the function. Where
// the cache would have answered, the trial compares the entry with the
// function's answer.
//
//   request -> Read -> ShadowCall: its exact digest, a hash for each mask
//   look-up -> ShadowCall::LookedUp
//   answer  -> ShadowCall::Judge: compares; or lets it be stored, as `on` would
//
// Two requests of one key differ only in masked fields. A digest without masks
// shows if they differ there. A bounded table remembers that digest for the
// request that filled an entry, and the start of its call. The entry has this
// start time, too, from any tier. So a hit is by `mask` (the requests differ),
// `exact` (they are the same: the control) or `unknown` (the entry is older
// than the process, or has left the table).
//
// Answers are compared by digests of their canonical forms without meta. If
// they differ, the first paths are sought within a budget of bytes a second.
// For very large answers only the fields that differ are reported. Paths and
// keyed hashes are kept and logged, values never are.
//
// A trial continues while the settings that make keys stay the same; other
// settings may change. Memory is bounded: 17 MiB, 1.3 KiB for each mask, and a
// few MiB in which requests and answers are read.
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
  // Bytes. In a larger request the trial does not find the masks whose values
  // changed.
  static constexpr size_t kMostRead = 1 << 20;
  // Bytes of the entry and the function's answer together. Above it only the
  // fields that differ are reported, without paths.
  static constexpr size_t kMostCompared = 1 << 20;
  // The number of entries whose requests are remembered.
  static constexpr size_t kMostRemembered = 1 << 16;

  explicit ShadowTrial(const settings::FunctionOptions& options);
  ~ShadowTrial();

  // The trial for a function that has these options: `before`, if it makes the
  // same keys, else a new one. Null unless the mode is shadow.
  static std::shared_ptr<ShadowTrial> For(
      const settings::FunctionOptions& options,
      const std::shared_ptr<ShadowTrial>& before);

  // Reads a request while its key is made; on any thread. The instruments
  // outlive the returned object.
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
  struct RequestValues;  // what was read of the request
  explicit ShadowCall(std::unique_ptr<RequestValues> values);
  // Counts a call that would have been a hit and was not compared.
  ~ShadowCall();

  // The call was looked up. `served`: the entry with which the cache would have
  // answered. Null: it would have called the function.
  void LookedUp(cache::store::EntryRef served);
  // How many bytes Judge will compare with the answer.
  size_t bytes() const { return served_ ? served_->body().size() : 0; }

  // Whether an entry would be served as fresh.
  using IsFresh = absl::FunctionRef<bool(const cache::store::Entry& entry)>;
  // The function's answer has arrived, at `now`. True: `on` would store it, if
  // policy says so. False: it was compared with an entry. That is the entry of
  // the look-up, or one that another call filled meanwhile; under `on` this
  // call would have joined that one. Answers above `most_bytes` are not read.
  bool Judge(const cache::ResponseView& answer, const cache::key::Key& key,
             uint64_t most_bytes, cache::store::TieredStore* store,
             IsFresh is_fresh, absl::Time now);
  // The answer will be stored now; the call started at `started`.
  void Remember(const cache::key::Key& key, absl::Time started);

 private:
  const std::unique_ptr<RequestValues> values_;
  cache::store::EntryRef served_;
  bool looked_up_ = false;
};

}  // namespace fncache::proxy::serving

#endif  // FNCACHE_PROXY_SERVING_SHADOW_H_
