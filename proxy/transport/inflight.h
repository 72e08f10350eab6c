// SPDX-License-Identifier: Apache-2.0
// Inflight: how many bytes the calls hold that have not ended, all functions
// together, and who may hold more.
//
// The bound is shared out: requests that were given room to come as a whole
// (*reading*), or are looked up, have an eighth; misses that are *waiting* for
// room an eighth; calls that are *relayed*, as bytes come, an eighth, and twice
// that before they are ended; *running* calls, which are at the function, what
// these leave. One holder at a time may go beyond its share, so that nothing
// can stand still for lack of room; a request that does is counted apart, as
// others would have none of theirs for as long as it takes. What *arrives*
// without having been given room (the first of each request, which is all of
// most, and metadata) is bounded by all of it, so that those who send much of
// that take no room from others' requests, and by an eighth more where it comes
// on a connection that holds little. Of both, no connection may have more
// than a part of what others leave, so that whoever comes later is served, too
// (dynamic thresholds: Choudhury and Hahne, "Dynamic queue length thresholds
// for shared-memory packet switches", 1998).
//
// Every worker counts on its own cache line, so that calls of ordinary size
// share nothing; whoever wants more adds the lines up.
//
// Thread-safety: any thread, but each Held, and each Waiter, on its worker's.
#ifndef FNCACHE_PROXY_TRANSPORT_INFLIGHT_H_
#define FNCACHE_PROXY_TRANSPORT_INFLIGHT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/mutex.h"
#include "proxy/transport/worker.h"

namespace fncache::proxy::transport {

class Inflight {
 public:
  // kBeyond: requests that have gone beyond what there is for reading. kCalls:
  // what many calls of a connection take themselves.
  enum class Share { kArriving, kReading, kBeyond, kRunning, kRelayed, kCalls };

  // A miss that waits for room to run.
  class Waiter {
   public:
    // It may run now: its bytes are counted as running. On its worker's thread.
    virtual void OnAdmitted() = 0;

   protected:
    ~Waiter() = default;

   private:
    friend class Inflight;
    struct Ticket;
    std::shared_ptr<Ticket> ticket_;
  };
  // kWaitsInPlace: it waits, and its bytes stay counted where they are.
  enum class Admission { kAdmitted, kWaits, kWaitsInPlace, kRefused };

  // `workers`: how many there are, with indices from 0.
  Inflight(size_t bound, int workers);
  Inflight(const Inflight&) = delete;
  Inflight& operator=(const Inflight&) = delete;

  // Whoever holds bytes says so, on `worker`'s thread.
  void Add(Share share, Worker* worker, size_t bytes);
  void Remove(Share share, Worker* worker, size_t bytes);

  // Whether there is room for so many bytes more: kReading, kRunning, kRelayed.
  bool HasRoom(Share share, size_t more) const;
  // How many more may be read.
  size_t RoomToRead() const;
  // One connection's requests hold `held` bytes of what arrives, which leaves
  // some to others.
  bool LeavesRoom(size_t held) const;
  // What arrives, and the calls whose answers are not taken, leave others
  // little.
  bool LeavesLittle() const { return Coming() + calls() > bound() / 4 * 3; }
  // A request was refused for what others hold.
  void CountRefused() { refused_.fetch_add(1, std::memory_order_relaxed); }
  // There is no room for one more relayed call, which takes so much: true, and
  // counted as refused, if so. Where none is, there is room for one.
  bool RefuseRelayed(size_t bytes);
  // More is relayed than may be, as windows at the start of many streams can
  // bring about: true, and counted as refused, if so. `who`, which holds more
  // now, may be the one that goes beyond.
  bool EndRelayed(const void* who);
  // So many more, or fewer, requests wait for room to be read.
  void ReadersWait(int change) {
    readers_waiting_.fetch_add(change, std::memory_order_relaxed);
  }
  // Some do, or would.
  bool readers_wait() const;
  // The one that may go beyond: true if that is `who` from now on, until Yield.
  bool GoBeyond(Share share, const void* who);
  // The same for a request of which so much is to be read. What has gone beyond
  // before, and is looked up or waits for its answer, may be half of all; then
  // one of ordinary size goes beyond every 5 s.
  bool ReadBeyond(const void* who, size_t bytes);
  void Yield(Share share, const void* who);
  // Whether so many bytes more may go beyond the bound in all. Any thread.
  bool HasRoomBeyond(size_t bytes) const {
    return Sum(Share::kBeyond) + bytes <= limit(Share::kBeyond);
  }

