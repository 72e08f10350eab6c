// SPDX-License-Identifier: Apache-2.0
// gRPC's encoding in HTTP/2 fields (statuses and their text), and
// the decompression of messages.
//
// Sources: "gRPC over HTTP2" (doc/PROTOCOL-HTTP2.md in gRPC's repository) and
// "HTTP to gRPC Status Code Mapping" (doc/http-grpc-status-mapping.md).
//
// Pure functions, thread-safe. One thread at a time uses an Unpacker.
#ifndef FNCACHE_PROXY_TRANSPORT_CODEC_H_
#define FNCACHE_PROXY_TRANSPORT_CODEC_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "grpcpp/support/status.h"
#include "http2/fields.h"
#include "http2/slice.h"

namespace fncache::proxy::transport {

// grpc-message: percent-encoded UTF-8.
std::string EncodeStatusText(absl::string_view text);
std::string DecodeStatusText(absl::string_view text);

// The fields of a status: grpc-status, grpc-message and
// grpc-status-details-bin, the last two if they are not empty.
void AddStatus(const grpc::Status& status, http2::Fields* fields);

// True if this content-type is gRPC's: "application/grpc", also with a format
// or a parameter behind it.
bool IsGrpc(absl::string_view content_type);
// True if a content-type of gRPC names protobuf, or no format, which means the
// same.
bool IsGrpcProto(absl::string_view content_type);

// True if fncache can read the bytes of a request with these fields. Only the
// function can read a request with another format, or with two encodings.
bool CanBeKeyed(const http2::Fields& request);

// Why an answer with a message and these fields may not be a success, in words.
// Empty if it certainly is one:
// - HTTP status 200,
// - one content-type (IsGrpcProto), at most one grpc-encoding,
// - one grpc-status, which is "0" and in the trailers,
// - no details of an error, and only base64 in -bin fields.
// gRPC's libraries read other answers differently, mostly as errors. So fncache
// forwards them as they arrived, and to one caller only.
absl::string_view DoubtOfOk(const http2::Fields& headers,
                            const http2::Fields& trailers);

// True if these trailers have exactly one status, and it can be parsed.
bool SaysOneStatus(const http2::Fields& trailers);

// The status in a function's last fields. Without one: UNKNOWN, or the code
// that `http_status`, the answer's :status, maps to. If the status comes twice,
// the last one counts, as in gRPC's libraries.
grpc::Status ReadStatus(const http2::Fields& fields,
                        absl::string_view http_status);
// The code that an HTTP status maps to.
grpc::StatusCode StatusOfHttp(absl::string_view http_status);

// Decompresses a message in steps. The grpc-encoding is gzip or deflate (which
// is zlib's format).
class Unpacker {
 public:
  // Unimplemented for other encodings. `bytes` outlive the Unpacker.
  static absl::StatusOr<std::unique_ptr<Unpacker>> Create(
      absl::string_view encoding, absl::string_view bytes);
  ~Unpacker();
  Unpacker(const Unpacker&) = delete;
  Unpacker& operator=(const Unpacker&) = delete;

  // Makes about `step` further bytes, or fewer if they cost more than usual.
  // DataLoss if the input is malformed, ResourceExhausted if the output would
  // exceed `limit` bytes in all.
  absl::Status Step(size_t step, size_t limit);
  // The work so far: the bytes that usual input makes in that time.
  size_t worked() const { return worked_; }
  bool done() const { return done_; }
  // The bytes of output so far.
  size_t size() const { return size_; }
  // From now on the output is counted, but not kept.
  void StopKeeping();
  bool keeps() const { return keeps_; }
  // The output. Call it once, when done().
  http2::Slice Release() const { return out_.Share(); }

 private:
  struct Stream;
  Unpacker(std::unique_ptr<Stream> stream, absl::string_view bytes);

  const std::unique_ptr<Stream> stream_;
  absl::string_view rest_;  // input that zlib has not got yet
  size_t worked_ = 0;
  bool done_ = false;
  bool keeps_ = true;
  size_t size_ = 0;
  http2::Buffer out_;
};

// Decompresses a whole message in one call.
absl::StatusOr<http2::Slice> Unpack(absl::string_view encoding,
                                    absl::string_view bytes, size_t limit);

}  // namespace fncache::proxy::transport

#endif  // FNCACHE_PROXY_TRANSPORT_CODEC_H_
