// SPDX-License-Identifier: Apache-2.0
// It is one thing: all metrics are registered, and read back, by one class.
#include "proxy/telemetry/instruments.h"

#include <utility>

#include "absl/memory/memory.h"
#include "absl/time/clock.h"
#include "common/version.h"
#include "proxy/telemetry/catalogue.h"
#include "proxy/telemetry/process_metrics.h"

namespace fncache::proxy::telemetry {

using metrics::Buckets;
using metrics::Exposed;
using metrics::Registry;

namespace {

constexpr int kOk = 0;
constexpr int kCancelled = 1;
constexpr int kUnimplemented = 12;

template <typename Enum>
size_t Index(Enum value) {
  return static_cast<size_t>(value);
}

// Leaves in `later` what was counted since `earlier`.
template <size_t kCount>
void Subtract(const uint64_t (&earlier)[kCount], uint64_t (&later)[kCount]) {
  for (size_t i = 0; i < kCount; ++i) later[i] -= earlier[i];
}
template <size_t kRows, size_t kColumns>
void Subtract(const uint64_t (&earlier)[kRows][kColumns],
              uint64_t (&later)[kRows][kColumns]) {
  for (size_t i = 0; i < kRows; ++i) Subtract(earlier[i], later[i]);
}

}  // namespace

uint64_t FunctionCounts::Calls() const {
  uint64_t sum = 0;
  for (size_t o = 0; o < kOutcomes; ++o) sum += Calls(static_cast<Outcome>(o));
  return sum;
}

uint64_t FunctionCounts::Calls(Outcome outcome) const {
  uint64_t sum = 0;
  for (const auto& of_method : calls) sum += of_method[Index(outcome)];
  return sum;
}

uint64_t FunctionCounts::ServedOver() const {
  uint64_t sum = 0;
  for (const uint64_t of_code : served_over) sum += of_code;
  return sum;
}

bool IsUpstreamError(size_t code) {
  return code != kOk && code != kCancelled && code != kUnimplemented;
}

uint64_t FunctionCounts::UpstreamErrors() const {
  uint64_t sum = 0;
  for (size_t code = 0; code < kStatusCodes; ++code) {
    if (IsUpstreamError(code)) sum += upstream[code];
  }
  return sum;
}

FunctionCounts FunctionCounts::Since(const FunctionCounts& earlier) const {
  FunctionCounts since = *this;
  Subtract(earlier.calls, since.calls);
  for (size_t o = 0; o < kOutcomes; ++o) {
    since.latency[o] = latency[o].Since(earlier.latency[o]);
  }
  Subtract(earlier.missed, since.missed);
  Subtract(earlier.bypassed, since.bypassed);
  Subtract(earlier.upstream, since.upstream);
  since.upstream_latency = upstream_latency.Since(earlier.upstream_latency);
  since.hits -= earlier.hits;
  since.misses -= earlier.misses;
  since.fills -= earlier.fills;
  since.fills_dropped -= earlier.fills_dropped;
  since.cache_errors -= earlier.cache_errors;
  since.saved -= earlier.saved;
  since.refreshes -= earlier.refreshes;
  since.refreshes_failed -= earlier.refreshes_failed;
  since.refreshes_refused -= earlier.refreshes_refused;
  Subtract(earlier.served_over, since.served_over);
  since.superseded -= earlier.superseded;
  since.abandoned -= earlier.abandoned;
  since.abandoned_finished -= earlier.abandoned_finished;
  since.abandoned_refused -= earlier.abandoned_refused;
  Subtract(earlier.refused, since.refused);
  since.shadow_lookups -= earlier.shadow_lookups;
  Subtract(earlier.shadow_hits, since.shadow_hits);
  Subtract(earlier.shadow_differences, since.shadow_differences);
  since.shadow_uncompared -= earlier.shadow_uncompared;
  return since;
}

DaemonCounts DaemonCounts::Since(const DaemonCounts& earlier) const {
  DaemonCounts since = *this;
  for (size_t id = 0; id < functions.size(); ++id) {
    since.functions[id] = functions[id].Since(earlier.functions[id]);
  }
  Subtract(earlier.fills_dropped, since.fills_dropped);
  Subtract(earlier.tier_errors, since.tier_errors);
  Subtract(earlier.handshakes_failed, since.handshakes_failed);
  since.access_log_written -= earlier.access_log_written;
  since.access_log_dropped -= earlier.access_log_dropped;
  return since;
}

FunctionInstruments::FunctionInstruments(const std::string& name,
                                         Registry* registry)
    : name_(name) {
  const auto counter = [&](absl::string_view metric, double unit = 1) {
    return registry->AddCounter(Metric(metric), {name}, unit);
  };
  const auto by_code = [&](absl::string_view metric, size_t code,
                           Exposed exposed = Exposed::kOnceCounted) {
    return registry->AddCounter(Metric(metric),
                                {name, StatusCodeName(static_cast<int>(code))},
                                /*unit=*/1, exposed);
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
      // Calls of other methods are never looked up.
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
  for (size_t why = 0; why < kMissReasons; ++why) {
    missed_[why] = registry->AddCounter(Metric("fncache_misses_total"),
                                        {name, MissReasonName(why)});
  }
  for (size_t why = 0; why < kBypassReasons; ++why) {
    bypassed_[why] = registry->AddCounter(
        Metric("fncache_bypasses_total"),
        {name, BypassReasonName(static_cast<BypassReason>(why))});
  }
  for (size_t code = 0; code < kStatusCodes; ++code) {
    answers_[code] = by_code("fncache_responses_total", code);
    // An alert reads OK, and the failures of all other codes together.
    upstream_calls_[code] =
        by_code("fncache_upstream_requests_total", code,
                code == kOk ? Exposed::kFromTheStart : Exposed::kOnceCounted);
  }
  upstream_failures_ = counter("fncache_upstream_failures_total");
  streams_ = counter("fncache_streams_forwarded_total");
  saved_seconds_ = counter("fncache_function_seconds_saved_total", 1e-9);
  shadow_lookups_ = counter("fncache_shadow_lookups_total");
  for (size_t i = 0; i < kShadowBys; ++i) {
    const char* const by = ShadowByName(static_cast<ShadowBy>(i));
    shadow_hits_[i] =
        registry->AddCounter(Metric("fncache_shadow_hits_total"), {name, by});
    shadow_differences_[i] = registry->AddCounter(
        Metric("fncache_shadow_differences_total"), {name, by});
  }
  shadow_uncompared_ = counter("fncache_shadow_uncompared_total");
  for (size_t end = 0; end < kConnectionEnds; ++end) {
    const absl::string_view reason = ConnectionEndName(end);
    // The one that an alert reads is there from the start.
    connections_ended_[end] = registry->AddCounter(
        Metric("fncache_connections_ended_total"), {name, std::string(reason)},
        /*unit=*/1,
        reason == "too_much" ? Exposed::kFromTheStart : Exposed::kOnceCounted);
  }
  connections_refused_ = counter("fncache_connections_refused_total");
  accept_failures_ = counter("fncache_accept_failures_total");
  streams_refused_ = counter("fncache_streams_refused_total");
  connections_held_up_ = counter("fncache_connections_held_up_total");
  requests_abandoned_ = counter("fncache_requests_abandoned_total");
  for (size_t why = 0; why < kRefusals; ++why) {
    requests_refused_[why] = registry->AddCounter(
        Metric("fncache_requests_refused_total"), {name, RefusalName(why)});
  }
  upstream_latency_ = registry->AddHistogram(
      Metric("fncache_upstream_request_seconds"), {name}, Buckets::Calls());

  flights_ = gauge("fncache_flights");
  flights_opened_ = counter("fncache_flights_opened_total");
  joined_ = counter("fncache_collapsed_callers_total");
  joined_waiting_ = gauge("fncache_collapsed_callers_waiting");
  released_ = counter("fncache_released_callers_total");
  released_waiting_ = gauge("fncache_released_callers_waiting");
  released_running_ = gauge("fncache_released_callers_running");
  refreshes_ = counter("fncache_refreshes_total");
  refreshes_failed_ = counter("fncache_refreshes_failed_total");
  refreshes_refused_ = counter("fncache_refreshes_refused_total");
  refreshes_running_ = gauge("fncache_refreshes_running");
  for (size_t code = 0; code < kStatusCodes; ++code) {
    served_over_[code] = by_code("fncache_stale_if_error_total", code);
  }
  superseded_ = counter("fncache_superseded_entries_total");
  abandoned_ = counter("fncache_abandoned_calls_total");
  abandoned_finished_ = counter("fncache_abandoned_calls_finished_total");
  abandoned_refused_ = counter("fncache_abandoned_calls_refused_total");
  abandoned_running_ = gauge("fncache_abandoned_calls_running");

  for (size_t t = 0; t < kTiers; ++t) {
    const char* const tier = TierName(static_cast<cache::Tier>(t));
    tier_writes_[t] =
        registry->AddCounter(Metric("fncache_tier_writes_total"), {name, tier});
    for (size_t why = 0; why < kRemovals; ++why) {
      removed_[t][why] = registry->AddCounter(
          Metric("fncache_evictions_total"),
          {name, tier, RemovalName(static_cast<cache::Removal>(why))});
    }
  }
  fills_dropped_ = counter("fncache_function_fills_dropped_total");
  registry->AddCallback(Metric("fncache_function_reachable"), {name}, [this] {
    return reachability().reachable ? 1.0 : 0.0;
  });
}

void FunctionInstruments::End(const CallRecord& call) const {
  in_flight_[Index(call.method)].Add(-1);
  answers_[StatusCodeIndex(call.code)].Add();
  if (call.method == Method::kOther) {
    calls_[Index(call.method)][Index(Outcome::kBypass)].Add();
    bypassed_[Index(BypassReason::kMethod)].Add();
    streams_.Add();
    return;
  }
  calls_[Index(call.method)][Index(call.outcome)].Add();
  latency_[Index(call.outcome)].Observe(call.latency);
  switch (call.outcome) {
    case Outcome::kHit:
    case Outcome::kStaleHit:
      hits_.Add();
      break;
    case Outcome::kCollapsed:
      // One that left or timed out while it waited got no answer.
      if (StatusCodeIndex(call.code) == kOk) hits_.Add();
      break;
    case Outcome::kMiss:
    case Outcome::kStale:
      missed_[MissReasonIndex(call.reason)].Add();
      // A runner that gets UNIMPLEMENTED calls again, with v1beta1: that call
      // is the one to count.
      if (call.upstream && call.code != kUnimplemented) misses_.Add();
      break;
    case Outcome::kBypass:
      bypassed_[Index(call.bypass)].Add();
      break;
    case Outcome::kRequest:
      break;
  }
}

void FunctionInstruments::RecordUpstream(int code,
                                         absl::Duration latency) const {
  upstream_calls_[StatusCodeIndex(code)].Add();
  upstream_latency_.Observe(latency);
  const size_t index = StatusCodeIndex(code);
  if (!IsUpstreamError(index)) return;
  upstream_failures_.Add();
  last_error_.store(
      absl::ToUnixMillis(absl::Now()) * 32 + static_cast<int64_t>(index),
      std::memory_order_relaxed);
}

void FunctionInstruments::Unreachable(absl::Time when,
                                      absl::string_view why) const {
  MutexLock lock(&mutex_);
  if (reachability_.reachable) reachability_.since = when;
  reachability_.reachable = false;
  reachability_.why = std::string(why);
}

void FunctionInstruments::Reachable() const {
  MutexLock lock(&mutex_);
  reachability_ = Reachability();
}

LastError FunctionInstruments::last_error() const {
  const int64_t last = last_error_.load(std::memory_order_relaxed);
  return {absl::FromUnixMillis(last / 32), static_cast<int>(last % 32)};
}

Reachability FunctionInstruments::reachability() const {
  MutexLock lock(&mutex_);
  return reachability_;
}

FunctionCounts FunctionInstruments::Read() const {
  FunctionCounts counts;
  for (size_t m = 0; m < kMethods; ++m) {
    for (size_t o = 0; o < kOutcomes; ++o) {
      // Handles that were never registered share a cell.
      if (static_cast<Method>(m) == Method::kOther &&
          static_cast<Outcome>(o) != Outcome::kBypass) {
        continue;
      }
      counts.calls[m][o] = calls_[m][o].Value();
    }
  }
  for (size_t o = 0; o < kOutcomes; ++o) counts.latency[o] = latency_[o].Read();
  for (size_t code = 0; code < kStatusCodes; ++code) {
    counts.upstream[code] = upstream_calls_[code].Value();
  }
  counts.upstream_latency = upstream_latency_.Read();
  counts.hits = hits_.Value();
  counts.misses = misses_.Value();
  for (size_t why = 0; why < kMissReasons; ++why) {
    counts.missed[why] = missed_[why].Value();
  }
  for (size_t why = 0; why < kBypassReasons; ++why) {
    counts.bypassed[why] = bypassed_[why].Value();
  }
  counts.fills = writes_.Value();
  counts.fills_dropped = fills_dropped_.Value();
  counts.cache_errors = errors_.Value();
  counts.saved = absl::Nanoseconds(saved_seconds_.Value());
  counts.refreshes = refreshes_.Value();
  counts.refreshes_failed = refreshes_failed_.Value();
  counts.refreshes_refused = refreshes_refused_.Value();
  for (size_t code = 0; code < kStatusCodes; ++code) {
    counts.served_over[code] = served_over_[code].Value();
  }
  counts.superseded = superseded_.Value();
  counts.abandoned = abandoned_.Value();
  counts.abandoned_finished = abandoned_finished_.Value();
  counts.abandoned_refused = abandoned_refused_.Value();
  for (size_t why = 0; why < kRefusals; ++why) {
    counts.refused[why] = requests_refused_[why].Value();
  }
  counts.shadow_lookups = shadow_lookups_.Value();
  for (size_t by = 0; by < kShadowBys; ++by) {
    counts.shadow_hits[by] = shadow_hits_[by].Value();
    counts.shadow_differences[by] = shadow_differences_[by].Value();
  }
  counts.shadow_uncompared = shadow_uncompared_.Value();
  return counts;
}

FunctionGauges FunctionInstruments::ReadGauges() const {
  FunctionGauges gauges;
  for (const metrics::UpDown& of_method : in_flight_) {
    gauges.in_flight += of_method.Value();
  }
  gauges.flights = flights_.Value();
  gauges.refreshes = refreshes_running_.Value();
  gauges.abandoned = abandoned_running_.Value();
  gauges.joined_waiting = joined_waiting_.Value();
  gauges.released_waiting = released_waiting_.Value();
  gauges.released_running = released_running_.Value();
  std::function<size_t()> backing_off;
  {
    MutexLock lock(&mutex_);
    backing_off = backing_off_;
  }
  if (backing_off) gauges.backing_off = static_cast<int64_t>(backing_off());
  return gauges;
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
      dropped_[why] =
          registry.AddCounter(Metric("fncache_fills_dropped_total"),
                              {DroppedName(static_cast<cache::Dropped>(why))});
    }
    for (size_t tier = 0; tier < kTiers; ++tier) {
      for (size_t what = 0; what < kTierErrors; ++what) {
        tier_errors_[tier][what] = registry.AddCounter(
            Metric("fncache_tier_errors_total"),
            {TierName(static_cast<cache::Tier>(tier)),
             TierErrorName(static_cast<cache::TierError>(what))});
      }
    }
    for (size_t s = 0; s < kTlsSides; ++s) {
      const char* const side = TlsSideName(static_cast<TlsSide>(s));
      reloads_[s] = registry.AddCounter(
          Metric("fncache_certificate_reloads_total"), {side});
      reload_failures_[s] = registry.AddCounter(
          Metric("fncache_certificate_reload_failures_total"), {side});
      for (size_t fault = 0; fault < kHandshakeFaults; ++fault) {
        handshakes_failed_[s][fault] = registry.AddCounter(
            Metric("fncache_handshakes_failed_total"),
            {side, HandshakeFaultName(static_cast<HandshakeFault>(fault))});
      }
    }
    admin_connections_refused_ = registry.AddCounter(
        Metric("fncache_admin_connections_refused_total"), {});
    access_log_.written =
        registry.AddCounter(Metric("fncache_access_log_lines_total"), {});
    access_log_.dropped =
        registry.AddCounter(Metric("fncache_access_log_dropped_total"), {});
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
    const FunctionInstruments* const function = Find(id);
    if (function != nullptr) function->fills_dropped_.Add();
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

  // The registry is the first member, because handles must not outlive it.
  Registry registry;
  std::vector<std::unique_ptr<const FunctionInstruments>> functions_;
  metrics::Counter dropped_[kDroppedReasons];
  metrics::Counter tier_errors_[kTiers][kTierErrors];
  metrics::Counter reloads_[kTlsSides];
  metrics::Counter reload_failures_[kTlsSides];
  metrics::Counter handshakes_failed_[kTlsSides][kHandshakeFaults];
  metrics::Counter admin_connections_refused_;
  AccessLogCounters access_log_;
  // Empty for tiers that are not there (yet: pages are served while the store
  // opens).
  Mutex mutex_;
  std::function<cache::store::StoreStats()> tier_stats_[kTiers] ABSL_GUARDED_BY(
      mutex_);
  // Empty for sides that use no certificates.
  std::function<absl::Time()> expiry_[kTlsSides] ABSL_GUARDED_BY(mutex_);
  bool last_reload_failed_[kTlsSides] ABSL_GUARDED_BY(mutex_) = {};

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
  const std::string name = TierName(tier);
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

void Instruments::WatchConnections(cache::FunctionId id,
                                   std::function<size_t()> callers,
                                   std::function<size_t()> upstream) {
  const std::string& name = function(id).name();
  impl_->registry.AddCallback(Metric("fncache_connections"), {name},
                              [callers = std::move(callers)] {
                                return static_cast<double>(callers());
                              });
  impl_->registry.AddCallback(Metric("fncache_upstream_connected"), {name},
                              [upstream = std::move(upstream)] {
                                return static_cast<double>(upstream());
                              });
}

void Instruments::WatchBackingOff(cache::FunctionId id,
                                  std::function<size_t()> keys) {
  const FunctionInstruments& of = function(id);
  impl_->registry.AddCallback(Metric("fncache_keys_backing_off"), {of.name()},
                              [keys] { return static_cast<double>(keys()); });
  MutexLock lock(&of.mutex_);
  of.backing_off_ = std::move(keys);
}

void Instruments::WatchInflight(std::function<InflightFigures()> figures) {
  Registry& registry = impl_->registry;
  const auto watch = [&](absl::string_view metric,
                         const std::vector<std::string>& labels,
                         uint64_t InflightFigures::*field) {
    registry.AddCallback(Metric(metric), labels, [figures, field] {
      return static_cast<double>(figures().*field);
    });
  };
  watch("fncache_inflight_bytes", {"reading"}, &InflightFigures::reading);
  watch("fncache_inflight_bytes", {"waiting"}, &InflightFigures::waiting);
  watch("fncache_inflight_bytes", {"running"}, &InflightFigures::running);
  watch("fncache_inflight_bytes", {"relayed"}, &InflightFigures::relayed);
  watch("fncache_inflight_limit_bytes", {}, &InflightFigures::limit);
  watch("fncache_inflight_refused_total", {}, &InflightFigures::refused);
}

void Instruments::WatchWorkers(int workers) {
  impl_->registry.AddCallback(Metric("fncache_workers"), {},
                              [workers] { return workers; });
}

void Instruments::WatchTrace(
    std::function<insight::trace::TraceStats()> stats) {
  Registry& registry = impl_->registry;
  using insight::trace::TraceStats;
  const auto count = [&](const char* result, uint64_t TraceStats::*field) {
    registry.AddCallback(
        Metric("fncache_trace_records_total"), {result},
        [stats, field] { return static_cast<double>(stats().*field); });
  };
  count("written", &TraceStats::written);
  count("dropped_queue", &TraceStats::dropped_queue);
  count("dropped_disk", &TraceStats::dropped_disk);
  count("sampled_out", &TraceStats::sampled_out);
  registry.AddCallback(Metric("fncache_trace_read_share"), {},
                       [stats] { return stats().read_share; });
  registry.AddCallback(Metric("fncache_trace_up"), {},
                       [stats] { return stats().up ? 1.0 : 0.0; });
}

void Instruments::WatchExplain(std::function<ExplainFigures()> figures) {
  Registry& registry = impl_->registry;
  const auto watch = [&](absl::string_view metric,
                         const std::vector<std::string>& of,
                         std::function<double(const ExplainFigures&)> read) {
    registry.AddCallback(Metric(metric), of, [figures, read = std::move(read)] {
      return read(figures());
    });
  };
  watch("fncache_explain_memory_bytes", {}, [](const ExplainFigures& now) {
    return static_cast<double>(now.bytes);
  });
  watch("fncache_explain_composites_share", {"paths"},
        [](const ExplainFigures& now) { return now.paths_share; });
  watch("fncache_explain_composites_share", {"reasons"},
        [](const ExplainFigures& now) { return now.share; });
  watch("fncache_explain_cpu_seconds_total", {}, [](const ExplainFigures& now) {
    return absl::ToDoubleSeconds(now.cpu);
  });
}

void Instruments::WatchReload(std::function<ReloadFigures()> figures) {
  Registry& registry = impl_->registry;
  registry.AddCallback(
      Metric("fncache_config_last_reload_successful"), {},
      [figures] { return figures().last_successful ? 1.0 : 0.0; });
  registry.AddCallback(
      Metric("fncache_config_last_reload_success_timestamp_seconds"), {},
      [figures] {
        return absl::ToDoubleSeconds(figures().last_success -
                                     absl::UnixEpoch());
      });
  registry.AddCallback(
      Metric("fncache_config_reloads_total"), {"success"},
      [figures] { return static_cast<double>(figures().successes); });
  registry.AddCallback(
      Metric("fncache_config_reloads_total"), {"failure"},
      [figures] { return static_cast<double>(figures().failures); });
}

const Instruments::AccessLogCounters& Instruments::access_log() const {
  return impl_->access_log_;
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
      {TlsSideName(side)},
      [expiry] { return absl::ToDoubleSeconds(expiry() - absl::UnixEpoch()); });
  MutexLock lock(&impl_->mutex_);
  impl_->expiry_[Index(side)] = std::move(expiry);
}

void Instruments::CertificateReloadFailed(TlsSide side) {
  impl_->reload_failures_[Index(side)].Add();
  MutexLock lock(&impl_->mutex_);
  impl_->last_reload_failed_[Index(side)] = true;
}
void Instruments::CertificateReloaded(TlsSide side) {
  impl_->reloads_[Index(side)].Add();
  MutexLock lock(&impl_->mutex_);
  impl_->last_reload_failed_[Index(side)] = false;
}
void Instruments::HandshakeFailed(TlsSide side, HandshakeFault fault) {
  impl_->handshakes_failed_[Index(side)][Index(fault)].Add();
}
void Instruments::AdminConnectionRefused() {
  impl_->admin_connections_refused_.Add();
}

DaemonCounts Instruments::Read() const {
  DaemonCounts counts;
  counts.functions.reserve(impl_->functions_.size());
  for (const auto& function : impl_->functions_) {
    counts.functions.push_back(function->Read());
  }
  for (size_t why = 0; why < kDroppedReasons; ++why) {
    counts.fills_dropped[why] = impl_->dropped_[why].Value();
  }
  for (size_t tier = 0; tier < kTiers; ++tier) {
    for (size_t what = 0; what < kTierErrors; ++what) {
      counts.tier_errors[tier][what] = impl_->tier_errors_[tier][what].Value();
    }
  }
  for (size_t side = 0; side < kTlsSides; ++side) {
    for (size_t fault = 0; fault < kHandshakeFaults; ++fault) {
      counts.handshakes_failed[side][fault] =
          impl_->handshakes_failed_[side][fault].Value();
    }
  }
  counts.access_log_written = impl_->access_log_.written.Value();
  counts.access_log_dropped = impl_->access_log_.dropped.Value();
  return counts;
}

std::vector<Instruments::TierReading> Instruments::ReadTiers() const {
  std::vector<TierReading> tiers;
  MutexLock lock(&impl_->mutex_);
  for (size_t tier = 0; tier < kTiers; ++tier) {
    if (!impl_->tier_stats_[tier]) continue;
    TierReading reading;
    reading.tier = static_cast<cache::Tier>(tier);
    reading.stats = impl_->tier_stats_[tier]();
    for (const auto& function : impl_->functions_) {
      for (size_t why = 0; why < kRemovals; ++why) {
        reading.removed[why] += function->removed_[tier][why].Value();
      }
    }
    tiers.push_back(reading);
  }
  return tiers;
}

std::vector<Instruments::CertificateReading> Instruments::ReadCertificates()
    const {
  std::vector<CertificateReading> certificates;
  MutexLock lock(&impl_->mutex_);
  for (size_t side = 0; side < kTlsSides; ++side) {
    if (!impl_->expiry_[side]) continue;
    CertificateReading reading;
    reading.side = static_cast<TlsSide>(side);
    reading.expiry = impl_->expiry_[side]();
    reading.reloads = impl_->reloads_[side].Value();
    reading.reload_failures = impl_->reload_failures_[side].Value();
    reading.last_reload_failed = impl_->last_reload_failed_[side];
    certificates.push_back(reading);
  }
  return certificates;
}

}  // namespace fncache::proxy::telemetry
