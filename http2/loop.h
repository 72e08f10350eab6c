// SPDX-License-Identifier: Apache-2.0
// Loop: what one thread waits for: sockets (epoll), timers, and tasks that
// other threads post.
//
// It works in turns. A turn serves the sockets that are ready, the tasks posted
// and the timers due, and then whoever asked for the turn's end, such as
// connections that write what the turn has gathered.
//
// Thread-safety: Post and last_turn may be called from any thread, all
// else on the thread in Run or RunOnce, or while nobody is in them.
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
  // Somebody who waits for a socket.
  class Watcher {
   public:
    // It is served next: asks the caches for what that takes.
    virtual void Prefetch() const {}
    // `events` are epoll's. Removing any socket from the loop is allowed.
    virtual void OnReady(uint32_t events) = 0;

   protected:
    ~Watcher() = default;
  };

  // Somebody who has something to do when the turn ends.
  class Ender {
   public:
    virtual void OnTurnEnd() = 0;

   protected:
    ~Ender() = default;

   private:
    friend class Loop;
    size_t place_ = 0;  // in enders_, while it is asked
    bool asked_ = false;
  };

  // Somebody with work to do that takes long, a signature of TLS say.
  class LongWorker {
   public:
    virtual void OnLongWork() = 0;

   protected:
    ~LongWorker() = default;

   private:
    friend class Loop;
    std::list<LongWorker*>::iterator place_;  // in queue_
    bool queued_ = false;
  };

  using Idle = absl::AnyInvocable<bool()>;

  // What one read of a socket takes at most, which TLS needs to be 16 KiB.
  // Connections read less where their streams' windows are smaller.
  explicit Loop(size_t buffer_size = 192 << 10);
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // Serves turns until Quit.
  void Run();
  // Run returns at the end of this turn.
  void Quit() { quit_ = true; }
  // Serves one turn, for callers with a schedule of their own: first ends what
  // was begun between turns, then waits for something to do, until this moment
  // of the monotonic clock at most. That is met as the kernel meets it (Run's
  // timers are met to the millisecond). SetIdle has no part in it.
  void RunOnce(int64_t until);

  // Runs `task` in a later turn, after what was posted before.
  void Post(absl::AnyInvocable<void()> task);

  // Runs `task` after `delay`, unless cancelled before.
  TimerId After(absl::Duration delay, absl::AnyInvocable<void()> task);
  // Harmless if it went off.
  void Cancel(const TimerId& timer) { timers_.erase(timer); }

  // `watcher` hears of these events of `fd` until Unwatch. False, with errno,
  // where the kernel has no room.
  bool Watch(int fd, uint32_t events, Watcher* watcher);
  void Rewatch(int fd, uint32_t events, Watcher* watcher);
  void Unwatch(int fd, Watcher* watcher);

  // OnTurnEnd is called once, when this turn ends. Between turns: when the next
  // one does. Forget takes that back, and must be called before `ender` goes.
  void AtTurnEnd(Ender* ender);
  void Forget(Ender* ender);

  // Is asked at the end of turns, before the loop waits: true if it did
  // something, so that the loop looks for events first. May be null.
  void SetIdle(Idle idle) { idle_ = std::move(idle); }

  // When a turn ended last; nanoseconds of the monotonic clock.
  int64_t last_turn() const {
    return last_turn_.load(std::memory_order_relaxed);
  }
  // The monotonic clock as this turn began.
  int64_t now() const { return now_; }

  // OnLongWork is called once, behind those who asked before: a turn has a few
  // of them, and serves all others in between. Unqueue takes that back, and
  // must be called before `worker` goes.
  void Queue(LongWorker* worker);
  void Unqueue(LongWorker* worker);

  // For one read of a socket; whoever reads uses it until it returns.
  char* buffer() { return buffer_.get(); }
  size_t buffer_size() const { return buffer_size_; }

 private:
  // Long work in a turn: others wait for it meanwhile.
  static constexpr int kLongWork = 2;

  void Wake();
  void BlockSigpipe();
  // Who waits for that event, and has not stopped; null: it is the eventfd's,
  // or that is so.
  Watcher* WatcherOf(const epoll_event& event) const;
  void Serve(int count, const epoll_event* events);
  bool RunPosted();
  void RunTimers();
  void RunLongWork();
  void EndTurn();
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
  // Watchers that were removed in this turn, whose events must not be served.
  std::vector<Watcher*> removed_;
  bool serving_ = false;
  std::atomic<int64_t> last_turn_;

  std::mutex mutex_;
  std::vector<absl::AnyInvocable<void()>> posted_;  // under mutex_
  bool woken_ = false;                              // under mutex_
  std::vector<absl::AnyInvocable<void()>> running_;
};

}  // namespace fncache::http2

#endif  // FNCACHE_HTTP2_LOOP_H_
