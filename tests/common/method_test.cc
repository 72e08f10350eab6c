// SPDX-License-Identifier: Apache-2.0
#include "common/method.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "proto/function_v1.pb.h"
#include "proto/function_v1beta1.pb.h"

namespace fncache {
namespace {

std::string PathOf(const google::protobuf::FileDescriptor& file) {
  const google::protobuf::MethodDescriptor& method =
      *file.service(0)->method(0);
  return absl::StrCat("/", method.service()->full_name(), "/", method.name());
}

TEST(MethodTest, PathsAreThoseOfTheProtocol) {
  EXPECT_EQ(
      kRunFunctionV1,
      PathOf(*apiextensions::fn::proto::v1::RunFunctionRequest::descriptor()
                  ->file()));
  EXPECT_EQ(
      kRunFunctionV1beta1,
      PathOf(
          *apiextensions::fn::proto::v1beta1::RunFunctionRequest::descriptor()
               ->file()));
}

TEST(MethodTest, EachPathHasItsMethod) {
  EXPECT_EQ(MethodOf(kRunFunctionV1), Method::kV1);
  EXPECT_EQ(MethodOf(kRunFunctionV1beta1), Method::kV1beta1);
  for (const std::string& other :
       {std::string(), std::string("RunFunction"),
        std::string(kRunFunctionV1).substr(1),
        absl::StrCat(kRunFunctionV1, "s"), absl::StrCat(kRunFunctionV1, "/")}) {
    EXPECT_EQ(MethodOf(other), Method::kOther) << other;
  }
}

}  // namespace
}  // namespace fncache
