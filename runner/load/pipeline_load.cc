// SPDX-License-Identifier: Apache-2.0
#include "runner/load/pipeline_load.h"

#include <time.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/types/optional.h"
#include "cache/key/digest.h"
#include "common/clock.h"
#include "common/latency_histogram.h"
#include "common/method.h"
#include "common/mutex.h"
#include "google/protobuf/io/coded_stream.h"
#include "insight/trace/writer.h"
#include "runner/client/function_client.h"
#include "runner/client/rpc_error.h"
#include "runner/load/answer_workers.h"
#include "runner/load/callers.h"
#include "runner/load/model/simulation.h"
#include "runner/load/real_scheduler.h"
#include "runner/load/verdict.h"
#include "runner/render/context_steps.h"
#include "runner/text/json.h"

namespace fncache::runner::load {
namespace {

namespace trace = insight::trace;

constexpr int64_t kWake = 100'000'000;

enum class Phase { kSettle, kWarmup, kMeasure };

const char* PhaseName(Phase phase) {
  switch (phase) {
    case Phase::kSettle:
      return "settle";
    case Phase::kWarmup:
      return "warmup";
    case Phase::kMeasure:
      break;
  }
  return "measure";
}

trace::Outcome TraceOutcome(CacheOutcome outcome) {
  switch (outcome) {
    case CacheOutcome::kHit:
      return trace::Outcome::kHit;
    case CacheOutcome::kMiss:
      return trace::Outcome::kMiss;
    case CacheOutcome::kStale:
      return trace::Outcome::kStale;
    case CacheOutcome::kCollapsed:
      return trace::Outcome::kCollapsed;
    case CacheOutcome::kBypass:
      return trace::Outcome::kBypass;
    case CacheOutcome::kNone:
      break;
  }
  return trace::Outcome::kNone;
}

// What a cache keeps of it.
uint64_t BytesWithoutMeta(
    const apiextensions::fn::proto::v1::RunFunctionResponse& response) {
  if (!response.has_meta()) return response.ByteSizeLong();
  const size_t meta = response.meta().ByteSizeLong();
  return response.ByteSizeLong() - 1 - meta -
         google::protobuf::io::CodedOutputStream::VarintSize64(meta);
}

// Measures what the simulation does, and writes the trace.
class Watcher : public model::SimulationObserver {
 public:
  Watcher(Measure* measure, const model::Simulation* const* simulation,
          trace::TraceWriter* writer, absl::Duration patience)
      : measure_(measure),
        simulation_(simulation),
        writer_(writer),
        patience_(patience) {}

  void SetPhase(Phase phase) { phase_ = phase; }
  Phase phase() const { return phase_; }
  // What started, or in an open loop was due, in this time counts.
  void SetWindow(absl::Time from, absl::Time until) {
    from_ = absl::ToUnixNanos(from);
    until_ =
        until == absl::InfiniteFuture() ? INT64_MAX : absl::ToUnixNanos(until);
  }
  // The open and the closed loop count by when a pipeline was due; the
  // reconciler's queue may be older than the measured phase.
  void CountByDue() { by_due_ = true; }

  // From now on nothing that ends counts, nor is it traced.
  void Discard() { discarding_ = true; }
  // Whether any call was answered.
  bool answered() const { return answered_; }
  // What is cancelled from now on had no answer `patience` after the duration.
  void Cancelled() { cancelled_ = true; }

  // The last failure of settling, and the function it was of, which may be
  // empty. Without a failure, a function whose call was cancelled.
  struct Failure {
    std::string function;
    std::string why;
  };
  Failure failure() const {
    MutexLock lock(&failure_mutex_);
    return failure_;
  }

  void OnPipelineStart(const model::PipelineStart& /*start*/) override {}

