#include "proxy/telemetry/instruments.h"

#include <utility>

#include "absl/memory/memory.h"
#include "common/mutex.h"
#include "common/version.h"
#include "proxy/telemetry/catalogue.h"
#include "proxy/telemetry/process_metrics.h"

namespace fncache::proxy::telemetry {

using metrics::Buckets;
using metrics::Registry;

namespace {

constexpr int kOk = 0;
constexpr int kUnknown = 2;
constexpr int kUnimplemented = 12;

constexpr size_t kTiers = 2;
constexpr size_t kRemovals = 4;
constexpr size_t kDroppedReasons = 4;
constexpr size_t kErrorKinds = 4;
constexpr size_t kSides = 2;

const char* TierName(size_t tier) {
  static constexpr const char* kNames[kTiers] = {"memory", "disk"};
  return kNames[tier];
}

const char* RemovalName(size_t why) {
  static constexpr const char* kNames[kRemovals] = {"expired", "evicted",
                                                    "replaced", "dropped"};
  return kNames[why];
}

const char* DroppedName(size_t why) {
  static constexpr const char* kNames[kDroppedReasons] = {
      "queue_full", "too_large", "error", "shutdown"};
  return kNames[why];
}

const char* ErrorName(size_t what) {
  static constexpr const char* kNames[kErrorKinds] = {"read", "write",
                                                      "corrupt", "other"};
  return kNames[what];
}

// By TlsSide.
const char* SideName(size_t side) {
  static constexpr const char* kNames[kSides] = {"listener", "upstream"};
  return kNames[side];
}

template <typename Enum>
size_t Index(Enum value) {
  return static_cast<size_t>(value);
}

size_t CodeIndex(int code) {
  return code >= 0 && code < static_cast<int>(kStatusCodes) ? code : kUnknown;
}

}  // namespace

const char* OutcomeName(Outcome outcome) {
  static constexpr const char* kNames[kOutcomes] = {
      "hit", "miss", "stale", "collapsed", "bypass", "request"};
  return kNames[Index(outcome)];
}

const char* StatusCodeName(int code) {
  static constexpr const char* kNames[kStatusCodes] = {"OK",
                                                       "CANCELLED",
                                                       "UNKNOWN",
                                                       "INVALID_ARGUMENT",
                                                       "DEADLINE_EXCEEDED",
                                                       "NOT_FOUND",
                                                       "ALREADY_EXISTS",
                                                       "PERMISSION_DENIED",
                                                       "RESOURCE_EXHAUSTED",
                                                       "FAILED_PRECONDITION",
                                                       "ABORTED",
                                                       "OUT_OF_RANGE",
                                                       "UNIMPLEMENTED",
                                                       "INTERNAL",
                                                       "UNAVAILABLE",
                                                       "DATA_LOSS",
                                                       "UNAUTHENTICATED"};
  return kNames[CodeIndex(code)];
}

FunctionInstruments::FunctionInstruments(const std::string& name,
                                         Registry* registry)
    : name_(name) {
  const auto counter = [&](absl::string_view metric, double unit = 1) {
    return registry->AddCounter(Metric(metric), {name}, unit);
  };
  const auto gauge = [&](absl::string_view metric) {
    return registry->AddUpDown(Metric(metric), {name});
  };
  const std::string builtin = "function_run_function_response_cache_";
  hits_ = counter(builtin + "hits_total");
  misses_ = counter(builtin + "misses_total");
  errors_ = counter(builtin + "errors_total");
  writes_ = counter(builtin + "writes_total");
  deletes_ = counter(builtin + "deletes_total");
  bytes_written_ = counter(builtin + "bytes_written_total");
  bytes_deleted_ = counter(builtin + "bytes_deleted_total");
  lookup_seconds_ = registry->AddHistogram(Metric(builtin + "read_seconds"),
                                           {name}, Buckets::Tiers());
  write_seconds_ = registry->AddHistogram(Metric(builtin + "write_seconds"),
                                          {name}, Buckets::Tiers());

  for (size_t m = 0; m < kMethods; ++m) {
    const char* const method = MethodName(static_cast<Method>(m));
    in_flight_[m] = registry->AddUpDown(Metric("fncache_requests_in_flight"),
                                        {name, method});
    for (size_t o = 0; o < kOutcomes; ++o) {
      // What is no RunFunction is never looked up.
      if (static_cast<Method>(m) == Method::kOther &&
          static_cast<Outcome>(o) != Outcome::kBypass) {
        continue;
      }
      calls_[m][o] = registry->AddCounter(
          Metric("fncache_requests_total"),
          {name, method, OutcomeName(static_cast<Outcome>(o))});
    }
  }
  for (size_t o = 0; o < kOutcomes; ++o) {
    latency_[o] = registry->AddHistogram(
        Metric("fncache_request_seconds"),
        {name, OutcomeName(static_cast<Outcome>(o))}, Buckets::Calls());
  }
  for (size_t code = 0; code < kStatusCodes; ++code) {
    answers_[code] = registry->AddCounter(Metric("fncache_responses_total"),
                                          {name, StatusCodeName(code)});
    upstream_calls_[code] =
        registry->AddCounter(Metric("fncache_upstream_requests_total"),
                             {name, StatusCodeName(code)});
  }
  streams_ = counter("fncache_streams_forwarded_total");
  saved_seconds_ = counter("fncache_function_seconds_saved_total", 1e-9);
  upstream_latency_ = registry->AddHistogram(
      Metric("fncache_upstream_request_seconds"), {name}, Buckets::Calls());

  flights_ = gauge("fncache_flights");
  flights_opened_ = counter("fncache_flights_opened_total");
  joined_ = counter("fncache_collapsed_callers_total");
  joined_waiting_ = gauge("fncache_collapsed_callers_waiting");
  released_ = counter("fncache_released_callers_total");
  released_waiting_ = gauge("fncache_released_callers_waiting");
  released_running_ = gauge("fncache_released_callers_running");

  for (size_t tier = 0; tier < kTiers; ++tier) {
    tier_writes_[tier] = registry->AddCounter(
        Metric("fncache_tier_writes_total"), {name, TierName(tier)});
    for (size_t why = 0; why < kRemovals; ++why) {
      removed_[tier][why] =
          registry->AddCounter(Metric("fncache_evictions_total"),
                               {name, TierName(tier), RemovalName(why)});
    }
  }
}

void FunctionInstruments::End(const CallRecord& call) const {
  in_flight_[Index(call.method)].Add(-1);
  answers_[CodeIndex(call.code)].Add();
  if (call.method == Method::kOther) {
    calls_[Index(call.method)][Index(Outcome::kBypass)].Add();
    streams_.Add();
    return;
  }
  calls_[Index(call.method)][Index(call.outcome)].Add();
  latency_[Index(call.outcome)].Observe(call.latency);
  switch (call.outcome) {
    case Outcome::kHit:
      hits_.Add();
      break;
    case Outcome::kCollapsed:
      // One that left or timed out while it waited got no answer.
      if (call.code == kOk) hits_.Add();
      break;
    case Outcome::kMiss:
    case Outcome::kStale:
      // A runner that gets UNIMPLEMENTED calls again, with v1beta1: that call
      // is the one to count.
      if (call.upstream && call.code != kUnimplemented) misses_.Add();
      break;
    case Outcome::kBypass:
    case Outcome::kRequest:
      break;
  }
}

void FunctionInstruments::RecordUpstream(int code,
                                         absl::Duration latency) const {
  upstream_calls_[CodeIndex(code)].Add();
  upstream_latency_.Observe(latency);
}

FunctionInstruments::Summary FunctionInstruments::Summarize() const {
  Summary summary;
  for (size_t m = 0; m < kMethods; ++m) {
    for (size_t o = 0; o < kOutcomes; ++o) {
      summary.calls[m][o] = calls_[m][o].Value();
    }
    summary.in_flight += in_flight_[m].Value();
  }
  // Handles that were never registered share a cell.
  for (size_t o = 0; o < kOutcomes; ++o) {
    if (static_cast<Outcome>(o) != Outcome::kBypass) {
      summary.calls[Index(Method::kOther)][o] = 0;
    }
    summary.latency[o] = latency_[o].Read();
  }
  summary.upstream = upstream_latency_.Read();
  summary.lookup = lookup_seconds_.Read();
  summary.hits = hits_.Value();
  summary.misses = misses_.Value();
  summary.writes = writes_.Value();
  summary.errors = errors_.Value();
  summary.saved = absl::Nanoseconds(saved_seconds_.Value());
  summary.flights = flights_.Value();
  return summary;
}

class Instruments::Impl : public cache::Observer {
 public:
  explicit Impl(const std::vector<std::string>& functions) {
    functions_.reserve(functions.size());
    for (const std::string& name : functions) {
      functions_.push_back(
          absl::WrapUnique(new FunctionInstruments(name, &registry)));
    }
    for (size_t why = 0; why < kDroppedReasons; ++why) {
      dropped_[why] = registry.AddCounter(Metric("fncache_fills_dropped_total"),
                                          {DroppedName(why)});
    }
    for (size_t tier = 0; tier < kTiers; ++tier) {
      for (size_t what = 0; what < kErrorKinds; ++what) {
        tier_errors_[tier][what] =
            registry.AddCounter(Metric("fncache_tier_errors_total"),
                                {TierName(tier), ErrorName(what)});
      }
    }
    for (size_t side = 0; side < kSides; ++side) {
      reloads_[side] = registry.AddCounter(
          Metric("fncache_certificate_reloads_total"), {SideName(side)});
      reload_failures_[side] = registry.AddCounter(
          Metric("fncache_certificate_reload_failures_total"),
          {SideName(side)});
      for (size_t fault = 0; fault < kHandshakeFaults; ++fault) {
        handshakes_failed_[side][fault] = registry.AddCounter(
            Metric("fncache_handshakes_failed_total"),
            {SideName(side),
             HandshakeFaultName(static_cast<HandshakeFault>(fault))});
      }
    }
    registry.AddCallback(Metric("fncache_build_info"), {Version()},
                         [] { return 1.0; });
    RegisterProcessMetrics(&registry);
  }

