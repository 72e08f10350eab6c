// SPDX-License-Identifier: Apache-2.0
// Instruments: everything that the daemon counts of itself; docs/metrics.md is
// its list.
//
// Instruments holds every metric of the daemon (names and help are in
// catalogue.h, label values in labels.h) and is made at start, before threads.
// A call reports to its function's FunctionInstruments, the stores report to
// observer(); each report is a few additions to memory that only its own thread
// writes. Tier sizes and certificates are not counted but looked at: they are
// given as functions that a scrape calls.
//
// How a call reports, `f` being instruments->function(id):
//
//   f.Begin(method)                            when it arrives
//   f.RecordHit(look-up, entry's cost)         if it is answered from an entry
//   f.End({method, outcome, code, upstream, latency})   always, exactly once
//
// Two readers: a scrape reads all of it through the registry, the status page
// reads Read() and subtracts an earlier reading for its last minute.
//
// Thread-safe. Outlives everything that reports to it.
#ifndef FNCACHE_PROXY_TELEMETRY_INSTRUMENTS_H_
#define FNCACHE_PROXY_TELEMETRY_INSTRUMENTS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "cache/observer.h"
#include "cache/store/entry.h"
#include "cache/store/store.h"
#include "common/handshake_failure.h"
#include "common/method.h"
#include "common/mutex.h"
#include "common/tls_side.h"
#include "insight/trace/writer.h"
#include "metrics/counter.h"
#include "metrics/histogram.h"
#include "metrics/registry.h"
#include "proxy/telemetry/labels.h"
#include "proxy/telemetry/reload_figures.h"

namespace fncache::proxy::telemetry {

// CallRecord says how a call ended.
struct CallRecord {
  Method method = Method::kOther;
  // A joined caller that was released and asked the function itself is a miss
  // (or stale); one that left or timed out while it waited is kCollapsed.
  Outcome outcome = Outcome::kBypass;
  // The status that the caller got, or would have got had it stayed.
  int code = 0;
  // An upstream call was started for this caller.
  bool upstream = false;
  // Measures from the call's arrival until its answer is given to the
  // transport.
  absl::Duration latency;
  // Why it missed (kMiss, kStale), or was not looked up (kBypass).
  cache::Reason reason = cache::Reason::kNone;
};

// Whether a status that a call to a function ended with is a fault of its:
// CANCELLED is a caller's that left, and with UNIMPLEMENTED a function says
// that it does not know a version, after which runners try the other one.
bool IsUpstreamError(size_t code);

// A reading of one function's counters, or the difference of two readings.
// The compiler names what copies the arrays.
// NOLINTNEXTLINE(bugprone-reserved-identifier)
struct FunctionCounts {
  uint64_t calls[kMethods][kOutcomes] = {};
  metrics::Distribution latency[kOutcomes];  // of RunFunction
  uint64_t upstream[kStatusCodes] = {};      // calls to the function
  metrics::Distribution upstream_latency;
  uint64_t hits = 0;    // as the built-in cache's name counts them
  uint64_t misses = 0;  // the same
  // Calls with the outcomes miss and stale, by MissReasonIndex.
  uint64_t missed[kMissReasons] = {};
  // Calls with the outcome bypass, by BypassReasonIndex.
  uint64_t bypassed[kBypassReasons] = {};
  uint64_t fills = 0;
  uint64_t fills_dropped = 0;
  uint64_t cache_errors = 0;
  absl::Duration saved;
  // Refreshes behind stale hits, and of them those that brought nothing new;
  // and those that there was no place for.
  uint64_t refreshes = 0;
  uint64_t refreshes_failed = 0;
  uint64_t refreshes_refused = 0;
  uint64_t served_over[kStatusCodes] = {};  // errors that old answers hid
  // Old answers given up, because the function's new one is not to be kept.
  uint64_t superseded = 0;
  // Calls to the function that went on when their last caller had left, and of
  // them those that were stored; and those that there was no place for.
  uint64_t abandoned = 0;
  uint64_t abandoned_finished = 0;
  uint64_t abandoned_refused = 0;
  // Calls refused by a limit, by transport::Refusal.
  uint64_t refused[kRefusals] = {};
  // Under `mode: shadow`: look-ups; what would have been hits and was compared,
  // and of them those that differed; and what could not be compared.
  uint64_t shadow_lookups = 0;
  uint64_t shadow_hits[kShadowBys] = {};
  uint64_t shadow_differences[kShadowBys] = {};
  uint64_t shadow_uncompared = 0;