  void OnCall(const model::PipelineStart& start,
              const engine::CallReport& report) override {
    if (start.settling && !report.result.status.ok()) {
      NoteFailure(std::string(report.function), report.result.status);
    }
    if (report.result.status.ok()) answered_ = true;
    if (discarding_) return;
    const CacheOutcome outcome = CacheOutcomeOf(report.result.cache_status);
    const absl::Status& status = report.result.status;
    if (!start.settling && Counts(start)) {
      measure_->AddCall(measure_->SeriesOf(report.step, report.function),
                        outcome, absl::ToInt64Nanoseconds(LatencyOf(report)),
                        status.ok() ? CallEnd::kOk
                        : client::NeverReachedAFunction(status)
                            ? CallEnd::kNotReached
                            : CallEnd::kFailed);
      if (!report.result.status.ok()) {
        measure_->AddError(PlainError(report.result.status), [&] {
          return absl::StrCat("step ", report.step, " of ",
                              (*simulation_)->NameOf(start.composite), " at ",
                              absl::FormatTime("%H:%M:%S", report.started,
                                               absl::UTCTimeZone()));
        });
      }
    }
    if (writer_ != nullptr) Trace(start, report, outcome);
  }

  void OnReady(int /*composite*/, absl::Duration since) override {
    MutexLock lock(&ready_mutex_);
    ready_.Add(absl::ToInt64Nanoseconds(since));
  }

  // Times from creation to ready, of composites that were created in the run.
  LatencyHistogram ready() const {
    MutexLock lock(&ready_mutex_);
    return ready_;
  }

  void OnPipelineEnd(const model::PipelineEnd& end) override {
    if (end.start.settling && (end.fatal || end.write_failed)) {
      NoteFailure("", end.status);
    }
    if (discarding_ || end.start.settling || !Counts(end.start)) return;
    measure_->AddPipeline(
        absl::ToInt64Nanoseconds(end.ended - end.start.due),
        absl::ToInt64Nanoseconds(end.ended - end.start.started),
        end.status.ok());
    // Why a call failed has been counted already, under the call.
    if (!end.status.ok() && (end.fatal || end.write_failed)) {
      measure_->AddError(end.status.message(), [&] {
        return absl::StrCat((*simulation_)->NameOf(end.start.composite), " at ",
                            absl::FormatTime("%H:%M:%S", end.start.started,
                                             absl::UTCTimeZone()));
      });
    }
  }

 private:
  void NoteFailure(std::string function, const absl::Status& status) {
    const bool cancelled = discarding_;
    MutexLock lock(&failure_mutex_);
    if (cancelled && !failure_.why.empty()) return;
    failure_ = {std::move(function),
                cancelled ? "" : client::PlainRpcError(status)};
  }
  std::string PlainError(const absl::Status& status) const {
    if (!cancelled_ || !absl::IsCancelled(status)) {
      return client::PlainRpcError(status);
    }
    return absl::StrCat("no answer ", absl::FormatDuration(patience_),
                        " after the run's duration");
  }

  // Until the answer arrived, not until a thread went on with it.
  static absl::Duration LatencyOf(const engine::CallReport& report) {
    return report.result.round_trip > absl::ZeroDuration()
               ? report.result.round_trip
               : report.took;
  }

  bool Counts(const model::PipelineStart& start) const {
    const int64_t at = absl::ToUnixNanos(by_due_ ? start.due : start.started);
    return at >= from_ && at < until_;
  }

