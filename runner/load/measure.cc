// SPDX-License-Identifier: Apache-2.0
#include "runner/load/measure.h"

#include <unistd.h>

#include <algorithm>
#include <deque>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/clock.h"
#include "common/utf8.h"
#include "insight/trace/traced_call.h"

namespace fncache::runner::load {
namespace {

constexpr size_t kMostErrors = 100;
constexpr int64_t kInterval = 1'000'000'000;
// A start that is later than this counts as late.
constexpr int64_t kLate = 10'000'000;

// In the order of the results.
constexpr Outcome kReported[] = {Outcome::kHit,      Outcome::kMiss,
                                 Outcome::kStaleHit, Outcome::kCollapsed,
                                 Outcome::kBypass,   Outcome::kNone};

double Seconds(int64_t nanoseconds) {
  return static_cast<double>(nanoseconds) / 1e9;
}

}  // namespace

int64_t MonotonicNanos() { return ReadClock(CLOCK_MONOTONIC); }
int64_t ProcessCpuNanos() { return ReadClock(CLOCK_PROCESS_CPUTIME_ID); }

Outcome OutcomeOf(absl::string_view cache_status) {
  if (cache_status.empty()) return Outcome::kNone;
  // The cache that is nearest to the caller stands last. A comma within the
  // quoted detail is no separator; parameters before it are what counts, so
  // it is cut off first.
  const size_t detail = cache_status.find("; detail=");
  cache_status = cache_status.substr(0, detail);
  const size_t comma = cache_status.rfind(',');
  if (comma != absl::string_view::npos) {
    cache_status = cache_status.substr(comma + 1);
  }
  bool hit = false, stale = false, collapsed = false, miss = false,
       forwarded = false;
  for (const absl::string_view part : absl::StrSplit(cache_status, ';')) {
    const absl::string_view word = absl::StripAsciiWhitespace(part);
    if (word == "hit") hit = true;
    if (absl::StartsWith(word, "ttl=-")) stale = true;
    if (word == "collapsed") collapsed = true;
    if (absl::StartsWith(word, "fwd=")) forwarded = true;
    if (word == "fwd=miss" || word == "fwd=stale" || word == "fwd=uri-miss" ||
        word == "fwd=vary-miss" || word == "fwd=partial") {
      miss = true;
    }
  }
  if (hit) return stale ? Outcome::kStaleHit : Outcome::kHit;
  if (collapsed) return Outcome::kCollapsed;
  if (miss) return Outcome::kMiss;
  return forwarded ? Outcome::kBypass : Outcome::kNone;
}

LatencySummary Summarize(const LatencyHistogram& histogram) {
  LatencySummary summary;
  summary.mean = histogram.mean() / 1e9;
  summary.min = Seconds(histogram.min());
  summary.max = Seconds(histogram.max());
  summary.p50 = Seconds(histogram.Quantile(0.5));
  summary.p90 = Seconds(histogram.Quantile(0.9));
  summary.p95 = Seconds(histogram.Quantile(0.95));
  summary.p99 = Seconds(histogram.Quantile(0.99));
  summary.p999 = Seconds(histogram.Quantile(0.999));
  for (const auto& [end, count] : histogram.Buckets()) {
    summary.buckets.emplace_back(Seconds(end), count);
  }
  return summary;
}

class Measure::Series {
 public:
  std::string step;
  std::string function;
  // Made when the first call of an outcome counts.
  std::array<std::unique_ptr<LatencyHistogram>, cache::kAllOutcomes> latency;
  std::array<uint64_t, cache::kAllOutcomes> errors = {};
  std::array<uint64_t, cache::kAllOutcomes> unreached = {};
  // Time of calls that reached a function or a cache.
  std::array<double, cache::kAllOutcomes> seconds = {};
};

struct Measure::Impl {
  mutable Mutex mutex;
  std::deque<Series> series ABSL_GUARDED_BY(mutex);
  std::map<std::pair<std::string, std::string>, Series*> by_name
      ABSL_GUARDED_BY(mutex);
  bool measuring ABSL_GUARDED_BY(mutex) = false;
  int64_t started ABSL_GUARDED_BY(mutex) = 0;
  int64_t stopped ABSL_GUARDED_BY(mutex) = 0;
  int64_t cpu_started ABSL_GUARDED_BY(mutex) = 0;
  int64_t cpu_used ABSL_GUARDED_BY(mutex) = 0;
  LatencyHistogram latency ABSL_GUARDED_BY(mutex){
      LatencyHistogram::kThreeDigits};
  LatencyHistogram service ABSL_GUARDED_BY(mutex){
      LatencyHistogram::kThreeDigits};
  LatencyHistogram lag ABSL_GUARDED_BY(mutex);
  LatencyHistogram wait ABSL_GUARDED_BY(mutex);
  uint64_t errors ABSL_GUARDED_BY(mutex) = 0;
  uint64_t late ABSL_GUARDED_BY(mutex) = 0;
  uint64_t dropped ABSL_GUARDED_BY(mutex) = 0;
  std::vector<ErrorResults> messages ABSL_GUARDED_BY(mutex);
  std::map<std::string, size_t, std::less<>> message_index
      ABSL_GUARDED_BY(mutex);