  uint64_t ServedOver() const;
  uint64_t Calls() const;
  uint64_t Calls(Outcome outcome) const;
  // Calls to the function that failed (IsUpstreamError).
  uint64_t UpstreamErrors() const;

  // The difference to `earlier`, an earlier reading of the same function.
  FunctionCounts Since(const FunctionCounts& earlier) const;
};

// How many calls and flights there are now.
struct FunctionGauges {
  int64_t in_flight = 0;
  int64_t flights = 0;
  int64_t refreshes = 0;
  int64_t abandoned = 0;  // calls without a caller
  // Keys for which none of both is begun for now, because the last one failed.
  int64_t backing_off = 0;
  int64_t joined_waiting = 0;
  int64_t released_waiting = 0;
  int64_t released_running = 0;
};

// Whether a function could be reached when that was last tried.
struct Reachability {
  bool reachable = true;
  absl::Time since;  // when it became unreachable
  std::string why;
};

// The last call to a function that failed (IsUpstreamError).
struct LastError {
  absl::Time when;
  int code = 0;  // 0: none has
};

// The instruments of one function.
class FunctionInstruments {
 public:
  // A call arrives, and ends. End is called once for each Begin, by any thread.
  void Begin(Method method) const {
    in_flight_[static_cast<size_t>(method)].Add(1);
  }
  void End(const CallRecord& call) const;

  // A call is answered from an entry. `lookup`: how long the look took that
  // found it, without what the call waited for before. `saved`: how long the
  // filling call took (EntryInfo::cost).
  void RecordHit(absl::Duration lookup, absl::Duration saved) const {
    lookup_seconds_.Observe(lookup);
    RecordSaved(saved);
  }
  // A joined caller is answered from its flight: there was no look-up to time.
  void RecordSaved(absl::Duration saved) const {
    const int64_t ns = absl::ToInt64Nanoseconds(saved);
    saved_seconds_.Add(ns < 0 ? 0 : ns);
  }

  // A RunFunction call to the function, of either version, ended with this
  // status, `latency` after it was started. (What is forwarded as a stream is
  // counted by End alone.)
  void RecordUpstream(int code, absl::Duration latency) const;

  // A fill was accepted by policy and the memory tier. `bytes`: the response's
  // as it is stored.
  void RecordFill(uint64_t bytes) const {
    writes_.Add();
    bytes_written_.Add(bytes);
  }

  // Under `mode: shadow`: a call was looked up; the entry that it would have
  // hit was compared with the function's answer; or could not be, for there was
  // none that could be read.
  void RecordShadowLookup() const { shadow_lookups_.Add(); }
  void RecordShadowHit(ShadowBy by, bool differs) const {
    shadow_hits_[static_cast<size_t>(by)].Add();
    if (differs) shadow_differences_[static_cast<size_t>(by)].Add();
  }
  void RecordShadowUncompared() const { shadow_uncompared_.Add(); }

  // Flights: an upstream call that others may join.
  void FlightOpened() const {
    flights_.Add(1);
    flights_opened_.Add();
  }
  void FlightClosed() const { flights_.Add(-1); }

  // A caller joined a flight, and stopped waiting there for whatever reason.
  void CallerJoined() const {
    joined_.Add();
    joined_waiting_.Add(1);
  }
  void CallerLeft() const { joined_waiting_.Add(-1); }

  // Joined callers released from a flight whose outcome is not shared: one
  // that waits because `max_released` of them call upstream already, and one
  // that calls upstream.
  void ReleasedWaiting(int change) const { released_waiting_.Add(change); }
  void ReleasedRunning(int change) const { released_running_.Add(change); }
  void CallerReleased() const { released_.Add(); }

  // A stale hit is refreshed behind: one begins, ends (Failed too, where it
  // brought nothing that is served), or finds no place.
  void RefreshBegun() const {
    refreshes_.Add();
    refreshes_running_.Add(1);
  }
  void RefreshEnded() const { refreshes_running_.Add(-1); }
  void RefreshFailed() const { refreshes_failed_.Add(); }
  void RefreshRefused() const { refreshes_refused_.Add(); }

  // A caller got an old answer in place of this status.
  void RecordServedOver(int code) const {
    served_over_[StatusCodeIndex(code)].Add();
  }

  // An old answer is served no more, for the function has answered anew with
  // what is not kept.
  void Superseded() const { superseded_.Add(); }

