// SPDX-License-Identifier: Apache-2.0
#include "proxy/transport/worker.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "common/thread_pool.h"
#include "grpc/support/time.h"
#include "proxy/transport/core_queue.h"
#include "proxy/transport/held_sends.h"

namespace fncache::proxy::transport {
namespace {

// A worker with nothing to do waits so long in its queue before it rests.
constexpr std::chrono::milliseconds kLinger{10};

// While there is more to do, sends are held no longer than this, and over no
// more events: the other side is to have work, too.
constexpr std::chrono::microseconds kLongestTurn{500};
constexpr int kMostEvents = 64;

// Jobs are handed over some at a time, as waking a thread costs about as much
// as one of them, and no more at once than the answers can wait for.
constexpr int kJobsTogether = 4;
constexpr int kMostOffloaded = 16;

int64_t MonotonicNanos() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

Worker::Worker(int index, bool rests, ThreadPool* assistants)
    : index_(index),
      rests_(rests),
      assistants_(assistants),
      queue_(MakeQueue(GRPC_CQ_DEFAULT_POLLING)) {}

Worker::~Worker() {
  bool closed;
  {
    MutexLock lock(&mutex_);
    closed = closed_;
    closed_ = true;
  }
  if (closed) return;
  // Never started. A queue must be shut down and emptied before it goes.
  queue_.Shutdown();
  void* tag;
  bool ok;
  while (queue_.Next(&tag, &ok)) {
    AcquireFrom(tag);
    static_cast<Event*>(tag)->OnEvent(false);
  }
}

void Worker::Start() {
  thread_ = std::thread([this] { Run(); });
}

void Worker::Run() {
  for (;;) {
    // Sends are held as long as events come without waiting for them.
    const bool look = (HasHeldSends() || jobs_ != nullptr) && !TurnIsLong();
    if (!look) EndTurn();
    const bool idle =
        !look && rests_ && activities_ == nullptr && timers_.empty();
    gpr_timespec until = gpr_inf_future(GPR_CLOCK_MONOTONIC);
    if (look) {
      until = gpr_inf_past(GPR_CLOCK_MONOTONIC);
    } else if (idle) {
      until = gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                           gpr_time_from_millis(kLinger.count(), GPR_TIMESPAN));
    }
    void* tag;
    bool ok;
    switch (queue_.AsyncNext(&tag, &ok, until)) {
      case grpc::CompletionQueue::SHUTDOWN:
        EndTurn();
        return;
      case grpc::CompletionQueue::TIMEOUT:
        if (look && jobs_ != nullptr) {
          DoOneJob();
          break;
        }
        EndTurn();
        if (idle) Rest();
        break;
      case grpc::CompletionQueue::GOT_EVENT:
        AcquireFrom(tag);
        // A single call gains nothing by holding what is sent for it.
        if (calls_.load(std::memory_order_relaxed) > 1) HoldSends(true);
        static_cast<Event*>(tag)->OnEvent(ok);
        break;
    }
    if (stopping_) CloseIfIdle();
  }
}

bool Worker::TurnIsLong() {
  const auto now = std::chrono::steady_clock::now();
  if (turn_events_++ == 0) turn_began_ = now;
  return turn_events_ > kMostEvents || now - turn_began_ > kLongestTurn;
}

void Worker::EndTurn() {
  HoldSends(false);
  SendHeld();
  turn_events_ = 0;
  SubmitJobs();
}

bool Worker::Offload(Job* job) {
  if (assistants_ == nullptr || offloaded_ >= kMostOffloaded ||
      calls_.load(std::memory_order_relaxed) <= 1) {
    job->Work();
    return true;
  }
  ++offloaded_;
  job->next_ = jobs_;
  jobs_ = job;
  if (++job_count_ == kJobsTogether) SubmitJobs();
  return false;
}

void Worker::SubmitJobs() {
  if (jobs_ == nullptr) return;
  Job* const jobs = std::exchange(jobs_, nullptr);
  job_count_ = 0;
  ThreadPool::Work work = [this, jobs](bool /*run*/) {
    for (Job* job = jobs; job != nullptr; job = job->next_) job->Work();
    // Each job counts as an activity, so that the worker stays open until this
    // task ran.
    Post([this, jobs] {
      for (Job* job = jobs; job != nullptr;) {
        OnWorked(std::exchange(job, job->next_));
      }
    });
  };
  if (!assistants_->Submit(&work)) work(/*run=*/true);
}

void Worker::DoOneJob() {
  Job* const job = std::exchange(jobs_, jobs_->next_);
  --job_count_;
  job->Work();
  OnWorked(job);
}

void Worker::OnWorked(Job* job) {
  --offloaded_;
  job->OnWorked();
}

void Worker::Rest() {
  {
    MutexLock lock(&mutex_);
    // The alarm's event will come through the queue.
    if (waking_) return;
    resting_ = true;
    while (posted_.empty() && !closed_) rested_.Wait(&mutex_);
    resting_ = false;
  }
  RunPosted();
}

bool Worker::Post(absl::AnyInvocable<void()> task) {
  MutexLock lock(&mutex_);
  if (closed_) return false;
  posted_.push_back(std::move(task));
  if (resting_) {
    rested_.Signal();
  } else if (!waking_) {
    waking_ = true;
    alarm_.Set(&queue_, gpr_inf_past(GPR_CLOCK_MONOTONIC), Tag(&wakeup_));
  }
  return true;
}

void Worker::Wakeup::OnEvent(bool ok) {
  {
    MutexLock lock(&worker->mutex_);
    worker->waking_ = false;
  }
  worker->RunPosted();
}

void Worker::RunPosted() {
  {
    MutexLock lock(&mutex_);
    running_.swap(posted_);
  }
  for (absl::AnyInvocable<void()>& task : running_) task();
  running_.clear();
}

TimerId Worker::After(absl::Duration delay, absl::AnyInvocable<void()> task) {
  const int64_t now = MonotonicNanos();
  // Callers may give deadlines that no clock will see.
  const int64_t longest = std::numeric_limits<int64_t>::max() - now;
  const TimerId id(now + std::min(absl::ToInt64Nanoseconds(delay), longest),
                   next_timer_++);
  timers_.emplace(id, std::move(task));
  ArmTimer();
  return id;
}

void Worker::Cancel(const TimerId& timer) { timers_.erase(timer); }

void Worker::ArmTimer() {
  if (timers_.empty() || stopping_) return;
  const int64_t first = timers_.begin()->first.first;
  if (timer_armed_) {
    // An alarm cannot be moved: cancelled, its event comes at once and arms it
    // anew.
    if (first < armed_for_) {
      armed_for_ = first;
      timer_alarm_.Cancel();
    }
    return;
  }
  timer_armed_ = true;
  armed_for_ = first;
  const int64_t delay = std::max<int64_t>(first - MonotonicNanos(), 0);
  timer_alarm_.Set(&queue_,
                   gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                                gpr_time_from_nanos(delay, GPR_TIMESPAN)),
                   Tag(&timer_fired_));
}

