// SPDX-License-Identifier: Apache-2.0
// Mutex: absl::Mutex that ThreadSanitizer can see.
//
// Debian's abseil is not instrumented, so tsan misses the order that its
// mutexes create and reports races that are none. In a tsan build every
// operation tells tsan what it did; in any other build this is absl::Mutex and
// costs the same. Use it, and MutexLock and ReaderMutexLock, instead of
// abseil's own. CondVar's waits release and reacquire the mutex as usual.
#ifndef FNCACHE_COMMON_MUTEX_H_
#define FNCACHE_COMMON_MUTEX_H_

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

// The build defines FNCACHE_TSAN with gcc (cmake/Toolbox.cmake says why).
#if defined(FNCACHE_TSAN)
#elif defined(__SANITIZE_THREAD__)
#define FNCACHE_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define FNCACHE_TSAN 1
#endif
#endif

#ifdef FNCACHE_TSAN
#include <sanitizer/tsan_interface.h>
#define FNCACHE_TSAN_CALL(call) call
#else
#define FNCACHE_TSAN_CALL(call) \
  do {                          \
  } while (0)
#endif

namespace fncache {

// Tells tsan that what this thread did so far happened before whatever another
// thread does after AcquireFrom(address). For hand-overs through libraries that
// tsan does not see, such as a tag through a completion queue.
inline void ReleaseTo(void* address) {
  FNCACHE_TSAN_CALL(__tsan_release(address));
}
inline void AcquireFrom(void* address) {
  FNCACHE_TSAN_CALL(__tsan_acquire(address));
}

class ABSL_LOCKABLE Mutex {
 public:
  Mutex() { FNCACHE_TSAN_CALL(__tsan_mutex_create(this, 0)); }
  ~Mutex() { FNCACHE_TSAN_CALL(__tsan_mutex_destroy(this, 0)); }
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() {
    FNCACHE_TSAN_CALL(__tsan_mutex_pre_lock(this, 0));
    mutex_.Lock();
    FNCACHE_TSAN_CALL(__tsan_mutex_post_lock(this, 0, 0));
  }
  void Unlock() ABSL_UNLOCK_FUNCTION() {
    FNCACHE_TSAN_CALL(__tsan_mutex_pre_unlock(this, 0));
    mutex_.Unlock();
    FNCACHE_TSAN_CALL(__tsan_mutex_post_unlock(this, 0));
  }
  void ReaderLock() ABSL_SHARED_LOCK_FUNCTION() {
    FNCACHE_TSAN_CALL(__tsan_mutex_pre_lock(this, __tsan_mutex_read_lock));
    mutex_.ReaderLock();
    FNCACHE_TSAN_CALL(__tsan_mutex_post_lock(this, __tsan_mutex_read_lock, 0));
  }
  void ReaderUnlock() ABSL_UNLOCK_FUNCTION() {
    FNCACHE_TSAN_CALL(__tsan_mutex_pre_unlock(this, __tsan_mutex_read_lock));
    mutex_.ReaderUnlock();
    FNCACHE_TSAN_CALL(__tsan_mutex_post_unlock(this, __tsan_mutex_read_lock));
  }

 private:
  friend class CondVar;
  absl::Mutex mutex_;
};

class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex* mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex)
      : mutex_(mutex) {
    mutex_->Lock();
  }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mutex_->Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex* const mutex_;
};

class ABSL_SCOPED_LOCKABLE ReaderMutexLock {
 public:
  explicit ReaderMutexLock(Mutex* mutex) ABSL_SHARED_LOCK_FUNCTION(mutex)
      : mutex_(mutex) {
    mutex_->ReaderLock();
  }
  ~ReaderMutexLock() ABSL_UNLOCK_FUNCTION() { mutex_->ReaderUnlock(); }
  ReaderMutexLock(const ReaderMutexLock&) = delete;
  ReaderMutexLock& operator=(const ReaderMutexLock&) = delete;

 private:
  Mutex* const mutex_;
};

// A condition variable for Mutex. Wait in a loop around the condition: wake-ups
// may be spurious.
class CondVar {
 public:
  void Wait(Mutex* mutex) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    FNCACHE_TSAN_CALL(__tsan_mutex_pre_unlock(mutex, 0));
    FNCACHE_TSAN_CALL(__tsan_mutex_post_unlock(mutex, 0));
    cond_.Wait(&mutex->mutex_);
    FNCACHE_TSAN_CALL(__tsan_mutex_pre_lock(mutex, 0));
    FNCACHE_TSAN_CALL(__tsan_mutex_post_lock(mutex, 0, 0));
  }
  // Returns true if it timed out.
  bool WaitWithTimeout(Mutex* mutex, absl::Duration timeout)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    FNCACHE_TSAN_CALL(__tsan_mutex_pre_unlock(mutex, 0));
    FNCACHE_TSAN_CALL(__tsan_mutex_post_unlock(mutex, 0));
    const bool timed_out = cond_.WaitWithTimeout(&mutex->mutex_, timeout);
    FNCACHE_TSAN_CALL(__tsan_mutex_pre_lock(mutex, 0));
    FNCACHE_TSAN_CALL(__tsan_mutex_post_lock(mutex, 0, 0));
    return timed_out;
  }
  void Signal() { cond_.Signal(); }
  void SignalAll() { cond_.SignalAll(); }

 private:
  absl::CondVar cond_;
};

}  // namespace fncache

#endif  // FNCACHE_COMMON_MUTEX_H_
