// SPDX-License-Identifier: Apache-2.0
// Worker: one thread and its event loop (http2/loop.h), which serves calls and
// makes upstream calls. A call is used only on its worker's thread, so it needs
// no locks. Other threads hand work over with Post.
//
// Thread-safety: Post, Stop, unary, calls and busy may be called from any
// thread, everything else only on the worker's own (or before Start). Lifetime:
// Stop ends the worker once no activity is left on it. A worker must outlive
// every call that refers to it.
#ifndef FNCACHE_PROXY_TRANSPORT_WORKER_H_
#define FNCACHE_PROXY_TRANSPORT_WORKER_H_

#include <atomic>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"
#include "common/mutex.h"
#include "http2/loop.h"

namespace fncache {
class ThreadPool;
}  // namespace fncache

namespace fncache::proxy::transport {

class Worker;

// Long work that uses nothing of its worker: see Worker::Offload. It must not
// be destroyed before it is done, and before a later OnWorked has been called.
class Job {
 public:
  // Does the work, on any thread.
  virtual void Work() = 0;
  // Called after Work, on the worker's thread, unless Offload returned true.
  virtual void OnWorked() = 0;

 protected:
  ~Job() = default;

 private:
  friend class Worker;
  Job* next_ = nullptr;
};

// Something with operations outstanding on a worker: it keeps the worker's
// queue open from Worker::Enter to Worker::Leave, and can be cancelled.
class Activity {
 public:
  enum class Kind {
    kUnary,   // a caller waits for one answer: a graceful stop waits for it
    kStream,  // may last for ever: cancelled once no kUnary is left
    kInner,   // serves other calls, or none any more: a stop does not wait
  };
  explicit Activity(Kind kind) : kind_(kind) {}
  Kind kind() const { return kind_; }
  // Ends the activity soon. It leaves when its operations have completed. May
  // be called more than once. On the worker's thread.
  virtual void CancelActivity() = 0;

 protected:
  ~Activity() = default;

 private:
  friend class Worker;
  Kind kind_;
  Activity* next_ = nullptr;
  Activity** link_ = nullptr;  // the pointer to this; null = not entered
};

using http2::TimerId;

class Worker {
 public:
  // An object that the worker owns until it stops, and destroys on its thread.
  class Attachment {
   public:
    virtual ~Attachment() = default;
  };

  // `assistants` do its jobs; null: the worker does them itself. They outlive
  // Stop, and end before the worker is destroyed, because an assistant that
  // returned a job may still be in Post.
  explicit Worker(int index, ThreadPool* assistants = nullptr);
  // Precondition: never started, or stopped and its assistants have ended.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  int index() const { return index_; }
  http2::Loop* loop() { return &loop_; }

  void Start();

  // Runs `task` on the worker's thread, after all earlier tasks. Any thread.
  // False if the worker has stopped: the task is destroyed unrun.
  bool Post(absl::AnyInvocable<void()> task);

  // Runs `task` on this thread after `delay`, unless cancelled before. Timers
  // left when the worker stops are dropped.
  TimerId After(absl::Duration delay, absl::AnyInvocable<void()> task) {
    return loop_.After(delay, std::move(task));
  }
  void Cancel(const TimerId& timer) { loop_.Cancel(timer); }

  void Attach(std::unique_ptr<Attachment> attachment) {
    attachments_.push_back(std::move(attachment));
  }

  void Enter(Activity* activity);
  void Leave(Activity* activity);
  void SetKind(Activity* activity, Activity::Kind kind);
  // The active ones of kind kUnary, and of all kinds but kInner. Any thread.
  int unary() const { return unary_.load(std::memory_order_acquire); }
  int calls() const { return calls_.load(std::memory_order_acquire); }
  // The active ones of kind kInner or kStream: mainly the worker's calls to
  // functions. On its thread.
  int forwarding() const { return forwarding_; }
  void CancelActivities(Activity::Kind kind);
  void CancelActivities();

  // True if the worker ran a task within this time. Posts a task for the next
  // call to check. Any thread, one at a time.
  bool Alive(absl::Duration within);

  // kGoesOn: continues the work of an earlier job. kLong: takes longer than
  // other calls should wait. If there are assistants, this thread does neither
  // kind, unless it has nothing else to do.
  enum class Effort { kUsual, kGoesOn, kLong };
  // Does the job here, or hands it to an assistant. True if it is done: then
  // OnWorked is not called. This thread does the job if it has nothing else to
  // do, too many jobs wait, or long ones occupy all assistants. Otherwise this
  // thread continues to read and write, and OnWorked follows after the return.
  [[nodiscard]] bool Offload(Job* job, Effort effort = Effort::kUsual);

  // Cancels all activities, waits until they have left, and joins the thread.
  // From any other thread. The servers of its connections must have been
  // joined before.
  void Stop();

 private:
  // Hands the waiting jobs to the assistants.
  void SubmitJobs();
  // Hands a list of jobs to the assistants.
  void Submit(Job* jobs, bool is_long);
  void OnWorked(Job* job);
  // Does one job that was not handed over. False if there is none.
  bool DoOneJob();
  void Count(const Activity& activity, int change);
  // While stopping: cancels activities that entered late, and ends the loop
  // when none is left.
  void QuitIfIdle();

  const int index_;
  ThreadPool* const assistants_;
  http2::Loop loop_;
  // Only the worker's thread writes to these.
  std::atomic<int> unary_{0};
  std::atomic<int> calls_{0};

  // When Alive posted its task, if that has not run yet; 0 = it has.
  // Nanoseconds of the monotonic clock.
  std::atomic<int64_t> asked_{0};

  Mutex mutex_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;

  // Only the worker's thread uses the members below.
  Job* jobs_ = nullptr;  // not handed over yet
  int job_count_ = 0;    // length of jobs_
  int offloaded_ = 0;    // jobs without OnWorked so far, jobs_ included
  std::vector<std::unique_ptr<Attachment>> attachments_;
  Activity* activities_ = nullptr;
  int forwarding_ = 0;
  bool stopping_ = false;
  // An activity that entered while the worker stops must be cancelled too.
  bool entered_late_ = false;

  std::thread thread_;
};

// Workers with indices from 0.
std::vector<std::unique_ptr<Worker>> MakeWorkers(
    int count, ThreadPool* assistants = nullptr);

}  // namespace fncache::proxy::transport

#endif  // FNCACHE_PROXY_TRANSPORT_WORKER_H_