  // There is room for so much to run; or nothing runs, and then there is for
  // one.
  bool MayRun(size_t bytes) const;
  // A miss of so many bytes wants to run. kAdmitted: they are counted as
  // running. Otherwise `waiter` is told when they are. kWaits: they are counted
  // as waiting until then. kWaitsInPlace: there is no room for that, and it
  // holds its place among what is read, of which no more comes than there is
  // room for. kRefused: waiting is full, and nothing has left it for 5 s. Those
  // that wait in place ask GivesUp then.
  Admission Admit(Waiter* waiter, Worker* worker, size_t bytes);
  // `waiter` waits no more. True if it was admitted, and not told yet: its
  // bytes are counted as running.
  bool Forget(Waiter* waiter);
  // `waiter` waits in place, and nothing has left waiting for 5 s: true, and
  // counted as refused; it waits no more.
  bool GivesUp(Waiter* waiter);
  static constexpr absl::Duration kStuck = absl::Seconds(5);
  // Its bytes are counted as waiting from now on.
  void Count(Waiter* waiter);
  // Misses wait for room to run.
  bool misses_wait() const {
    return queued_.load(std::memory_order_relaxed) > 0;
  }

  // Room of calls that nobody waits for: they have an eighth of the bound
  // between them, or one of them more, and none while misses wait for room.
  class Unattended {
   public:
    Unattended() = default;
    Unattended(Unattended&& other) noexcept
        : inflight_(std::exchange(other.inflight_, nullptr)),
          bytes_(other.bytes_) {}
    Unattended& operator=(Unattended&& other) noexcept {
      std::swap(inflight_, other.inflight_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Unattended() {
      if (inflight_ != nullptr) {
        inflight_->unattended_.fetch_sub(bytes_, std::memory_order_relaxed);
      }
    }
    bool taken() const { return inflight_ != nullptr; }

   private:
    friend class Inflight;
    Unattended(Inflight* inflight, size_t bytes)
        : inflight_(inflight), bytes_(bytes) {}
    Inflight* inflight_ = nullptr;
    size_t bytes_ = 0;
  };
  // Not taken if there is none for so many bytes. Any thread.
  Unattended TakeUnattended(size_t bytes);

  // Another bound from now on. What is held beyond it is not taken away.
  void SetBound(size_t bound);

  size_t bound() const { return bound_.load(std::memory_order_relaxed); }
  size_t limit(Share share) const;
  // What arrives, and what is beyond, too.
  size_t reading() const { return Coming() + Sum(Share::kBeyond); }
  // And what calls take themselves.
  size_t running() const { return Sum(Share::kRunning) + calls(); }
  size_t calls() const { return Sum(Share::kCalls); }
  size_t relayed() const { return Sum(Share::kRelayed); }
  size_t waiting() const { return waiting_.load(std::memory_order_relaxed); }
  uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }

 private:
  static constexpr size_t kShares = 6;
  struct alignas(64) Line {
    std::atomic<size_t> bytes[kShares] = {};
  };
  size_t Sum(Share share) const;
  // What arrives and what is being read.
  size_t Coming() const { return Sum(Share::kArriving) + Sum(Share::kReading); }
  void Dequeue(const Waiter::Ticket& ticket)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TakeOut(const std::shared_ptr<Waiter::Ticket>& ticket)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // So much has no room to wait, where some does.
  bool IsFull(size_t bytes) const;
  // Lets those run for whom there is room.
  void AdmitWaiting();

  std::atomic<size_t> bound_;
  std::vector<Line> lines_;
  std::atomic<const void*> beyond_[kShares] = {};
  // When one went beyond the half; nanoseconds of the monotonic clock.
  std::atomic<int64_t> beyond_half_{INT64_MIN / 2};
  std::atomic<size_t> waiting_{0};
  std::atomic<size_t> queued_{0};  // the length of queue_
  std::atomic<size_t> unattended_{0};
  std::atomic<int> readers_waiting_{0};
  std::atomic<uint64_t> refused_{0};

  Mutex mutex_;
  std::list<std::shared_ptr<Waiter::Ticket>> queue_ ABSL_GUARDED_BY(mutex_);
  // When something was admitted, or the queue was empty; the same clock.
  int64_t moved_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Bytes that one call holds, given back at its end.
class Held {
 public:
  // `inflight` may be null: nothing is counted.
  Held(Inflight* inflight, Inflight::Share share, Worker* worker)
      : inflight_(inflight), share_(share), worker_(worker) {}
  ~Held() { Set(0); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

  void Set(size_t bytes) {
    if (inflight_ == nullptr || bytes == bytes_) return;
    if (bytes > bytes_) {
      inflight_->Add(share_, worker_, bytes - bytes_);
    } else {
      inflight_->Remove(share_, worker_, bytes_ - bytes);
    }
    bytes_ = bytes;
  }
  // They are counted already.
  void Adopt(size_t bytes) { bytes_ += bytes; }
  // They are another share's from now on.
  void Move(Inflight::Share share) {
    if (share == share_) return;
    const size_t bytes = bytes_;
    Set(0);
    share_ = share;
    Set(bytes);
  }
  size_t bytes() const { return bytes_; }
  Inflight::Share share() const { return share_; }

 private:
  Inflight* const inflight_;
  Inflight::Share share_;
  Worker* const worker_;
  size_t bytes_ = 0;
};

}  // namespace fncache::proxy::transport

#endif  // FNCACHE_PROXY_TRANSPORT_INFLIGHT_H_
