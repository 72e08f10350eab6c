// SPDX-License-Identifier: Apache-2.0
// Inflight: how many bytes the unfinished calls of all functions use, and which
// call may use more.
//
// The budget (inflight.bytes) is divided into quotas:
// - *reading*: 1/8, for requests that may arrive as a whole or are looked up.
// - *waiting*: 1/8, for misses that wait for memory.
// - *relayed*: 1/8, for calls whose bytes are forwarded as they arrive. Calls
//   are ended beyond twice that.
// - *running*: the rest, for calls that are at the function.
// - *arriving*: the whole budget, for bytes that were not granted: metadata and
//   the first bytes of each request, which are all of most requests. So a
//   caller that sends many of them takes no memory from granted requests. A
//   connection that uses little memory may use 1/8 more.
// One call at a time may exceed its quota, so that no call stalls for lack of
// memory. A request that does so is counted apart (kBeyond); otherwise others
// would have no quota until it ends. A connection may have only a fraction of
// the free capacity for reading and arriving bytes, so that later connections
// are served, too (dynamic thresholds: Choudhury and Hahne, "Dynamic queue
// length thresholds for shared-memory packet switches", 1998).
//
// Every worker counts on its own cache line, so calls of ordinary size do not
// share one. Inflight sums the lines up when it needs a total.
//
// Thread-safety: any thread; each Charge and each Waiter only on its worker's.
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
  // kBeyond: requests that exceed the quota for reading. kCalls: memory of the
  // calls themselves, if a connection has many.
  enum class Quota { kArriving, kReading, kBeyond, kRunning, kRelayed, kCalls };

  // A miss that waits for memory to run.
  class Waiter {
   public:
    // The miss may run: its bytes are counted as running. Called on its
    // worker's thread.
    virtual void OnAdmitted() = 0;

   protected:
    ~Waiter() = default;

   private:
    friend class Inflight;
    struct Ticket;
    std::shared_ptr<Ticket> ticket_;
  };
  // kWaitsInPlace: the miss waits, and its bytes stay in the quota that they
  // are in.
  enum class Admission { kAdmitted, kWaits, kWaitsInPlace, kRefused };

  // `workers`: the number of workers. Their indices start at 0.
  Inflight(size_t bound, int workers);
  Inflight(const Inflight&) = delete;
  Inflight& operator=(const Inflight&) = delete;

  // Charges bytes to a quota, or takes them off. On `worker`'s thread.
  void Add(Quota quota, Worker* worker, size_t bytes);
  void Remove(Quota quota, Worker* worker, size_t bytes);

  // True if the quota has `more` free bytes: kReading, kRunning, kRelayed.
  bool Fits(Quota quota, size_t more) const;
  // Free bytes of the quota for reading.
  size_t CapacityToRead() const;
  // True if a connection whose requests use `held` arriving bytes leaves
  // capacity for others.
  bool LeavesCapacity(size_t held) const;
  // True if arriving and reading bytes, and kCalls, use more than 3/4 of the
  // budget.
  bool LeavesLittle() const { return Coming() + calls() > bound() / 4 * 3; }
  // Counts a request that was refused because of the memory that others use.
  void CountRefused() { refused_.fetch_add(1, std::memory_order_relaxed); }
  // True, and counted as refused, if the quota has no `bytes` for one more
  // relayed call. The first relayed call always fits.
  bool RefuseRelayed(size_t bytes);
  // True, and counted as refused, if relayed calls use more than twice their
  // quota. The first windows of many streams can cause that. `who` now uses
  // more; it may be the one call that exceeds the quota.
  bool EndRelayed(const void* who);
  // Adds `change` to the number of requests that wait for memory to be read.
  void ReadersWait(int change) {
    readers_waiting_.fetch_add(change, std::memory_order_relaxed);
  }
  // True if such a request waits, or a new one would wait.
  bool readers_wait() const;
  // True if `who` is from now on the one call that may exceed the quota, until
  // Yield.
  bool GoBeyond(Quota quota, const void* who);
  // The same for a request of `bytes`. Earlier requests that exceeded the
  // quota, and are looked up or wait for their answer, may use half of the
  // budget. Beyond that, one request of ordinary size is let in every kStuck.
  bool ReadBeyond(const void* who, size_t bytes);
  void Yield(Quota quota, const void* who);
  // True if kBeyond has `bytes` free. Any thread.
  bool FitsBeyond(size_t bytes) const {
    return Sum(Quota::kBeyond) + bytes <= limit(Quota::kBeyond);
  }

  // True if `bytes` fit into the quota for running. The first running call
  // always fits.
  bool MayRun(size_t bytes) const;
  // A miss of `bytes` wants to run.
  // - kAdmitted: its bytes are counted as running.
  // - kWaits: they are counted as waiting, until OnAdmitted.
  // - kWaitsInPlace: the quota for waiting is full. The bytes stay in the quota
  //   for reading, which limits what arrives, until OnAdmitted. The caller asks
  //   GivesUp after kStuck.
  // - kRefused: the quota for waiting is full, and no miss has left it for
  //   kStuck.
  Admission Admit(Waiter* waiter, Worker* worker, size_t bytes);
  // Removes `waiter`. True if it was admitted, but OnAdmitted was not called
  // yet: its bytes are counted as running.
  bool Forget(Waiter* waiter);
  // True if `waiter` waits in place and no miss has left the queue for kStuck.
  // Then it is counted as refused and removed.
  bool GivesUp(Waiter* waiter);
  static constexpr absl::Duration kStuck = absl::Seconds(5);
  // Counts the bytes of `waiter` as waiting from now on.
  void Count(Waiter* waiter);
  // True if misses wait for memory to run.
  bool misses_wait() const {
    return queued_.load(std::memory_order_relaxed) > 0;
  }

  // Memory of calls that no caller waits for. Together they have 1/8 of the
  // budget; a single one may use more. They get none while misses wait.
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
  // taken() is false if there is no memory for `bytes`. Any thread.
  Unattended TakeUnattended(size_t bytes);

  // Changes the budget. Bytes that exceed the new one stay with their calls.
  void SetBound(size_t bound);

  size_t bound() const { return bound_.load(std::memory_order_relaxed); }
  size_t limit(Quota quota) const;
  // Bytes of requests: arriving, reading and beyond.
  size_t reading() const { return Coming() + Sum(Quota::kBeyond); }
  // Bytes of running calls, and kCalls.
  size_t running() const { return Sum(Quota::kRunning) + calls(); }
  size_t calls() const { return Sum(Quota::kCalls); }
  size_t relayed() const { return Sum(Quota::kRelayed); }
  size_t waiting() const { return waiting_.load(std::memory_order_relaxed); }
  uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }

 private:
  static constexpr size_t kQuotas = 6;
  struct alignas(64) Line {
    std::atomic<size_t> bytes[kQuotas] = {};
  };
  size_t Sum(Quota quota) const;
  // Bytes that arrive or are read.
  size_t Coming() const { return Sum(Quota::kArriving) + Sum(Quota::kReading); }
  void Dequeue(const Waiter::Ticket& ticket)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TakeOut(const std::shared_ptr<Waiter::Ticket>& ticket)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // True if a miss waits and the quota for waiting has no `bytes` free.
  bool IsFull(size_t bytes) const;
  // Admits misses from the front of the queue, as long as the first fits.
  void AdmitWaiting();

  std::atomic<size_t> bound_;
  std::vector<Line> lines_;
  std::atomic<const void*> beyond_[kQuotas] = {};
  // When a request last exceeded the half of the budget that kBeyond has;
  // nanoseconds of the monotonic clock.
  std::atomic<int64_t> beyond_half_{INT64_MIN / 2};
  std::atomic<size_t> waiting_{0};
  std::atomic<size_t> queued_{0};  // the length of queue_
  std::atomic<size_t> unattended_{0};
  std::atomic<int> readers_waiting_{0};
  std::atomic<uint64_t> refused_{0};

  Mutex mutex_;
  std::list<std::shared_ptr<Waiter::Ticket>> queue_ ABSL_GUARDED_BY(mutex_);
  // When a miss was last admitted, or the queue was empty; the same clock.
  int64_t moved_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Bytes that one call uses. The destructor takes them off.
