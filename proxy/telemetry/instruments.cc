// SPDX-License-Identifier: Apache-2.0
// It is one thing: one class registers all metrics, and reads them back.
#include "proxy/telemetry/instruments.h"

#include <algorithm>
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

// Subtracts `earlier` from `later`.
void Subtract(uint64_t earlier, uint64_t* later) { *later -= earlier; }
void Subtract(absl::Duration earlier, absl::Duration* later) {
  *later -= earlier;
}
void Subtract(const metrics::Distribution& earlier,
              metrics::Distribution* later) {
  *later = later->Since(earlier);
}
template <typename T, size_t kCount>
void Subtract(const T (&earlier)[kCount], T (*later)[kCount]) {
  for (size_t i = 0; i < kCount; ++i) Subtract(earlier[i], &(*later)[i]);
}

// A label's values by their index.
using Label = std::string (*)(size_t);
template <const char* (*kName)(size_t)>
std::string Named(size_t i) {
  return kName(i);
}
template <typename Enum, const char* (*kName)(Enum)>
std::string NamedEnum(size_t i) {
  return kName(static_cast<Enum>(i));
}
constexpr Label kByOutcome = &NamedEnum<Outcome, &OutcomeName>;
constexpr Label kByMethod = &NamedEnum<Method, &MethodName>;
constexpr Label kByTier = &NamedEnum<cache::Tier, &TierName>;
constexpr Label kByShadow = &NamedEnum<ShadowBy, &ShadowByName>;
constexpr Label kByCode = &NamedEnum<int, &StatusCodeName>;

// How a row is registered.
struct RowOptions {
  // The labels of the first and the second index of the row's cells.
  Label labels[2] = {};
  double unit = 1;
  // Series are exposed once they are counted. The series of an alert is exposed
  // from the start.
  bool once_counted = false;
  const char* alert = "";
  const Buckets& (*buckets)() = &Buckets::Calls;
  // Null: all combinations of two labels.
  bool (*exists)(size_t, size_t) = nullptr;
};

// Calls of other methods are never looked up.
bool IsLookedUp(size_t method, size_t outcome) {
  return static_cast<Method>(method) != Method::kOther ||
         static_cast<Outcome>(outcome) == Outcome::kBypass;
}

// Its server knows what leaves the shared tier.
bool LeavesHere(size_t tier, size_t /*why*/) {
  return static_cast<cache::Tier>(tier) != cache::Tier::kShared;
}