  // The interval that is not over.
  TimelinePoint now ABSL_GUARDED_BY(mutex);
  int64_t interval_started ABSL_GUARDED_BY(mutex) = 0;
  LatencyHistogram now_latency ABSL_GUARDED_BY(mutex);
  LatencyHistogram now_hits ABSL_GUARDED_BY(mutex);
  LatencyHistogram now_misses ABSL_GUARDED_BY(mutex);
  std::vector<TimelinePoint> timeline ABSL_GUARDED_BY(mutex);

  TimelinePoint Interval(int64_t at) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    TimelinePoint point = now;
    point.at = Seconds(at - started);
    point.seconds = Seconds(at - interval_started);
    point.p50 = Seconds(now_latency.Quantile(0.5));
    point.p90 = Seconds(now_latency.Quantile(0.9));
    point.p99 = Seconds(now_latency.Quantile(0.99));
    point.max = Seconds(now_latency.max());
    point.hit_p99 = Seconds(now_hits.Quantile(0.99));
    point.miss_p99 = Seconds(now_misses.Quantile(0.99));
    return point;
  }

  void EndInterval(int64_t at) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    timeline.push_back(Interval(at));
    const TimelinePoint last = now;
    now = TimelinePoint();
    now.ready = last.ready;
    now.in_flight = last.in_flight;
    now_latency.Clear();
    now_hits.Clear();
    now_misses.Clear();
    interval_started = at;
  }
};

Measure::Measure() : impl_(std::make_unique<Impl>()) {}
Measure::~Measure() = default;

Measure::Series* Measure::SeriesOf(absl::string_view step,
                                   absl::string_view function) {
  MutexLock lock(&impl_->mutex);
  Series*& series = impl_->by_name[{std::string(step), std::string(function)}];
  if (series == nullptr) {
    impl_->series.emplace_back();
    series = &impl_->series.back();
    series->step = std::string(step);
    series->function = std::string(function);
  }
  return series;
}

void Measure::Start(int64_t now) {
  MutexLock lock(&impl_->mutex);
  impl_->measuring = true;
  impl_->started = impl_->interval_started = now;
  impl_->cpu_started = ProcessCpuNanos();
}

void Measure::EndDuration(int64_t now) {
  MutexLock lock(&impl_->mutex);
  if (!impl_->measuring || impl_->stopped > 0) return;
  impl_->stopped = now;
  impl_->cpu_used = ProcessCpuNanos() - impl_->cpu_started;
}

void Measure::Stop(int64_t now) {
  EndDuration(now);
  MutexLock lock(&impl_->mutex);
  if (!impl_->measuring) return;
  impl_->measuring = false;
  if (now - impl_->interval_started > kInterval / 20 ||
      impl_->timeline.empty()) {
    impl_->EndInterval(now);
  }
}

bool Measure::measuring() const {
  MutexLock lock(&impl_->mutex);
  return impl_->measuring;
}

void Measure::AddCall(Series* series, Outcome outcome, int64_t nanoseconds,
                      CallEnd end) {
  MutexLock lock(&impl_->mutex);
  if (!impl_->measuring) return;
  const auto o = static_cast<size_t>(outcome);
  if (series->latency[o] == nullptr) {
    series->latency[o] =
        std::make_unique<LatencyHistogram>(LatencyHistogram::kThreeDigits);
  }
  series->latency[o]->Add(nanoseconds);
  if (end != CallEnd::kOk) ++series->errors[o];
  if (end == CallEnd::kNotReached) {
    ++series->unreached[o];
  } else {
    series->seconds[o] += Seconds(nanoseconds);
  }
  ++impl_->now.calls;
  switch (outcome) {
    case Outcome::kHit:
      ++impl_->now.hits;
      impl_->now_hits.Add(nanoseconds);
      break;
    case Outcome::kMiss:
      ++impl_->now.misses;
      impl_->now_misses.Add(nanoseconds);
      break;
    case Outcome::kStaleHit:
      ++impl_->now.stale;
      break;
    case Outcome::kCollapsed:
      ++impl_->now.collapsed;
      break;
    default:
      break;
  }
}

void Measure::AddPipeline(int64_t latency, int64_t service, bool ok) {
  MutexLock lock(&impl_->mutex);
  if (!impl_->measuring) return;
  impl_->latency.Add(latency);
  impl_->service.Add(service);
  impl_->now_latency.Add(latency);
  ++impl_->now.pipelines;
  if (!ok) {
    ++impl_->errors;
    ++impl_->now.errors;
  }
}

