// SPDX-License-Identifier: Apache-2.0
// HttpGet: asks an HTTP server on the loopback address for a page, as simply as
// that can be done, and without a library that would mend what is wrong.
#ifndef FNCACHE_TESTS_COMMON_HTTP_GET_H_
#define FNCACHE_TESTS_COMMON_HTTP_GET_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace fncache::testing {

// The whole answer, head and body; empty if there is none.
inline std::string HttpGet(int port, const std::string& path) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string out;
  const std::string request =
      absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: x\r\n\r\n");
  if (connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0 &&
      send(fd, request.data(), request.size(), MSG_NOSIGNAL) > 0) {
    char buffer[16384];
    for (ssize_t n; (n = recv(fd, buffer, sizeof buffer, 0)) > 0;) {
      out.append(buffer, static_cast<size_t>(n));
    }
  }
  close(fd);
  return out;
}

}  // namespace fncache::testing

#endif  // FNCACHE_TESTS_COMMON_HTTP_GET_H_
