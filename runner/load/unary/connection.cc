// SPDX-License-Identifier: Apache-2.0
#include "runner/load/unary/connection.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <limits>

#include "absl/cleanup/cleanup.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/time.h"
#include "common/tls_context.h"
#include "common/tls_contexts.h"

namespace fncache::runner::load::unary {
namespace {

constexpr uint32_t kLargestWindow = 0x7fffffff;
constexpr uint32_t kMostFieldBytes = 16 << 20;
constexpr absl::Duration kTlsPatience = absl::Seconds(5);

std::string HostOf(const std::string& target) {
  std::string host = target.substr(0, target.rfind(':'));
  if (host.size() > 2 && host.front() == '[') {
    host = host.substr(1, host.size() - 2);
  }
  return host;
}

// http2 does not know which side the peer is.
std::string Words(absl::string_view words) {
  return absl::StrReplaceAll(words, {{"the peer", "the server"}});
}

// A connected socket that does not block.
absl::StatusOr<int> ConnectTo(const std::string& target) {
  const std::string host = HostOf(target);
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error =
      getaddrinfo(host.c_str(), target.substr(target.rfind(':') + 1).c_str(),
                  &hints, &found);
  if (error != 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot connect to ", target, ": ", gai_strerror(error)));
  }
  const absl::Cleanup free_found = [&] { freeaddrinfo(found); };
  int failed = 0;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    const int fd = socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
      failed = errno;
      continue;
    }
    const int on = 1;
    // Only then it does not block: connecting is waited for.
    if (connect(fd, one->ai_addr, one->ai_addrlen) == 0 &&
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == 0 &&
        fcntl(fd, F_SETFL, O_NONBLOCK) == 0) {
      return fd;
    }
    failed = errno;
    close(fd);
  }
  return absl::ErrnoToStatus(failed,
                             absl::StrCat("cannot connect to ", target));
}

}  // namespace

// Call.

void Call::OnAnswer(http2::Stream& stream) {
  for (const http2::Field field : stream.fields()) {
    OnField(field.name, field.value);
  }
}

void Call::OnData(http2::Stream& /*stream*/, absl::string_view bytes) {
  // The window needs no care: no answer is larger.
  OnBody(bytes);
}

void Call::OnTrailers(http2::Stream& stream) {
  for (const http2::Field field : stream.trailers()) {
    OnField(field.name, field.value);
  }
}

void Call::OnPeerEnd(http2::Stream& stream) {
  complete_ = true;
  // The server does not want the rest.
  if (stream.unsent() > 0) stream.Reset(http2::kCancel);
}

void Call::OnClosed(http2::Stream& /*stream*/, const http2::StreamEnd& end) {
  End ended;
  if (!complete_) {
    ended.code = end.code;
    if (end.kind == http2::StreamEnd::Kind::kLost) {
      ended.kind = End::Kind::kLost;
      ended.why = Words(end.why);
    } else {
      ended.kind = end.unprocessed ? End::Kind::kRefused : End::Kind::kReset;
    }
  }
  OnEnd(ended);
}

// Server.

Server::Server(std::string target, absl::string_view path,
               const std::vector<std::pair<std::string, std::string>>& metadata,
               SSL_CTX* tls)
    : target_(std::move(target)), host_(HostOf(target_)), tls_(tls) {
  fields_.Add(":method", "POST");
  fields_.Add(":scheme", tls_ != nullptr ? "https" : "http");
  fields_.Add(":path", path);
  fields_.Add(":authority", target_);
  fields_.Add("content-type", "application/grpc");
  fields_.Add("user-agent", "fncache-load");
  fields_.Add("te", "trailers");
  for (const auto& [name, value] : metadata) fields_.Add(name, value);

  options_.server = false;
  options_.stream_window = kLargestWindow;
  options_.connection_window = kLargestWindow;
  options_.max_field_bytes = kMostFieldBytes;
  // Window updates for large requests are no attack.
  options_.budget = std::numeric_limits<double>::infinity();
  options_.budget_most = options_.budget;
  options_.handshake_timeout =
      tls_ != nullptr ? kTlsPatience : absl::InfiniteDuration();
  options_.check_peer = [this](SSL* ssl) -> std::string {
    if (IsPeerNamed(ssl, host_)) return "";
    return absl::StrCat("the function's certificate is not for ", host_);
  };
  options_.explain_handshake = &HandshakeWords;
}

// Connection.

Connection::~Connection() {
  user_ = nullptr;
  if (open()) Close("no longer needed");
}

absl::Status Connection::Open() {
  const auto fd = ConnectTo(server_.target_);
  if (!fd.ok()) return fd.status();
  SSL* ssl = nullptr;
  if (server_.tls_ != nullptr) {
    ssl = SSL_new(server_.tls_);
    if (ssl == nullptr) {
      close(*fd);
      return absl::ResourceExhaustedError(
          absl::StrCat(server_.target_, ": no memory for TLS"));
    }
    SSL_set_connect_state(ssl);
    if (!IsIpAddress(server_.host_)) {
      SSL_set_tlsext_host_name(ssl, server_.host_.c_str());
    }
  }
  got_goaway_ = false;
  connection_ =
      http2::Connection::Create(loop_, *fd, ssl, &server_.options_, this);
  return absl::OkStatus();
}

void Connection::Begin(Call* call, absl::Span<http2::Slice> body) {
  call->complete_ = false;
  http2::Stream* const stream =
      connection_->Open(server_.fields_, /*end=*/false, call);
  for (http2::Slice& part : body) stream->Send(std::move(part));
  stream->End();
}

uint64_t Connection::bytes_read() const {
  return past_read_ + (open() ? connection_->bytes_read() : 0);
}

uint64_t Connection::bytes_written() const {
  return past_written_ + (open() ? connection_->bytes_written() : 0);
}

void Connection::OnReady(http2::Connection& /*connection*/) {
  if (user_ != nullptr) user_->OnCapacity(*this);
}

void Connection::OnCapacity(http2::Connection& /*connection*/) {
  if (user_ != nullptr) user_->OnCapacity(*this);
}

void Connection::OnGoingAway(http2::Connection& /*connection*/) {
  got_goaway_ = true;
}

void Connection::OnClosed(http2::Connection& connection,
                          http2::ConnectionEnd end, const std::string& words) {
  past_read_ += connection.bytes_read();
  past_written_ += connection.bytes_written();
  connection_ = nullptr;
  const bool goes = end == http2::ConnectionEnd::kDone && got_goaway_;
  // Without a GOAWAY the server just left.
  if (end == http2::ConnectionEnd::kDone && !goes) {
    end = http2::ConnectionEnd::kPeerLeft;
  }
  if (user_ == nullptr) return;
  user_->OnLost(*this, end, goes ? "the server goes away" : Words(words));
}

}  // namespace fncache::runner::load::unary