  // cache::Observer
  void OnRemoved(cache::Tier tier, cache::Removal why, cache::FunctionId id,
                 bool last, uint64_t count, uint64_t bytes) override {
    const FunctionInstruments* const function = Find(id);
    if (function == nullptr) return;
    function->removed_[Index(tier)][Index(why)].Add(count);
    if (last &&
        (why == cache::Removal::kExpired || why == cache::Removal::kEvicted)) {
      function->deletes_.Add(count);
      function->bytes_deleted_.Add(bytes);
    }
  }
  void OnDropped(cache::Tier tier, cache::Dropped why,
                 cache::FunctionId id) override {
    dropped_[Index(why)].Add();
  }
  void OnError(cache::Tier tier, cache::TierError what,
               cache::FunctionId id) override {
    tier_errors_[Index(tier)][Index(what)].Add();
    const FunctionInstruments* const function = Find(id);
    if (function != nullptr) function->errors_.Add();
  }
  void OnWritten(cache::Tier tier, cache::FunctionId id, uint64_t bytes,
                 absl::Duration took) override {
    const FunctionInstruments* const function = Find(id);
    if (function == nullptr) return;
    function->tier_writes_[Index(tier)].Add();
    function->write_seconds_.Observe(took);
  }

  // First, because handles must not outlive it.
  Registry registry;
  std::vector<std::unique_ptr<const FunctionInstruments>> functions_;
  metrics::Counter dropped_[kDroppedReasons];
  metrics::Counter tier_errors_[kTiers][kErrorKinds];
  metrics::Counter reloads_[kSides];
  metrics::Counter reload_failures_[kSides];
  metrics::Counter handshakes_failed_[kSides][kHandshakeFaults];
  // Empty for tiers that are not there (yet: pages are served while the store
  // opens).
  Mutex mutex_;
  std::function<cache::store::StoreStats()> tier_stats_[kTiers] ABSL_GUARDED_BY(
      mutex_);

