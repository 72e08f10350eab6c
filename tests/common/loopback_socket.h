// SPDX-License-Identifier: Apache-2.0
// LoopbackSocket: a TCP socket that has a port of 127.0.0.1 to itself. Until
// Listen connections to it are refused.
//
// Owns the socket. Thread-safe once it is made.
#ifndef FNCACHE_TESTS_COMMON_LOOPBACK_SOCKET_H_
#define FNCACHE_TESTS_COMMON_LOOPBACK_SOCKET_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace fncache::testing {

class LoopbackSocket {
 public:
  LoopbackSocket() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(fd_, any, size), 0);
    EXPECT_EQ(getsockname(fd_, any, &size), 0);
    port_ = ntohs(address.sin_port);
  }
  ~LoopbackSocket() { close(fd_); }
  LoopbackSocket(const LoopbackSocket&) = delete;
  LoopbackSocket& operator=(const LoopbackSocket&) = delete;

  int fd() const { return fd_; }
  int port() const { return port_; }
  std::string target() const { return absl::StrCat("127.0.0.1:", port_); }

  void Listen(int backlog) const { EXPECT_EQ(listen(fd_, backlog), 0); }
  // Ends whatever waits in Accept, and every Accept to come.
  void Shutdown() const { shutdown(fd_, SHUT_RDWR); }
  // The next connection; below 0: there is none any more.
  int Accept() const { return accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC); }

 private:
  const int fd_;
  int port_ = 0;
};

}  // namespace fncache::testing

#endif  // FNCACHE_TESTS_COMMON_LOOPBACK_SOCKET_H_
