// SPDX-License-Identifier: Apache-2.0
// Instruments: all counts of the daemon about itself; docs/metrics.md lists
// them.
//
// Instruments has every metric of the daemon (names and help are in
// catalogue.h, label values in labels.h). It is made at the start, before
// threads. A call reports to its function's FunctionInstruments, and the stores
// report to observer(). A report is a few additions to memory that only its own
// thread writes. Tier sizes and certificates are not counted: a scrape calls
// functions that read them.
//
// How a call reports, `f` being instruments->function(id):
//
//   f.Begin(method)                            when it arrives
//   f.RecordHit(look-up, entry's cost)         if it is answered from an entry
//   f.End({method, outcome, code, upstream, latency})   always, exactly once
//
// There are two readers. A scrape reads all metrics through the registry. The
// status page calls Read(), and subtracts an earlier reading for the last
// minute.
//
// Thread-safe. Outlives all objects that report to it.
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
#include "absl/types/optional.h"
#include "cache/observer.h"
#include "cache/store/shared_store.h"
#include "cache/store/store.h"
#include "common/handshake_failure.h"
#include "common/method.h"
#include "common/mutex.h"
#include "common/tls_side.h"
#include "insight/explain/repeats.h"
#include "insight/trace/writer.h"
#include "metrics/counter.h"
#include "metrics/histogram.h"
#include "metrics/registry.h"
#include "proxy/telemetry/function_facts.h"
#include "proxy/telemetry/labels.h"
#include "proxy/telemetry/reload_figures.h"
#include "proxy/telemetry/tune_report.h"

namespace fncache::proxy::telemetry {

// CallRecord says how a call ended.
struct CallRecord {
  Method method = Method::kOther;
  // A joined caller that was released and called the function itself is a miss
  // (or stale). A caller that left or timed out during its wait is kCollapsed.
  Outcome outcome = Outcome::kBypass;
  // The status that the caller got, or would have got if it had stayed.
  int code = 0;
  // An upstream call was started for this caller.
  bool upstream = false;
  // Measures from the call's arrival until its answer is given to the
  // transport.
  absl::Duration latency;
  // Why it missed (kMiss, kStale), or was not looked up (kBypass).
  cache::Reason reason = cache::Reason::kNone;
};

// Whether the final status of a call to a function is the function's fault.
// CANCELLED is not: its caller left. UNIMPLEMENTED is not: the function does
// not know a version, and runners then try the other one.
bool IsUpstreamError(size_t code);

// A reading of one function's counters, or the difference of two readings. The
// compiler gives a reserved name to the code that copies the arrays.
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
  // Runs for a miss whose answer was compared with the answer of before, and
  // those that got it.
  uint64_t examined = 0;
  uint64_t repeats[insight::explain::kRepeatOvers] = {};
  // Calls with the outcome bypass, by BypassReasonIndex.
  uint64_t bypassed[kBypassReasons] = {};
  uint64_t fills = 0;
  uint64_t fills_dropped = 0;
  uint64_t cache_errors = 0;
  absl::Duration saved;
  absl::Duration tune_saved;          // those of hits across drift
  absl::Duration tune_question_time;  // that questions took
  // Refreshes after stale hits, those among them that brought no new entry, and
  // those that were refused because no slot was free.
  uint64_t refreshes = 0;
  uint64_t refreshes_failed = 0;
  uint64_t refreshes_refused = 0;
  uint64_t served_over[kStatusCodes] = {};  // errors that old answers hid
  // Old answers that are not served any more, because the function's new answer
  // is not kept.
  uint64_t superseded = 0;
  // Calls of the function that continued after their last caller had left,
  // those among them that were stored, and those that were cancelled because no
  // slot was free.
  uint64_t abandoned = 0;
  uint64_t abandoned_finished = 0;
  uint64_t abandoned_refused = 0;
  // Calls refused by a limit, by transport::Refusal.
  uint64_t refused[kRefusals] = {};
  // Under `mode: shadow`: look-ups, compared calls that would have been hits,
  // those among them that differed, and calls that could not be compared.
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

// The numbers of calls and flights at this moment.
struct FunctionGauges {
  int64_t in_flight = 0;
  int64_t flights = 0;
  int64_t refreshes = 0;
  int64_t abandoned = 0;  // calls without a caller
  // Keys that are not refreshed, and whose calls do not continue without a
  // caller, for now: the last refresh or such call failed.
  int64_t backing_off = 0;
  int64_t joined_waiting = 0;
  int64_t released_waiting = 0;
  int64_t released_running = 0;
};

// Whether a function could be reached at the last attempt.
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

