// SPDX-License-Identifier: Apache-2.0
#include "common/grpc_log.h"

#include <csignal>
#include <cstdlib>

#include "common/log.h"
#include "gmock/gmock.h"
#include "grpc/support/log.h"
#include "gtest/gtest.h"

namespace fncache {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// In a process of its own, where gRPC's log was taken: calls `body` and exits
// with 0.
template <typename Body>
[[noreturn]] void RunAlone(LogLevel level, Body body) {
  InitLogging(level, LogFormat::kText);
  TakeGrpcLog();
  body();
  std::exit(0);
}

TEST(GrpcLogTest, LastWordsAreOurErrors) {
  EXPECT_EXIT(RunAlone(LogLevel::kInfo, [] { GPR_ASSERT(1 == 2); }),
              ::testing::KilledBySignal(SIGABRT),
              "Z error assertion failed: 1 == 2 from=grpc "
              "at=.*grpc_log_test.cc:");
}

TEST(GrpcLogTest, ErrorsAreOurWarningsAtMostOneASecond) {
  const auto fail = [] {
    for (int i = 0; i < 1000; ++i) {
      gpr_log("./src/core/lib/tcp.cc", 7, GPR_LOG_SEVERITY_ERROR,
              "accept failed %d", i);
    }
  };
  EXPECT_EXIT(RunAlone(LogLevel::kInfo, fail), ::testing::ExitedWithCode(0),
              AllOf(HasSubstr("Z warning accept failed 0 from=grpc "
                              "at=./src/core/lib/tcp.cc:7\n"),
                    Not(HasSubstr("accept failed 1 "))));
}

TEST(GrpcLogTest, WhatIsSaidElsewhereOrIsNoErrorIsNot) {
  const auto say = [] {
    gpr_log("./a/ssl_transport_security.cc", 7, GPR_LOG_SEVERITY_ERROR, "x");
    gpr_log("./a/chttp2_server.cc", 7, GPR_LOG_SEVERITY_ERROR, "x");
    gpr_log("./a/b.cc", 7, GPR_LOG_SEVERITY_INFO, "x");
  };
  EXPECT_EXIT(RunAlone(LogLevel::kInfo, say), ::testing::ExitedWithCode(0),
              ::testing::IsEmpty());
}

TEST(GrpcLogTest, EverythingIsThereAtTheDebugLevel) {
  const auto say = [] {
    gpr_set_log_verbosity(GPR_LOG_SEVERITY_DEBUG);
    gpr_log("./a/b.cc", 7, GPR_LOG_SEVERITY_INFO, "hello");
  };
  EXPECT_EXIT(RunAlone(LogLevel::kDebug, say), ::testing::ExitedWithCode(0),
              HasSubstr("Z debug hello from=grpc at=./a/b.cc:7"));
}

}  // namespace
}  // namespace fncache
