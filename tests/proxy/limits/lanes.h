// SPDX-License-Identifier: Apache-2.0
// Two started workers, whose event loops serve the waiters of a budget.
#ifndef FNCACHE_TESTS_PROXY_LIMITS_LANES_H_
#define FNCACHE_TESTS_PROXY_LIMITS_LANES_H_

#include <memory>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "proxy/limits/budget.h"
#include "tests/proxy/loopback.h"

namespace fncache::proxy::limits {

class LanesTest : public ::testing::Test {
 protected:
  LanesTest() {
    for (const auto& worker : workers_) worker->Start();
  }
  ~LanesTest() override {
    for (const auto& worker : workers_) worker->Stop();
  }
  http2::Loop* loop(int lane) {
    return workers_[static_cast<size_t>(lane)]->loop();
  }
  void Do(int lane, absl::AnyInvocable<void()> task) {
    ASSERT_TRUE(
        DoOn(workers_[static_cast<size_t>(lane)].get(), std::move(task)));
  }

  const std::vector<std::unique_ptr<transport::Worker>> workers_ =
      transport::MakeWorkers(2);
  // Reading 100, running 600, relayed 100; 100 may wait.
  Budget budget_{800, 2};
};

}  // namespace fncache::proxy::limits

#endif  // FNCACHE_TESTS_PROXY_LIMITS_LANES_H_
