// SPDX-License-Identifier: Apache-2.0
#include "sdk/serve/inflate.h"

#include <zlib.h>

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/function_v1.pb.h"

namespace fncache::sdk::serve {
namespace {

// In gzip's format or in zlib's.
std::string Deflate(const std::string& text, bool gzip) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, MAX_WBITS + (gzip ? 16 : 0), 8,
                         Z_DEFAULT_STRATEGY),
            Z_OK);
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = text.size();
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = out.size();
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(out.size() - stream.avail_out);
  deflateEnd(&stream);
  return out;
}

TEST(InflateTest, BothFormatsAreRead) {
  for (const bool gzip : {true, false}) {
    for (const size_t size : {0u, 1u, 100u, 16384u, 1000000u}) {
      const std::string text(size, 'x');
      const std::string bytes = Deflate(text, gzip);
      EXPECT_TRUE(MayBeCompressed(bytes));
      const auto inflated = Inflate(bytes, size);
      ASSERT_TRUE(inflated.ok()) << inflated.status() << size;
      EXPECT_EQ(*inflated, text);
    }
  }
}

TEST(InflateTest, TextBeyondTheLimitIsResourceExhausted) {
  for (const bool gzip : {true, false}) {
    const std::string bytes = Deflate(std::string(10 << 20, '\0'), gzip);
    EXPECT_LT(bytes.size(), 20u << 10);
    for (const size_t limit : {0u, 1u, 16384u, (10u << 20) - 1}) {
      EXPECT_TRUE(absl::IsResourceExhausted(Inflate(bytes, limit).status()));
    }
  }
}

TEST(InflateTest, LargeTextsTakeTheirTimeOnly) {
  std::string text(8 << 20, 'x');
  uint64_t state = 1;
  for (char& c : text) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    c = static_cast<char>(state >> 56);
  }
  const auto inflated = Inflate(Deflate(text, true), text.size());
  ASSERT_TRUE(inflated.ok()) << inflated.status();
  EXPECT_EQ(*inflated == text, true);
}

TEST(InflateTest, BrokenBytesAreInternal) {
  const std::string bytes = Deflate(std::string(1000, 'x'), true);
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_TRUE(
        absl::IsInternal(Inflate(bytes.substr(0, size), 1 << 20).status()))
        << size;
  }
  EXPECT_TRUE(absl::IsInternal(Inflate(bytes + "x", 1 << 20).status()));
  EXPECT_TRUE(absl::IsInternal(Inflate("nonsense", 1 << 20).status()));
}

// Stored blocks without content (RFC 1951, 3.2.4).
TEST(InflateTest, EndlessInputWithoutOutputIsInternal) {
  std::string bytes("\x1f\x8b\x08\0\0\0\0\0\0\xff", 10);
  const std::string empty("\0\0\0\xff\xff", 5);
  for (int i = 0; i < 10000; ++i) bytes += empty;
  EXPECT_TRUE(absl::IsInternal(Inflate(bytes, 1 << 20).status()));
}

TEST(InflateTest, NoRequestLooksCompressed) {
  apiextensions::fn::proto::v1::RunFunctionRequest request;
  EXPECT_FALSE(MayBeCompressed(request.SerializeAsString()));
  const auto* const type = request.GetDescriptor();
  for (int i = 0; i < type->field_count(); ++i) {
    EXPECT_EQ(type->field(i)->cpp_type(),
              google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE);
  }
}

}  // namespace
}  // namespace fncache::sdk::serve
