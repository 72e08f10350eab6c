// SPDX-License-Identifier: Apache-2.0
// Budget: how much memory the unfinished calls of all functions keep
// (inflight.bytes), and which call may keep more.
//
// Each byte is counted in one quota:
// - *kept*: what the calls of a connection keep. These are the first bytes of
//   each request and its metadata, which arrive without asking; complete
//   requests until the function is called; and calls that last. All of the
//   budget limits them, and the cap of each connection (connection_cap.h).
// - *reading*: 1/8, for larger requests while they arrive. They ask before
//   (read_grants.h).
// - *beyond*: the one request that exceeds that, so that others still have it.
// - *relayed*: 1/8, for calls whose bytes are forwarded as they arrive. Beyond
//   twice that, calls are ended.
// - *running*: the rest, for calls at the function and for their answers.
// One call at a time may exceed the quotas for reading, running and relayed,
// so that no call stalls for lack of memory.
//
// Misses run in order of arrival. One that has to wait is still kept by its
// connection. Once waiting misses have 1/8 of the budget, and none has left the
// queue for kStuck, further ones are refused.
//
// Every worker counts on its own cache line (its *lane*), so calls of ordinary
// size do not contend for one. Budget sums the lanes up when it needs a total.
//
// Thread-safety: any thread; each Charge and each Waiter only on its worker's.
#ifndef FNCACHE_PROXY_LIMITS_BUDGET_H_
#define FNCACHE_PROXY_LIMITS_BUDGET_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/mutex.h"
#include "http2/loop.h"

namespace fncache::proxy::limits {

class Budget {
 public:
  enum class Quota { kKept, kReading, kBeyond, kRunning, kRelayed };

  // A miss that waits for memory to run.
  class Waiter {
   public:
    // The miss may run: its bytes are counted as running. Called on the thread
    // of its loop.
    virtual void OnAdmitted() = 0;

   protected:
    ~Waiter() = default;

   private:
    friend class Budget;
    struct Ticket;
    std::shared_ptr<Ticket> ticket_;
  };
  enum class Admission { kAdmitted, kWaits, kRefused };

  // `lanes`: the number of workers. Their indices start at 0.
  Budget(size_t bound, int lanes);
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  // Charges bytes to a quota, or takes them off. On the thread of `lane`.
  void Add(Quota quota, int lane, size_t bytes);
  void Remove(Quota quota, int lane, size_t bytes);

  // True if the quota has `more` free bytes: kReading, kRunning, kRelayed.
  bool Fits(Quota quota, size_t more) const;
  // Bytes of the budget that no request uses.
  size_t free() const;
  // Bytes that requests which ask may still have.
  size_t free_to_grant() const;
  // True if `who` is from now on the one call that may exceed the quota, until
  // Yield. For kBeyond, the bytes of the one before must be gone, too.
  bool GoBeyond(Quota quota, const void* who);
  void Yield(Quota quota, const void* who);
  // Adds `change` to the number of requests and answers whose next bytes wait
  // for memory.
  void CountWaiting(int change) {
    waiting_to_arrive_.fetch_add(change, std::memory_order_relaxed);
  }
  // True if misses wait for memory to run.
  bool misses_wait() const {
    return queued_.load(std::memory_order_relaxed) > 0;
  }
  // True if little memory is left for requests that do not ask.
  bool LittleIsLeft() const { return free() < bound() / 4; }
  // True if calls wait for memory of this quota, or new ones would: kRelayed,
  // or any other.
  bool OthersWait(Quota quota) const;
  // Counts a call that was refused because of the memory that others use.
  void CountRefused() { refused_.fetch_add(1, std::memory_order_relaxed); }
  // True, and counted as refused, if the quota has no `bytes` for one more
  // relayed call. The first relayed call always fits.
  bool RefuseRelayed(size_t bytes);
  // True, and counted as refused, if relayed calls use more than twice their
  // quota. The first windows of many streams can cause that. `who` now uses
  // more; it may be the one call that exceeds the quota.
  bool EndRelayed(const void* who);

  // True if `bytes` fit into the quota for running. The first running call
  // always fits.
  bool MayRun(size_t bytes) const;
  // A miss of `bytes` wants to run.
  // - kAdmitted: its bytes are counted as running.
  // - kWaits: the caller counts its bytes until OnAdmitted, and asks GivesUp
  //   from time to time.
  // - kRefused: waiting misses have 1/8 of the budget, and none has left the
  //   queue for kStuck.
  Admission Admit(Waiter* waiter, http2::Loop* loop, int lane, size_t bytes);
  // Removes `waiter`. True if it was admitted, but OnAdmitted was not called
  // yet: its bytes are counted as running.
  bool Forget(Waiter* waiter);
  // True if `waiter` came when waiting misses had 1/8 of the budget, and none
  // has left the queue for kStuck. Then it is counted as refused and removed.
  bool GivesUp(Waiter* waiter);
  static constexpr absl::Duration kStuck = absl::Seconds(5);

