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

}  // namespace
}  // namespace fncache::docs
