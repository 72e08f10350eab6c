// Instruments: what the daemon counts of itself; docs/metrics.md is its list.
//
// Instruments holds every metric of the daemon (names and help are in
// catalogue.h) and is made at start, before threads. A call reports to its
// function's FunctionInstruments, the stores to observer(); each report is a
// few additions to memory that only its own thread writes. What is not counted
// but looked at (tier sizes, certificates) is given as functions that a scrape
// calls.
//
// How a call reports, `f` being instruments->function(id):
//
//   f.Begin(method)                            when it arrives
//   f.RecordHit(look-up, entry's cost)         if it is answered from an entry
//   f.End({method, outcome, code, upstream, latency})   always, exactly once
//
// Thread-safe. Outlives everything that reports to it.
#ifndef FNCACHE_PROXY_TELEMETRY_INSTRUMENTS_H_
#define FNCACHE_PROXY_TELEMETRY_INSTRUMENTS_H_

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
#include "common/tls_side.h"
#include "metrics/counter.h"
#include "metrics/histogram.h"
#include "metrics/registry.h"

namespace fncache::proxy::telemetry {

// What became of a call, as its cache-status header says.
enum class Outcome {
  kHit,        // answered from an entry
  kMiss,       // looked up, not there
  kStale,      // looked up, found past its time, the function was asked
  kCollapsed,  // joined another call's flight and ended there
  kBypass,     // not looked up: authorization, mode off, not RunFunction, ...
  kRequest,    // the caller asked for no-cache or no-store
};
inline constexpr size_t kOutcomes = 6;
const char* OutcomeName(Outcome outcome);  // "hit", "miss", ...

// gRPC's status codes, 0 to 16. Any other number counts as UNKNOWN.
inline constexpr size_t kStatusCodes = 17;
const char* StatusCodeName(int code);  // "OK", "CANCELLED", ...

// How a call ended.
struct CallRecord {
  Method method = Method::kOther;
  // A joined caller that was released and asked the function itself is a miss
  // (or stale); one that left or timed out while it waited is kCollapsed.
  Outcome outcome = Outcome::kBypass;
  // The status that the caller got, or would have got had it stayed.
  int code = 0;
  // An upstream call was started for this caller.
  bool upstream = false;
  // From arrival to the answer given to the transport.
  absl::Duration latency;
};

// The instruments of one function.
class FunctionInstruments {
 public:
  // Calls. End once for each Begin, by any thread.
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

  // Flights: an upstream call that others may join.
  void FlightOpened() const {
    flights_.Add(1);
    flights_opened_.Add();
  }
  void FlightClosed() const { flights_.Add(-1); }

  // A caller joined a flight; and stopped waiting there, for whatever reason.
  void CallerJoined() const {
    joined_.Add();
    joined_waiting_.Add(1);
  }
  void CallerLeft() const { joined_waiting_.Add(-1); }

  // Joined callers released from a flight whose outcome is not shared: one
  // that waits for its turn (max_released), and one that calls upstream.
  void ReleasedWaiting(int change) const { released_waiting_.Add(change); }
  void ReleasedRunning(int change) const { released_running_.Add(change); }
  void CallerReleased() const { released_.Add(); }

  // What the status page shows.
  struct Summary {
    uint64_t calls[kMethods][kOutcomes] = {};
    metrics::Distribution latency[kOutcomes];
    metrics::Distribution upstream;
    metrics::Distribution lookup;  // of hits
    uint64_t hits = 0;             // as the built-in cache's name counts them
    uint64_t misses = 0;           // the same
    uint64_t writes = 0;
    uint64_t errors = 0;
    absl::Duration saved;
    int64_t in_flight = 0;
    int64_t flights = 0;
  };
  Summary Summarize() const;

  const std::string& name() const { return name_; }

 private:
  friend class Instruments;
  FunctionInstruments(const std::string& name, metrics::Registry* registry);

  std::string name_;
  metrics::UpDown in_flight_[kMethods];
  metrics::Counter calls_[kMethods][kOutcomes];
  metrics::Histogram latency_[kOutcomes];
  metrics::Counter answers_[kStatusCodes];
  metrics::Counter streams_;
  metrics::Counter upstream_calls_[kStatusCodes];
  metrics::Histogram upstream_latency_;
  metrics::Counter saved_seconds_;  // in nanoseconds

  metrics::UpDown flights_;
  metrics::Counter flights_opened_;
  metrics::Counter joined_;
  metrics::UpDown joined_waiting_;
  metrics::Counter released_;
  metrics::UpDown released_waiting_;
  metrics::UpDown released_running_;

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

  // By tier and reason.
  metrics::Counter removed_[2][4];
  metrics::Counter tier_writes_[2];
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

  // What stores are created with. Reports for functions that are not
  // configured (entries left by an earlier run) count for the daemon as a whole
  // where a metric has no function, and for none where it has.
  cache::Observer* observer();

  // What a scrape looks at. Each is called once, at start, also while pages are
  // served; the functions are called by scraping threads for as long as there
  // are any.
  void WatchTier(cache::Tier tier,
                 std::function<cache::store::StoreStats()> stats);
  // A queue's length now: "disk_fills", "disk_lookups".
  void WatchQueue(absl::string_view queue, std::function<size_t()> depth);
  void WatchReadiness(std::function<bool()> ready);

  // Certificates, of the listeners (TlsSide::kServer) or the upstream's.
  // `expiry`: when the certificate that is in use ends.
  void WatchCertificate(TlsSide side, std::function<absl::Time()> expiry);
  // A certificate pair on disk was bad and the old one kept; one was taken up.
  void CertificateReloadFailed(TlsSide side);
  void CertificateReloaded(TlsSide side);
  void HandshakeFailed(TlsSide side, HandshakeFault fault);

  // Of the tiers as a whole, for the status page.
  struct TierSummary {
    cache::Tier tier;
    cache::store::StoreStats stats;
    uint64_t removed[4] = {};  // by cache::Removal
  };
  std::vector<TierSummary> Tiers() const;

  metrics::Registry* registry();

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace fncache::proxy::telemetry

#endif  // FNCACHE_PROXY_TELEMETRY_INSTRUMENTS_H_
