// SPDX-License-Identifier: Apache-2.0
// What gRPC writes into HTTP/2's fields, and compression: time-outs, statuses,
// the text of statuses, and messages that come packed.
//
// After "gRPC over HTTP2" (doc/PROTOCOL-HTTP2.md in gRPC's repository) and
// "HTTP to gRPC Status Code Mapping" (doc/http-grpc-status-mapping.md).
//
// Pure functions, thread-safe; an Unpacker is one thread's at a time.
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

// grpc-timeout: up to eight digits and a unit. Nothing where it is malformed.
absl::optional<absl::Duration> ParseTimeout(absl::string_view text);
// At least the duration, by less than a thousandth more.
std::string FormatTimeout(absl::Duration timeout);

// grpc-message: percent-encoded UTF-8.
std::string EncodeStatusText(absl::string_view text);
std::string DecodeStatusText(absl::string_view text);

// The fields of a status: grpc-status, grpc-message and
// grpc-status-details-bin, the last two where they are not empty.
void AddStatus(const grpc::Status& status, http2::Fields* fields);

// Whether this content-type is gRPC's: "application/grpc", or that with a
// format or a parameter behind it.
bool IsGrpc(absl::string_view content_type);
// Of these, whether it says that messages are protobuf's, which is what no
// format means, too.
bool IsGrpcProto(absl::string_view content_type);

// Whether a request with these fields is what its bytes look like: of those
// that say another format, or two encodings, only the function knows.
bool CanBeKeyed(const http2::Fields& request);

// Why an answer with these fields and a message is no success beyond doubt, in
// words; empty if it is: HTTP status 200, one content-type (IsGrpcProto), at
// most one grpc-encoding, one grpc-status, which is "0" and in the trailers, no
// details of an error, and no -bin field that is not base64. Of others gRPC's
// libraries make different things, mostly errors: they pass as they came, and
// are nobody else's answer.
absl::string_view DoubtOfOk(const http2::Fields& headers,
                            const http2::Fields& trailers);

// Whether these trailers have one status, and one that can be read.
bool SaysOneStatus(const http2::Fields& trailers);

// The status that a function's last fields say; where they say none, UNKNOWN or
// what `http_status`, the answer's :status, maps to. Of one that comes twice
// gRPC's libraries take the last.
grpc::Status ReadStatus(const http2::Fields& fields,
                        absl::string_view http_status);
// Of an HTTP status alone.
grpc::StatusCode StatusOfHttp(absl::string_view http_status);

// Unpacks a message of one grpc-encoding, in steps: gzip or deflate (which is
// zlib's format).
class Unpacker {
 public:
  // Unimplemented for other encodings. `bytes` outlive this.
  static absl::StatusOr<std::unique_ptr<Unpacker>> Create(
      absl::string_view encoding, absl::string_view bytes);
  ~Unpacker();
  Unpacker(const Unpacker&) = delete;
  Unpacker& operator=(const Unpacker&) = delete;

  // Makes some `step` bytes more, or less where they cost more than usual.
  // DataLoss for bytes that are none, ResourceExhausted where there would be
  // more than `limit` in all.
  absl::Status Step(size_t step, size_t limit);
  // How many bytes the steps so far would usually have made.
  size_t worked() const { return worked_; }
  bool done() const { return done_; }
  // How many bytes there are so far.
  size_t size() const { return size_; }
  // They are counted from now on, and not kept.
  void StopKeeping();
  bool keeps() const { return keeps_; }
  // What was made. Once, when it is done.
  http2::Slice Release() const { return out_.Share(); }

 private:
  struct Stream;
  Unpacker(std::unique_ptr<Stream> stream, absl::string_view bytes);

  const std::unique_ptr<Stream> stream_;
  absl::string_view rest_;  // what zlib has not been given
  size_t worked_ = 0;
  bool done_ = false;
  bool keeps_ = true;
  size_t size_ = 0;
  http2::Buffer out_;
};

// All of it at once.
absl::StatusOr<http2::Slice> Unpack(absl::string_view encoding,
                                    absl::string_view bytes, size_t limit);

}  // namespace fncache::proxy::transport

#endif  // FNCACHE_PROXY_TRANSPORT_CODEC_H_
