// SPDX-License-Identifier: Apache-2.0
#include "common/standard_streams.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "gtest/gtest.h"

namespace fncache {
namespace {

// Exits with 0 if, with descriptor `fd` closed, exactly that one is filled.
[[noreturn]] void FillWithout(int fd) {
  close(fd);
  bool good = FillStandardStreams();
  for (int one = 0; one <= 2; ++one) {
    good = good && HadStandardStream(one) == (one != fd);
  }
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  good = good && std::filesystem::read_symlink(path) == "/dev/null";
  good = good && WriteStdout("").ok() == (fd != STDOUT_FILENO);
  std::_Exit(good ? 0 : 1);
}

TEST(StandardStreamsTest, EachIsFilledWhereItIsClosed) {
  for (int fd = 0; fd <= 2; ++fd) {
    EXPECT_EXIT(FillWithout(fd), ::testing::ExitedWithCode(0), "") << fd;
  }
}

TEST(StandardStreamsTest, ThoseThatAreOpenStay) {
  EXPECT_TRUE(FillStandardStreams());
  for (int fd = 0; fd <= 2; ++fd) EXPECT_TRUE(HadStandardStream(fd));
}

}  // namespace
}  // namespace fncache