  // A flight's call goes on without callers, or finds no place to; how many do
  // changes; one of them was stored.
  void CallAbandoned() const { abandoned_.Add(); }
  void AbandonedRefused() const { abandoned_refused_.Add(); }
  void AbandonedRunning(int change) const { abandoned_running_.Add(change); }
  void AbandonedFinished() const { abandoned_finished_.Add(); }

  // A caller's connection ended; `reason` counts from 0.
  void ConnectionEnded(size_t reason) const {
    connections_ended_[reason].Add();
  }
  void ConnectionRefused() const { connections_refused_.Add(); }
  void AcceptFailed() const { accept_failures_.Add(); }
  void StreamRefused() const { streams_refused_.Add(); }
  // A caller's connection is not read for a while.
  void ConnectionHeldUp() const { connections_held_up_.Add(); }
  void RequestAbandoned() const { requests_abandoned_.Add(); }
  // A call was answered with this status that was never begun.
  void Answered(int code) const { answers_[StatusCodeIndex(code)].Add(); }
  // A request was refused; `reason` counts from 0.
  void RequestRefused(size_t reason) const { requests_refused_[reason].Add(); }

  // The function cannot be reached, since `when` unless that is known already;
  // and it can be reached again.
  void Unreachable(absl::Time when, absl::string_view why) const;
  void Reachable() const;

  FunctionCounts Read() const;
  FunctionGauges ReadGauges() const;
  Reachability reachability() const;
  LastError last_error() const;

  const std::string& name() const { return name_; }

 private:
  friend class Instruments;
  friend struct FunctionCounts;
  struct Rows;
  FunctionInstruments(const std::string& name, metrics::Registry* registry);

  std::string name_;
  metrics::UpDown in_flight_[kMethods];
  metrics::Counter calls_[kMethods][kOutcomes];
  metrics::Counter missed_[kMissReasons];
  metrics::Counter bypassed_[kBypassReasons];
  metrics::Histogram latency_[kOutcomes];
  metrics::Counter answers_[kStatusCodes];
  metrics::Counter streams_;
  metrics::Counter upstream_calls_[kStatusCodes];
  metrics::Counter upstream_failures_;
  metrics::Histogram upstream_latency_;
  metrics::Counter saved_seconds_;  // in nanoseconds

  metrics::Counter shadow_lookups_;
  metrics::Counter shadow_hits_[kShadowBys];
  metrics::Counter shadow_differences_[kShadowBys];
  metrics::Counter shadow_uncompared_;

  metrics::UpDown flights_;
  metrics::Counter flights_opened_;
  metrics::Counter joined_;
  metrics::UpDown joined_waiting_;
  metrics::Counter released_;
  metrics::UpDown released_waiting_;
  metrics::UpDown released_running_;

  metrics::Counter refreshes_;
  metrics::Counter refreshes_failed_;
  metrics::Counter refreshes_refused_;
  metrics::UpDown refreshes_running_;
  metrics::Counter served_over_[kStatusCodes];
  metrics::Counter superseded_;
  metrics::Counter abandoned_;
  metrics::Counter abandoned_finished_;
  metrics::Counter abandoned_refused_;
  metrics::UpDown abandoned_running_;

  // The built-in cache's names.
  metrics::Counter hits_;
  metrics::Counter misses_;
  metrics::Counter errors_;
  metrics::Counter writes_;
  metrics::Counter deletes_;
  metrics::Counter bytes_written_;
  metrics::Counter bytes_deleted_;
  metrics::Histogram lookup_seconds_;
  metrics::Histogram write_seconds_;

  // The first index is the tier, the second the reason.
  metrics::Counter removed_[kTiers][kRemovals];
  metrics::Counter tier_writes_[kTiers];
  metrics::Counter fills_dropped_;

  metrics::Counter connections_ended_[kConnectionEnds];
  metrics::Counter connections_refused_;
  metrics::Counter accept_failures_;
  metrics::Counter streams_refused_;
  metrics::Counter connections_held_up_;
  metrics::Counter requests_abandoned_;
  metrics::Counter requests_refused_[kRefusals];

