// SPDX-License-Identifier: Apache-2.0
#include "common/grpc_status.h"

#include "gtest/gtest.h"

namespace fncache {
namespace {

TEST(GrpcStatusTest, CodesAndMessagesCrossBothWays) {
  for (int code = grpc::StatusCode::OK;
       code <= grpc::StatusCode::UNAUTHENTICATED; ++code) {
    const absl::Status status = FromGrpcCode(code, "why");
    EXPECT_EQ(static_cast<int>(status.code()), code);
    const grpc::Status back = ToGrpcStatus(status);
    EXPECT_EQ(back.error_code(), code);
    // A status that is OK says nothing.
    EXPECT_EQ(back.error_message(), code == 0 ? "" : "why");
  }
}

TEST(GrpcStatusTest, NumbersThatAreNoCodesAreUnknown) {
  EXPECT_EQ(FromGrpcCode(99, "why").code(), absl::StatusCode::kUnknown);
}

TEST(GrpcStatusTest, CodesHaveTheNamesOfGo) {
  EXPECT_EQ(GoCodeName(0), "OK");
  EXPECT_EQ(GoCodeName(1), "Canceled");
  EXPECT_EQ(GoCodeName(16), "Unauthenticated");
  EXPECT_EQ(GoCodeName(17), "Code(17)");
  EXPECT_EQ(GoCodeName(-1), "Code(-1)");
}

}  // namespace
}  // namespace fncache