void ReadInto(const metrics::Counter& cell, uint64_t* out) {
  *out = cell.Value();
}
void ReadInto(const metrics::Counter& cell, absl::Duration* out) {
  *out = absl::Nanoseconds(cell.Value());
}
void ReadInto(const metrics::UpDown& cell, int64_t* out) {
  *out = cell.Value();
}
void ReadInto(const metrics::Histogram& cell, metrics::Distribution* out) {
  *out = cell.Read();
}
template <typename Cell, typename T, size_t kCount>
void ReadInto(const Cell (&cells)[kCount], T (*out)[kCount]) {
  for (size_t i = 0; i < kCount; ++i) ReadInto(cells[i], &(*out)[i]);
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

// The metrics of one function, one row each, in the order of /metrics. A row
// has the metric's name (catalogue.h has type, labels and help), its cells, and
// the figure that pages and commands show. Null: only /metrics shows it.
struct FunctionInstruments::Rows {
  using F = FunctionInstruments;
  using C = FunctionCounts;
  using G = FunctionGauges;

  template <typename Visit>
  static void ForEach(const Visit& visit) {
    visit("function_run_function_response_cache_hits_total", &F::hits_,
          &C::hits);
    visit("function_run_function_response_cache_misses_total", &F::misses_,
          &C::misses);
    visit("function_run_function_response_cache_errors_total", &F::errors_,
          &C::cache_errors);
    visit("function_run_function_response_cache_writes_total", &F::writes_,
          &C::fills);
    visit("function_run_function_response_cache_deletes_total", &F::deletes_,
          nullptr);
    visit("function_run_function_response_cache_bytes_written_total",
          &F::bytes_written_, nullptr);
    visit("function_run_function_response_cache_bytes_deleted_total",
          &F::bytes_deleted_, nullptr);
    RowOptions of_tiers;
    of_tiers.buckets = &Buckets::Tiers;
    visit("function_run_function_response_cache_read_seconds",
          &F::lookup_seconds_, nullptr, of_tiers);
    visit("function_run_function_response_cache_write_seconds",
          &F::write_seconds_, nullptr, of_tiers);

    visit("fncache_requests_in_flight", &F::in_flight_, nullptr, {{kByMethod}});
    RowOptions calls = {{kByMethod, kByOutcome}};
    calls.exists = &IsLookedUp;
    visit("fncache_requests_total", &F::calls_, &C::calls, calls);
    visit("fncache_request_seconds", &F::latency_, &C::latency, {{kByOutcome}});
    visit("fncache_misses_total", &F::missed_, &C::missed,
          {{&Named<&MissReasonName>}});
    visit("fncache_examined_runs_total", &F::examined_, &C::examined);
    visit("fncache_repeats_total", &F::repeats_, &C::repeats,
          {{&Named<&insight::explain::RepeatOverName>}});
    visit("fncache_bypasses_total", &F::bypassed_, &C::bypassed,
          {{&Named<&BypassReasonName>}});
    visit("fncache_responses_total", &F::answers_, nullptr,
          {{kByCode}, 1, true});
    // An alert reads OK and the sum of failures with all other codes.
    visit("fncache_upstream_requests_total", &F::upstream_calls_, &C::upstream,
          {{kByCode}, 1, true, "OK"});
    visit("fncache_upstream_failures_total", &F::upstream_failures_, nullptr);
    visit("fncache_streams_forwarded_total", &F::streams_, nullptr);
    visit("fncache_function_seconds_saved_total", &F::saved_seconds_, &C::saved,
          {{}, 1e-9});
    visit("fncache_tune_saved_seconds_total", &F::tune_saved_seconds_,
          &C::tune_saved, {{}, 1e-9});
    visit("fncache_tune_question_seconds_total", &F::tune_question_seconds_,
          &C::tune_question_time, {{}, 1e-9});
    visit("fncache_shadow_lookups_total", &F::shadow_lookups_,
          &C::shadow_lookups);
    visit("fncache_shadow_hits_total", &F::shadow_hits_, &C::shadow_hits,
          {{kByShadow}});
    visit("fncache_shadow_differences_total", &F::shadow_differences_,
          &C::shadow_differences, {{kByShadow}});
    visit("fncache_shadow_uncompared_total", &F::shadow_uncompared_,
          &C::shadow_uncompared);
    visit("fncache_connections_ended_total", &F::connections_ended_, nullptr,
          {{&Named<&ConnectionEndName>}, 1, true, "too_much"});
    visit("fncache_connections_refused_total", &F::connections_refused_,
          nullptr);
    visit("fncache_accept_failures_total", &F::accept_failures_, nullptr);
    visit("fncache_streams_refused_total", &F::streams_refused_, nullptr);
    visit("fncache_connections_held_up_total", &F::connections_held_up_,
          nullptr);
    visit("fncache_requests_abandoned_total", &F::requests_abandoned_, nullptr);
    visit("fncache_requests_refused_total", &F::requests_refused_, &C::refused,
          {{&Named<&RefusalName>}});
    visit("fncache_upstream_request_seconds", &F::upstream_latency_,
          &C::upstream_latency);
    visit("fncache_flights", &F::flights_, &G::flights);
    visit("fncache_flights_opened_total", &F::flights_opened_, nullptr);
    visit("fncache_collapsed_callers_total", &F::joined_, nullptr);
    visit("fncache_collapsed_callers_waiting", &F::joined_waiting_,
          &G::joined_waiting);
    visit("fncache_released_callers_total", &F::released_, nullptr);
    visit("fncache_released_callers_waiting", &F::released_waiting_,
          &G::released_waiting);
    visit("fncache_released_callers_running", &F::released_running_,
          &G::released_running);
    visit("fncache_refreshes_total", &F::refreshes_, &C::refreshes);
    visit("fncache_refreshes_failed_total", &F::refreshes_failed_,
          &C::refreshes_failed);
    visit("fncache_refreshes_refused_total", &F::refreshes_refused_,
          &C::refreshes_refused);
    visit("fncache_refreshes_running", &F::refreshes_running_, &G::refreshes);
    visit("fncache_stale_if_error_total", &F::served_over_, &C::served_over,
          {{kByCode}, 1, true});
    visit("fncache_superseded_entries_total", &F::superseded_, &C::superseded);
    visit("fncache_abandoned_calls_total", &F::abandoned_, &C::abandoned);
    visit("fncache_abandoned_calls_finished_total", &F::abandoned_finished_,
          &C::abandoned_finished);
    visit("fncache_abandoned_calls_refused_total", &F::abandoned_refused_,
          &C::abandoned_refused);
    visit("fncache_abandoned_calls_running", &F::abandoned_running_,
          &G::abandoned);
    visit("fncache_tier_writes_total", &F::tier_writes_, nullptr, {{kByTier}});
    RowOptions removed = {{kByTier, &NamedEnum<cache::Removal, &RemovalName>}};
    removed.exists = &LeavesHere;
    visit("fncache_evictions_total", &F::removed_, nullptr, removed);
    visit("fncache_function_fills_dropped_total", &F::fills_dropped_,
          &C::fills_dropped);
  }

  // Registers all metrics.
  struct Add {
    template <typename Cells, typename Shown>
    void operator()(const char* metric, Cells F::*cells, Shown /*shown*/,
                    const RowOptions& options = {}) const {
      Cell(Metric(metric), {function->name_}, {}, options, &(function->*cells));
    }

    using Indices = std::vector<size_t>;
    template <typename T, size_t kCount>
    void Cell(const metrics::Family& family, const Registry::Values& values,
              const Indices& at, const RowOptions& options,
              T (*cells)[kCount]) const {
      for (size_t i = 0; i < kCount; ++i) {
        if (!at.empty() && options.exists != nullptr &&
            !options.exists(at[0], i)) {
          continue;
        }
        if (options.labels[at.size()] == kByTier && i >= tiers) continue;
        Registry::Values more = values;
        more.push_back(options.labels[at.size()](i));
        Indices here = at;
        here.push_back(i);
        Cell(family, more, here, options, &(*cells)[i]);
      }
    }
    void Cell(const metrics::Family& family, const Registry::Values& values,
              const Indices& /*at*/, const RowOptions& options,
              metrics::Counter* cell) const {
      const bool once = options.once_counted && values.back() != options.alert;
      *cell = registry->AddCounter(
          family, values, options.unit,
          once ? Exposed::kOnceCounted : Exposed::kFromTheStart);
    }
    void Cell(const metrics::Family& family, const Registry::Values& values,
              const Indices& /*at*/, const RowOptions& /*options*/,
              metrics::UpDown* cell) const {
      *cell = registry->AddUpDown(family, values);
    }
    void Cell(const metrics::Family& family, const Registry::Values& values,
              const Indices& /*at*/, const RowOptions& options,
              metrics::Histogram* cell) const {
      *cell = registry->AddHistogram(family, values, options.buckets());
    }

    FunctionInstruments* function;
    size_t tiers;
    Registry* registry;
  };

  // Reads the metrics that `Shown` (C or G) has.
  template <typename Shown>
  struct Read {
    template <typename Cells, typename T>
    void operator()(const char* /*metric*/, Cells F::*cells, T Shown::*shown,
                    const RowOptions& /*options*/ = {}) const {
      ReadInto(function->*cells, &(out->*shown));
    }
    template <typename Cells, typename Other>
    void operator()(const char* /*metric*/, Cells F::* /*cells*/,
                    Other /*shown*/, const RowOptions& /*options*/ = {}) const {
    }

    const FunctionInstruments* function;
    Shown* out;
  };

  struct Since {
    template <typename Cells, typename T>
    void operator()(const char* /*metric*/, Cells F::* /*cells*/, T C::*shown,
                    const RowOptions& /*options*/ = {}) const {
      Subtract(earlier->*shown, &(later->*shown));
    }
    template <typename Cells, typename Other>
    void operator()(const char* /*metric*/, Cells F::* /*cells*/,
                    Other /*shown*/, const RowOptions& /*options*/ = {}) const {
    }

    const FunctionCounts* earlier;
    FunctionCounts* later;
  };
};

FunctionCounts FunctionCounts::Since(const FunctionCounts& earlier) const {
  FunctionCounts since = *this;
  FunctionInstruments::Rows::ForEach(
      FunctionInstruments::Rows::Since{&earlier, &since});
  return since;
}

DaemonCounts DaemonCounts::Since(const DaemonCounts& earlier) const {
  DaemonCounts since = *this;
  for (size_t id = 0; id < functions.size(); ++id) {
    since.functions[id] = functions[id].Since(earlier.functions[id]);
  }
  Subtract(earlier.fills_dropped, &since.fills_dropped);
  Subtract(earlier.tier_errors, &since.tier_errors);
  Subtract(earlier.handshakes_failed, &since.handshakes_failed);
  since.access_log_written -= earlier.access_log_written;
  since.access_log_dropped -= earlier.access_log_dropped;
  return since;
}

FunctionInstruments::FunctionInstruments(const std::string& name, size_t tiers,
                                         Registry* registry)
    : name_(name) {
  Rows::ForEach(Rows::Add{this, tiers, registry});
  registry->AddCallback(Metric("fncache_function_reachable"), {name}, [this] {
    return reachability().reachable ? 1.0 : 0.0;
  });
}

void FunctionInstruments::End(const CallRecord& call) const {
  in_flight_[Index(call.method)].Add(-1);
  answers_[StatusCodeIndex(call.code)].Add();
  if (call.method == Method::kOther) {
    calls_[Index(call.method)][Index(Outcome::kBypass)].Add();
    bypassed_[BypassReasonIndex(cache::Reason::kMethod)].Add();
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
      // A caller that left or timed out during its wait got no answer.
      if (StatusCodeIndex(call.code) == kOk) hits_.Add();
      break;
    case Outcome::kMiss:
    case Outcome::kStale:
      missed_[MissReasonIndex(call.reason)].Add();
      // A runner that gets UNIMPLEMENTED calls again with v1beta1. Only that
      // call is counted.
      if (call.upstream && call.code != kUnimplemented) misses_.Add();
      break;
    case Outcome::kBypass:
      bypassed_[BypassReasonIndex(call.reason)].Add();
      break;
    case Outcome::kRequest:
    case Outcome::kNone:
    case Outcome::kUnknown:
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
  Rows::ForEach(Rows::Read<FunctionCounts>{this, &counts});
  // Handles that were never registered share a cell.
  for (size_t o = 0; o < kOutcomes; ++o) {
    for (size_t m = 0; m < kMethods; ++m) {
      if (!IsLookedUp(m, o)) counts.calls[m][o] = 0;
    }
  }
  return counts;
}

FunctionGauges FunctionInstruments::ReadGauges() const {
  FunctionGauges gauges;
  Rows::ForEach(Rows::Read<FunctionGauges>{this, &gauges});
  for (const metrics::UpDown& of_method : in_flight_) {
    gauges.in_flight += of_method.Value();
  }
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
  Impl(const std::vector<std::string>& functions, bool shared)
      : tiers_(shared ? kTiers : kTiers - 1) {
    functions_.reserve(functions.size());
    for (const std::string& name : functions) {
      functions_.push_back(
          absl::WrapUnique(new FunctionInstruments(name, tiers_, &registry)));
    }
    for (size_t why = 0; why < kDroppedReasons; ++why) {
      dropped_[why] =
          registry.AddCounter(Metric("fncache_fills_dropped_total"),
                              {DroppedName(static_cast<cache::Dropped>(why))});
    }
    for (size_t tier = 0; tier < tiers_; ++tier) {
      for (size_t what = 0; what < kTierErrors; ++what) {
        tier_errors_[tier][what] = registry.AddCounter(
            Metric("fncache_tier_errors_total"),
            {TierName(static_cast<cache::Tier>(tier)),
             TierErrorName(static_cast<cache::TierError>(what))});
      }
    }
    if (shared) {
      shared_lookup_seconds_ = registry.AddHistogram(
          Metric("fncache_shared_lookup_seconds"), {}, Buckets::Tiers());
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
  void OnSharedLookup(absl::Duration took) override {
    shared_lookup_seconds_.Observe(took);
  }

  // The registry is the first member, because handles must not outlive it.
  Registry registry;
  std::vector<std::unique_ptr<const FunctionInstruments>> functions_;
  // Those with series: all, or all but the shared one, which is the last.
  const size_t tiers_;
  metrics::Histogram shared_lookup_seconds_;
  metrics::Counter dropped_[kDroppedReasons];
  metrics::Counter tier_errors_[kTiers][kTierErrors];
  metrics::Counter reloads_[kTlsSides];
  metrics::Counter reload_failures_[kTlsSides];
  metrics::Counter handshakes_failed_[kTlsSides][kHandshakeFaults];
  metrics::Counter admin_connections_refused_;
  AccessLogCounters access_log_;
  // Empty for tiers that do not exist, or not yet: pages are served while the
  // store opens.
  Mutex mutex_;
  std::function<cache::store::StoreStats()> tier_stats_[kTiers] ABSL_GUARDED_BY(
      mutex_);
  std::function<cache::store::SharedFigures()> shared_ ABSL_GUARDED_BY(mutex_);
  // Empty for sides that use no certificates.
  std::function<absl::Time()> expiry_[kTlsSides] ABSL_GUARDED_BY(mutex_);
  bool last_reload_failed_[kTlsSides] ABSL_GUARDED_BY(mutex_) = {};

 private:
  const FunctionInstruments* Find(cache::FunctionId id) const {
    return id < functions_.size() ? functions_[id].get() : nullptr;
  }
};

Instruments::Instruments(const std::vector<std::string>& functions, bool shared)
    : impl_(std::make_unique<Impl>(functions, shared)) {}
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

void Instruments::WatchShared(
    std::function<cache::store::SharedFigures()> figures) {
  using Now = const cache::store::SharedFigures&;
  const auto watch = [&](absl::string_view metric,
                         const Registry::Values& labels,
                         std::function<double(Now)> read) {
    impl_->registry.AddCallback(
        Metric(metric), labels,
        [figures, read = std::move(read)] { return read(figures()); });
  };
  watch("fncache_tier_up", {TierName(cache::Tier::kShared)},
        [](Now now) { return now.up ? 1.0 : 0.0; });
  using State = resp::Node::State;
  for (const State state : {State::kUp, State::kConnecting, State::kDown}) {
    watch("fncache_shared_nodes", {NodeStateName(state)}, [state](Now now) {
      return static_cast<double>(std::count_if(
          now.server.nodes.begin(), now.server.nodes.end(),
          [state](const resp::Node& node) { return node.state == state; }));
    });
  }
  watch("fncache_shared_redirections_total", {},
        [](Now now) { return static_cast<double>(now.server.redirections); });
  watch("fncache_shared_clock_difference_seconds", {},
        [](Now now) { return absl::ToDoubleSeconds(now.clock_difference); });
  watch("fncache_shared_bans_age_seconds", {},
        [](Now now) { return absl::ToDoubleSeconds(now.bans_age); });
  for (size_t i = 0; i < kSharedLookups; ++i) {
    watch("fncache_shared_lookups_total", {SharedLookupName(i)},
          [i](Now now) { return static_cast<double>(now.lookups[i]); });
  }
  for (size_t i = 0; i < kSharedWrites; ++i) {
    watch("fncache_shared_writes_total", {SharedWriteName(i)},
          [i](Now now) { return static_cast<double>(now.writes[i]); });
  }
  MutexLock lock(&impl_->mutex_);
  impl_->shared_ = std::move(figures);
}

absl::optional<cache::store::SharedFigures> Instruments::ReadShared() const {
  MutexLock lock(&impl_->mutex_);
  if (!impl_->shared_) return absl::nullopt;
  return impl_->shared_();
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

void Instruments::WatchTune(cache::FunctionId id,
                            std::function<TuneFigures()> figures) {
  const std::string& name = function(id).name();
  const auto watch = [&](absl::string_view metric, Registry::Values labels,
                         std::function<uint64_t(const TuneFigures&)> read) {
    labels.insert(labels.begin(), name);
    impl_->registry.AddCallback(Metric(metric), labels,
                                [figures, read = std::move(read)] {
                                  return static_cast<double>(read(figures()));
                                });
  };
  using Now = const TuneFigures&;
  watch("fncache_tune_hits_total", {}, [](Now now) { return now.hits; });
  watch("fncache_tune_revoked_hits_total", {},
        [](Now now) { return now.revoked_hits; });
  for (size_t i = 0; i < kTuneAnswers; ++i) {
    watch("fncache_tune_questions_total", {TuneAnswerName(i)},
          [i](Now now) { return now.questions[i]; });
  }
  for (size_t i = 0; i < kTuneResults; ++i) {
    watch("fncache_tune_proofs_total", {TuneResultName(i)},
          [i](Now now) { return now.proofs[i]; });
  }
  watch("fncache_tune_keys", {"repeating"},
        [](Now now) { return now.keys_repeating; });
  watch("fncache_tune_keys", {"proven"},
        [](Now now) { return now.keys_proven; });
  watch("fncache_tune_steps", {"reads"},
        [](Now now) { return now.steps_read; });
  watch("fncache_tune_steps", {"varies"},
        [](Now now) { return now.steps_vary; });
}

void Instruments::WatchVary(cache::FunctionId id,
                            std::function<VaryFigures()> figures) {
  const std::string& name = function(id).name();
  const auto watch = [&](absl::string_view metric, auto VaryFigures::*field) {
    impl_->registry.AddCallback(Metric(metric), {name}, [figures, field] {
      return static_cast<double>(figures().*field);
    });
  };
  watch("fncache_vary_hits_total", &VaryFigures::hits);
  watch("fncache_vary_hints_refused_total", &VaryFigures::refused);
  watch("fncache_vary_hints", &VaryFigures::hints);
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
  for (size_t tier = 0; tier < impl_->tiers_; ++tier) {
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