  mutable Mutex mutex_;
  mutable Reachability reachability_ ABSL_GUARDED_BY(mutex_);
  mutable std::function<size_t()> backing_off_ ABSL_GUARDED_BY(mutex_);
  // The time in milliseconds since the Unix epoch, and the code in the lowest
  // five bits; 0: there was none.
  mutable std::atomic<int64_t> last_error_{0};
};

// A reading of the whole daemon's counters, or the difference of two readings.
struct DaemonCounts {
  std::vector<FunctionCounts> functions;  // by FunctionId
  uint64_t fills_dropped[kDroppedReasons] = {};
  uint64_t tier_errors[kTiers][kTierErrors] = {};
  uint64_t handshakes_failed[kTlsSides][kHandshakeFaults] = {};
  // Lines of the access log.
  uint64_t access_log_written = 0;
  uint64_t access_log_dropped = 0;

  // Precondition: `earlier` is a reading of the same instruments.
  DaemonCounts Since(const DaemonCounts& earlier) const;
};

class Instruments {
 public:
  // Names of the functions, in the order of their FunctionId.
  explicit Instruments(const std::vector<std::string>& functions);
  ~Instruments();
  Instruments(const Instruments&) = delete;
  Instruments& operator=(const Instruments&) = delete;

  // Precondition: id < functions().
  const FunctionInstruments& function(cache::FunctionId id) const;
  size_t functions() const;

  // Stores are created with this observer. Reports for functions that are not
  // configured (entries left by an earlier run) count for the daemon as a whole
  // where a metric has no function, and for none where it has.
  cache::Observer* observer();

  // The Watch functions give what a scrape looks at. Each is called once, at
  // start, but perhaps while pages are served already; what they are given is
  // called by scraping threads for as long as there are any.
  void WatchTier(cache::Tier tier,
                 std::function<cache::store::StoreStats()> stats);
  // `depth` tells a queue's length. Queues are "disk_fills" and "disk_lookups".
  void WatchQueue(absl::string_view queue, std::function<size_t()> depth);
  // `stats` tells what became of the calls that are traced.
  void WatchTrace(std::function<insight::trace::TraceStats()> stats);
  // `memory` tells what explaining misses takes.
  struct ExplainFigures {
    uint64_t bytes = 0;
    double paths_share = 1;  // of composites
    double share = 1;
    absl::Duration cpu;
  };
  void WatchExplain(std::function<ExplainFigures()> figures);
  void WatchReadiness(std::function<bool()> ready);
  void WatchReload(std::function<ReloadFigures()> figures);
  // Lines of the access log.
  struct AccessLogCounters {
    metrics::Counter written;
    metrics::Counter dropped;
  };
  const AccessLogCounters& access_log() const;
  // How many connections the function's callers have, and the daemon to it.
  void WatchConnections(cache::FunctionId id, std::function<size_t()> callers,
                        std::function<size_t()> upstream);
  // How many of the function's keys are backing off.
  void WatchBackingOff(cache::FunctionId id, std::function<size_t()> keys);
  // What calls hold that have not ended.
  struct InflightFigures {
    uint64_t reading = 0;
    uint64_t waiting = 0;
    uint64_t running = 0;
    uint64_t relayed = 0;
    uint64_t limit = 0;
    uint64_t refused = 0;
  };
  void WatchInflight(std::function<InflightFigures()> figures);
  void WatchWorkers(int workers);

  // `expiry` tells when the certificate that is in use ends: the listeners'
  // (TlsSide::kServer) or the one shown to functions.
  void WatchCertificate(TlsSide side, std::function<absl::Time()> expiry);
  // A changed certificate pair on disk was bad, so the old one is kept; or a
  // changed pair was taken up.
  void CertificateReloadFailed(TlsSide side);
  void CertificateReloaded(TlsSide side);
  void HandshakeFailed(TlsSide side, HandshakeFault fault);
  // A connection to the admin socket was closed at once.
  void AdminConnectionRefused();

  DaemonCounts Read() const;

  // Readings of the tiers that there are.
  struct TierReading {
    cache::Tier tier;
    cache::store::StoreStats stats;
    uint64_t removed[kRemovals] = {};  // of all functions
  };
  std::vector<TierReading> ReadTiers() const;

  // Readings of the sides that use certificates.
  struct CertificateReading {
    TlsSide side;
    absl::Time expiry;
    uint64_t reloads = 0;
    uint64_t reload_failures = 0;
    bool last_reload_failed = false;  // so older files are in use
  };
  std::vector<CertificateReading> ReadCertificates() const;

  metrics::Registry* registry();

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace fncache::proxy::telemetry

#endif  // FNCACHE_PROXY_TELEMETRY_INSTRUMENTS_H_