  void Trace(const model::PipelineStart& start,
             const engine::CallReport& report, CacheOutcome outcome) {
    trace::TracedCall call;
    const std::string name = (*simulation_)->NameOf(start.composite);
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(name, absl::MaxSplits('/', 1));
    const auto& composite = report.request.observed().composite().resource();
    const auto text = [](const google::protobuf::Struct& object,
                         const char* field) {
      const auto found = object.fields().find(field);
      return found == object.fields().end() ? std::string()
                                            : found->second.string_value();
    };
    call.composite.api_version = text(composite, "apiVersion");
    call.composite.kind = text(composite, "kind");
    const auto metadata = composite.fields().find("metadata");
    if (metadata != composite.fields().end()) {
      const auto& fields = metadata->second.struct_value();
      call.composite.object_namespace = text(fields, "namespace");
      call.composite.name = text(fields, "name");
      call.composite.uid = text(fields, "uid");
    }
    if (!writer_->Samples(call.composite)) return;
    call.arrived = report.started;
    call.function = std::string(report.function);
    call.outcome = TraceOutcome(outcome);
    call.stored = outcome == CacheOutcome::kMiss &&
                  absl::StrContains(report.result.cache_status, "; stored");
    std::string bytes;
    report.request.SerializeToString(&bytes);
    call.request_bytes = bytes.size();
    call.response_bytes = BytesWithoutMeta(report.result.response);
    const auto digest = DigesterOf(call.function)->Compute({bytes}, &Scratch());
    if (digest.keyed) call.key = digest.key;
    if (report.result.status.ok() && report.result.response.meta().has_ttl()) {
      const auto& ttl = report.result.response.meta().ttl();
      const absl::Duration told =
          absl::Seconds(ttl.seconds()) + absl::Nanoseconds(ttl.nanos());
      call.told_ttl = told;
      if (outcome != CacheOutcome::kHit && outcome != CacheOutcome::kStale) {
        call.function_ttl = told;
      }
    }
    for (const auto& result : report.result.response.results()) {
      if (result.severity() == apiextensions::fn::proto::v1::SEVERITY_FATAL) {
        call.fatal = true;
      }
    }
    call.latency = LatencyOf(report);
    if (outcome != CacheOutcome::kHit) call.cost = call.latency;
    call.status = static_cast<int>(report.result.status.code());
    call.phase = PhaseName(start.settling ? Phase::kSettle : phase_.load());
    call.step = std::string(report.step);
    call.call_of_step = report.call;
    call.trigger = start.trigger == model::Trigger::kDriver ? "schedule"
                   : start.trigger == model::Trigger::kBackoff
                       ? "retry"
                       : model::TriggerName(start.trigger);
    call.pipeline =
        static_cast<uint64_t>(absl::ToUnixNanos(start.started)) * 1000003u ^
        static_cast<uint64_t>(start.composite);
    trace::TraceWriter::Messages messages;
    if (writer_->level() != trace::Level::kKeys) {
      messages.held = bytes.size();
      messages.request = [bytes = std::move(bytes)] { return bytes; };
    }
    if (writer_->level() == trace::Level::kFull) {
      std::string response;
      report.result.response.SerializeToString(&response);
      messages.held += response.size();
      messages.response = [response = std::move(response)] { return response; };
    }
    writer_->Write(std::move(call), std::move(messages));
  }

  // A function's, made with its first call.
  const cache::key::Digester* DigesterOf(const std::string& function) {
    MutexLock lock(&digesters_mutex_);
    auto& digester = digesters_[function];
    if (digester == nullptr) {
      digester = std::make_unique<const cache::key::Digester>(
          cache::key::Seed{},
          cache::key::KeyScope{function, kRunFunctionV1, ""},
          cache::key::MaskSet{});
    }
    return digester.get();
  }

  static cache::key::DigestScratch& Scratch() {
    thread_local cache::key::DigestScratch scratch;
    return scratch;
  }