 private:
  const FunctionInstruments* Find(cache::FunctionId id) const {
    return id < functions_.size() ? functions_[id].get() : nullptr;
  }
};

Instruments::Instruments(const std::vector<std::string>& functions)
    : impl_(std::make_unique<Impl>(functions)) {}
Instruments::~Instruments() = default;

const FunctionInstruments& Instruments::function(cache::FunctionId id) const {
  return *impl_->functions_[id];
}
size_t Instruments::functions() const { return impl_->functions_.size(); }

cache::Observer* Instruments::observer() { return impl_.get(); }
Registry* Instruments::registry() { return &impl_->registry; }

void Instruments::WatchTier(cache::Tier tier,
                            std::function<cache::store::StoreStats()> stats) {
  const std::string name = TierName(Index(tier));
  Registry& registry = impl_->registry;
  registry.AddCallback(Metric("fncache_tier_entries"), {name}, [stats] {
    return static_cast<double>(stats().entries);
  });
  registry.AddCallback(Metric("fncache_tier_bytes"), {name},
                       [stats] { return static_cast<double>(stats().bytes); });
  registry.AddCallback(Metric("fncache_tier_capacity_bytes"), {name}, [stats] {
    return static_cast<double>(stats().capacity);
  });
  registry.AddCallback(Metric("fncache_tier_up"), {name},
                       [stats] { return stats().up ? 1.0 : 0.0; });
  MutexLock lock(&impl_->mutex_);
  impl_->tier_stats_[Index(tier)] = std::move(stats);
}

void Instruments::WatchQueue(absl::string_view queue,
                             std::function<size_t()> depth) {
  impl_->registry.AddCallback(
      Metric("fncache_queue_depth"), {std::string(queue)},
      [depth = std::move(depth)] { return static_cast<double>(depth()); });
}

void Instruments::WatchReadiness(std::function<bool()> ready) {
  impl_->registry.AddCallback(
      Metric("fncache_ready"), {},
      [ready = std::move(ready)] { return ready() ? 1.0 : 0.0; });
}

void Instruments::WatchCertificate(TlsSide side,
                                   std::function<absl::Time()> expiry) {
  impl_->registry.AddCallback(
      Metric("fncache_certificate_expiry_timestamp_seconds"),
      {SideName(Index(side))}, [expiry = std::move(expiry)] {
        return absl::ToDoubleSeconds(expiry() - absl::UnixEpoch());
      });
}

void Instruments::CertificateReloadFailed(TlsSide side) {
  impl_->reload_failures_[Index(side)].Add();
}
void Instruments::CertificateReloaded(TlsSide side) {
  impl_->reloads_[Index(side)].Add();
}
void Instruments::HandshakeFailed(TlsSide side, HandshakeFault fault) {
  impl_->handshakes_failed_[Index(side)][Index(fault)].Add();
}

std::vector<Instruments::TierSummary> Instruments::Tiers() const {
  std::vector<TierSummary> tiers;
  MutexLock lock(&impl_->mutex_);
  for (size_t tier = 0; tier < kTiers; ++tier) {
    if (!impl_->tier_stats_[tier]) continue;
    TierSummary summary;
    summary.tier = static_cast<cache::Tier>(tier);
    summary.stats = impl_->tier_stats_[tier]();
    for (const auto& function : impl_->functions_) {
      for (size_t why = 0; why < kRemovals; ++why) {
        summary.removed[why] += function->removed_[tier][why].Value();
      }
    }
    tiers.push_back(summary);
  }
  return tiers;
}

}  // namespace fncache::proxy::telemetry
