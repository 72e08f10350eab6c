// SPDX-License-Identifier: Apache-2.0
#include "common/listen_failure.h"

#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/loopback_socket.h"

namespace fncache {
namespace {

using ::testing::HasSubstr;

std::string Message(const std::string& address) {
  const absl::Status status = ListenFailure(address);
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(status.message(),
              HasSubstr("cannot listen on " + address + ": "));
  return std::string(status.message());
}

TEST(ListenFailureTest, AnAddressInUse) {
  const testing::LoopbackSocket taken;
  taken.Listen(1);
  EXPECT_THAT(Message(taken.target()), HasSubstr("the address is in use"));
  EXPECT_THAT(Message(absl::StrCat("0.0.0.0:", taken.port())),
              HasSubstr("the address is in use"));
}

TEST(ListenFailureTest, AnAddressOfAnotherMachine) {
  EXPECT_THAT(Message("192.0.2.1:9443"),
              HasSubstr("does not have the address"));
  EXPECT_THAT(Message("[2001:db8::1]:9443"), HasSubstr("address"));
}

TEST(ListenFailureTest, AHostWithoutAddress) {
  EXPECT_THAT(Message("nowhere.invalid:9443"), HasSubstr("has no address"));
}

TEST(ListenFailureTest, AnAddressThatIsFreeByNow) {
  EXPECT_THAT(Message("127.0.0.1:0"), HasSubstr("a moment ago"));
}

}  // namespace
}  // namespace fncache
