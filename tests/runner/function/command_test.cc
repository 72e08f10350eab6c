// SPDX-License-Identifier: Apache-2.0
#include "runner/function/command.h"

#include <cstdlib>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fncache::runner::function {
namespace {

using testing::HasSubstr;

struct Outcome {
  int code;
  std::string error;
};

// Only for flags with which the command does not come to serve.
Outcome Command(std::vector<std::string> flags) {
  flags.insert(flags.begin(), "fncache function");
  std::vector<char*> argv;
  for (std::string& flag : flags) argv.push_back(flag.data());
  argv.push_back(nullptr);
  testing::internal::CaptureStderr();
  const int code = FunctionMain(static_cast<int>(flags.size()), argv.data());
  return {code, testing::internal::GetCapturedStderr()};
}

class FunctionCommandTest : public testing::Test {
 protected:
  FunctionCommandTest() { unsetenv("TLS_SERVER_CERTS_DIR"); }
};

TEST_F(FunctionCommandTest, FlagsThatDoNotFitAreNamedWithWhatIsAccepted) {
  const struct {
    std::vector<std::string> flags;
    const char* said;
  } cases[] = {
      {{"--bogus"}, "--bogus"},
      {{}, "--insecure or --tls-certs-dir DIR is needed"},
      {{"--insecure", "--cost", "2s"}, "accepted: sleep=DURATION"},
      {{"--insecure", "--ttl", "-1s"}, "accepted: a duration such as"},
      {{"--insecure", "--ttl", "soon"}, "accepted: a duration such as"},
      {{"--insecure", "--fail-rate", "1.5"}, "a fraction from 0 to 1"},
      {{"--insecure", "--fail-rate", "nan"}, "a fraction from 0 to 1"},
      {{"--insecure", "--fail-rate", "x"}, "a fraction from 0 to 1"},
      {{"--insecure", "--seed", "-1"}, "a whole number from 0 on"},
      {{"--insecure", "--listen", "127.0.0.1:65536"}, "HOST:PORT"},
      {{"--insecure", "--listen", "nonsense"}, "HOST:PORT"},
      {{"--insecure", "--mask", "context.a"}, "--recorded"},
      {{"--insecure", "--recorded", "x", "--fatal"}, "one of them"},
      {{"--insecure", "--recorded", "x", "--mask", "nope"}, "nope"},
  };
  for (const auto& one : cases) {
    const Outcome outcome = Command(one.flags);
    EXPECT_EQ(outcome.code, 2) << one.said;
    EXPECT_THAT(outcome.error, HasSubstr(one.said));
  }
}

TEST_F(FunctionCommandTest, WhatIsNotToBeHadIsNamedWithExitCodeOne) {
  Outcome outcome = Command({"--insecure", "--recorded", "/nonexistent"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.error, HasSubstr("/nonexistent"));
  // All of them are read, each as often as it is given.
  outcome = Command({"--insecure", "--cost=sleep=1ms", "--cost", "cpu=1ms",
                     "--mask", "@versions", "--mask=context.a", "--recorded",
                     "/nonexistent", "--recorded=/nonexistent/either"});
  EXPECT_EQ(outcome.code, 1) << outcome.error;
  EXPECT_THAT(outcome.error, HasSubstr("/nonexistent"));
  outcome = Command({"--tls-dir", "/nonexistent"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.error, HasSubstr("/nonexistent/tls.crt"));
  outcome = Command({"--insecure", "--listen", "192.0.2.1:9443"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.error, HasSubstr("192.0.2.1:9443"));
}

}  // namespace
}  // namespace fncache::runner::function