  Measure* const measure_;
  const model::Simulation* const* const simulation_;
  trace::TraceWriter* const writer_;  // may be null
  const absl::Duration patience_;     // LoadOptions::patience
  Mutex digesters_mutex_;
  std::map<std::string, std::unique_ptr<const cache::key::Digester>> digesters_
      ABSL_GUARDED_BY(digesters_mutex_);
  std::atomic<Phase> phase_{Phase::kSettle};
  std::atomic<int64_t> from_{INT64_MAX};
  std::atomic<int64_t> until_{INT64_MAX};
  std::atomic<bool> discarding_{false};
  std::atomic<bool> cancelled_{false};
  std::atomic<bool> answered_{false};
  mutable Mutex failure_mutex_;
  Failure failure_ ABSL_GUARDED_BY(failure_mutex_);
  bool by_due_ = false;
  mutable Mutex ready_mutex_;
  LatencyHistogram ready_ ABSL_GUARDED_BY(ready_mutex_);
};

std::vector<engine::EngineInput> Templates(const render::RenderInputs& inputs) {
  std::vector<engine::EngineInput> all;
  for (const render::CompositeToRender& composite : inputs.composites) {
    engine::EngineInput input;
    input.composite = text::ToStruct(*composite.object);
    input.composition = inputs.composition;
    input.observed = composite.observed;
    input.required = inputs.required;
    input.credentials = inputs.credentials;
    input.schemas = inputs.schemas;
    input.definition = inputs.definition;
    all.push_back(std::move(input));
  }
  return all;
}

void SleepUntil(int64_t nanoseconds) {
  timespec time;
  time.tv_sec = nanoseconds / 1'000'000'000;
  time.tv_nsec = nanoseconds % 1'000'000'000;
  // A signal may wake it early; the loops look at the time anyway.
  (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr);
}

class Run {
 public:
  Run(const LoadOptions& options, const PipelineLoadHooks& hooks,
      model::Simulation* simulation, Watcher* watcher, Clock* clock,
      Measure* measure, Reach* reach, std::function<void()> abandon,
      std::function<void()> cancel)
      : options_(options),
        hooks_(hooks),
        abandon_(std::move(abandon)),
        cancel_(std::move(cancel)),
        reach_(reach),
        simulation_(simulation),
        watcher_(watcher),
        clock_(clock),
        measure_(measure) {}

  // Functions that were not reached when the run was over. Pipelines that
  // waited for them were cancelled.
  const std::vector<UnreachedResults>& unreached() const { return unreached_; }

  void ByModel() {
    watcher_->SetPhase(Phase::kWarmup);
    const int64_t began = MonotonicNanos();
    const bool warm = options_.warmup > absl::ZeroDuration();
    if (!warm) Measured();
    simulation_->Start();
    int64_t until = began;
    if (warm) {
      until += absl::ToInt64Nanoseconds(options_.warmup);
      if (WaitUntil(until)) {
        simulation_->Stop();
        return Drain();
      }
      Measured();
    }
    const int64_t end =
        options_.duration == absl::InfiniteDuration()
            ? INT64_MAX
            : until + absl::ToInt64Nanoseconds(options_.duration);
    WaitUntil(end);
    measure_->EndDuration(MonotonicNanos());
    simulation_->Stop();
    Drain();
  }

  void ByConcurrency() {
    watcher_->CountByDue();
    watcher_->SetPhase(Phase::kWarmup);
    {
      MutexLock lock(&mutex_);
      running_ = options_.concurrency;
    }
    const bool warm = options_.warmup > absl::ZeroDuration();
    if (!warm) Measured();
    for (int i = 0; i < options_.concurrency; ++i) Next();
    int64_t until = MonotonicNanos();
    bool stopped = false;
    if (warm) {
      until += absl::ToInt64Nanoseconds(options_.warmup);
      stopped = WaitUntil(until);
      if (!stopped) Measured();
    }
    if (!stopped) {
      WaitUntil(options_.duration == absl::InfiniteDuration()
                    ? INT64_MAX
                    : until + absl::ToInt64Nanoseconds(options_.duration));
    }
    measure_->EndDuration(MonotonicNanos());
    over_ = true;
    Drain();
  }

  void BySchedule() {
    watcher_->CountByDue();
    watcher_->SetPhase(Phase::kWarmup);
    Schedule schedule = options_.stages.empty() ? Schedule(options_.rate)
                                                : Schedule(options_.stages);
    const bool warm = options_.warmup > absl::ZeroDuration();
    if (!warm && hooks_.on_start != nullptr) hooks_.on_start();
    Starts starts(std::move(schedule), MonotonicNanos(), options_);
    const absl::Time began = clock_->Now();
    starts.time = began - absl::Nanoseconds(starts.began);
    // What is due from then on counts, which need not be waited for.
    measure_->Start(starts.from);
    watcher_->SetWindow(began + options_.warmup, absl::InfiniteFuture());
    if (!warm) watcher_->SetPhase(Phase::kMeasure);
    std::vector<std::thread> threads;
    for (int i = 0; i < StartThreads(); ++i) {
      threads.emplace_back([this, &starts] { StartAsDue(&starts); });
    }
    if (warm && !WaitUntil(starts.from)) {
      watcher_->SetPhase(Phase::kMeasure);
      if (hooks_.on_start != nullptr) hooks_.on_start();
    }
    int64_t now = MonotonicNanos();
    while (now < std::min<int64_t>(starts.until, starts.all_started)) {
      if (LookUp(now)) break;
      SleepUntil(std::min(now + kWake / 10, starts.until));
      now = MonotonicNanos();
    }
    measure_->EndDuration(
        std::min<int64_t>({now, starts.until, starts.all_started}));
    // What was due in the time is started, however late.
    for (std::thread& thread : threads) thread.join();
    Drain();
  }

