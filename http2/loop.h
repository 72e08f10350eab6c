// SPDX-License-Identifier: Apache-2.0
// Loop: the event loop of one thread: sockets (epoll), timers, and tasks that
// other threads post.
//
// It runs in iterations, which the code calls turns. An iteration serves the
// ready sockets, the posted tasks and the due timers. Then it calls every
// Ender, such as a connection that writes its gathered output.
//
// Thread-safety: Post and last_iteration may be called from any thread. All
// other functions are called on the thread in Run or RunOnce, or while no
// thread is in them.
#ifndef FNCACHE_HTTP2_LOOP_H_
#define FNCACHE_HTTP2_LOOP_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"

struct epoll_event;

namespace fncache::http2 {

// When a timer goes off, in nanoseconds of the monotonic clock, and a number.
using TimerId = std::pair<int64_t, uint64_t>;

class Loop {
 public:
  // Receives the events of a socket.
  class Watcher {
   public:
    // Prefetches the memory for OnReady, because this watcher is served next.
    virtual void Prefetch() const {}
    // `events` are epoll's. Removing any socket from the loop is allowed.
    virtual void OnReady(uint32_t events) = 0;

   protected:
    ~Watcher() = default;
  };

  // Is called when the iteration ends.
  class Ender {
   public:
    virtual void OnIterationEnd() = 0;

   protected:
    ~Ender() = default;

   private:
    friend class Loop;
    size_t position_ = 0;  // in enders_, while it is asked
    bool asked_ = false;
  };

  // Does work that takes long, such as a TLS signature.
  class LongWorker {
   public:
    virtual void OnLongWork() = 0;

   protected:
    ~LongWorker() = default;

   private:
    friend class Loop;
    std::list<LongWorker*>::iterator position_;  // in queue_
    bool queued_ = false;
  };

  using Idle = absl::AnyInvocable<bool()>;

  // `buffer_size` is the most bytes that one read of a socket takes. TLS needs
  // 16 KiB. Connections read less where their streams' windows are smaller.
  explicit Loop(size_t buffer_size = 192 << 10);
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // Serves iterations until Quit.
  void Run();
  // Run returns at the end of this iteration.
  void Quit() { quit_ = true; }
  // Serves one iteration, for callers with their own schedule. First it ends
  // the work that was begun between iterations. Then it waits for events, at
  // most until `until` of the monotonic clock, as precisely as the kernel does
  // (Run's timers: to the millisecond). It does not call SetIdle's function.
  void RunOnce(int64_t until);

  // Runs `task` in a later iteration, after the tasks posted before.
  void Post(absl::AnyInvocable<void()> task);

  // Runs `task` after `delay`, unless cancelled before.
  TimerId After(absl::Duration delay, absl::AnyInvocable<void()> task);
  // Harmless if it went off.
  void Cancel(const TimerId& timer) { timers_.erase(timer); }

  // `watcher` gets these events of `fd` until Unwatch. False, with errno, if
  // the kernel lacks memory.
  bool Watch(int fd, uint32_t events, Watcher* watcher);
  void Rewatch(int fd, uint32_t events, Watcher* watcher);
  void Unwatch(int fd, Watcher* watcher);

  // OnIterationEnd is called once, when this iteration ends. Between
  // iterations: when the next one ends. Forget cancels that, and must be called
  // before `ender` is destroyed.
  void AtIterationEnd(Ender* ender);
  void Forget(Ender* ender);

  // `idle` (may be null) is called at the end of iterations, before the loop
  // waits. If it returns true, it did something, and the loop polls for events
  // first.
  void SetIdle(Idle idle) { idle_ = std::move(idle); }

  // When the last iteration ended, in nanoseconds of the monotonic clock.
  int64_t last_iteration() const {
    return last_iteration_.load(std::memory_order_relaxed);
  }
  // The monotonic clock when this iteration began.
  int64_t now() const { return now_; }

  // OnLongWork is called once, after the workers queued before. An iteration
  // calls at most kLongWork of them, and serves everything else in between.
  // Unqueue cancels that, and must be called before `worker` is destroyed.
  void Queue(LongWorker* worker);
  void Unqueue(LongWorker* worker);

  // The buffer for one read of a socket. The reader may use it until it
  // returns.
  char* buffer() { return buffer_.get(); }
  size_t buffer_size() const { return buffer_size_; }

 private:
  // Limit of workers in one iteration, because everything else waits meanwhile.
  static constexpr int kLongWork = 2;

  void Wake();
  void BlockSigpipe();
  // The watcher of that event. Null if the event is the eventfd's, or if the
  // watcher was removed.
  Watcher* WatcherOf(const epoll_event& event) const;
  void Serve(int count, const epoll_event* events);
  bool RunPosted();
  void RunTimers();
  void RunLongWork();
  void EndIteration();
  // Milliseconds that epoll may wait; -1 = for ever.
  int WaitFor() const;

  int epoll_ = -1;
  int wake_ = -1;  // an eventfd
  bool quit_ = false;
  bool sigpipe_blocked_ = false;
  int64_t now_ = 0;
  const size_t buffer_size_;
  const std::unique_ptr<char[]> buffer_;
  absl::btree_map<TimerId, absl::AnyInvocable<void()>> timers_;
  uint64_t next_timer_ = 0;
  std::vector<Ender*> enders_;
  std::list<LongWorker*> queue_;
  Idle idle_;
  // Watchers that were removed in this iteration. Their events must not be
  // served.
  std::vector<Watcher*> removed_;
  bool serving_ = false;
  std::atomic<int64_t> last_iteration_;

  std::mutex mutex_;
  std::vector<absl::AnyInvocable<void()>> posted_;  // under mutex_
  bool woken_ = false;                              // under mutex_
  std::vector<absl::AnyInvocable<void()>> running_;
};

}  // namespace fncache::http2

#endif  // FNCACHE_HTTP2_LOOP_H_
