// SPDX-License-Identifier: Apache-2.0
#include "runner/load/wire/tls_stream.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <poll.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "common/handshake_failure.h"

namespace fncache::runner::load::wire {
namespace {

// What a record holds: more at once is nothing won.
constexpr size_t kRecord = 16384;

std::string OpensslError() {
  const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
  return reason == nullptr ? "the connection was closed" : reason;
}

bool IsFor(SSL* ssl, const std::string& host) {
  const Owned<X509> certificate(SSL_get1_peer_certificate(ssl));
  if (certificate == nullptr) return false;
  if (IsIpAddress(host)) {
    return X509_check_ip_asc(certificate.get(), host.c_str(), 0) == 1;
  }
  return X509_check_host(certificate.get(), host.data(), host.size(), 0,
                         nullptr) == 1;
}

// Waits until the socket is ready for what the handshake needs next.
bool WaitFor(SSL* ssl, int error, absl::Time until) {
  pollfd ready = {SSL_get_fd(ssl), 0, 0};
  ready.events = error == SSL_ERROR_WANT_WRITE ? POLLOUT : POLLIN;
  const int64_t left = absl::ToInt64Milliseconds(until - absl::Now());
  return left > 0 && poll(&ready, 1, static_cast<int>(left)) > 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<TlsStream>> TlsStream::Connect(
    SSL_CTX* context, int fd, const std::string& host,
    absl::Duration patience) {
  SSL* const ssl = SSL_new(context);
  if (ssl == nullptr) return absl::ResourceExhaustedError("no room for TLS");
  std::unique_ptr<TlsStream> stream(new TlsStream(ssl));
  if (SSL_set_fd(ssl, fd) != 1) return absl::UnavailableError(OpensslError());
  if (!IsIpAddress(host)) {
    SSL_set_tlsext_host_name(ssl, host.c_str());
  }
  // What our check of certificates refuses it says in better words.
  std::string words;
  const HandshakeObserver observer(
      [&words](const HandshakeFailure& failure) { words = failure.words; });
  const absl::Time until = absl::Now() + patience;
  for (;;) {
    ERR_clear_error();
    const int result = SSL_connect(ssl);
    if (result == 1) break;
    const int error = SSL_get_error(ssl, result);
    if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) {
      return absl::UnavailableError(absl::StrCat(
          "TLS handshake failed: ", words.empty() ? OpensslError() : words));
    }
    if (!WaitFor(ssl, error, until)) {
      return absl::UnavailableError("TLS handshake failed: no answer in time");
    }
  }
  const unsigned char* protocol = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(ssl, &protocol, &size);
  if (size != 2) {
    return absl::UnavailableError(
        "TLS handshake failed: the server does not agree upon HTTP/2");
  }
  if (!IsFor(ssl, host)) {
    return absl::UnavailableError(
        absl::StrCat("TLS handshake failed: the function's certificate is not "
                     "for ",
                     host));
  }
  return stream;
}

TlsStream::~TlsStream() { SSL_free(ssl_); }

// As read(2) and write(2) say it.
ssize_t TlsStream::Failed(int result) {
  switch (SSL_get_error(ssl_, result)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
      errno = EAGAIN;
      return -1;
    case SSL_ERROR_ZERO_RETURN:
      return 0;
    case SSL_ERROR_SYSCALL:
      if (errno == 0) return 0;
      return -1;
    default:
      // An alert, as one for a certificate that the server does not take.
      why_ = OpensslError();
      errno = EPROTO;
      return -1;
  }
}

// As many records as there are and fit: what OpenSSL has in its memory would
// wake nobody.
ssize_t TlsStream::Read(char* data, size_t size) {
  size_t taken = 0;
  while (taken == 0 || (size - taken >= kRecord && SSL_pending(ssl_) > 0)) {
    ERR_clear_error();
    errno = 0;
    const int result =
        SSL_read(ssl_, data + taken, static_cast<int>(size - taken));
    if (result <= 0) {
      if (taken > 0) break;
      return Failed(result);
    }
    taken += static_cast<size_t>(result);
  }
  return static_cast<ssize_t>(taken);
}

ssize_t TlsStream::Write(const iovec* parts, int count) {
  coalesced_.clear();
  for (int i = 0; i < count && coalesced_.size() < kRecord; ++i) {
    coalesced_.append(static_cast<const char*>(parts[i].iov_base),
                      std::min(parts[i].iov_len, kRecord - coalesced_.size()));
  }
  if (coalesced_.empty()) return 0;
  ERR_clear_error();
  errno = 0;
  const int result =
      SSL_write(ssl_, coalesced_.data(), static_cast<int>(coalesced_.size()));
  if (result > 0) return result;
  const ssize_t failed = Failed(result);
  if (failed == 0) {
    errno = EPIPE;
    return -1;
  }
  return failed;
}

}  // namespace fncache::runner::load::wire