 private:
  // The open loop's starts, which several threads make in turn.
  struct Starts {
    Starts(Schedule when, int64_t now, const LoadOptions& options)
        : began(now),
          from(now + absl::ToInt64Nanoseconds(options.warmup)),
          until(options.duration == absl::InfiniteDuration()
                    ? INT64_MAX
                    : from + absl::ToInt64Nanoseconds(options.duration)),
          schedule(std::move(when)) {}

    const int64_t began;
    const int64_t from;  // what is due from then on counts
    const int64_t until;
    absl::Time time;  // where nanoseconds are counted from
    // When the last one that counts was started; never, where the time ends
    // the run.
    std::atomic<int64_t> all_started{INT64_MAX};

    Mutex mutex;  // held by the thread that waits for what is due next
    Schedule schedule ABSL_GUARDED_BY(mutex);
    uint64_t next ABSL_GUARDED_BY(mutex) = 0;
    uint64_t measured ABSL_GUARDED_BY(mutex) = 0;
  };

  // Waits until the next one is due; -1 if there is none.
  int64_t WaitForNext(Starts* starts) {
    MutexLock lock(&starts->mutex);
    if (over_ || starts->all_started != INT64_MAX) return -1;
    const int64_t at = starts->schedule.At(starts->next);
    const int64_t due = starts->began + at;
    if (at < 0 && starts->until == INT64_MAX) {
      starts->all_started = MonotonicNanos();
    }
    if (at < 0 || due >= starts->until) return -1;
    ++starts->next;
    for (int64_t now = MonotonicNanos(); now < due; now = MonotonicNanos()) {
      if (over_) return -1;
      SleepUntil(std::min(due, now + kWake));
    }
    if (due >= starts->from && ++starts->measured == options_.total) {
      starts->all_started = MonotonicNanos();
    }
    return due;
  }

  // The thread that waits hands the waiting to another when it starts a
  // pipeline itself: a start that takes its time makes the next one not late,
  // and nothing lies between the end of the waiting and the start.
  void StartAsDue(Starts* starts) {
    WakeOnTime();
    for (;;) {
      const int64_t due = WaitForNext(starts);
      if (due < 0) return;
      const bool counts = due >= starts->from;
      {
        MutexLock lock(&mutex_);
        if (running_ >= static_cast<int64_t>(options_.max_in_flight)) {
          if (counts) measure_->AddDropped();
          continue;
        }
        ++running_;
      }
      if (counts) measure_->AddLag(MonotonicNanos() - due);
      Start(starts->time + absl::Nanoseconds(due), [this] { Ended(); });
    }
  }

  // From now on it counts.
  void Measured() {
    const int64_t now = MonotonicNanos();
    Measured(now, clock_->Now());
  }
  void Measured(int64_t from, absl::Time time) {
    if (hooks_.on_start != nullptr) hooks_.on_start();
    measure_->Start(from);
    watcher_->SetWindow(time, absl::InfiniteFuture());
    watcher_->SetPhase(Phase::kMeasure);
  }

