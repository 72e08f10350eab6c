// SPDX-License-Identifier: Apache-2.0
#include "http2/socket.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "absl/types/span.h"

namespace fncache::http2 {
namespace {

constexpr size_t kVectors = 256;
// The most bytes of a TLS record.
constexpr size_t kRecord = 16384;
// Limit of records in one read. Then others are served.
constexpr int kMostRecords = 64;

}  // namespace

Socket::~Socket() {
  SSL_free(ssl_);
  close(fd_);
}

bool Socket::Attach() { return ssl_ == nullptr || SSL_set_fd(ssl_, fd_) == 1; }

Socket::Handshake Socket::Shake() {
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl_);
  if (result == 1) return Handshake::kDone;
  switch (SSL_get_error(ssl_, result)) {
    case SSL_ERROR_WANT_READ:
      return Handshake::kWantsInput;
    case SSL_ERROR_WANT_WRITE:
      return Handshake::kWantsOutput;
    default:
      return Handshake::kFailed;
  }
}

bool Socket::speaks_http2() const {
  const unsigned char* protocol = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(ssl_, &protocol, &size);
  return size == 2 && std::memcmp(protocol, "h2", 2) == 0;
}

const char* Socket::TlsReason() {
  return ERR_reason_error_string(ERR_peek_last_error());
}

ssize_t Socket::Read(char* to, size_t size) {
  if (ssl_ == nullptr) return read(fd_, to, size);
  size_t taken = 0;
  // A record may have a byte.
  for (int i = 0; i < kMostRecords && size - taken >= kRecord; ++i) {
    ERR_clear_error();
    errno = 0;
    const int result =
        SSL_read(ssl_, to + taken, static_cast<int>(size - taken));
    if (result > 0) {
      taken += static_cast<size_t>(result);
      continue;
    }
    if (taken > 0) break;
    switch (SSL_get_error(ssl_, result)) {
      case SSL_ERROR_WANT_READ:
      case SSL_ERROR_WANT_WRITE:
        errno = EAGAIN;
        return -1;
      case SSL_ERROR_ZERO_RETURN:
        return 0;
      case SSL_ERROR_SYSCALL:
        return errno == 0 ? 0 : -1;
      default:
        // A peer that closes without a close_notify: where a body ends says
        // HTTP/2.
        if (ERR_GET_REASON(ERR_peek_last_error()) ==
            SSL_R_UNEXPECTED_EOF_WHILE_READING) {
          return 0;
        }
        errno = EPROTO;
        return -1;
    }
  }
  return static_cast<ssize_t>(taken);
}

ssize_t Socket::Write(const Output& output) {
  if (ssl_ == nullptr) {
    std::array<iovec, kVectors> vectors;
    msghdr message = {};
    message.msg_iov = vectors.data();
    message.msg_iovlen = output.FillVectors(absl::MakeSpan(vectors));
    return sendmsg(fd_, &message, MSG_NOSIGNAL);
  }
  // What TLS has not taken must be given to it again, as it was.
  if (record_.empty()) output.FillRecord(kRecord, &record_);
  ERR_clear_error();
  errno = 0;
  const int result =
      SSL_write(ssl_, record_.data(), static_cast<int>(record_.size()));
  if (result > 0) {
    record_.clear();
    return result;
  }
  const int error = SSL_get_error(ssl_, result);
  if (error == SSL_ERROR_WANT_WRITE || error == SSL_ERROR_WANT_READ) {
    errno = EAGAIN;
  } else if (errno == 0 || error == SSL_ERROR_SSL) {
    errno = EPIPE;
  }
  return -1;
}

void Socket::EndOutput() {
  if (ssl_ != nullptr) SSL_shutdown(ssl_);
  shutdown(fd_, SHUT_WR);
}

}  // namespace fncache::http2
