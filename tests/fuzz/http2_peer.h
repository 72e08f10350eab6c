// SPDX-License-Identifier: Apache-2.0
// The peer of a connection in a fuzzer: the far end of a socket pair, which
// says what the input holds, reads what is said to it, and checks that those
// are frames.
#ifndef FNCACHE_TESTS_FUZZ_HTTP2_PEER_H_
#define FNCACHE_TESTS_FUZZ_HTTP2_PEER_H_

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>

#include "absl/strings/string_view.h"
#include "http2/loop.h"

namespace fncache::fuzz {

class Http2Peer {
 public:
  // `largest`: how much a frame may have that comes (RFC 9113, 6.5.2).
  explicit Http2Peer(http2::Loop* loop, size_t largest = 16384)
      : loop_(loop), largest_(largest) {
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0,
                   fds_) != 0) {
      std::abort();
    }
  }
  ~Http2Peer() { Leave(); }
  Http2Peer(const Http2Peer&) = delete;
  Http2Peer& operator=(const Http2Peer&) = delete;

  // The other end of the connection. The connection's owner closes it.
  int far_end() const { return fds_[0]; }

  // Says these bytes in pieces of at most `piece`, and lets the connection
  // serve each.
  void Say(absl::string_view bytes, size_t piece) {
    while (!bytes.empty()) {
      const absl::string_view now = bytes.substr(0, piece);
      const ssize_t sent =
          send(fds_[1], now.data(), now.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      Turn();
      if (sent < 0 && errno != EAGAIN) return;  // it has been closed
      if (sent > 0) bytes.remove_prefix(static_cast<size_t>(sent));
    }
  }
  // Two turns of the loop, and reads what came.
  void Turn() {
    for (int i = 0; i < 2; ++i) {
      loop_->Post([this] { loop_->Quit(); });
      loop_->Run();
    }
    Listen();
  }
  void Leave() {
    if (fds_[1] >= 0) close(fds_[1]);
    fds_[1] = -1;
  }

 private:
  void Listen() {
    char bytes[16384];
    for (;;) {
      const ssize_t size = recv(fds_[1], bytes, sizeof bytes, MSG_DONTWAIT);
      if (size <= 0) return;
      heard_.append(bytes, static_cast<size_t>(size));
      CheckFrames();
    }
  }
  void CheckFrames() {
    constexpr size_t kHead = 9;
    size_t at = 0;
    if (client_preface_ < 0) {
      if (heard_.size() < 3) return;
      client_preface_ = heard_.compare(0, 3, "PRI") == 0 ? 24 : 0;
    }
    if (client_preface_ > 0) {
      if (heard_.size() < static_cast<size_t>(client_preface_)) return;
      at = static_cast<size_t>(client_preface_);
      client_preface_ = 0;
    }
    while (heard_.size() - at >= kHead) {
      const auto* const head =
          reinterpret_cast<const unsigned char*>(&heard_[at]);
      const size_t length =
          static_cast<size_t>(head[0]) << 16 | head[1] << 8 | head[2];
      if (length > largest_ || head[3] > 9) std::abort();
      if (heard_.size() - at < kHead + length) break;
      const uint32_t id = static_cast<uint32_t>(head[5]) << 24 | head[6] << 16 |
                          head[7] << 8 | head[8];
      const bool carries = head[3] == 0 || head[3] == 1;
      // Nothing follows what ends a stream.
      if (carries && ended_.count(id) != 0) std::abort();
      if (carries && (head[4] & 1) != 0) ended_.insert(id);
      at += kHead + length;
    }
    heard_.erase(0, at);
  }

  http2::Loop* const loop_;
  const size_t largest_;
  int fds_[2] = {-1, -1};
  int client_preface_ = -1;
  std::string heard_;
  std::set<uint32_t> ended_;
};

// The bytes that an input sends. If its first byte is even, they are the rest
// of the input. Otherwise the rest is a sequence of frames, whose lengths are
// always right: two bytes for type and flags, one for the stream, one for the
// length, and the payload.
inline std::string Http2Input(const uint8_t* data, size_t size) {
  const absl::string_view all(reinterpret_cast<const char*>(data), size);
  if (size == 0) return "";
  absl::string_view rest = all.substr(1);
  if ((data[0] & 1) == 0) return std::string(rest);
  std::string out;
  while (rest.size() >= 4) {
    const auto at = [&](size_t i) { return static_cast<uint8_t>(rest[i]); };
    const size_t length = at(3);
    const char head[9] = {0,
                          0,
                          static_cast<char>(length),
                          static_cast<char>(at(0) % 12),
                          rest[1],
                          0,
                          0,
                          0,
                          static_cast<char>(at(2) % 16)};
    rest.remove_prefix(4);
    out.append(head, sizeof head);
    std::string payload(rest.substr(0, length));
    rest.remove_prefix(payload.size());
    payload.resize(length);
    out += payload;
  }
  return out;
}

}  // namespace fncache::fuzz

#endif  // FNCACHE_TESTS_FUZZ_HTTP2_PEER_H_
