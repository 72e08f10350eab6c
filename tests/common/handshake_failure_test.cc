// SPDX-License-Identifier: Apache-2.0
#include "common/handshake_failure.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/log_limiter.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fncache {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(LogLimiterTest, FirstAtOnceThenOneAnIntervalWithTheOthersCounted) {
  LogLimiter limiter(absl::Seconds(1));
  const absl::Time start = absl::Now();
  uint64_t unlogged = 77;
  EXPECT_TRUE(limiter.Allows(start, &unlogged));
  EXPECT_EQ(unlogged, 0u);
  for (int ms = 0; ms < 1000; ++ms) {
    EXPECT_FALSE(limiter.Allows(start + absl::Milliseconds(ms), &unlogged));
  }
  EXPECT_TRUE(limiter.Allows(start + absl::Seconds(1), &unlogged));
  EXPECT_EQ(unlogged, 1000u);
  EXPECT_TRUE(limiter.Allows(start + absl::Seconds(2), &unlogged));
  EXPECT_EQ(unlogged, 0u);
}

TEST(LogLimiterTest, ClockSetBackDoesNotSilenceIt) {
  LogLimiter limiter(absl::Seconds(1));
  uint64_t unlogged = 0;
  EXPECT_TRUE(limiter.Allows(absl::Now(), &unlogged));
  EXPECT_TRUE(limiter.Allows(absl::Now() - absl::Hours(1), &unlogged));
}

TEST(HandshakeFailureTest, EveryFaultHasANameOfItsOwn) {
  std::set<std::string> names;
  for (size_t i = 0; i < kHandshakeFaults; ++i) {
    names.insert(HandshakeFaultName(static_cast<HandshakeFault>(i)));
  }
  EXPECT_EQ(names.size(), kHandshakeFaults);
}

TEST(HandshakeFailureTest, ObserversAreToldWhatTheLogLeavesOut) {
  HandshakeFailure failure;
  failure.side = TlsSide::kServer;
  failure.fault = HandshakeFault::kExpired;
  failure.words = "the caller's certificate has expired";
  failure.certificate = "CN=\n\x1b[31m" + std::string(1000, 'x');
  int told = 0;
  ::testing::internal::CaptureStderr();
  {
    const HandshakeObserver one([&](const HandshakeFailure&) { ++told; });
    const HandshakeObserver other([&](const HandshakeFailure&) { ++told; });
    for (int i = 0; i < 10; ++i) ReportHandshakeFailure(failure);
  }
  ReportHandshakeFailure(failure);
  EXPECT_EQ(told, 20);
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("TLS handshake with a caller failed: the caller's "
                             "certificate has expired reason=expired"));
  // One line, and a second one on a machine that stood still for a second.
  EXPECT_LT(log.size(), 1000u);
  EXPECT_THAT(log, Not(HasSubstr("\x1b")));
}

// It is connected to again and again.
TEST(HandshakeFailureTest, WhatFailsWithAFunctionAgainIsToldOnce) {
  HandshakeFailure failure;
  failure.side = TlsSide::kClient;
  failure.words = "the function's certificate has expired";
  ::testing::internal::CaptureStderr();
  ReportHandshakeFailure(failure);
  // The log has a line a second at most, whatever it says.
  absl::SleepFor(absl::Milliseconds(1100));
  ReportHandshakeFailure(failure);
  failure.words = "the function does not speak TLS";
  ReportHandshakeFailure(failure);
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 2) << log;
  EXPECT_THAT(log, HasSubstr("does not speak TLS"));
}

// Several functions whose certificates are at fault start together.
TEST(HandshakeFailureTest, WhatTheLimitKeptBackIsNoOldNews) {
  HandshakeFailure failure;
  failure.side = TlsSide::kClient;
  ::testing::internal::CaptureStderr();
  // The one that a test before this may have left the limit to, and two more.
  for (const char* const name : {"zero", "one", "two"}) {
    failure.words =
        absl::StrCat("the certificate is not the function's: ", name);
    ReportHandshakeFailure(failure);
  }
  absl::SleepFor(absl::Milliseconds(1100));
  failure.words = "the certificate is not the function's: two";
  ReportHandshakeFailure(failure);
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("function's: two"));
  EXPECT_THAT(log, HasSubstr("unlogged="));
}

}  // namespace
}  // namespace fncache
