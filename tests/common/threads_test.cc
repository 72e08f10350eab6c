// SPDX-License-Identifier: Apache-2.0
#include "common/threads.h"

#include <system_error>
#include <thread>

#include "gtest/gtest.h"

namespace fncache {
namespace {

TEST(ThreadsTest, AFewCanBeMade) {
  EXPECT_TRUE(CheckThreads(0).ok());
  EXPECT_TRUE(CheckThreads(GrpcThreads()).ok());
}

TEST(ThreadsTest, OneThatCannotBeMadeEndsInOneLine) {
  EXPECT_EXIT(
      {
        ExitWhereThreadsAreMissing();
        std::thread([] {
          throw std::system_error(
              std::make_error_code(std::errc::resource_unavailable_try_again));
        }).join();
      },
      ::testing::ExitedWithCode(1), "^fncache: cannot make a thread; look at");
}

TEST(ThreadsTest, AnyOtherExceptionEndsAsBefore) {
  EXPECT_DEATH(
      {
        ExitWhereThreadsAreMissing();
        std::thread([] { throw 1; }).join();
      },
      "terminate called");
}

}  // namespace
}  // namespace fncache
