// SPDX-License-Identifier: Apache-2.0
// A data race, planted: two threads write one variable, and no mutex that both
// hold orders them. Under tsan this must be reported; a test fails if it is
// not, because then no other test's silence means anything.
#include <cstdio>
#include <thread>

#include "common/mutex.h"

namespace {

struct Shared {
  fncache::Mutex one;
  fncache::Mutex other;
  int written = 0;
};

}  // namespace

int main() {
  Shared shared;
  std::thread first([&shared] {
    for (int i = 0; i < 1000; ++i) {
      fncache::MutexLock lock(&shared.one);
      ++shared.written;
    }
  });
  std::thread second([&shared] {
    for (int i = 0; i < 1000; ++i) {
      // The wrong mutex.
      fncache::MutexLock lock(&shared.other);
      ++shared.written;
    }
  });
  first.join();
  second.join();
  std::printf("written %d\n", shared.written);
  return 0;
}
