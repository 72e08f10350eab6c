// SPDX-License-Identifier: Apache-2.0
// Server: runs commands on a Redis or Valkey installation, as its users see it.
//
// An installation is one endpoint or a Cluster; each process of it is a node.
// Client (client.h) is the real one. Tests bring simulated ones.
//
// Thread-safe. Run blocks until the reply has come or the time is over.
#ifndef FNCACHE_RESP_SERVER_H_
#define FNCACHE_RESP_SERVER_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "resp/reply.h"

namespace fncache::resp {

// A command. It refers to memory of the caller, which stays until Run returns.
struct Command {
  // The name first, such as {"GET", "a"}.
  std::vector<absl::string_view> words;
  // The key that leads to the node. Empty: the node of the endpoint.
  absl::string_view key;
  // The end of the command's time. It is not sent after that, and a connection
  // whose reply is missing then is closed.
  std::chrono::steady_clock::time_point deadline;
  // The bytes that a reply may take in memory. A larger one closes its
  // connection.
  size_t max_reply_bytes = 64 << 10;
  // Three of these in a row that were sent and got no reply put the node down.
  bool is_lookup = false;
};

enum class Outcome {
  kReply,    // the server replied, and not with an error
  kError,    // it replied with an error, which fails this command only
  kDown,     // no node is up for it, or its reply says that the node is down
  kTimeout,  // there was no reply in time
  kBroken,  // the connection was closed, or the reply was too large or no RESP2
};

struct Answer {
  Outcome outcome = Outcome::kDown;
  Reply reply;      // kReply, and kError: as the server sent it, not for logs
  std::string why;  // otherwise: the server's words, or libcurl's
};

struct Node {
  enum class State { kConnecting, kUp, kDown };

  std::string address;  // HOST:PORT, or the path of a unix socket
  State state = State::kConnecting;
  absl::Time since;     // it has been in this state since then
  std::string why;      // kDown: the reason
  std::string version;  // as the server says; empty if unknown
  std::string role;     // "master", "replica"; empty if unknown
};

struct ServerFigures {
  bool cluster = false;
  std::vector<Node> nodes;
  uint64_t redirections = 0;  // MOVED and ASK that came
  uint64_t broken = 0;        // replies that were too large or no RESP2
};

class Server {
 public:
  virtual ~Server() = default;

  virtual Answer Run(const Command& command) = 0;

  // From now on every command ends at once with kDown, and so do attempts to
  // connect. Does not wait.
  virtual void Stop() {}

  // The node that has a key (empty: that of the endpoint).
  virtual Node NodeOf(absl::string_view key) const = 0;
  virtual ServerFigures figures() const = 0;
};

}  // namespace fncache::resp

#endif  // FNCACHE_RESP_SERVER_H_
