// SPDX-License-Identifier: Apache-2.0
// Does right what planted_race.cc does wrong, in each way that common/mutex.h
// offers: exclusive and shared locks, waits with and without time-out, and a
// hand-over by address. Under tsan none of it may be reported.
#include <atomic>
#include <cstdio>
#include <thread>
#include <vector>

#include "common/mutex.h"

namespace {

constexpr int kThreads = 4;
constexpr int kRounds = 1000;

template <typename Function>
void OnThreads(int count, Function function) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back(function, i);
  for (std::thread& thread : threads) thread.join();
}

// Writers exclude each other; readers exclude writers.
bool Locks() {
  fncache::Mutex mutex;
  int a = 0;
  int b = 0;
  std::atomic<bool> torn{false};
  OnThreads(kThreads, [&](int thread) {
    for (int i = 0; i < kRounds; ++i) {
      if (thread % 2 == 0) {
        fncache::MutexLock lock(&mutex);
        ++a;
        ++b;
      } else {
        fncache::ReaderMutexLock lock(&mutex);
        if (a != b) torn = true;
      }
    }
  });
  return !torn && a == kThreads / 2 * kRounds;
}

// Two threads alternate, each waiting for the other.
bool Waits(bool with_timeout) {
  fncache::Mutex mutex;
  fncache::CondVar changed;
  int step = 0;
  OnThreads(2, [&](int thread) {
    for (int i = 0; i < kRounds; ++i) {
      fncache::MutexLock lock(&mutex);
      while (step % 2 != thread) {
        if (with_timeout) {
          changed.WaitWithTimeout(&mutex, absl::Milliseconds(1));
        } else {
          changed.Wait(&mutex);
        }
      }
      ++step;
      changed.SignalAll();
    }
  });
  return step == 2 * kRounds;
}

// As through a completion queue: the order itself is one that tsan must not
// take from the atomic, which is relaxed.
bool HandsOver() {
  bool right = true;
  for (int i = 0; i < kRounds; ++i) {
    int value = 0;
    std::atomic<int*> queue{nullptr};
    std::thread taker([&] {
      int* got = nullptr;
      while (got == nullptr) got = queue.load(std::memory_order_relaxed);
      fncache::AcquireFrom(got);
      if (*got != 7) right = false;
    });
    value = 7;
    fncache::ReleaseTo(&value);
    queue.store(&value, std::memory_order_relaxed);
    taker.join();
  }
  return right;
}

}  // namespace

int main() {
  const bool right = Locks() && Waits(false) && Waits(true) && HandsOver();
  std::printf("%s\n", right ? "ordered" : "wrong");
  return right ? 0 : 1;
}
