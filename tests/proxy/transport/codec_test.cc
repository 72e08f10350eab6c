// SPDX-License-Identifier: Apache-2.0
#include "proxy/transport/codec.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/proxy/transport/pack.h"

namespace fncache::proxy::transport {
namespace {

TEST(CodecTest, StatusTextsComeBack) {
  for (const std::string& text :
       {std::string(), std::string("plain"), std::string("100% \n n\xc3\xa4h "),
        std::string("a\0b", 3)}) {
    EXPECT_EQ(DecodeStatusText(EncodeStatusText(text)), text);
  }
  EXPECT_EQ(EncodeStatusText("50% \xc3\xa4"), "50%25 %C3%A4");
  // Text that is no escape stands for itself.
  EXPECT_EQ(DecodeStatusText("100%, %zz, %4"), "100%, %zz, %4");
  EXPECT_EQ(DecodeStatusText("%41%42"), "AB");
}

TEST(CodecTest, StatusesComeBackWithDetails) {
  const grpc::Status status(grpc::StatusCode::OUT_OF_RANGE, "n\xc3\xa4h: 100%",
                            std::string("det\0ails", 8));
  http2::Fields fields;
  AddStatus(status, &fields);
  const grpc::Status back = ReadStatus(fields, "200");
  EXPECT_EQ(back.error_code(), status.error_code());
  EXPECT_EQ(back.error_message(), status.error_message());
  EXPECT_EQ(back.error_details(), status.error_details());
}

TEST(CodecTest, WithoutAStatusTheHttpStatusCounts) {
  const http2::Fields none;
  EXPECT_EQ(ReadStatus(none, "200").error_code(), grpc::StatusCode::UNKNOWN);
  EXPECT_EQ(ReadStatus(none, "404").error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(ReadStatus(none, "503").error_code(),
            grpc::StatusCode::UNAVAILABLE);
  http2::Fields odd;
  odd.Add("grpc-status", "17");
  EXPECT_EQ(ReadStatus(odd, "200").error_code(), grpc::StatusCode::UNKNOWN);
}

// As gRPC's libraries have it.
TEST(CodecTest, TheLastStatusCountsAndOnlyDigitsAreOne) {
  http2::Fields twice;
  twice.Add("grpc-status", "0");
  twice.Add("grpc-status", "13");
  EXPECT_EQ(ReadStatus(twice, "200").error_code(), grpc::StatusCode::INTERNAL);
  EXPECT_FALSE(SaysOneStatus(twice));
  for (const char* text : {" 0", "0 ", "\t0", "+0", "-0", "zero", "0x0"}) {
    http2::Fields fields;
    fields.Add("grpc-status", text);
    EXPECT_EQ(ReadStatus(fields, "200").error_code(), grpc::StatusCode::UNKNOWN)
        << text;
    EXPECT_FALSE(SaysOneStatus(fields)) << text;
  }
  http2::Fields one;
  one.Add("grpc-status", "5");
  EXPECT_TRUE(SaysOneStatus(one));
}

TEST(CodecTest, ContentTypesOfGrpc) {
  for (const char* type :
       {"application/grpc", "application/grpc+proto", "application/grpc;x=y"}) {
    EXPECT_TRUE(IsGrpc(type)) << type;
  }
  for (const char* type :
       {"", "application/grpcfoo", "application/grpc-web", "application/grpc ;",
        "text/html", "application/GRPC"}) {
    EXPECT_FALSE(IsGrpc(type)) << type;
    EXPECT_FALSE(IsGrpcProto(type)) << type;
  }
}

TEST(CodecTest, RequestsOfProtobufCanBeKeyed) {
  http2::Fields fields;
  EXPECT_FALSE(CanBeKeyed(fields));
  for (const char* type :
       {"application/grpc", "application/grpc+proto", "application/grpc;x=y",
        "application/grpc+proto;x=y"}) {
    fields.Clear();
    fields.Add("content-type", type);
    EXPECT_TRUE(CanBeKeyed(fields)) << type;
    fields.Add("grpc-encoding", "gzip");
    EXPECT_TRUE(CanBeKeyed(fields)) << type;
    fields.Add("grpc-encoding", "gzip");
    EXPECT_FALSE(CanBeKeyed(fields)) << type;
  }
  for (const char* type :
       {"application/grpc+json", "application/grpc+", "application/grpc+proto3",
        "application/grpc+protobuf"}) {
    EXPECT_TRUE(IsGrpc(type)) << type;
    fields.Clear();
    fields.Add("content-type", type);
    EXPECT_FALSE(CanBeKeyed(fields)) << type;
  }
}

TEST(CodecTest, MessagesAreUnpackedWithinTheLimit) {
  const std::string text(100'000, 'x');
  for (const auto& [encoding, window] :
       {std::pair("gzip", kGzipWindow), std::pair("deflate", 15)}) {
    const std::string packed = Pack(text, window);
    const auto unpacked = Unpack(encoding, packed, text.size());
    ASSERT_TRUE(unpacked.ok()) << unpacked.status();
    EXPECT_TRUE(unpacked->bytes() == text);
    EXPECT_EQ(Unpack(encoding, packed, text.size() - 1).status().code(),
              absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(Unpack(encoding, packed.substr(0, packed.size() / 2), 1 << 20)
                  .status()
                  .code(),
              absl::StatusCode::kDataLoss);
    EXPECT_EQ(Unpack(encoding, packed + "x", 1 << 20).status().code(),
              absl::StatusCode::kDataLoss);
  }
  EXPECT_EQ(Unpack("gzip", "no gzip at all", 1 << 20).status().code(),
            absl::StatusCode::kDataLoss);
  EXPECT_EQ(Unpack("zstd", "", 1).status().code(),
            absl::StatusCode::kUnimplemented);
}

// The cost of a step is bounded: a compressed message may be long, and contain
// nothing.
TEST(CodecTest, BytesThatMakeNothingAreUnpackedInStepsToo) {
  const std::string packed = EmptyBlocks(400'000);
  auto unpacker = Unpacker::Create("gzip", packed);
  ASSERT_TRUE(unpacker.ok());
  absl::Status status;
  int steps = 0;
  while ((status = (*unpacker)->Step(512 << 10, 1 << 20)).ok()) {
    ++steps;
    ASSERT_FALSE((*unpacker)->done());
    EXPECT_GE((*unpacker)->worked(), size_t(steps) * (512 << 10));
  }
  EXPECT_EQ(steps, 24);                                   // of 16 KiB
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);  // it has no end
  EXPECT_EQ((*unpacker)->size(), 0u);
}

}  // namespace
}  // namespace fncache::proxy::transport
