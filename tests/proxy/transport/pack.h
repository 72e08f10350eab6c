// SPDX-License-Identifier: Apache-2.0
// Pack: compresses a text with zlib, at once. EmptyBlocks: bytes that take long
// to decompress.
#ifndef FNCACHE_TESTS_PROXY_TRANSPORT_PACK_H_
#define FNCACHE_TESTS_PROXY_TRANSPORT_PACK_H_

#include <zlib.h>

#include <string>

#include "absl/strings/escaping.h"
#include "gtest/gtest.h"

namespace fncache::proxy::transport {

// zlib's windowBits (deflateInit2): these are gzip; 15 is zlib's own form,
// gRPC's "deflate".
inline constexpr int kGzipWindow = 15 + 16;

inline std::string Pack(const std::string& text, int window) {
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY),
            Z_OK);
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

// At least `size` bytes, which say they are gzip, and decompress to nothing.
// They have no end.
inline std::string EmptyBlocks(size_t size) {
  // Eight blocks (RFC 1951, 3.2.7) whose codes are there, and nothing else.
  const std::string blocks = absl::HexStringToBytes(
      "04c081000000000090ff6b100007020000000040feaf41001c080000000000f9bf060170"
      "200000000000e4ff1a04c081000000000090ff6b100007020000000040feaf41001c0800"
      "00000000f9bf060170200000000000e4ff1a");
  std::string packed = absl::HexStringToBytes("1f8b08000000000000ff");
  while (packed.size() < size) packed += blocks;
  return packed;
}

}  // namespace fncache::proxy::transport

#endif  // FNCACHE_TESTS_PROXY_TRANSPORT_PACK_H_
