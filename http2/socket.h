// SPDX-License-Identifier: Apache-2.0
// Socket: the transport of a connection: a plain socket, or TLS on one.
//
// Not thread-safe.
#ifndef FNCACHE_HTTP2_SOCKET_H_
#define FNCACHE_HTTP2_SOCKET_H_

#include <openssl/types.h>
#include <sys/types.h>

#include <cstddef>
#include <string>

#include "http2/output.h"

namespace fncache::http2 {

class Socket {
 public:
  // Takes over both. `ssl` may be null.
  Socket(int fd, SSL* ssl) : fd_(fd), ssl_(ssl) {}
  ~Socket();
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  int fd() const { return fd_; }
  SSL* ssl() const { return ssl_; }
  bool has_tls() const { return ssl_ != nullptr; }

  // Before anything else of TLS. False: there is no memory.
  bool Attach();
  enum class Handshake { kDone, kWantsInput, kWantsOutput, kFailed };
  // Continues the handshake.
  Handshake Shake();
  // Both sides have agreed upon HTTP/2 (ALPN).
  bool speaks_http2() const;
  // The last error of TLS; null if the failure was not TLS's.
  static const char* TlsReason();

  // As read(2) and sendmsg(2) do, with errno; EPROTO where TLS failed. A read
  // of TLS needs a buffer for a record, 16 KiB.
  ssize_t Read(char* to, size_t size);
  ssize_t Write(const Output& output);
  // Signals the end of the output to the peer.
  void EndOutput();
  // Releases the memory that is kept for later output. Nothing may wait to be
  // written.
  void GiveBack() { std::string().swap(record_); }

 private:
  const int fd_;
  SSL* const ssl_;
  std::string record_;  // of TLS, while it is not written
};

}  // namespace fncache::http2

#endif  // FNCACHE_HTTP2_SOCKET_H_