  // A call is answered from an entry. `lookup`: how long the look-up that found
  // it took, without the waits before it. `saved`: how long the filling call
  // took (EntryInfo::cost).
  void RecordHit(absl::Duration lookup, absl::Duration saved) const {
    lookup_seconds_.Observe(lookup);
    RecordSaved(saved);
  }
  // A joined caller is answered from its flight: there was no look-up to time.
  void RecordSaved(absl::Duration saved) const { Add(saved, saved_seconds_); }

  // With tuning: an entry answered across drift, and so saved this time. A
  // question took this time.
  void RecordTuneSaved(absl::Duration saved) const {
    Add(saved, tune_saved_seconds_);
  }
  void RecordQuestion(absl::Duration took) const {
    Add(took, tune_question_seconds_);
  }

  // A RunFunction call to the function, of either version, ended with this
  // status, `latency` after its start. (End alone counts calls that are
  // forwarded as streams.)
  void RecordUpstream(int code, absl::Duration latency) const;

  // Policy and the memory tier accepted a fill. `bytes`: those of the stored
  // response.
  void RecordFill(uint64_t bytes) const {
    writes_.Add();
    bytes_written_.Add(bytes);
  }

  // Under `mode: shadow`: a call was looked up. Then the entry that it would
  // have hit was compared with the function's answer, or no answer could be
  // read.
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

  // A caller joined a flight, and stopped waiting there for any reason.
  void CallerJoined() const {
    joined_.Add();
    joined_waiting_.Add(1);
  }
  void CallerLeft() const { joined_waiting_.Add(-1); }

  // Callers that were released from a flight whose outcome is not shared. Some
  // wait, because `max_released` of them call upstream already, and some call
  // upstream.
  void ReleasedWaiting(int change) const { released_waiting_.Add(change); }
  void ReleasedRunning(int change) const { released_running_.Add(change); }
  void CallerReleased() const { released_.Add(); }

  // A refresh after a stale hit begins, ends, or is refused because no slot is
  // free. RefreshFailed comes with the end, too, if the refresh brought no
  // entry that is served.
  void RefreshBegun() const {
    refreshes_.Add();
    refreshes_running_.Add(1);
  }
  void RefreshEnded() const { refreshes_running_.Add(-1); }
  void RefreshFailed() const { refreshes_failed_.Add(); }
  void RefreshRefused() const { refreshes_refused_.Add(); }

  // A caller got an old answer instead of this status.
  void RecordServedOver(int code) const {
    served_over_[StatusCodeIndex(code)].Add();
  }

  // An old answer is not served any more, because the function's new answer is
  // not kept.
  void Superseded() const { superseded_.Add(); }

  // A flight's call continues without callers, or is refused because no slot is
  // free. The number of such calls changes. One of them was stored.
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
  // A caller's connection is not read for now.
  void ConnectionPaused() const { connections_held_up_.Add(); }
  void RequestAbandoned() const { requests_abandoned_.Add(); }
  // A call that never began was answered with this status.
  void Answered(int code) const { answers_[StatusCodeIndex(code)].Add(); }
  // The answer to a miss was compared with the answer of before.
  void RecordExamined(insight::explain::RepeatOver over) const {
    examined_.Add();
    if (over != insight::explain::RepeatOver::kNone) {
      repeats_[static_cast<size_t>(over)].Add();
    }
  }
  // A request was refused; `reason` counts from 0.
  void RequestRefused(size_t reason) const { requests_refused_[reason].Add(); }

  // The function cannot be reached, since `when` or an earlier report. Then it
  // can be reached again.
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
  FunctionInstruments(const std::string& name, size_t tiers,
                      metrics::Registry* registry);