void Worker::TimerFired::OnEvent(bool ok) {
  worker->timer_armed_ = false;
  worker->RunTimers();
}

void Worker::RunTimers() {
  const int64_t now = MonotonicNanos();
  while (!timers_.empty() && timers_.begin()->first.first <= now) {
    absl::AnyInvocable<void()> task = std::move(timers_.begin()->second);
    timers_.erase(timers_.begin());
    task();
  }
  ArmTimer();
}

void Worker::Count(const Activity& activity, int change) {
  if (activity.kind_ != Activity::Kind::kUnary) forwarding_ += change;
  if (activity.kind_ == Activity::Kind::kInner) return;
  // One writer: no read-modify-write is needed.
  calls_.store(calls_.load(std::memory_order_relaxed) + change,
               std::memory_order_release);
  if (activity.kind_ != Activity::Kind::kUnary) return;
  unary_.store(unary_.load(std::memory_order_relaxed) + change,
               std::memory_order_release);
}

void Worker::Enter(Activity* activity) {
  activity->next_ = activities_;
  activity->link_ = &activities_;
  if (activities_ != nullptr) activities_->link_ = &activity->next_;
  activities_ = activity;
  Count(*activity, 1);
  if (stopping_) entered_late_ = true;
}

void Worker::Leave(Activity* activity) {
  *activity->link_ = activity->next_;
  if (activity->next_ != nullptr) activity->next_->link_ = activity->link_;
  activity->link_ = nullptr;
  Count(*activity, -1);
}

void Worker::SetKind(Activity* activity, Activity::Kind kind) {
  if (activity->kind_ == kind) return;
  Count(*activity, -1);
  activity->kind_ = kind;
  Count(*activity, 1);
}

void Worker::CancelActivities(Activity::Kind kind) {
  for (Activity* a = activities_; a != nullptr; a = a->next_) {
    if (a->kind_ == kind) a->CancelActivity();
  }
}

void Worker::CancelActivities() {
  for (Activity* a = activities_; a != nullptr; a = a->next_) {
    a->CancelActivity();
  }
}

void Worker::CloseIfIdle() {
  if (entered_late_) {
    entered_late_ = false;
    CancelActivities();
  }
  if (activities_ != nullptr || offloaded_ > 0) return;
  {
    MutexLock lock(&mutex_);
    // A task that was posted before may still start something.
    if (closed_ || waking_) return;
    closed_ = true;
  }
  if (timer_armed_) timer_alarm_.Cancel();
  queue_.Shutdown();
}

void Worker::Stop() {
  if (!thread_.joinable()) return;
  Post([this] {
    stopping_ = true;
    CancelActivities();
  });
  thread_.join();
  timers_.clear();
}

std::vector<std::unique_ptr<Worker>> MakeWorkers(int count,
                                                 ThreadPool* assistants) {
  std::vector<std::unique_ptr<Worker>> workers;
  for (int i = 0; i < count; ++i) {
    workers.push_back(std::make_unique<Worker>(i, /*rests=*/i > 0, assistants));
  }
  return workers;
}

}  // namespace fncache::proxy::transport