  // Keeps the timeline; whether the run is to end.
  bool LookUp(int64_t now) {
    if (now - looked_ < kWake) return over_;
    looked_ = now;
    const model::Counters counters = simulation_->counters();
    int64_t running = 0;
    {
      MutexLock lock(&mutex_);
      running = running_;
    }
    measure_->SetState(counters.ready, static_cast<double>(counters.in_flight) +
                                           static_cast<double>(running));
    measure_->Tick(now);
    reach_->Look();
    if (options_.loop == LoadOptions::Loop::kModel && options_.total > 0 &&
        watcher_->phase() == Phase::kMeasure) {
      LoadResults so_far;
      measure_->Fill(&so_far);
      if (so_far.pipelines.count >= options_.total) over_ = true;
    }
    if (hooks_.stop(PhaseName(watcher_->phase()), counters.ready,
                    counters.composites)) {
      over_ = true;
      abandon_();
    }
    return over_;
  }

  // True if the run is to end before.
  bool WaitUntil(int64_t until) {
    for (;;) {
      const int64_t now = MonotonicNanos();
      if (LookUp(now)) return true;
      if (now >= until) return false;
      SleepUntil(std::min(until, now + kWake));
    }
  }

  void Start(absl::Time due, std::function<void()> done) {
    const int composite = static_cast<int>(
        next_++ % static_cast<uint64_t>(simulation_->composites()));
    simulation_->RunSettled(
        composite, due,
        [done = std::move(done)](const model::PipelineEnd&) { done(); });
  }

  // Closed loop: one ends, the next starts. A pipeline that ends within
  // RunSettled must not nest the next one in it, so whoever finds a loop
  // running on this thread leaves the start to that.
  void Next() {
    thread_local int* pending = nullptr;
    if (pending != nullptr) {
      ++*pending;
      return;
    }
    int left = 1;
    pending = &left;
    while (left > 0) {
      --left;
      if (over_ ||
          (options_.total > 0 && watcher_->phase() == Phase::kMeasure &&
           begun_++ >= options_.total)) {
        over_ = true;
        Ended();
        continue;
      }
      Start(clock_->Now(), [this] { Next(); });
    }
    pending = nullptr;
  }

  void Ended() {
    MutexLock lock(&mutex_);
    if (--running_ == 0) changed_.SignalAll();
  }

  // Waits for what is under way, unless the run is to end, or no function has
  // ever answered.
  void Drain() {
    const int64_t until =
        MonotonicNanos() + absl::ToInt64Nanoseconds(options_.patience);
    for (;;) {
      bool running = false;
      {
        MutexLock lock(&mutex_);
        if (running_ > 0) {
          changed_.WaitWithTimeout(&mutex_, absl::Nanoseconds(kWake));
        }
        running = running_ > 0;
      }
      if (!running) {
        if (simulation_->Idle()) return;
        SleepUntil(MonotonicNanos() + kWake / 10);
      }
      const model::Counters counters = simulation_->counters();
      if (unreached_.empty()) unreached_ = reach_->Look();
      if (!unreached_.empty() ||
          hooks_.stop("drain", counters.ready, counters.composites)) {
        abandon_();
      } else if (MonotonicNanos() >= until && !watcher_->answered()) {
        cancel_();
      }
    }
  }

