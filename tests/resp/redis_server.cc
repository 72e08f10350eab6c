// SPDX-License-Identifier: Apache-2.0
#include "tests/resp/redis_server.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "resp/cluster.h"
#include "tests/common/eventually.h"
#include "tests/common/loopback_socket.h"

namespace fncache::resp::testing {
namespace {

using fncache::testing::LoopbackSocket;
using fncache::testing::ReadFile;
using fncache::testing::WriteFile;

void Must(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "a server of the test: %s\n", what);
  std::abort();
}

std::string Binary() {
  const char* const named = std::getenv("FNCACHE_TEST_REDIS_SERVER");
  if (named != nullptr && *named != 0) return named;
  // Started by the name redis-server, it is the server.
  return "/usr/bin/redis-check-rdb";
}

// `out`: the child's standard output and errors. `more`: NAME=VALUE, for it.
pid_t Spawn(const std::vector<std::string>& arguments, int out,
            const std::vector<std::string>& more = {}) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) {
    argv.push_back(const_cast<char*>(argument.c_str()));
  }
  argv.push_back(nullptr);
  std::vector<char*> environment;
  for (const std::string& each : more) {
    environment.push_back(const_cast<char*>(each.c_str()));
  }
  for (char** each = environ; *each != nullptr; ++each) {
    environment.push_back(*each);
  }
  environment.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  Must(pid >= 0, "fork");
  if (pid > 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  signal(SIGPIPE, SIG_DFL);
  dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), 0);
  dup2(out, 1);
  dup2(out, 2);
  execve(argv[0], argv.data(), environment.data());
  _exit(127);
}

}  // namespace

RedisServer::RedisServer(RedisOptions options) : options_(std::move(options)) {
  Must(access(Binary().c_str(), X_OK) == 0,
       "no binary; install redis-tools, or set FNCACHE_TEST_REDIS_SERVER");
  Must(symlink(std::filesystem::absolute(Binary()).c_str(),
               dir_.File("redis-server").c_str()) == 0,
       "symlink");
  if (!options_.acl.empty()) WriteFile(dir_.File("users.acl"), options_.acl);
  bool started = false;
  while (!started) {
    if (options_.tcp) {
      const LoopbackSocket port;
      const LoopbackSocket bus;
      port_ = port.port();
      bus_port_ = bus.port();
    }
    // Another process may have got the port meanwhile.
    started = Start();
  }
}

RedisServer::~RedisServer() { Kill(); }

bool RedisServer::HasTls() {
  static const bool has =
      !RedisServer().Cli({"CONFIG", "GET", "tls-port"}).empty();
  return has;
}