  static void Add(absl::Duration time, const metrics::Counter& nanoseconds) {
    const int64_t ns = absl::ToInt64Nanoseconds(time);
    nanoseconds.Add(ns < 0 ? 0 : ns);
  }

  std::string name_;
  metrics::UpDown in_flight_[kMethods];
  metrics::Counter calls_[kMethods][kOutcomes];
  metrics::Counter missed_[kMissReasons];
  metrics::Counter examined_;
  metrics::Counter repeats_[insight::explain::kRepeatOvers];
  metrics::Counter bypassed_[kBypassReasons];
  metrics::Histogram latency_[kOutcomes];
  metrics::Counter answers_[kStatusCodes];
  metrics::Counter streams_;
  metrics::Counter upstream_calls_[kStatusCodes];
  metrics::Counter upstream_failures_;
  metrics::Histogram upstream_latency_;
  // In nanoseconds.
  metrics::Counter saved_seconds_;
  metrics::Counter tune_saved_seconds_;
  metrics::Counter tune_question_seconds_;

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
  // Names of the functions, in the order of their FunctionId. `shared`: there
  // is a shared tier, so its counters exist.
  explicit Instruments(const std::vector<std::string>& functions,
                       bool shared = false);
  ~Instruments();
  Instruments(const Instruments&) = delete;
  Instruments& operator=(const Instruments&) = delete;

  // Precondition: id < functions().
  const FunctionInstruments& function(cache::FunctionId id) const;
  size_t functions() const;

  // Stores are created with this observer. Reports may be about functions that
  // are not configured (entries of an earlier run). They count in metrics
  // without a function, and not in metrics with one.
  cache::Observer* observer();

  // The Watch functions set the sources that a scrape reads. Call each once, at
  // the start; pages may be served already. Scraping threads call the sources
  // until they end.
  void WatchTier(cache::Tier tier,
                 std::function<cache::store::StoreStats()> stats);
  // The shared tier has no sizes here: its server knows them.
  void WatchShared(std::function<cache::store::SharedFigures()> figures);
  // `depth` returns a queue's length. The queues are "disk_fills" and
  // "disk_lookups", or "shared_fills" and "shared_lookups".
  void WatchQueue(absl::string_view queue, std::function<size_t()> depth);
  // `stats` returns the results of tracing calls.
  void WatchTrace(std::function<insight::trace::TraceStats()> stats);
  // `figures` returns the cost of explaining misses.
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
  // The number of connections from the function's callers, and of those to the
  // function.
  void WatchConnections(cache::FunctionId id, std::function<size_t()> callers,
                        std::function<size_t()> upstream);
  // The number of the function's keys that are backing off.
  void WatchBackingOff(cache::FunctionId id, std::function<size_t()> keys);
  // The tuning of the function. Each scrape asks for each figure.
  void WatchTune(cache::FunctionId id, std::function<TuneFigures()> figures);
  // The hints of the function's responses.
  void WatchVary(cache::FunctionId id, std::function<VaryFigures()> figures);
  // The bytes that calls in progress use, by stage.
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

  // `expiry` returns the end of the certificate in use: the listeners'
  // (TlsSide::kServer) or the one shown to functions.
  void WatchCertificate(TlsSide side, std::function<absl::Time()> expiry);
  // A changed certificate pair on disk was bad, so the old one stays in use. Or
  // a changed pair was loaded.
  void CertificateReloadFailed(TlsSide side);
  void CertificateReloaded(TlsSide side);
  void HandshakeFailed(TlsSide side, HandshakeFault fault);
  // A connection to the admin socket was closed at once.
  void AdminConnectionRefused();

  DaemonCounts Read() const;

  // Readings of the tiers that exist, the shared one aside.
  struct TierReading {
    cache::Tier tier;
    cache::store::StoreStats stats;
    uint64_t removed[kRemovals] = {};  // of all functions
  };
  std::vector<TierReading> ReadTiers() const;
  // Absent without a shared tier, and before it is watched.
  absl::optional<cache::store::SharedFigures> ReadShared() const;

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
