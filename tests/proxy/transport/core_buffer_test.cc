// SPDX-License-Identifier: Apache-2.0
#include "proxy/transport/core_buffer.h"

#include <string>
#include <vector>

#include "grpcpp/support/slice.h"
#include "gtest/gtest.h"

namespace fncache::proxy::transport {
namespace {

using Pieces = std::vector<absl::string_view>;

// gRPC itself puts neighbours of a few bytes together: none here.
TEST(CoreBuffer, PiecesAreThoseOfTheMessageInOrder) {
  for (const std::vector<std::string>& parts :
       {std::vector<std::string>{},
        {"short enough"},
        {std::string(5000, 'x'), "tail"},
        {"head", std::string(70000, 'y'), std::string(300, 'z')},
        std::vector<std::string>(50, std::string(1000, 'w'))}) {
    const std::vector<grpc::Slice> slices(parts.begin(), parts.end());
    grpc::ByteBuffer message(slices.data(), slices.size());
    Pieces pieces;
    ASSERT_TRUE(AppendPieces(&message, &pieces));
    EXPECT_EQ(pieces, Pieces(parts.begin(), parts.end()));
  }
}

TEST(CoreBuffer, PiecesAreAppended) {
  const grpc::Slice slice("more");
  grpc::ByteBuffer message(&slice, 1);
  Pieces pieces = {"some"};
  ASSERT_TRUE(AppendPieces(&message, &pieces));
  EXPECT_EQ(pieces, Pieces({"some", "more"}));
}

TEST(CoreBuffer, PiecesAreNotCopiedAndKeepNothing) {
  static char bytes[] = "bytes of somebody who wants to know of the end";
  int freed = 0;
  const auto count = [](void* counter) { ++*static_cast<int*>(counter); };
  Pieces pieces;
  {
    const grpc::Slice slice(bytes, sizeof(bytes), count, &freed);
    grpc::ByteBuffer message(&slice, 1);
    ASSERT_TRUE(AppendPieces(&message, &pieces));
  }
  ASSERT_EQ(pieces.size(), 1U);
  EXPECT_EQ(pieces[0].data(), bytes);
  EXPECT_EQ(freed, 1);
}

TEST(CoreBuffer, WithoutAValueThereAreNoPieces) {
  grpc::ByteBuffer message;
  Pieces pieces;
  EXPECT_FALSE(AppendPieces(&message, &pieces));
  EXPECT_TRUE(pieces.empty());
}

}  // namespace
}  // namespace fncache::proxy::transport
