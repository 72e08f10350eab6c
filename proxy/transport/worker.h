// SPDX-License-Identifier: Apache-2.0
// Worker: one thread and its completion queue, on which calls are served and
// upstream calls are made. Everything that happens to a call happens on its
// worker's thread, so calls need no locks.
//
// Operations are started with Tag(event) as their tag; when one completes, the
// worker calls event->OnEvent(ok) on its thread. Other threads hand work over
// with Post.
//
// A worker with nothing to do waits outside of its queue. gRPC has one set of
// sockets for the whole process, and of the threads that wait in a queue any
// one reads whatever has come; what it read then wakes the thread it was for.
// While one thread waits there alone, what it answers is read, served and
// written without a change of threads, for two thirds of the CPU time.
//
// Thread-safety: Post, Stop, unary and calls may be called from any thread,
// everything else only on the worker's own (or before Start). Lifetime:
// Stop ends it once nothing is active on it any more; a worker must outlive
// every call that names it.
#ifndef FNCACHE_PROXY_TRANSPORT_WORKER_H_
#define FNCACHE_PROXY_TRANSPORT_WORKER_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"
#include "common/mutex.h"
#include "grpcpp/alarm.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/impl/codegen/completion_queue_tag.h"

namespace fncache {
class ThreadPool;
}  // namespace fncache

namespace fncache::proxy::transport {

// Whoever waits for an operation on a completion queue. It has the form in
// which gRPC's C++ queue expects the operations of gRPC's C interface, too.
class Event : public grpc::internal::CompletionQueueTag {
 public:
  virtual void OnEvent(bool ok) = 0;
  bool FinalizeResult(void** tag, bool* /*ok*/) final {
    *tag = this;
    return true;
  }

 protected:
  ~Event() override = default;
};

// The tag that gRPC's C++ interface is given for `event`; taking it also tells
// tsan about the hand-over.
inline void* Tag(Event* event) {
  ReleaseTo(event);
  return event;
}

// The same for gRPC's C interface.
inline void* CoreTag(Event* event) {
  ReleaseTo(event);
  return static_cast<grpc::internal::CompletionQueueTag*>(event);
}

// An event that calls a member function of `owner`. It serves one operation at
// a time.
template <typename T, void (T::*kMethod)(bool)>
class MemberEvent final : public Event {
 public:
  explicit MemberEvent(T* owner) : owner_(owner) {}
  void OnEvent(bool ok) override { (owner_->*kMethod)(ok); }

 private:
  T* const owner_;
};

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

// When a timer goes off, in nanoseconds of the monotonic clock, and a number.
using TimerId = std::pair<int64_t, uint64_t>;

class Worker {
 public:
  // `rests`: it waits outside of its queue while it has nothing to do. One
  // worker must not: somebody has to read from the sockets. `assistants` do its
  // jobs (null: it does them itself): they stay until it has been stopped, and
  // end before it goes, as one that brought a job back may still be in Post.
  Worker(int index, bool rests, ThreadPool* assistants = nullptr);
  // Precondition: never started, or stopped and its assistants gone.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  int index() const { return index_; }
  grpc::CompletionQueue* queue() { return &queue_; }

  void Start();

  // Runs `task` on the worker's thread, after what was posted before. Any
  // thread. False if the worker has stopped: the task is destroyed unrun.
  bool Post(absl::AnyInvocable<void()> task);

  // Runs `task` on this thread after `delay`, unless cancelled before. Timers
  // left when the worker stops are dropped.
  TimerId After(absl::Duration delay, absl::AnyInvocable<void()> task);
  void Cancel(const TimerId& timer);

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

  // Has the job done. True if it is done by now, which it is where this thread
  // has nothing else to do: then OnWorked is not called. Otherwise an assistant
  // does it, so that this thread goes on reading and writing, and OnWorked
  // comes after this has returned.
  [[nodiscard]] bool Offload(Job* job);

  // Cancels what is active, waits until all of it has left, closes the queue
  // and joins the thread. From any other thread. The server that uses the queue
  // must have been shut down.
  void Stop();

 private:
  struct Wakeup final : Event {
    explicit Wakeup(Worker* worker) : worker(worker) {}
    void OnEvent(bool ok) override;
    Worker* const worker;
  };
  struct TimerFired final : Event {
    explicit TimerFired(Worker* worker) : worker(worker) {}
    void OnEvent(bool ok) override;
    Worker* const worker;
  };

  void Run();
  // Hands the jobs that are waiting to the assistants.
  void SubmitJobs();
  void OnWorked(Job* job);
  // Does one job that has not been handed over.
  void DoOneJob();

  // A turn of work is what is done without waiting for an event; what is sent
  // in it leaves together at its end (held_sends.h).
  bool TurnIsLong();
  void EndTurn();
  // Waits until something is posted.
  void Rest();
  void RunPosted();
  void RunTimers();
  void ArmTimer();
  void Count(const Activity& activity, int change);
  // While stopping: cancels activities that came late, and closes the queue
  // when none is left.
  void CloseIfIdle();

  const int index_;
  const bool rests_;
  ThreadPool* const assistants_;
  grpc::CompletionQueue queue_;
  // Only the worker's thread writes to these.
  std::atomic<int> unary_{0};
  std::atomic<int> calls_{0};

  Mutex mutex_;
  std::vector<absl::AnyInvocable<void()>> posted_ ABSL_GUARDED_BY(mutex_);
  // The alarm is set and its event not seen yet.
  bool waking_ ABSL_GUARDED_BY(mutex_) = false;
  bool resting_ ABSL_GUARDED_BY(mutex_) = false;
  CondVar rested_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::Alarm alarm_ ABSL_GUARDED_BY(mutex_);
  Wakeup wakeup_{this};

  // From here on only the worker's thread uses what is there.
  int turn_events_ = 0;  // since something was held
  std::chrono::steady_clock::time_point turn_began_;
  Job* jobs_ = nullptr;  // not handed over yet
  int job_count_ = 0;    // of them
  int offloaded_ = 0;    // jobs that have not come back, those included
  std::vector<absl::AnyInvocable<void()>> running_;
  absl::btree_map<TimerId, absl::AnyInvocable<void()>> timers_;
  uint64_t next_timer_ = 0;
  grpc::Alarm timer_alarm_;
  // When the alarm that is set goes off; meaningless if none is.
  int64_t armed_for_ = 0;
  bool timer_armed_ = false;  // its event has not come yet
  TimerFired timer_fired_{this};
  Activity* activities_ = nullptr;
  int forwarding_ = 0;
  bool stopping_ = false;
  // An activity that entered while the worker stops must be cancelled too.
  bool entered_late_ = false;

  std::thread thread_;
};

// Workers with indices from 0, all but the first of which rest.
std::vector<std::unique_ptr<Worker>> MakeWorkers(
    int count, ThreadPool* assistants = nullptr);

}  // namespace fncache::proxy::transport

#endif  // FNCACHE_PROXY_TRANSPORT_WORKER_H_
