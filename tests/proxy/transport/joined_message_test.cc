// SPDX-License-Identifier: Apache-2.0
#include "proxy/transport/joined_message.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace fncache::proxy::transport {
namespace {

grpc::ByteBuffer Message(const std::vector<std::string>& parts) {
  std::vector<grpc::Slice> slices;
  for (const std::string& part : parts) slices.emplace_back(part);
  return grpc::ByteBuffer(slices.data(), slices.size());
}

TEST(JoinedMessage, IsThePiecesInOrder) {
  JoinedMessage joined;
  for (const std::vector<std::string>& parts :
       {std::vector<std::string>{},
        {""},
        {"short"},
        {"a", "", "b"},
        {std::string(5000, 'x'), "tail"},
        {"head", std::string(70000, 'y')},
        {std::string(300 << 10, 'z'), std::string(300 << 10, 'w')},
        {"again", "small"}}) {
    std::string expected;
    for (const std::string& part : parts) expected += part;
    const auto bytes = joined.Join(Message(parts));
    ASSERT_TRUE(bytes.has_value());
    EXPECT_EQ(*bytes, expected);
  }
}

TEST(JoinedMessage, OnePieceIsNotCopied) {
  const grpc::Slice slice(std::string(1000, 'x'));
  const grpc::ByteBuffer message(&slice, 1);
  JoinedMessage joined;
  const auto bytes = joined.Join(message);
  ASSERT_TRUE(bytes.has_value());
  EXPECT_EQ(bytes->data(), reinterpret_cast<const char*>(slice.begin()));
}

TEST(JoinedMessage, HoldsItsMessageUntilCleared) {
  int freed = 0;
  static char bytes[] = "bytes of somebody who wants to know of the end";
  const auto count = [](void* counter) { ++*static_cast<int*>(counter); };
  JoinedMessage joined;
  {
    const grpc::Slice slice(bytes, sizeof(bytes), count, &freed);
    ASSERT_TRUE(joined.Join(grpc::ByteBuffer(&slice, 1)).has_value());
  }
  EXPECT_EQ(freed, 0);
  joined.Clear();
  EXPECT_EQ(freed, 1);
}

}  // namespace
}  // namespace fncache::proxy::transport
