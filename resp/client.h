// SPDX-License-Identifier: Apache-2.0
// Client: connections to a Redis or Valkey server, one endpoint or a Cluster.
//
// hiredis formats commands and reads RESP2. libcurl makes the connections
// (resolver, all addresses, TLS, unix sockets) and carries the bytes.
//
// Each node has a thread of its own in the background. It connects, logs in,
// sends PING and recovers. Run only takes an idle connection of a node that is
// up, and never connects. A connection on which a reply is missing is closed,
// so no late reply can be taken for another's.
//
// A node is up when its first PING after login is answered. It is down when
// connecting fails, when it closes a connection, when three lookups in a row or
// a PING get no reply, when it cannot do what `probe` asks, and when it replies
// LOADING, MASTERDOWN, CLUSTERDOWN, NOAUTH, WRONGPASS or NOPERM. It is retried
// after 100 ms, then every second. READONLY closes its connections, and its
// name is resolved again. A name that does not resolve in time leaves a thread
// of the system's resolver behind: the next attempt comes after 2 s, and the
// delay doubles up to 60 s.
//
// The first MOVED makes the server a Cluster
// (https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/).
// Each MOVED moves its slot. CLUSTER SLOTS is read in the background, at most
// once a second. Run follows one redirection, to a node that is up. A node
// beyond kMostNodes or kMostNew, or for which there is no thread, is not made.
// CLUSTER SLOTS is read again while its last map names such a node.
//
// Reasons, versions, roles and addresses that a node gives have "***" for the
// password.
//
// The user needs PING, and with a Cluster also ASKING and CLUSTER SLOTS. HELLO
// is optional; it gives version and role.
//
// Thread-safe. The destructor stops it first and waits for its threads: 50 ms,
// or about a second where libcurl connects.
#ifndef FNCACHE_RESP_CLIENT_H_
#define FNCACHE_RESP_CLIENT_H_

#include <cstddef>
#include <memory>

#include "absl/time/time.h"
#include "resp/client_options.h"
#include "resp/server.h"

namespace fncache::resp {

class Client : public Server {
 public:
  // The time of an attempt to connect, of a login and of a PING.
  static constexpr absl::Duration kBackgroundLimit = resp::kBackgroundLimit;
  // Limit of the nodes of a Cluster. Slots of further nodes are misses.
  static constexpr size_t kMostNodes = 256;
  // Limit of the nodes that have never been up. A retired one counts until 60 s
  // after its name did not resolve in time. Further nodes are made later.
  static constexpr size_t kMostNew = 16;

  // Does not wait for a connection.
  static std::unique_ptr<Client> Create(ClientOptions options);
};

}  // namespace fncache::resp

#endif  // FNCACHE_RESP_CLIENT_H_
