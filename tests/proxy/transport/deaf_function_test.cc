// SPDX-License-Identifier: Apache-2.0
// A function that stops reading from its connection: what is sent to it waits
// in the daemon, and gRPC with it, while calls come and go.
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "tests/common/deaf_server.h"
#include "tests/proxy/serving/scripted.h"

namespace fncache::proxy::transport {
namespace {

using ::fncache::testing::DeafServer;

constexpr int kBig = 32 << 20;

TEST(DeafFunctionTest, ACallThatEndsBeforeItWasSentEndsOnce) {
  DeafServer function;
  TestProxy proxy(TestProxy::To(function.target()), /*workers=*/1);
  const auto channel = Connect(proxy.target());
  auto large = std::make_shared<serving::Caller>();
  large->Start(channel, "/t.T/Large", std::string(kBig, 'x'));
  ASSERT_TRUE(Eventually([&] { return function.Full(); }));

  // Nothing of this one reaches the function, whose word comes nevertheless.
  auto small = std::make_shared<serving::Caller>();
  small->Start(channel, "/t.T/Small", "x");
  ASSERT_TRUE(Eventually([&] { return proxy.listener().calls() == 2; }));
  // Repeated, because a frame that comes before gRPC has made the call has no
  // receiver.
  EXPECT_TRUE(Eventually([&] {
    function.EndCall(3);
    return small->answers() > 0;
  }));
  EXPECT_EQ(small->Wait().error_code(), grpc::StatusCode::NOT_FOUND);

  function.Listen();
  EXPECT_TRUE(Eventually([&] { return function.read() > kBig; }));
  // Only the large one is left.
  EXPECT_TRUE(Eventually([&] { return proxy.listener().calls() == 1; }));
  large->context.TryCancel();
  EXPECT_EQ(large->Wait().error_code(), grpc::StatusCode::CANCELLED);
}

}  // namespace
}  // namespace fncache::proxy::transport
