// SPDX-License-Identifier: Apache-2.0
#include "proxy/transport/worker.h"

#include <utility>

#include "common/clock.h"
#include "common/thread_pool.h"

namespace fncache::proxy::transport {
namespace {

// Jobs are handed over in groups of 4, because waking a thread costs about as
// much as one job. Beyond 16 offloaded jobs the worker does the next one
// itself: the answers cannot wait longer.
constexpr int kJobsTogether = 4;
constexpr int kMostOffloaded = 16;

}  // namespace

Worker::Worker(int index, ThreadPool* assistants)
    : index_(index), assistants_(assistants) {
  loop_.SetIdle([this] {
    const bool worked = DoOneJob();
    if (stopping_) QuitIfIdle();
    return worked || stopping_;
  });
}

Worker::~Worker() = default;

void Worker::Start() {
  thread_ = std::thread([this] { loop_.Run(); });
}

bool Worker::Offload(Job* job, Effort effort) {
  if (assistants_ == nullptr ||
      (effort == Effort::kUsual &&
       (offloaded_ >= kMostOffloaded || assistants_->taken_up() ||
        calls_.load(std::memory_order_relaxed) <= 1))) {
    job->Work();
    return true;
  }
  ++offloaded_;
  if (effort == Effort::kLong) {
    job->next_ = nullptr;
    Submit(job, /*is_long=*/true);
    return false;
  }
  job->next_ = jobs_;
  jobs_ = job;
  if (++job_count_ == kJobsTogether) SubmitJobs();
  return false;
}

void Worker::SubmitJobs() {
  if (jobs_ == nullptr) return;
  job_count_ = 0;
  Submit(std::exchange(jobs_, nullptr), /*is_long=*/false);
}

void Worker::Submit(Job* jobs, bool is_long) {
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
  if (!assistants_->Submit(&work, is_long)) work(/*run=*/true);
}

bool Worker::Alive(absl::Duration within) {
  const int64_t now = ReadClock(CLOCK_MONOTONIC);
  int64_t none = 0;
  if (asked_.compare_exchange_strong(none, now)) {
    Post([this] { asked_.store(0); });
    return true;
  }
  return now - none < absl::ToInt64Nanoseconds(within);
}

bool Worker::DoOneJob() {
  if (jobs_ == nullptr) return false;
  Job* const job = std::exchange(jobs_, jobs_->next_);
  --job_count_;
  job->Work();
  OnWorked(job);
  return true;
}

void Worker::OnWorked(Job* job) {
  --offloaded_;
  job->OnWorked();
}

bool Worker::Post(absl::AnyInvocable<void()> task) {
  MutexLock lock(&mutex_);
  if (closed_) return false;
  loop_.Post(std::move(task));
  return true;
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

void Worker::QuitIfIdle() {
  if (entered_late_) {
    entered_late_ = false;
    CancelActivities();
  }
  if (activities_ != nullptr || offloaded_ > 0) return;
  {
    MutexLock lock(&mutex_);
    closed_ = true;
  }
  attachments_.clear();
  loop_.Quit();
}

void Worker::Stop() {
  if (!thread_.joinable()) return;
  Post([this] {
    stopping_ = true;
    CancelActivities();
  });
  thread_.join();
}

std::vector<std::unique_ptr<Worker>> MakeWorkers(int count,
                                                 ThreadPool* assistants) {
  std::vector<std::unique_ptr<Worker>> workers;
  for (int i = 0; i < count; ++i) {
    workers.push_back(std::make_unique<Worker>(i, assistants));
  }
  return workers;
}

}  // namespace fncache::proxy::transport
