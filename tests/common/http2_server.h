// SPDX-License-Identifier: Apache-2.0
// Http2Server: a server that speaks HTTP/2 and need not know gRPC: it answers
// every request with the same frames, whatever they are.
#ifndef FNCACHE_TESTS_COMMON_HTTP2_SERVER_H_
#define FNCACHE_TESTS_COMMON_HTTP2_SERVER_H_

#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/mutex.h"
#include "tests/common/loopback_socket.h"

namespace fncache::testing {

struct Http2Frame {
  enum Type : unsigned char {
    kData = 0,
    kHeaders = 1,
    kReset = 3,
    kSettings = 4,
    kGoAway = 7,
    kWindowUpdate = 8
  };
  enum Flag : unsigned char { kEndStream = 1, kAck = 1, kEndHeaders = 4 };

  unsigned char type;
  unsigned char flags;
  std::string payload;
};

// As it is sent. `stream`: its number's four bytes.
inline std::string Http2Bytes(const Http2Frame& frame,
                              const std::string& stream) {
  const size_t size = frame.payload.size();
  const std::string head = {
      static_cast<char>(size >> 16), static_cast<char>(size >> 8),
      static_cast<char>(size), static_cast<char>(frame.type),
      static_cast<char>(frame.flags)};
  return head + stream + frame.payload;
}

// A header block (HPACK, RFC 7541) of ":status: 200", for responses.
inline std::string Http2Ok() { return "\x88"; }
// One more header of it; names and values below 127 bytes.
inline std::string Http2Header(const std::string& name,
                               const std::string& value) {
  return absl::StrCat(std::string(1, '\0'),
                      std::string(1, static_cast<char>(name.size())), name,
                      std::string(1, static_cast<char>(value.size())), value);
}

class Http2Server {
 public:
  // `early`: it answers as calls begin, and takes no more of them. `settings`:
  // the payload of its first frame.
  explicit Http2Server(std::vector<Http2Frame> answer, bool early = false,
                       std::string settings = "")
      : answer_(std::move(answer)),
        early_(early),
        settings_(std::move(settings)) {
    listening_.Listen(8);
    acceptor_ = std::thread([this] { Accept(); });
  }
  ~Http2Server() {
    listening_.Shutdown();
    acceptor_.join();
    {
      MutexLock lock(&mutex_);
      for (const int fd : connections_) shutdown(fd, SHUT_RDWR);
    }
    for (std::thread& thread : threads_) thread.join();
    for (const int fd : connections_) close(fd);
  }
  Http2Server(const Http2Server&) = delete;
  Http2Server& operator=(const Http2Server&) = delete;

  std::string target() const { return listening_.target(); }
  // How many calls were reset.
  int resets() const { return resets_; }
  // The header blocks that came, trailers too, as they were compressed for
  // their connection.
  std::vector<std::string> blocks() {
    MutexLock lock(&mutex_);
    return blocks_;
  }

 private:
  void Accept() {
    while (true) {
      const int fd = listening_.Accept();
      if (fd < 0) return;
      MutexLock lock(&mutex_);
      connections_.push_back(fd);
      threads_.emplace_back([this, fd] { Serve(fd); });
    }
  }

  void Serve(int fd) {
    std::string preface(24, '\0');
    if (!Receive(fd, &preface)) return;
    Send(fd, {Http2Frame::kSettings, 0, settings_}, std::string(4, '\0'));
    while (true) {
      std::string head(9, '\0');
      if (!Receive(fd, &head)) return;
      const auto at = [&head](int i) {
        return static_cast<unsigned char>(head[i]);
      };
      std::string payload(at(0) << 16 | at(1) << 8 | at(2), '\0');
      if (!Receive(fd, &payload)) return;
      const unsigned char type = at(3);
      const unsigned char flags = at(4);
      if (type == Http2Frame::kSettings && (flags & Http2Frame::kAck) == 0) {
        Send(fd, {Http2Frame::kSettings, Http2Frame::kAck, ""},
             std::string(4, '\0'));
      }
      if (type == Http2Frame::kReset) ++resets_;
      if (type == Http2Frame::kHeaders) {
        MutexLock lock(&mutex_);
        blocks_.push_back(payload);
      }
      if (early_ ? type == Http2Frame::kHeaders
                 : type <= Http2Frame::kHeaders &&
                       (flags & Http2Frame::kEndStream) != 0) {
        for (const Http2Frame& frame : answer_) {
          Send(fd, frame,
               frame.type == Http2Frame::kGoAway ? std::string(4, '\0')
                                                 : head.substr(5));
        }
      }
    }
  }

  static bool Receive(int fd, std::string* bytes) {
    return bytes->empty() ||
           recv(fd, bytes->data(), bytes->size(), MSG_WAITALL) ==
               static_cast<ssize_t>(bytes->size());
  }
  static void Send(int fd, const Http2Frame& frame, const std::string& stream) {
    const std::string bytes = Http2Bytes(frame, stream);
    (void)!send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }

  const std::vector<Http2Frame> answer_;
  const bool early_;
  const std::string settings_;
  std::atomic<int> resets_{0};
  const LoopbackSocket listening_;
  std::thread acceptor_;
  Mutex mutex_;
  std::vector<std::string> blocks_ ABSL_GUARDED_BY(mutex_);
  // Written by the acceptor only.
  std::vector<int> connections_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
};

}  // namespace fncache::testing

#endif  // FNCACHE_TESTS_COMMON_HTTP2_SERVER_H_
