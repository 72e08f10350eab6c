// SPDX-License-Identifier: Apache-2.0
#include "sdk/serve/inflate.h"

#include <zlib.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace fncache::sdk::serve {

namespace {

// Input makes no output for this long, in bytes, only if it is meant to cost
// time: a byte of empty blocks takes 55 ns.
constexpr size_t kMostIdle = 16 << 10;
constexpr size_t kInputATime = 4 << 10;

}  // namespace

bool MayBeCompressed(absl::string_view bytes) {
  if (bytes.size() < 2) return false;
  const auto first = static_cast<unsigned char>(bytes[0]);
  const auto second = static_cast<unsigned char>(bytes[1]);
  const bool gzip = first == 0x1f && second == 0x8b;
  // Method 8, a window of up to 32 KiB, and the check of both bytes.
  const bool zlib = (first & 0x0f) == 8 && (first >> 4) <= 7 &&
                    (first * 256 + second) % 31 == 0;
  return gzip || zlib;
}

absl::StatusOr<std::string> Inflate(absl::string_view bytes, size_t limit) {
  constexpr int kEitherFormat = 32 + MAX_WBITS;
  z_stream stream{};
  if (inflateInit2(&stream, kEitherFormat) != Z_OK) {
    return absl::ResourceExhaustedError("no memory to decompress the request");
  }
  const std::unique_ptr<z_stream, int (*)(z_stream*)> ends(&stream,
                                                           &inflateEnd);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  size_t given = 0;
  size_t idle_since = 0;  // where the input was when it last made output
  std::string text;
  std::string piece(64 << 10, '\0');
  int result = Z_OK;
  while (result == Z_OK) {
    const size_t done = text.size();
    if (done > limit) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "the request is larger than ", limit, " bytes once decompressed"));
    }
    if (stream.avail_in == 0) {
      stream.avail_in =
          static_cast<uInt>(std::min(kInputATime, bytes.size() - given));
      given += stream.avail_in;
    }
    if (given - idle_since > kMostIdle) break;
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = static_cast<uInt>(piece.size());
    result = inflate(&stream, Z_NO_FLUSH);
    text.append(piece, 0, piece.size() - stream.avail_out);
    if (text.size() > done) idle_since = given;
  }
  if (result != Z_STREAM_END || stream.avail_in != 0 || given < bytes.size()) {
    return absl::InternalError("the compressed request is broken");
  }
  if (text.size() > limit) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the request is larger than ", limit, " bytes once decompressed"));
  }
  return text;
}

}  // namespace fncache::sdk::serve
