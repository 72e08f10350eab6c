// SPDX-License-Identifier: Apache-2.0
#include "cache/wire/origin.h"

#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "cache/wire/schema.h"
#include "cache/wire/wire.h"
#include "gtest/gtest.h"
#include "proto/function_v1.pb.h"
#include "tests/cache/key/random_encoding.h"
#include "tests/cache/key/random_request.h"

namespace fncache::cache::wire {
namespace {

using apiextensions::fn::proto::v1::RunFunctionRequest;

std::string Field(uint32_t number, absl::string_view bytes) {
  std::string out;
  AppendBytesField(&out, number, bytes);
  return out;
}
// The fields that lead to a composite's resource.
std::string Observed(absl::string_view bytes) { return Field(2, bytes); }
std::string Composite(absl::string_view bytes) { return Field(1, bytes); }
std::string Resource(absl::string_view bytes) { return Field(1, bytes); }

// The origin of a request by its parsed message.
Origin Parsed(const RunFunctionRequest& request) {
  return request.observed().composite().has_resource() ? Origin::kComposite
                                                       : Origin::kOperation;
}

TEST(Origin, AResourceMakesAComposite) {
  RunFunctionRequest request;
  EXPECT_EQ(OriginOf(request.SerializeAsString()), Origin::kOperation);
  request.mutable_meta()->set_tag("tag");
  (*request.mutable_required_resources())["ops.crossplane.io/watched-resource"]
      .add_items()
      ->mutable_resource();
  EXPECT_EQ(OriginOf(request.SerializeAsString()), Origin::kOperation);
  request.mutable_observed();
  EXPECT_EQ(OriginOf(request.SerializeAsString()), Origin::kOperation);
  (*request.mutable_observed()->mutable_resources())["one"].mutable_resource();
  EXPECT_EQ(OriginOf(request.SerializeAsString()), Origin::kOperation);
  auto* const composite = request.mutable_observed()->mutable_composite();
  EXPECT_EQ(OriginOf(request.SerializeAsString()), Origin::kOperation);
  (*composite->mutable_connection_details())["user"] = "u";
  EXPECT_EQ(OriginOf(request.SerializeAsString()), Origin::kOperation);
  // An empty object is one.
  composite->mutable_resource();
  EXPECT_EQ(OriginOf(request.SerializeAsString()), Origin::kComposite);
}

TEST(Origin, WhatIsDesiredIsNoComposite) {
  RunFunctionRequest request;
  request.mutable_desired()->mutable_composite()->mutable_resource();
  EXPECT_EQ(OriginOf(request.SerializeAsString()), Origin::kOperation);
}

TEST(Origin, PiecesOfAMessageAreOneMessage) {
  const std::string whole = Observed(Composite(Resource("")));
  for (const std::string& bytes :
       {Observed("") + whole, whole + Observed(""),
        Observed(Composite("")) + Observed(Composite(Resource(""))),
        Observed(Composite(Resource("")) + Composite("")),
        Observed(Composite("") + Composite(Resource(""))),
        Observed(Composite(Resource("") + Resource("")))}) {
    RunFunctionRequest request;
    ASSERT_TRUE(request.ParseFromString(bytes));
    ASSERT_EQ(Parsed(request), Origin::kComposite);
    EXPECT_EQ(OriginOf(bytes), Origin::kComposite)
        << absl::BytesToHexString(bytes);
  }
}

TEST(Origin, AFieldOfAnotherWireTypeIsAnother) {
  using namespace std::string_literals;  // NOLINT(google-build-using-namespace)
  for (const std::string& bytes : {
           // A varint, a fixed and a group where bytes belong.
           "\x10\x01"s,
           "\x15\1\2\3\4"s,
           "\x13\x0a\x02\x0a\x00\x14"s,
           Observed("\x08\x01"),
           Observed("\x0b\x0a\x00\x0c"s),
           Observed(Composite("\x08\x01")),
       }) {
    RunFunctionRequest request;
    ASSERT_TRUE(request.ParseFromString(bytes))
        << absl::BytesToHexString(bytes);
    EXPECT_EQ(Parsed(request), Origin::kOperation);
    EXPECT_EQ(OriginOf(bytes), Origin::kOperation)
        << absl::BytesToHexString(bytes);
    EXPECT_EQ(OriginOf(bytes + Observed(Composite(Resource("")))),
              Origin::kComposite);
  }
}

TEST(Origin, LongTagsAndLengthsAreRead) {
  using namespace std::string_literals;  // NOLINT(google-build-using-namespace)
  for (const std::string& bytes : {
           "\x92\x00\x04\x0a\x02\x0a\x00"s,
           "\x92\x80\x80\x80\x00\x04\x0a\x02\x0a\x00"s,
           "\x12\x84\x00\x0a\x02\x0a\x00"s,
           "\x12\x0a\x8a\x80\x00\x84\x80\x00\x8a\x00\x80\x00"s,
       }) {
    RunFunctionRequest request;
    ASSERT_TRUE(request.ParseFromString(bytes))
        << absl::BytesToHexString(bytes);
    ASSERT_EQ(Parsed(request), Origin::kComposite);
    EXPECT_EQ(OriginOf(bytes), Origin::kComposite)
        << absl::BytesToHexString(bytes);
  }
}

// No prefix of a message is read as a composite that it does not have yet.
TEST(Origin, TruncatedBytesAreUnreadableOrWhatIsThere) {
  RunFunctionRequest message;
  message.mutable_meta()->set_tag("a tag");
  auto* const observed = message.mutable_observed();
  (*observed->mutable_resources())["one"].mutable_resource();
  (*observed->mutable_composite()->mutable_resource()->mutable_fields())["kind"]
      .set_string_value("XApp");
  message.mutable_input();
  const std::string whole = message.SerializeAsString();
  ASSERT_EQ(OriginOf(whole), Origin::kComposite);
  size_t unreadable = 0;
  for (size_t size = 0; size < whole.size(); ++size) {
    const std::string bytes = whole.substr(0, size);
    RunFunctionRequest request;
    const Origin origin = OriginOf(bytes);
    if (request.ParseFromString(bytes)) {
      EXPECT_EQ(origin, Parsed(request)) << size;
    } else {
      EXPECT_NE(origin, Origin::kOperation) << size;
      unreadable += origin == Origin::kUnreadable ? 1 : 0;
    }
  }
  EXPECT_GT(unreadable, 20u);
  for (const char* const broken : {"\xff", "\x0a\xff not protobuf", "\x12\x01",
                                   "\x12\x01\xff", "\x12\x02\x0a\x01"}) {
    EXPECT_EQ(OriginOf(broken), Origin::kUnreadable)
        << absl::CHexEscape(broken);
  }
}

TEST(Origin, AgreesWithProtobufInEveryEncoding) {
  size_t composites = 0, operations = 0;
  for (uint64_t seed = 0; seed < 4'000; ++seed) {
    key::Random random(seed);
    RunFunctionRequest request = key::RandomRequest(&random);
    if (random.OneIn(3)) {
      request.mutable_observed()->mutable_composite()->clear_resource();
    } else if (random.OneIn(2)) {
      request.mutable_observed()->mutable_composite()->mutable_resource();
    }
    const std::string bytes = key::Encode(
        request, random.OneIn(2) ? key::Style::kWild : key::Style::kAnyEncoder,
        &random);
    RunFunctionRequest parsed;
    if (!parsed.ParseFromString(bytes)) continue;
    const Origin expected = Parsed(parsed);
    ++(expected == Origin::kComposite ? composites : operations);
    ASSERT_EQ(OriginOf(bytes), expected) << "seed " << seed;
    // A byte that is wrong hides no composite but for one that is unreadable.
    std::string wrong = bytes;
    if (wrong.empty()) continue;
    wrong[random.Below(wrong.size())] ^= static_cast<char>(random.Bits());
    if (!parsed.ParseFromString(wrong)) continue;
    ASSERT_EQ(OriginOf(wrong), Parsed(parsed)) << "seed " << seed;
  }
  EXPECT_GT(composites, 1'000u);
  EXPECT_GT(operations, 1'000u);
}

}  // namespace
}  // namespace fncache::cache::wire