  const LoadOptions& options_;
  const PipelineLoadHooks& hooks_;
  const std::function<void()> abandon_;  // what is under way
  const std::function<void()> cancel_;   // the same, which then counts
  Reach* const reach_;
  std::vector<UnreachedResults> unreached_;
  model::Simulation* const simulation_;
  Watcher* const watcher_;
  Clock* const clock_;
  Measure* const measure_;
  int64_t looked_ = 0;
  std::atomic<uint64_t> next_{0};
  std::atomic<uint64_t> begun_{0};
  std::atomic<bool> over_{false};
  Mutex mutex_;
  CondVar changed_;
  int64_t running_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Why no composite could settle. `given_up`: after so long;
// infinite if it ended before.
std::string WhyUnsettled(const Watcher::Failure& failure,
                         const std::vector<client::FunctionTarget>& targets,
                         absl::Duration given_up, const absl::Status& status) {
  std::string text = "no pipeline succeeded";
  if (given_up != absl::InfiniteDuration()) {
    absl::StrAppend(&text, " within ", absl::FormatDuration(given_up));
  }
  const auto target = std::find_if(
      targets.begin(), targets.end(),
      [&](const auto& one) { return one.name == failure.function; });
  if (failure.function.empty() || target == targets.end()) {
    return absl::StrCat(text, ": ",
                        failure.why.empty() ? status.message() : failure.why);
  }
  return absl::StrCat(text, ": ", failure.function, " at ", target->target,
                      ": ", failure.why.empty() ? "no answer" : failure.why);
}

// Lets all composites settle, and fills `results`.
absl::Status Settle(model::Simulation* simulation,
                    const PipelineLoadHooks& hooks, Reach* reach,
                    const Watcher& watcher,
                    const std::vector<client::FunctionTarget>& targets,
                    absl::Duration patience,
                    const std::function<void()>& abandon,
                    LoadResults* all_results) {
  auto* const results = &all_results->settle;
  const int64_t give_up = MonotonicNanos() + absl::ToInt64Nanoseconds(patience);
  bool stopped = false;
  bool given_up = false;
  const auto settled = simulation->Settle([&] {
    const model::Counters counters = simulation->counters();
    all_results->unreached = reach->Look();
    // A function that is slow has neither failed nor succeeded yet.
    given_up = counters.settled_ok == 0 && !watcher.failure().why.empty() &&
               MonotonicNanos() >= give_up;
    stopped = hooks.stop("settle", counters.ready, counters.composites);
    if (!stopped && !given_up && all_results->unreached.empty()) return false;
    abandon();
    return true;
  });
  const std::vector<UnreachedResults>& unreached = all_results->unreached;
  if (!unreached.empty()) {
    results->failure = UnreachedSentence(unreached[0]);
    return absl::UnavailableError(results->failure);
  }
  if (!settled.ok()) {
    if (stopped) return settled.status();
    results->failure = WhyUnsettled(
        watcher.failure(), targets,
        given_up ? patience : absl::InfiniteDuration(), settled.status());
    return absl::UnavailableError(results->failure);
  }
  results->pipelines = settled->pipelines;
  results->calls = settled->calls;
  results->seconds = absl::ToDoubleSeconds(settled->took);
  results->ready = settled->ready;
  results->never = settled->never;
  results->changing = settled->changing;
  return absl::OkStatus();
}

}  // namespace

absl::Status RunPipelineLoad(const LoadOptions& options,
                             const render::RenderInputs& inputs,
                             const PipelineLoadHooks& hooks, Measure* measure,
                             LoadResults* results) {
  std::unique_ptr<trace::TraceWriter> writer;
  if (!options.trace_dir.empty()) {
    trace::TraceOptions tracing;
    tracing.dir = options.trace_dir;
    tracing.level = options.trace_level;
    tracing.writer = "load";
    tracing.settings = options.given;
    auto made = trace::TraceWriter::Create(std::move(tracing));
    if (!made.ok()) return made.status();
    writer = *std::move(made);
  }
  // No function's name has a blank in it.
  const auto name_of = [](const FunctionUpgrade& upgrade) {
    return absl::StrCat(upgrade.function, " at ", upgrade.place);
  };
  std::vector<client::FunctionTarget> targets = inputs.functions;
  for (const FunctionUpgrade& upgrade : options.upgrades) {
    targets.push_back({name_of(upgrade), upgrade.target});
  }
  const model::Simulation* simulating = nullptr;
  Watcher watcher(measure, &simulating, writer.get(), options.patience);
  AnswerWorkers workers(StartThreads(),
                        [measure](int64_t wait) { measure->AddWait(wait); });
  Callers functions;
  for (int i = 0; i < options.connections; ++i) {
    client::FunctionClientOptions connection;
    connection.functions = targets;
    connection.tls_dir = options.render.tls_dir;
    connection.threads = 1;
    connection.begin_thread = &WakeOnTime;
    connection.run = [&workers](std::function<void()> work) {
      workers.Run(std::move(work));
    };
    connection.metadata = [&watcher] {
      return std::vector<std::pair<std::string, std::string>>{
          {"fncache-phase", PhaseName(watcher.phase())}};
    };
    auto made = client::FunctionClient::Create(std::move(connection));
    if (!made.ok()) return made.status();
    functions.Add(*std::move(made));
  }
  const auto abandon = [&watcher, &functions] {
    watcher.Discard();
    functions.Cancel();
  };
  const auto cancel = [&watcher, &functions] {
    watcher.Cancelled();
    functions.Cancel();
  };
  render::ContextSteps caller(&functions, inputs.context);
  SystemClock clock;
  const bool by_model = options.loop == LoadOptions::Loop::kModel;
  RealScheduler scheduler(&clock, by_model ? StartThreads() : 1,
                          [&](int64_t lag) {
                            if (by_model) measure->AddLag(lag);
                          });
  model::ModelOptions modelled = options.model;
  for (const FunctionUpgrade& upgrade : options.upgrades) {
    modelled.events[upgrade.event].action = [&functions, &name_of, &upgrade] {
      functions.Upgrade(upgrade.function, name_of(upgrade));
    };
  }
  absl::optional<model::Simulation> made;
  const auto simulate = [&]() -> model::Simulation& {
    simulating = nullptr;
    made.emplace(modelled, Templates(inputs), &caller, &scheduler, &clock,
                 &watcher);
    simulating = &*made;
    return *made;
  };
  simulate();
  Reach reach(&functions, hooks.warn);
  if (!by_model || modelled.start != model::StartFrom::kCreate) {
    const absl::Status settled = Settle(&*made, hooks, &reach, watcher, targets,
                                        options.patience, abandon, results);
    if (!settled.ok()) return settled;
    // There is no steady state that could be measured.
    if (by_model && results->settle.never > 0) {
      modelled.start = model::StartFrom::kCreate;
      simulate();
      if (hooks.warn != nullptr) {
        hooks.warn("composites never settle: measured as with --start create");
      }
    }
  }
  model::Simulation& simulation = *made;
  const model::Counters before = simulation.counters();
  Run run(options, hooks, &simulation, &watcher, &clock, measure, &reach,
          abandon, cancel);
  switch (options.loop) {
    case LoadOptions::Loop::kModel:
      run.ByModel();
      break;
    case LoadOptions::Loop::kOpen:
      run.BySchedule();
      break;
    case LoadOptions::Loop::kClosed:
      run.ByConcurrency();
      break;
  }
  measure->Stop(MonotonicNanos());
  const model::Counters after = simulation.counters();
  auto& composites = results->composites;
  composites.count = after.composites;
  composites.ready = after.ready;
  composites.requeues = after.requeues - before.requeues;
  composites.breaker_openings =
      after.breaker_openings - before.breaker_openings;
  composites.events_dropped = after.events_dropped - before.events_dropped;
  composites.lost_ready = after.lost_ready;
  composites.unmarked = after.unmarked;
  results->unreached = run.unreached();
  if (results->settle.never == 0) {
    model::Restless restless = simulation.restless();
    results->settle.never = restless.composites;
    results->settle.changing = std::move(restless.changing);
  }
  // At a rate that was asked for, what never settles tells of no need.
  if (results->settle.never > 0 && !by_model) {
    return writer == nullptr ? absl::OkStatus() : writer->Flush();
  }
  const model::Demand demand = simulation.demand();
  VerdictResults& verdict = results->verdict.emplace();
  verdict.shortest = absl::ToDoubleSeconds(demand.shortest);
  verdict.longest = absl::ToDoubleSeconds(demand.longest);
  verdict.needed = demand.pipelines;
  verdict.churn = demand.churn;
  if (results->settle.never > 0) verdict.measured.emplace(0);
  verdict.created = after.composites - before.composites;
  verdict.workers = static_cast<uint64_t>(options.model.workers);
  const LatencySummary ready = Summarize(watcher.ready());
  verdict.created_ready = watcher.ready().count();
  verdict.ready_p50 = ready.p50;
  verdict.ready_p95 = ready.p95;
  if (writer != nullptr) return writer->Flush();
  return absl::OkStatus();
}

}  // namespace fncache::runner::load
