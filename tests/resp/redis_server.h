// SPDX-License-Identifier: Apache-2.0
// RedisServer and RedisCluster: real servers as child processes, in temporary
// directories.
//
// The server is that of Debian's redis-tools, or the binary that the variable
// FNCACHE_TEST_REDIS_SERVER names (Valkey). Every server has a unix socket; Cli
// uses it. Link the library fncache_redis_testing.
//
//   RedisServer server;                   // unix socket only
//   RedisServer server({.tcp = true});    // and a free port of 127.0.0.1
//   server.Cli({"SET", "a", "b"});        // redis-cli's output
//   RedisCluster cluster;                 // three masters, all slots
//   resp::Client::Create({cluster.node(0).endpoint()});
//
// Failures abort: a test without its server has no meaning. The children are
// killed with the thread that started them. Not thread-safe.
#ifndef FNCACHE_TESTS_RESP_REDIS_SERVER_H_
#define FNCACHE_TESTS_RESP_REDIS_SERVER_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "resp/client.h"
#include "tests/common/temp_dir.h"

namespace fncache::resp::testing {

struct RedisOptions {
  // A free port of 127.0.0.1.
  bool tcp = false;
  // A directory with tls.crt, tls.key and ca.crt: that port has TLS.
  std::string tls_dir;
  // With TLS: clients need certificates.
  bool tls_clients = false;
  bool cluster = false;  // with `tcp`
  // The content of an ACL file, such as "user default off\n".
  std::string acl;
  // Further arguments, such as {"--maxmemory", "2mb"}.
  std::vector<std::string> arguments;
  // Arguments of every redis-cli, such as {"--user", "a", "--pass", "b"}.
  std::vector<std::string> cli;
  // NAME=VALUE, for the server besides this process's environment.
  std::vector<std::string> environment;
};

class RedisServer {
 public:
  // Returns when it answers.
  explicit RedisServer(RedisOptions options = {});
  ~RedisServer();
  RedisServer(const RedisServer&) = delete;
  RedisServer& operator=(const RedisServer&) = delete;

  // Whether the binary has TLS. Valkey of PyPI has not.
  static bool HasTls();

  // The port, if there is one, else the unix socket.
  Endpoint endpoint() const;
  Endpoint unix_endpoint() const;
  // The same as endpoint(), as a URL.
  std::string url() const;
  int port() const { return port_; }
  int bus_port() const { return bus_port_; }  // of a Cluster
  const std::string& dir() const { return dir_.path(); }

  // Runs redis-cli with these words and returns its output without the last end
  // of line.
  std::string Cli(const std::vector<std::string>& words) const;

  // SIGSTOP, once it is in force, and SIGCONT.
  void Stop();
  void Continue();
  // SIGKILL. Endpoint and files stay.
  void Kill();
  // Starts it again, killing it first if need be; at the same endpoint.
  void Restart();

 private:
  bool Start();  // false: the port is taken
  bool Answers() const;

  const RedisOptions options_;
  fncache::testing::TempDir dir_;
  int port_ = 0;
  int bus_port_ = 0;
  pid_t pid_ = 0;
};

// `masters` nodes that divide all slots among them, in order; the first one of
// three has 0 to 5461. A node that is away does not make the others refuse.
class RedisCluster {
 public:
  // `options` apply to each node.
  explicit RedisCluster(int masters = 3, RedisOptions options = {});

  // Adds a replica of a master, which is node(size() - 1) from then on. Returns
  // when it has the master's data. `CLUSTER FAILOVER TAKEOVER` promotes it.
  RedisServer& AddReplica(int master);

  RedisServer& node(int i) { return *nodes_[i]; }
  int size() const { return static_cast<int>(nodes_.size()); }
  // The master of a slot at the start.
  int OwnerOf(int slot) const;

  // Resharding of one slot: in between, `from` answers ASK for keys that it
  // does not have. Finish moves the keys and informs all nodes.
  void BeginMove(int slot, int from, int to);
  void FinishMove(int slot, int from, int to);

 private:
  std::string IdOf(int node) const;
  void Meet(int node, int other);

  const RedisOptions options_;
  const int masters_;
  std::vector<std::unique_ptr<RedisServer>> nodes_;
};

}  // namespace fncache::resp::testing

#endif  // FNCACHE_TESTS_RESP_REDIS_SERVER_H_
