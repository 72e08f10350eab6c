// SPDX-License-Identifier: Apache-2.0
#include "runner/demo/encoding.h"

#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "runner/demo/traffic.h"
#include "tests/runner/messages.h"

namespace fncache::runner::demo {
namespace {

namespace fn = ::apiextensions::fn::proto::v1;
using google::protobuf::util::MessageDifferencer;

// One with every kind of field that a request can have.
fn::RunFunctionRequest Request() {
  fn::RunFunctionRequest request;
  request.mutable_meta()->set_tag("t");
  request.mutable_meta()->add_capabilities(fn::CAPABILITY_CAPABILITIES);
  request.mutable_meta()->add_capabilities(fn::CAPABILITY_CONDITIONS);
  for (int i = 0; i < 5; ++i) {
    fn::Resource& resource =
        (*request.mutable_observed()->mutable_resources())[absl::StrCat(i)];
    *resource.mutable_resource() = DemoInput(DemoComposition(), i, 1).composite;
    resource.set_ready(fn::READY_TRUE);
    (*resource.mutable_connection_details())["key"] = std::string(200, 'x');
    (*resource.mutable_connection_details())["other"] = "";
  }
  auto& fields = *request.mutable_context()->mutable_fields();
  fields["null"].set_null_value(google::protobuf::NULL_VALUE);
  fields["none"];
  fields["number"].set_number_value(-0.5);
  fields["true"].set_bool_value(true);
  fields["false"].set_bool_value(false);
  fields["empty text"].set_string_value("");
  fields["empty list"].mutable_list_value();
  fields["empty object"].mutable_struct_value();
  auto& list = *fields["list"].mutable_list_value();
  for (int i = 0; i < 3; ++i) list.add_values()->set_number_value(i);
  auto& zones = (*request.mutable_required_resources())["zones"];
  zones.add_items()->mutable_resource();
  zones.add_items()->set_ready(fn::READY_FALSE);
  (*request.mutable_required_resources())["none"];
  return request;
}

TEST(EncodeShuffledTest, BytesAreTheSameMessageInAnotherOrder) {
  const fn::RunFunctionRequest request = Request();
  std::mt19937 random(7);
  std::set<std::string> encodings;
  for (int i = 0; i < 20; ++i) {
    const std::string bytes = EncodeShuffled(request, &random);
    encodings.insert(bytes);
    fn::RunFunctionRequest read;
    ASSERT_TRUE(read.ParseFromString(bytes));
    EXPECT_TRUE(MessageDifferencer::Equals(read, request));
  }
  EXPECT_EQ(encodings.size(), 20u);
}

// The cache's fast way is for bytes like these, and Go's are.
TEST(EncodeShuffledTest, WithoutMapsOfSeveralEntriesBytesAreProtobufsOwn) {
  fn::RunFunctionRequest request = Request();
  request.mutable_observed()->clear_resources();
  request.clear_context();
  request.mutable_required_resources()->erase("none");
  std::mt19937 random(7);
  EXPECT_EQ(EncodeShuffled(request, &random), request.SerializeAsString());
}

TEST(EncodeShuffledTest, AnotherMetaTakesTheRequestsPlace) {
  fn::RunFunctionRequest request = Request();
  fn::RequestMeta meta;
  meta.set_tag("another");
  std::mt19937 random(7);
  fn::RunFunctionRequest read;
  ASSERT_TRUE(read.ParseFromString(EncodeShuffled(request, meta, &random)));
  *request.mutable_meta() = meta;
  EXPECT_TRUE(MessageDifferencer::Equals(read, request));
}

}  // namespace
}  // namespace fncache::runner::demo
