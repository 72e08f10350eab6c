// SPDX-License-Identifier: Apache-2.0
// DeafServer: a server that speaks HTTP/2 as far as it must to be sent
// everything, and does not read it: what is sent to it waits at the sender.
//
// Full is one thread's at a time, the rest anyone's.
#ifndef FNCACHE_TESTS_COMMON_DEAF_SERVER_H_
#define FNCACHE_TESTS_COMMON_DEAF_SERVER_H_

#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "tests/common/http2_server.h"
#include "tests/common/loopback_socket.h"

namespace fncache::testing {

// Takes one connection, allows its peer to send as much as it likes, and reads
// nothing until Listen.
class DeafServer {
 public:
  DeafServer() {
    const int small = 64 << 10;
    setsockopt(listening_.fd(), SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    listening_.Listen(8);
    thread_ = std::thread([this] { Serve(); });
  }
  ~DeafServer() {
    if (!listens_.HasBeenNotified()) listens_.Notify();
    listening_.Shutdown();
    shutdown(connection_, SHUT_RDWR);
    thread_.join();
    close(connection_);
  }
  DeafServer(const DeafServer&) = delete;
  DeafServer& operator=(const DeafServer&) = delete;

  std::string target() const { return listening_.target(); }

  // Whether the connection is full: over 16 KiB are unread, and over a hundred
  // calls of this in a row saw no more bytes come.
  bool Full() {
    int unread = 0;
    if (connection_ < 0 || ioctl(connection_, FIONREAD, &unread) != 0) {
      return false;
    }
    same_ = unread == unread_ ? same_ + 1 : 0;
    unread_ = unread;
    return unread > (16 << 10) && same_ > 100;
  }
  // Ends the connection's call of this number with NOT_FOUND.
  void EndCall(char stream) {
    Send(
        {Http2Frame::kHeaders, Http2Frame::kEndHeaders | Http2Frame::kEndStream,
         absl::StrCat(Http2Ok(),
                      Http2Header("content-type", "application/grpc"),
                      Http2Header("grpc-status", "5"))},
        stream);
  }
  void Listen() { listens_.Notify(); }
  int64_t read() const { return read_; }

 private:
  void Serve() {
    connection_ = listening_.Accept();
    if (connection_ < 0) return;
    // The largest windows there are.
    Send({Http2Frame::kSettings, 0, std::string("\0\4\x7f\xff\xff\xff", 6)}, 0);
    Send({Http2Frame::kWindowUpdate, 0, std::string("\x7f\xfe\0\0", 4)}, 0);
    listens_.WaitForNotification();
    std::string bytes(1 << 20, '\0');
    while (true) {
      const ssize_t n = recv(connection_, bytes.data(), bytes.size(), 0);
      if (n <= 0) return;
      read_ += n;
    }
  }

  void Send(const Http2Frame& frame, char stream) {
    const std::string bytes = Http2Bytes(frame, std::string(3, '\0') + stream);
    (void)!send(connection_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }

  const LoopbackSocket listening_;
  std::atomic<int> connection_{-1};
  absl::Notification listens_;
  int unread_ = 0;  // when Full was called last
  int same_ = 0;    // how many times in a row
  std::atomic<int64_t> read_{0};
  std::thread thread_;
};

}  // namespace fncache::testing

#endif  // FNCACHE_TESTS_COMMON_DEAF_SERVER_H_
