// SPDX-License-Identifier: Apache-2.0
// TlsStream: TLS on a socket of Http2Connection's, as a runner's calls have it:
// peers are checked as FunctionCredentials does (common/peer_certificate.h and
// the name that was called), HTTP/2 is agreed upon by ALPN.
//
// Single-threaded, as the connection that owns it; a TlsContext may be shared.
#ifndef FNCACHE_RUNNER_LOAD_WIRE_TLS_STREAM_H_
#define FNCACHE_RUNNER_LOAD_WIRE_TLS_STREAM_H_

#include <openssl/ssl.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/openssl_owned.h"
#include "common/tls_context.h"
#include "runner/load/wire/http2_connection.h"

namespace fncache::runner::load::wire {

class TlsStream : public SecureStream {
 public:
  // Shakes hands over `fd`, a non-blocking socket that is connected and stays
  // the caller's, with a server whose certificate is for `host`. Blocks, for
  // `patience` at most. Unavailable says why it failed.
  static absl::StatusOr<std::unique_ptr<TlsStream>> Connect(
      SSL_CTX* context, int fd, const std::string& host,
      absl::Duration patience);
  ~TlsStream() override;

  ssize_t Read(char* data, size_t size) override;
  ssize_t Write(const iovec* parts, int count) override;
  std::string Why() const override { return why_; }

 private:
  explicit TlsStream(SSL* ssl) : ssl_(ssl) {}
  ssize_t Failed(int result);

  SSL* const ssl_;
  std::string coalesced_;
  std::string why_;
};

}  // namespace fncache::runner::load::wire

#endif  // FNCACHE_RUNNER_LOAD_WIRE_TLS_STREAM_H_
