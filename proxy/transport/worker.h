// SPDX-License-Identifier: Apache-2.0
// Worker: one thread and its event loop (http2/loop.h), on which calls are
// served and upstream calls are made. Everything that happens to a call happens
// on its worker's thread, so calls need no locks. Other threads hand work over
// with Post.
//
// Thread-safety: Post, Stop, unary, calls and busy may be called from any
// thread, everything else only on the worker's own (or before Start). Lifetime:
// Stop ends it once nothing is active on it any more; a worker must outlive
// every call that names it.
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

// Work that takes a while and needs nothing of its worker: see Worker::Offload.
// It must not be destroyed before it is done and, if that comes later, OnWorked
// has been called.
class Job {
 public:
  // Does it, on any thread.
  virtual void Work() = 0;
  // Is called afterwards on the worker's thread, unless Offload returned true.
  virtual void OnWorked() = 0;

 protected:
  ~Job() = default;

 private:
  friend class Worker;
  Job* next_ = nullptr;
};

// Something with operations outstanding on a worker: it keeps the worker's
// queue open from Worker::Enter to Worker::Leave, and can be told to end.
class Activity {
 public:
  enum class Kind {
    kUnary,   // a caller waits for one answer: a graceful stop waits for it
    kStream,  // may last for ever: cancelled once no kUnary is left
    kInner,   // serves others, or nobody any more: a stop does not wait for it
  };
  explicit Activity(Kind kind) : kind_(kind) {}
  Kind kind() const { return kind_; }
  // Ends it soon; it leaves when its operations have completed. May be called
  // more than once. On the worker's thread.
  virtual void CancelActivity() = 0;

 protected:
  ~Activity() = default;

 private:
  friend class Worker;
  Kind kind_;
  Activity* next_ = nullptr;
  Activity** link_ = nullptr;  // what points at us; null = not entered
};

using http2::TimerId;

class Worker {
 public:
  // Something that is kept until the worker stops, and goes on its thread.
  class Attachment {
   public:
    virtual ~Attachment() = default;
  };

  // `assistants` do its jobs (null: it does them itself): they stay until it
  // has been stopped, and end before it goes, as one that brought a job back
  // may still be in Post.
  explicit Worker(int index, ThreadPool* assistants = nullptr);
  // Precondition: never started, or stopped and its assistants gone.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  int index() const { return index_; }
  http2::Loop* loop() { return &loop_; }

  void Start();

  // Runs `task` on the worker's thread, after what was posted before. Any
  // thread. False if the worker has stopped: the task is destroyed unrun.
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
  // How many of kind kUnary, or of the kinds but kInner, are active. Any
  // thread.
  int unary() const { return unary_.load(std::memory_order_acquire); }
  int calls() const { return calls_.load(std::memory_order_acquire); }
  // How many of kind kInner or kStream: the worker's calls to functions, above
  // all. On its thread.
  int forwarding() const { return forwarding_; }
  void CancelActivities(Activity::Kind kind);
  void CancelActivities();

  // A task ran within this time. Asks for one, so that the next call knows. Any
  // thread, one at a time.
  bool Alive(absl::Duration within);

  // kGoesOn: with what an earlier one has begun. kLong: it takes longer than
  // others are to wait for it. While there are assistants this thread does none
  // of either, unless it has nothing else to do.
  enum class Effort { kUsual, kGoesOn, kLong };
  // Has the job done. True if it is done by now, which it is where this thread
  // has nothing else to do, too many wait, or long ones have all assistants:
  // then OnWorked is not called. Otherwise an assistant does it, so that this
  // thread goes on reading and writing, and OnWorked comes after this has
  // returned.
  [[nodiscard]] bool Offload(Job* job, Effort effort = Effort::kUsual);

  // Cancels what is active, waits until all of it has left, and joins the
  // thread. From any other thread. Servers whose connections it has must have
  // been joined.
  void Stop();

 private:
  // Hands the jobs that are waiting to the assistants.
  void SubmitJobs();
  // Hands a list of them over.
  void Submit(Job* jobs, bool is_long);
  void OnWorked(Job* job);
  // Does one job that has not been handed over. False if there is none.
  bool DoOneJob();
  void Count(const Activity& activity, int change);
  // While stopping: cancels activities that came late, and ends the loop when
  // none is left.
  void QuitIfIdle();

  const int index_;
  ThreadPool* const assistants_;
  http2::Loop loop_;
  // Only the worker's thread writes to these.
  std::atomic<int> unary_{0};
  std::atomic<int> calls_{0};

  // When the task was asked for that has not run yet, in nanoseconds of the
  // monotonic clock; 0 = none.
  std::atomic<int64_t> asked_{0};

  Mutex mutex_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;

  // From here on only the worker's thread uses what is there.
  Job* jobs_ = nullptr;  // not handed over yet
  int job_count_ = 0;    // of them
  int offloaded_ = 0;    // jobs that have not come back, those included
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
