// SPDX-License-Identifier: Apache-2.0
#include "tests/docs/session.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/temp_dir.h"

namespace fncache::docs {
namespace {

using ::testing::HasSubstr;
using testing::ReadFile;
using testing::TempDir;

constexpr char kServe[] =
    "fncache function --insecure --listen 127.0.0.1:9444 &\n"
    "build/release/fncache serve --config examples/fncache.yaml &\n";

// Both daemons have all of the pages' ports for themselves.
TEST(SessionTest, TwoRunBesideEachOther) {
  Session one;
  Session other;
  absl::Status status = one.Run(kServe);
  EXPECT_TRUE(status.ok()) << status;
  status = other.Run(kServe);
  EXPECT_TRUE(status.ok()) << status;
  for (Session* session : {&one, &other}) {
    status = session->Run("exec 3<>/dev/tcp/$(echo 127.0.0.1:9901 | tr : /)");
    EXPECT_TRUE(status.ok()) << status;
  }
}

TEST(SessionTest, CommandThatEndsInsteadOfListeningIsAnError) {
  Session session;
  const absl::Status status =
      session.Run("build/release/fncache serve --config nothing.yaml &\n");
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("instead of listening"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("nothing.yaml"));
}

// Such a page works only where the port is free.
TEST(SessionTest, APortThatADefaultNamedIsAnError) {
  Session session;
  // Session replaces ports that a command names; a format has none.
  const absl::Status status =
      session.Run("printf 'listening on 127.0.0.1:%d\\n' 9901\n");
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("port 9901"));
}

TEST(SessionTest, WhatItLeftRunningEndsWithTheProcess) {
  // Processes that the other process leaves behind become ours to wait for.
  ASSERT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  const TempDir dir;
  int alive[2];  // held open by the other process and all that it starts
  ASSERT_EQ(pipe(alive), 0);
  const pid_t holder = fork();
  if (holder == 0) {
    Session session;
    const absl::Status status = session.Run(
        absl::StrCat("sleep 100000 & echo $! >", dir.File("pid"), "\n"));
    if (!status.ok()) _exit(1);
    raise(SIGKILL);
  }
  close(alive[1]);
  int ended = 0;
  ASSERT_EQ(waitpid(holder, &ended, 0), holder);
  ASSERT_TRUE(WIFSIGNALED(ended)) << ended;
  const pid_t left = std::stoi(ReadFile(dir.File("pid")));
  pollfd end = {alive[0], POLLIN, 0};
  ASSERT_EQ(poll(&end, 1, /*timeout=*/60'000), 1);
  close(alive[0]);
  ASSERT_EQ(waitpid(left, &ended, 0), left);
  EXPECT_TRUE(WIFSIGNALED(ended) && WTERMSIG(ended) == SIGKILL) << ended;
}

TEST(SessionTest, LinesAreLikeOthersButForNumbersAndOrder) {
  const std::string said =
      "tier    entries     bytes\nmemory    1,360  16.5 KiB\ndisk         12"
      "       0 B\nkey 3c73ef9702d3af697ecd11f40b317699: up 3.2s, p99 281us\n";
  std::string missing;
  EXPECT_TRUE(HasLinesLike(said,
                           "key 00000000000000000000000000000001: up 1m2s, p99 "
                           "1.5ms\n\ndisk  9  914 MiB\nmemory  5  1 B\n",
                           &missing))
      << missing;
  EXPECT_FALSE(HasLinesLike(said, "memory 5 1 B\ndisk 9 none\n", &missing));
  EXPECT_EQ(missing, "disk N none");
  EXPECT_FALSE(HasLinesLike(said, "tier entries\n", &missing));
}

}  // namespace
}  // namespace fncache::docs