class Charge {
 public:
  // `inflight` may be null: then nothing is counted.
  Charge(Inflight* inflight, Inflight::Quota quota, Worker* worker)
      : inflight_(inflight), quota_(quota), worker_(worker) {}
  ~Charge() { Set(0); }
  Charge(const Charge&) = delete;
  Charge& operator=(const Charge&) = delete;

  void Set(size_t bytes) {
    if (inflight_ == nullptr || bytes == bytes_) return;
    if (bytes > bytes_) {
      inflight_->Add(quota_, worker_, bytes - bytes_);
    } else {
      inflight_->Remove(quota_, worker_, bytes_ - bytes);
    }
    bytes_ = bytes;
  }
  // Adds bytes that are counted already.
  void Adopt(size_t bytes) { bytes_ += bytes; }
  // Moves the bytes to another quota.
  void Move(Inflight::Quota quota) {
    if (quota == quota_) return;
    const size_t bytes = bytes_;
    Set(0);
    quota_ = quota;
    Set(bytes);
  }
  size_t bytes() const { return bytes_; }
  Inflight::Quota quota() const { return quota_; }

 private:
  Inflight* const inflight_;
  Inflight::Quota quota_;
  Worker* const worker_;
  size_t bytes_ = 0;
};

}  // namespace fncache::proxy::transport

#endif  // FNCACHE_PROXY_TRANSPORT_INFLIGHT_H_
