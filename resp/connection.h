// SPDX-License-Identifier: Apache-2.0
// Connection: one stream to a node, by libcurl. One command at a time.
//
// libcurl resolves, connects, does TLS and checks the certificate. It uses no
// proxy and no ALPN. Each connection has a handle of its own, so nothing is
// cached from one to the next.
//
// Not thread-safe; threads may pass it on. The process must ignore SIGPIPE,
// because OpenSSL writes without MSG_NOSIGNAL.
#ifndef FNCACHE_RESP_CONNECTION_H_
#define FNCACHE_RESP_CONNECTION_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "resp/client_options.h"
#include "resp/parser.h"
#include "resp/server.h"

namespace fncache::resp {

// Where a connection leads.
struct Peer {
  Endpoint endpoint;
  std::string name;  // that the certificate must have
};

// HOST:PORT, with IPv6 in brackets, or the path.
std::string AddressOf(const Endpoint& endpoint);

// A node's words for logs and pages: one line, not long, and "***" for each
// `secret` (empty: none) that they repeat.
std::string Words(absl::string_view text, absl::string_view secret);

class Connection {
 public:
  using Clock = std::chrono::steady_clock;
  enum class State {
    kReady,   // for the next command
    kLate,    // a reply is missing
    kClosed,  // by the node
    kBroken,  // the reply was too large or no RESP2, or nothing had asked for
              // it
  };

  // Blocks until it is connected, for kBackgroundLimit at most. `tls_dir`: see
  // ClientOptions. `secret`: the password, which no words will have. `stop`
  // outlives the connection; true ends what waits within 50 ms, or here within
  // about a second. Unavailable with libcurl's words; DeadlineExceeded if the
  // name did not resolve in time, which leaves a thread of the resolver behind.
  static absl::StatusOr<std::unique_ptr<Connection>> Open(
      const Peer& peer, const std::string& tls_dir, std::string secret,
      const std::atomic<bool>* stop);

  // Sends a command and waits for its reply. The state must be kReady; another
  // one afterwards ends the use of the connection. The outcome is never kDown.
  Answer Call(const std::vector<absl::string_view>& words,
              Clock::time_point deadline, size_t max_reply_bytes);

  State state() const { return state_; }

 private:
  enum class Step { kNothing, kMore, kReply, kFailed };

  Connection(std::string secret, const std::atomic<bool>* stop);
  Step Read();
  // The command's time is over, or the client stops.
  bool Over(Clock::time_point deadline) const;
  bool Wait(short events, Clock::time_point deadline) const;
  Answer Late();
  Answer Fail(State state, std::string why);
  // libcurl's words for a failure.
  std::string Why(int code) const;

  const std::string secret_;
  const std::atomic<bool>* const stop_;
  std::string text_;  // libcurl's last
  const std::unique_ptr<void, void (*)(void*)> easy_;
  int socket_ = -1;  // the handle's
  State state_ = State::kReady;
  std::string why_;  // after Step::kFailed
  Parser parser_;
};

}  // namespace fncache::resp

#endif  // FNCACHE_RESP_CONNECTION_H_
