// SPDX-License-Identifier: Apache-2.0
// NodeClient: the connections to one node, and its state (client.h).
//
// A thread of its own connects, logs in, sends PING and recovers. Commands run
// on the threads of their callers, which take an idle connection.
//
// Thread-safe. The destructor waits for the thread, which may be in an attempt
// to connect or a PING (kBackgroundLimit, or sooner if the owner stops).
#ifndef FNCACHE_RESP_NODE_CLIENT_H_
#define FNCACHE_RESP_NODE_CLIENT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "common/mutex.h"
#include "resp/client_options.h"
#include "resp/connection.h"
#include "resp/server.h"

namespace fncache::resp {

class NodeClient {
 public:
  // All nodes of a client have one. It outlives them.
  struct Owner {
    ClientOptions options;
    // Called on a node's thread when `probe` gets MOVED or ASK: the words.
    std::function<void(const NodeClient& node, absl::string_view words)> moved;
    std::atomic<uint64_t> broken{0};  // as in ServerFigures
    std::atomic<size_t> fresh{0};     // nodes that have never been up
    std::atomic<bool> stop{false};    // see Server::Stop
  };

  // `secret`: as in Words, for the address, which a node may have given.
  NodeClient(Owner* owner, Peer peer, const std::string& secret);
  ~NodeClient();
  NodeClient(const NodeClient&) = delete;
  NodeClient& operator=(const NodeClient&) = delete;

  // Runs a command here; `asking`: after ASKING.
  Answer Run(const Command& command, bool asking);

  // Ends the thread soon, and wakes commands if the owner stops. ended(): it
  // has ended, and so have the resolvers that it left behind.
  void Stop();
  bool ended() const;
  std::string secret() const;  // the last login's

  const Peer& peer() const { return peer_; }
  Node figures() const;

 private:
  using Clock = Connection::Clock;
  struct Idle {
    std::unique_ptr<Connection> connection;
    Clock::time_point since;
  };

  void Work();
  // Connects and logs in. Sets version and role of `said`.
  absl::StatusOr<std::unique_ptr<Connection>> Open(Node* said);
  // One round of the thread opens a connection, or sends a PING on one.
  void Add(uint64_t generation);
  void Ping(std::unique_ptr<Connection> connection, uint64_t generation);
  // Takes a connection back after a command, and draws the conclusions for the
  // node. `limit` is the time that the command had; a lookup has none.
  void Settle(std::unique_ptr<Connection> connection, uint64_t generation,
              absl::optional<Clock::duration> limit, Answer* answer);
  void Down(const std::string& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Owner* const owner_;
  const Peer peer_;
  mutable Mutex mutex_;
  CondVar idle_changed_;
  CondVar work_changed_;
  Node node_ ABSL_GUARDED_BY(mutex_);
  std::deque<Idle> idle_ ABSL_GUARDED_BY(mutex_);  // by `since`
  int open_ ABSL_GUARDED_BY(mutex_) = 0;  // idle or in use, of this generation
  // Counts how often the node went down. Connections from before are closed.
  uint64_t generation_ ABSL_GUARDED_BY(mutex_) = 0;
  int unanswered_ ABSL_GUARDED_BY(mutex_) = 0;  // lookups in a row
  Clock::time_point up_since_ ABSL_GUARDED_BY(mutex_);
  Clock::time_point attempt_ ABSL_GUARDED_BY(mutex_);  // the last one began
  Clock::time_point next_attempt_ ABSL_GUARDED_BY(mutex_);
  // The delay after the last attempt, whose name did not resolve in time; else
  // zero. A resolver that such an attempt left behind ends by resolvers_end_.
  Clock::duration name_delay_ ABSL_GUARDED_BY(mutex_) = {};
  Clock::time_point resolvers_end_ ABSL_GUARDED_BY(mutex_);
  std::string secret_ ABSL_GUARDED_BY(mutex_);
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace fncache::resp

#endif  // FNCACHE_RESP_NODE_CLIENT_H_
