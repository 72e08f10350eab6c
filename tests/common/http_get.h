// SPDX-License-Identifier: Apache-2.0
// HttpGet: asks an HTTP server for a page, as simply as that can be done, and
// without a library that would repair mistakes.
#ifndef FNCACHE_TESTS_COMMON_HTTP_GET_H_
#define FNCACHE_TESTS_COMMON_HTTP_GET_H_

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace fncache::testing {

// The whole answer of HOST:PORT, head and body; empty if there is none.
inline std::string WholeHttpGet(const std::string& address,
                                const std::string& path) {
  const size_t colon = address.rfind(':');
  addrinfo* to = nullptr;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  std::string out;
  if (getaddrinfo(address.substr(0, colon).c_str(),
                  address.substr(colon + 1).c_str(), &hints, &to) != 0) {
    return out;
  }
  const int fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const std::string request =
      absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: x\r\n\r\n");
  if (connect(fd, to->ai_addr, to->ai_addrlen) == 0 &&
      send(fd, request.data(), request.size(), MSG_NOSIGNAL) > 0) {
    char buffer[16384];
    for (ssize_t n; (n = recv(fd, buffer, sizeof buffer, 0)) > 0;) {
      out.append(buffer, static_cast<size_t>(n));
    }
  }
  close(fd);
  freeaddrinfo(to);
  return out;
}

inline std::string HttpGet(int port, const std::string& path) {
  return WholeHttpGet(absl::StrCat("127.0.0.1:", port), path);
}

}  // namespace fncache::testing

#endif  // FNCACHE_TESTS_COMMON_HTTP_GET_H_
