// SPDX-License-Identifier: Apache-2.0
#include "runner/load/pipeline_loop.h"

#include <time.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "runner/load/real_scheduler.h"

namespace fncache::runner::load {
namespace {

constexpr int64_t kWake = 100'000'000;

void SleepUntil(int64_t nanoseconds) {
  timespec time;
  time.tv_sec = nanoseconds / 1'000'000'000;
  time.tv_nsec = nanoseconds % 1'000'000'000;
  // A signal may wake it early; the loops look at the time anyway.
  (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr);
}

}  // namespace

void PipelineLoop::ByModel() {
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
  const int64_t end = options_.duration == absl::InfiniteDuration()
                          ? INT64_MAX
                          : until + absl::ToInt64Nanoseconds(options_.duration);
  WaitUntil(end);
  measure_->EndDuration(MonotonicNanos());
  simulation_->Stop();
  Drain();
}

void PipelineLoop::ByConcurrency() {
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

void PipelineLoop::BySchedule() {
  watcher_->CountByDue();
  watcher_->SetPhase(Phase::kWarmup);
  Schedule schedule = options_.stages.empty() ? Schedule(options_.rate)
                                              : Schedule(options_.stages);
  const bool warm = options_.warmup > absl::ZeroDuration();
  if (!warm && hooks_.on_start != nullptr) hooks_.on_start();
  Starts starts(std::move(schedule), MonotonicNanos(), options_);
  const absl::Time began = clock_->Now();
  starts.time = began - absl::Nanoseconds(starts.began);
  // Pipelines that are due from then on count. No wait is needed.
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
  // All pipelines that were due in the time are started, however late.
  for (std::thread& thread : threads) thread.join();
  Drain();
}

int64_t PipelineLoop::WaitForNext(Starts* starts) {
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

void PipelineLoop::StartAsDue(Starts* starts) {
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

void PipelineLoop::Measured() {
  const int64_t from = MonotonicNanos();
  const absl::Time time = clock_->Now();
  if (hooks_.on_start != nullptr) hooks_.on_start();
  measure_->Start(from);
  watcher_->SetWindow(time, absl::InfiniteFuture());
  watcher_->SetPhase(Phase::kMeasure);
}

bool PipelineLoop::LookUp(int64_t now) {
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

bool PipelineLoop::WaitUntil(int64_t until) {
  for (;;) {
    const int64_t now = MonotonicNanos();
    if (LookUp(now)) return true;
    if (now >= until) return false;
    SleepUntil(std::min(until, now + kWake));
  }
}

void PipelineLoop::Start(absl::Time due, std::function<void()> done) {
  const int composite = static_cast<int>(
      next_++ % static_cast<uint64_t>(simulation_->composites()));
  simulation_->RunSettled(
      composite, due,
      [done = std::move(done)](const model::PipelineEnd&) { done(); });
}

void PipelineLoop::Next() {
  thread_local int* pending = nullptr;
  if (pending != nullptr) {
    ++*pending;
    return;
  }
  int left = 1;
  pending = &left;
  while (left > 0) {
    --left;
    if (over_ || (options_.total > 0 && watcher_->phase() == Phase::kMeasure &&
                  begun_++ >= options_.total)) {
      over_ = true;
      Ended();
      continue;
    }
    Start(clock_->Now(), [this] { Next(); });
  }
  pending = nullptr;
}

void PipelineLoop::Ended() {
  MutexLock lock(&mutex_);
  if (--running_ == 0) changed_.SignalAll();
}

void PipelineLoop::Drain() {
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

}  // namespace fncache::runner::load
