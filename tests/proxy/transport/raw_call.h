// SPDX-License-Identifier: Apache-2.0
// Calls made of bytes, for callers that no client library would be.
#ifndef FNCACHE_TESTS_PROXY_TRANSPORT_RAW_CALL_H_
#define FNCACHE_TESTS_PROXY_TRANSPORT_RAW_CALL_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/common/http2_server.h"

namespace fncache::proxy::transport {

// A connection to a port of this machine, which its caller closes.
inline int ConnectTo(const std::string& port) {
  const int connection = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int number = 0;
  EXPECT_TRUE(absl::SimpleAtoi(port, &number));
  address.sin_port = htons(number);
  EXPECT_EQ(connect(connection, reinterpret_cast<sockaddr*>(&address),
                    sizeof address),
            0);
  return connection;
}

inline bool SendAll(int connection, const std::string& bytes) {
  return send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
         static_cast<ssize_t>(bytes.size());
}

inline std::string BigEndian(uint32_t number) {
  std::string bytes;
  for (int i = 24; i >= 0; i -= 8) bytes += static_cast<char>(number >> i);
  return bytes;
}

// The first bytes of a client: the preface, and an empty SETTINGS frame.
inline std::string Greeting() {
  using testing::Http2Frame;
  return absl::StrCat(
      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
      testing::Http2Bytes({Http2Frame::kSettings, 0, ""}, BigEndian(0)));
}

// The header block of a call, with more fields (testing::Http2Header).
inline std::string CallHead(uint32_t stream, const std::string& path,
                            const std::string& more = "") {
  using testing::Http2Frame;
  using testing::Http2Header;
  return testing::Http2Bytes(
      {Http2Frame::kHeaders, Http2Frame::kEndHeaders,
       absl::StrCat("\x83\x86",  // POST, http
                    Http2Header(":path", path),
                    Http2Header(":authority", "function"),
                    Http2Header("content-type", "application/grpc"), more)},
      BigEndian(stream));
}

inline std::string CallData(uint32_t stream, const std::string& bytes,
                            bool end = false) {
  using testing::Http2Frame;
  constexpr unsigned char kEnd = Http2Frame::kEndStream;
  return testing::Http2Bytes(
      {Http2Frame::kData, end ? kEnd : static_cast<unsigned char>(0), bytes},
      BigEndian(stream));
}

// The bytes before a message of `size` bytes.
inline std::string MessageHead(uint32_t size) {
  return std::string(1, '\0') + BigEndian(size);
}

}  // namespace fncache::proxy::transport

#endif  // FNCACHE_TESTS_PROXY_TRANSPORT_RAW_CALL_H_
