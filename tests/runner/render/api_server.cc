// SPDX-License-Identifier: Apache-2.0
#include "tests/runner/render/api_server.h"

#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gtest/gtest.h"
#include "openssl/bio.h"
#include "openssl/pem.h"

namespace fncache::testing {
namespace {

// One connection, as far as bytes go.
class Stream {
 public:
  Stream(int fd, SSL_CTX* tls) : fd_(fd) {
    if (tls == nullptr) return;
    ssl_ = SSL_new(tls);
    SSL_set_fd(ssl_, fd);
    usable_ = SSL_accept(ssl_) == 1;
  }
  ~Stream() {
    if (ssl_ != nullptr) {
      if (usable_) SSL_shutdown(ssl_);
      SSL_free(ssl_);
    }
    close(fd_);
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Up to the empty line that ends a request's headers.
  std::string ReadHead() {
    std::string head;
    char byte;
    while (usable_ && !absl::EndsWith(head, "\r\n\r\n")) {
      const ssize_t got =
          ssl_ == nullptr ? recv(fd_, &byte, 1, 0) : SSL_read(ssl_, &byte, 1);
      if (got <= 0) return "";
      head.push_back(byte);
    }
    return head;
  }
  void Write(absl::string_view bytes) {
    while (usable_ && !bytes.empty()) {
      const ssize_t put =
          ssl_ == nullptr
              ? send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL)
              : SSL_write(ssl_, bytes.data(), static_cast<int>(bytes.size()));
      if (put <= 0) return;  // it has hung up
      bytes.remove_prefix(static_cast<size_t>(put));
    }
  }

 private:
  const int fd_;
  SSL* ssl_ = nullptr;
  bool usable_ = true;
};

SSL_CTX* MakeContext(const Pem& pair) {
  SSL_CTX* const context = SSL_CTX_new(TLS_server_method());
  const auto memory = [](const std::string& text) {
    return BIO_new_mem_buf(text.data(), static_cast<int>(text.size()));
  };
  BIO* const certificate_bytes = memory(pair.certificate);
  X509* const certificate =
      PEM_read_bio_X509(certificate_bytes, nullptr, nullptr, nullptr);
  EXPECT_EQ(SSL_CTX_use_certificate(context, certificate), 1);
  X509_free(certificate);
  BIO_free(certificate_bytes);
  BIO* const key_bytes = memory(pair.key);
  EVP_PKEY* const key =
      PEM_read_bio_PrivateKey(key_bytes, nullptr, nullptr, nullptr);
  EXPECT_EQ(SSL_CTX_use_PrivateKey(context, key), 1);
  EVP_PKEY_free(key);
  BIO_free(key_bytes);
  return context;
}

}  // namespace

ApiServer::ApiServer(Handler handler, const Pem* pair)
    : handler_(std::move(handler)) {
  // OpenSSL writes without MSG_NOSIGNAL.
  signal(SIGPIPE, SIG_IGN);
  if (pair != nullptr) tls_.reset(MakeContext(*pair));
  listening_.Listen(64);
  url_ = absl::StrCat(pair == nullptr ? "http" : "https",
                      "://localhost:", listening_.port());
  accepting_ = std::thread([this] { Accept(); });
}

ApiServer::~ApiServer() {
  listening_.Shutdown();
  accepting_.join();
  for (std::thread& connection : connections_) connection.join();
}

std::vector<ApiServer::Request> ApiServer::requests() const {
  MutexLock lock(&mutex_);
  return requests_;
}

void ApiServer::Accept() {
  while (true) {
    const int fd = listening_.Accept();
    if (fd < 0) return;
    connections_.emplace_back([this, fd] { Serve(fd); });
  }
}

void ApiServer::Serve(int fd) {
  Stream stream(fd, tls_.get());
  const std::string head = stream.ReadHead();
  if (head.empty()) return;
  Request request;
  const std::vector<std::string> lines = absl::StrSplit(head, "\r\n");
  const std::vector<std::string> words = absl::StrSplit(lines[0], ' ');
  if (words.size() != 3 || words[0] != "GET") return;
  request.path = words[1];
  for (absl::string_view line : lines) {
    if (absl::ConsumePrefix(&line, "Authorization: ")) {
      request.authorization = std::string(line);
    }
  }
  {
    MutexLock lock(&mutex_);
    requests_.push_back(request);
  }
  const Answer answer = handler_(request);
  stream.Write(
      absl::StrCat("HTTP/1.1 ", answer.status, " Said\r\nContent-Length: ",
                   answer.body.size(), "\r\nConnection: close\r\n",
                   answer.location.empty() ? "" : "Location: ", answer.location,
                   answer.location.empty() ? "" : "\r\n", "\r\n"));
  stream.Write(answer.body);
}

}  // namespace fncache::testing