  // Memory of calls that no caller waits for. Together they have 1/8 of the
  // budget; a single one may use more. They get none while misses wait.
  class Unattended {
   public:
    Unattended() = default;
    Unattended(Unattended&& other) noexcept
        : budget_(std::exchange(other.budget_, nullptr)),
          bytes_(other.bytes_) {}
    Unattended& operator=(Unattended&& other) noexcept {
      std::swap(budget_, other.budget_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Unattended() {
      if (budget_ != nullptr) {
        budget_->unattended_.fetch_sub(bytes_, std::memory_order_relaxed);
      }
    }
    bool taken() const { return budget_ != nullptr; }

   private:
    friend class Budget;
    Unattended(Budget* budget, size_t bytes) : budget_(budget), bytes_(bytes) {}
    Budget* budget_ = nullptr;
    size_t bytes_ = 0;
  };
  // taken() is false if there is no memory for `bytes`. Any thread.
  Unattended TakeUnattended(size_t bytes);

  // Changes the budget. Bytes that exceed the new one stay with their calls.
  void SetBound(size_t bound);

  size_t bound() const { return bound_.load(std::memory_order_relaxed); }
  size_t limit(Quota quota) const;
  // Bytes of requests that arrive or are looked up, and of calls that last.
  size_t reading() const;
  size_t running() const { return Sum(Quota::kRunning); }
  size_t relayed() const { return Sum(Quota::kRelayed); }
  size_t waiting() const { return waiting_.load(std::memory_order_relaxed); }
  uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }

 private:
  static constexpr size_t kQuotas = 5;
  struct alignas(64) Lane {
    std::atomic<size_t> bytes[kQuotas] = {};
  };
  size_t Sum(Quota quota) const;
  // True if one more waiting miss of `bytes` would exceed 1/8 of the budget.
  bool QueueIsFull(size_t bytes) const {
    return waiting() > 0 && waiting() + bytes > bound() / 8;
  }
  // True if misses wait and none has left the queue for kStuck.
  bool IsStuck() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TakeOut(const std::shared_ptr<Waiter::Ticket>& ticket)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Admits misses from the front of the queue, as long as the first fits.
  void AdmitWaiting();

  std::atomic<size_t> bound_;
  std::vector<Lane> lanes_;
  std::atomic<const void*> beyond_[kQuotas] = {};
  std::atomic<size_t> waiting_{0};
  std::atomic<size_t> queued_{0};  // the length of queue_
  std::atomic<size_t> unattended_{0};
  std::atomic<int> waiting_to_arrive_{0};
  std::atomic<uint64_t> refused_{0};

  mutable Mutex mutex_;
  std::list<std::shared_ptr<Waiter::Ticket>> queue_ ABSL_GUARDED_BY(mutex_);
  // When a miss was last admitted, or the queue was empty; nanoseconds of the
  // monotonic clock.
  int64_t moved_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Bytes that one call uses. The destructor takes them off.
class Charge {
 public:
  // `budget` may be null: then nothing is counted. `account` counts the bytes
  // in kKept, too; it outlives this, or LeaveAccount is called before. It may
  // be null.
  Charge(Budget* budget, Budget::Quota quota, int lane,
         size_t* account = nullptr)
      : budget_(budget), quota_(quota), lane_(lane), account_(account) {}
  ~Charge() { Set(0); }
  Charge(const Charge&) = delete;
  Charge& operator=(const Charge&) = delete;

  void Set(size_t bytes) {
    if (budget_ == nullptr || bytes == bytes_) return;
    if (bytes > bytes_) {
      budget_->Add(quota_, lane_, bytes - bytes_);
    } else {
      budget_->Remove(quota_, lane_, bytes_ - bytes);
    }
    if (account_ != nullptr && quota_ == Budget::Quota::kKept) {
      *account_ += bytes - bytes_;
    }
    bytes_ = bytes;
  }
  // Adds bytes that the budget counts already, not in kKept.
  void Adopt(size_t bytes) { bytes_ += bytes; }
  // Moves the bytes to another quota.
  void Move(Budget::Quota quota) {
    if (quota == quota_) return;
    const size_t bytes = bytes_;
    Set(0);
    quota_ = quota;
    Set(bytes);
  }
  // From now on only the budget counts the bytes.
  void LeaveAccount() {
    if (account_ != nullptr && quota_ == Budget::Quota::kKept) {
      *account_ -= bytes_;
    }
    account_ = nullptr;
  }
  size_t bytes() const { return bytes_; }
  Budget::Quota quota() const { return quota_; }

 private:
  Budget* const budget_;
  Budget::Quota quota_;
  const int lane_;
  size_t* account_;
  size_t bytes_ = 0;
};

}  // namespace fncache::proxy::limits

#endif  // FNCACHE_PROXY_LIMITS_BUDGET_H_