bool RedisServer::Start() {
  const bool tls = !options_.tls_dir.empty();
  std::vector<std::string> arguments = {
      dir_.File("redis-server"),
      "--unixsocket",
      dir_.File("s"),
      "--dir",
      dir_.path(),
      "--save",
      "",
      "--appendonly",
      "no",
      "--bind",
      "127.0.0.1",
      "--port",
      absl::StrCat(tls ? 0 : port_),
  };
  const auto add = [&arguments](std::vector<std::string> more) {
    arguments.insert(arguments.end(), more.begin(), more.end());
  };
  if (tls) {
    add({"--tls-port", absl::StrCat(port_), "--tls-cert-file",
         options_.tls_dir + "/tls.crt", "--tls-key-file",
         options_.tls_dir + "/tls.key", "--tls-ca-cert-file",
         options_.tls_dir + "/ca.crt", "--tls-auth-clients",
         options_.tls_clients ? "yes" : "no"});
  }
  if (options_.cluster) {
    add({"--cluster-enabled", "yes", "--cluster-port", absl::StrCat(bus_port_),
         "--cluster-require-full-coverage", "no"});
    if (tls) add({"--tls-cluster", "yes"});
  }
  if (!options_.acl.empty()) add({"--aclfile", dir_.File("users.acl")});
  add(options_.arguments);
  unlink(dir_.File("s").c_str());
  const std::string log = dir_.File("log");
  const int out =
      open(log.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
  Must(out >= 0, "its log");
  pid_ = Spawn(arguments, out, options_.environment);
  close(out);
  bool ended = false;
  Must(Eventually([&] {
         ended = waitpid(pid_, nullptr, WNOHANG) == pid_;
         return ended || Answers();
       }),
       "it does not answer");
  if (!ended) return true;
  pid_ = 0;
  const std::string words = ReadFile(log);
  Must(absl::StrContains(words, "Address already in use"), words.c_str());
  return false;
}

bool RedisServer::Answers() const {
  if (access(dir_.File("s").c_str(), F_OK) != 0) return false;
  const std::string answer = Cli({"PING"});
  return !answer.empty() && !absl::StrContains(answer, "Could not connect") &&
         !absl::StartsWith(answer, "LOADING");
}

Endpoint RedisServer::endpoint() const {
  if (!options_.tcp) return unix_endpoint();
  Endpoint endpoint;
  endpoint.host = "127.0.0.1";
  endpoint.port = port_;
  endpoint.tls = !options_.tls_dir.empty();
  return endpoint;
}

Endpoint RedisServer::unix_endpoint() const {
  Endpoint endpoint;
  endpoint.unix_path = dir_.File("s");
  return endpoint;
}

std::string RedisServer::url() const {
  if (!options_.tcp) return "unix:" + dir_.File("s");
  return absl::StrCat(options_.tls_dir.empty() ? "redis" : "rediss",
                      "://127.0.0.1:", port_);
}

std::string RedisServer::Cli(const std::vector<std::string>& words) const {
  std::vector<std::string> arguments = {"/usr/bin/redis-cli", "-s",
                                        dir_.File("s"), "--no-auth-warning"};
  arguments.insert(arguments.end(), options_.cli.begin(), options_.cli.end());
  arguments.insert(arguments.end(), words.begin(), words.end());
  int ends[2];
  Must(pipe2(ends, O_CLOEXEC) == 0, "pipe");
  const pid_t pid = Spawn(arguments, ends[1]);
  close(ends[1]);
  std::string output;
  char bytes[4096];
  for (ssize_t size = 0; (size = read(ends[0], bytes, sizeof bytes)) > 0;) {
    output.append(bytes, size);
  }
  close(ends[0]);
  int status = 0;
  waitpid(pid, &status, 0);
  Must(!WIFEXITED(status) || WEXITSTATUS(status) != 127,
       "no redis-cli; install redis-tools");
  return std::string(absl::StripSuffix(output, "\n"));
}

void RedisServer::Stop() {
  kill(pid_, SIGSTOP);
  Must(waitpid(pid_, nullptr, WUNTRACED) == pid_, "SIGSTOP");
}

void RedisServer::Continue() { kill(pid_, SIGCONT); }

void RedisServer::Kill() {
  if (pid_ == 0) return;
  kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = 0;
}

void RedisServer::Restart() {
  Kill();
  Must(Eventually([this] { return Start(); }), "its port stays taken");
}

RedisCluster::RedisCluster(int masters, RedisOptions options)
    : options_([&options] {
        options.tcp = true;
        options.cluster = true;
        return std::move(options);
      }()),
      masters_(masters) {
  for (int i = 0; i < masters; ++i) {
    nodes_.push_back(std::make_unique<RedisServer>(options_));
    const int first = (i * kSlots + masters - 1) / masters;
    const int end = ((i + 1) * kSlots + masters - 1) / masters;
    Must(node(i).Cli({"CLUSTER", "ADDSLOTSRANGE", absl::StrCat(first),
                      absl::StrCat(end - 1)}) == "OK",
         "ADDSLOTSRANGE");
    // So that no two nodes have the same.
    node(i).Cli({"CLUSTER", "SET-CONFIG-EPOCH", absl::StrCat(i + 1)});
    for (int j = 0; j < i; ++j) Meet(j, i);
  }
  for (const auto& node : nodes_) {
    Must(Eventually([&] {
           const std::string info = node->Cli({"CLUSTER", "INFO"});
           return absl::StrContains(info, "cluster_state:ok") &&
                  absl::StrContains(info, "cluster_slots_assigned:16384") &&
                  absl::StrContains(
                      info, absl::StrCat("cluster_size:", masters, "\r"));
         }),
         "the Cluster does not form");
  }
}

RedisServer& RedisCluster::AddReplica(int master) {
  nodes_.push_back(std::make_unique<RedisServer>(options_));
  RedisServer& replica = *nodes_.back();
  for (int i = 0; i + 1 < size(); ++i) Meet(i, size() - 1);
  const std::string id = IdOf(master);
  Must(Eventually([&] {
         return replica.Cli({"CLUSTER", "REPLICATE", id}) == "OK";
       }),
       "REPLICATE");
  Must(Eventually([&] {
         return absl::StrContains(replica.Cli({"INFO", "replication"}),
                                  "master_link_status:up");
       }),
       "the replica gets no data");
  // Each node knows it as a replica.
  const std::string replica_id = IdOf(size() - 1);
  for (const auto& node : nodes_) {
    Must(Eventually([&] {
           return absl::StrContains(node->Cli({"CLUSTER", "REPLICAS", id}),
                                    replica_id);
         }),
         "the replica stays unknown");
  }
  return replica;
}

void RedisCluster::Meet(int node, int other) {
  // The last argument is the other's bus.
  Must(nodes_[node]->Cli({"CLUSTER", "MEET", "127.0.0.1",
                          absl::StrCat(nodes_[other]->port()),
                          absl::StrCat(nodes_[other]->bus_port())}) == "OK",
       "MEET");
}

int RedisCluster::OwnerOf(int slot) const { return slot * masters_ / kSlots; }

std::string RedisCluster::IdOf(int node) const {
  return nodes_[node]->Cli({"CLUSTER", "MYID"});
}

void RedisCluster::BeginMove(int slot, int from, int to) {
  const std::string text = absl::StrCat(slot);
  Must(node(to).Cli({"CLUSTER", "SETSLOT", text, "IMPORTING", IdOf(from)}) ==
           "OK",
       "IMPORTING");
  Must(node(from).Cli({"CLUSTER", "SETSLOT", text, "MIGRATING", IdOf(to)}) ==
           "OK",
       "MIGRATING");
}

void RedisCluster::FinishMove(int slot, int from, int to) {
  const std::string text = absl::StrCat(slot);
  const std::string keys =
      node(from).Cli({"CLUSTER", "GETKEYSINSLOT", text, "1000000"});
  for (const absl::string_view key :
       absl::StrSplit(keys, '\n', absl::SkipEmpty())) {
    // A key may have expired meanwhile (NOKEY).
    node(from).Cli({"MIGRATE", "127.0.0.1", absl::StrCat(node(to).port()),
                    std::string(key), "0", "5000", "REPLACE"});
  }
  const std::string id = IdOf(to);
  node(to).Cli({"CLUSTER", "SETSLOT", text, "NODE", id});
  for (const auto& node : nodes_) {
    Must(node->Cli({"CLUSTER", "SETSLOT", text, "NODE", id}) == "OK", "NODE");
  }
}

}  // namespace fncache::resp::testing