void Measure::AddError(absl::string_view message,
                       const std::function<std::string()>& example) {
  MutexLock lock(&impl_->mutex);
  if (!impl_->measuring) return;
  auto found = impl_->message_index.find(message);
  if (found == impl_->message_index.end()) {
    const bool full = impl_->messages.size() >= kMostErrors;
    const std::string text = full ? "(other errors)" : std::string(message);
    found = impl_->message_index.find(text);
    if (found == impl_->message_index.end()) {
      found = impl_->message_index.emplace(text, impl_->messages.size()).first;
      ErrorResults error;
      error.message = text;
      error.example = example();
      impl_->messages.push_back(std::move(error));
    }
  }
  ++impl_->messages[found->second].count;
}

void Measure::AddLag(int64_t nanoseconds) {
  MutexLock lock(&impl_->mutex);
  if (!impl_->measuring) return;
  impl_->lag.Add(nanoseconds);
  if (nanoseconds > kLate) {
    ++impl_->late;
    ++impl_->now.late;
  }
}

void Measure::AddWait(int64_t nanoseconds) {
  MutexLock lock(&impl_->mutex);
  if (impl_->measuring) impl_->wait.Add(nanoseconds);
}

void Measure::AddDropped() {
  MutexLock lock(&impl_->mutex);
  if (!impl_->measuring) return;
  ++impl_->dropped;
  ++impl_->now.dropped;
}

void Measure::SetState(uint64_t ready, double in_flight) {
  MutexLock lock(&impl_->mutex);
  impl_->now.ready = ready;
  impl_->now.in_flight = in_flight;
}

void Measure::Tick(int64_t now) {
  MutexLock lock(&impl_->mutex);
  if (impl_->measuring && now - impl_->interval_started >= kInterval) {
    impl_->EndInterval(now);
  }
}

Measure::Glimpse Measure::Look() const {
  MutexLock lock(&impl_->mutex);
  Glimpse glimpse;
  if (!impl_->timeline.empty()) glimpse.last = impl_->timeline.back();
  glimpse.errors = impl_->errors;
  return glimpse;
}

void Measure::Fill(LoadResults* results) const {
  MutexLock lock(&impl_->mutex);
  const Impl& impl = *impl_;
  if (impl.started == 0) return;
  const int64_t end = impl.stopped > 0 ? impl.stopped : MonotonicNanos();
  results->duration = Seconds(end - impl.started);
  const double duration = std::max(results->duration, 1e-9);
  auto& pipelines = results->pipelines;
  pipelines.count = impl.latency.count();
  pipelines.errors = impl.errors;
  pipelines.late = impl.late;
  pipelines.dropped = impl.dropped;
  pipelines.rate = static_cast<double>(pipelines.count) / duration;
  pipelines.latency = Summarize(impl.latency);
  pipelines.service_time = Summarize(impl.service);
  results->calls.clear();
  double hits = 0, misses = 0;
  bool cache = false;
  results->function_runs = 0;
  results->function_seconds = 0;
  for (const Series& series : impl.series) {
    for (const Outcome outcome : kReported) {
      const auto o = static_cast<size_t>(outcome);
      if (series.latency[o] == nullptr) continue;
      CallResults calls;
      calls.step = series.step;
      calls.function = series.function;
      calls.outcome = insight::trace::OutcomeName(outcome);
      calls.count = series.latency[o]->count();
      calls.errors = series.errors[o];
      calls.unreached = series.unreached[o];
      calls.rate = static_cast<double>(calls.count) / duration;
      calls.latency = Summarize(*series.latency[o]);
      const auto count = static_cast<double>(calls.count);
      if (outcome == Outcome::kHit || outcome == Outcome::kStaleHit ||
          outcome == Outcome::kCollapsed) {
        hits += count;
        cache = true;
      } else {
        if (outcome == Outcome::kMiss) {
          misses += count;
          cache = true;
        }
        results->function_runs += calls.count - calls.unreached;
        results->function_seconds += series.seconds[o];
      }
      results->calls.push_back(std::move(calls));
    }
  }
  results->hit_rate = absl::nullopt;
  if (cache) results->hit_rate = hits / (hits + misses);
  results->errors = impl.messages;
  std::stable_sort(results->errors.begin(), results->errors.end(),
                   [](const ErrorResults& a, const ErrorResults& b) {
                     return a.count > b.count;
                   });
  auto& generator = results->generator;
  generator.lag_p99 = Seconds(impl.lag.Quantile(0.99));
  generator.wait_p99 = Seconds(impl.wait.Quantile(0.99));
  const double served =
      impl.service.mean() * static_cast<double>(impl.service.count());
  if (served > 0) {
    generator.wait_fraction =
        impl.wait.mean() * static_cast<double>(impl.wait.count()) / served;
  }
  generator.cpu =
      Seconds(impl.stopped > 0 ? impl.cpu_used
                               : ProcessCpuNanos() - impl.cpu_started) /
      duration;
  results->timeline = impl.timeline;
}

}  // namespace fncache::runner::load
