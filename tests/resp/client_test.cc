// SPDX-License-Identifier: Apache-2.0
// The client with a real server.
#include "resp/client.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/mutex.h"
#include "gtest/gtest.h"
#include "resp/url.h"
#include "tests/common/eventually.h"
#include "tests/common/loopback_socket.h"
#include "tests/resp/commands.h"
#include "tests/resp/redis_server.h"

namespace fncache::resp::testing {
namespace {

using fncache::testing::LoopbackSocket;

const std::vector<std::string> kProbe = {"EVAL", "return 1", "1", "p:a"};

std::unique_ptr<Client> ClientOf(const Endpoint& endpoint,
                                 int connections = 6) {
  ClientOptions options;
  options.endpoint = endpoint;
  options.connections = connections;
  options.probe = kProbe;
  return Client::Create(std::move(options));
}

std::unique_ptr<Client> ClientThatIsUp(const RedisServer& server,
                                       int connections = 6) {
  auto client = ClientOf(server.endpoint(), connections);
  EXPECT_TRUE(ComesUp(*client)) << client->NodeOf("").why;
  return client;
}

int ConnectionsAt(const RedisServer& server) {
  int clients = 0;
  const std::string list = server.Cli({"CLIENT", "LIST"});
  for (size_t at = 0; (at = list.find("id=", at)) != std::string::npos; ++at) {
    if (at == 0 || list[at - 1] == '\n') ++clients;
  }
  return clients - 1;  // redis-cli's own
}

TEST(ClientTest, CommandsRunOverUnixSocketAndPort) {
  for (const bool tcp : {false, true}) {
    RedisOptions options;
    options.tcp = tcp;
    const RedisServer server(options);
    const auto endpoint = ParseUrl(server.url());
    ASSERT_TRUE(endpoint.ok());
    const auto client = ClientOf(*endpoint);
    ASSERT_TRUE(ComesUp(*client));
    EXPECT_EQ(
        Ask(*client, {"SET", "a", absl::string_view("b\0\r\n", 4)}).reply.text,
        "OK");
    EXPECT_EQ(LookUp(*client, "a").reply.text, std::string("b\0\r\n", 4));
    EXPECT_EQ(LookUp(*client, "none").reply.kind, Reply::Kind::kNil);
    const Node node = client->NodeOf("");
    EXPECT_FALSE(node.version.empty());
    EXPECT_EQ(node.role, "master");
    EXPECT_EQ(node.why, "");
    const ServerFigures figures = client->figures();
    EXPECT_FALSE(figures.cluster);
    ASSERT_EQ(figures.nodes.size(), 1);
    EXPECT_EQ(figures.broken, 0);
  }
}

TEST(ClientTest, LargeValuesArriveWhole) {
  const RedisServer server;
  const auto client = ClientThatIsUp(server);
  const std::string value(5 << 20, 'v');
  ASSERT_EQ(Ask(*client, {"SET", "a", value}).outcome, Outcome::kReply);
  EXPECT_EQ(Ask(*client, {"GET", "a"}, kLong, true, 6 << 20).reply.text, value);
  EXPECT_EQ(Ask(*client, {"GET", "a"}, kLong, true, 4 << 20).outcome,
            Outcome::kBroken);
  EXPECT_EQ(client->figures().broken, 1);
  EXPECT_EQ(StateOf(*client), Node::State::kUp);
}

TEST(ClientTest, ErrorsFailTheCommandOnly) {
  const RedisServer server;
  const auto client = ClientThatIsUp(server);
  Ask(*client, {"LPUSH", "list", "a"});
  const Answer wrong_type = LookUp(*client, "list");
  EXPECT_EQ(wrong_type.outcome, Outcome::kError);
  EXPECT_TRUE(absl::StartsWith(wrong_type.why, "WRONGTYPE")) << wrong_type.why;
  server.Cli({"CONFIG", "SET", "maxmemory", "1"});
  const Answer full = Ask(*client, {"SET", "a", "b"});
  EXPECT_EQ(full.outcome, Outcome::kError);
  EXPECT_TRUE(absl::StartsWith(full.why, "OOM")) << full.why;
  EXPECT_EQ(StateOf(*client), Node::State::kUp);
}

TEST(ClientTest, ALookupIsAMissAtOnceWhileNoServerIsThere) {
  const LoopbackSocket port;  // refuses
  Endpoint endpoint;
  endpoint.host = "127.0.0.1";
  endpoint.port = port.port();
  const auto client = ClientOf(endpoint);
  ASSERT_TRUE(GoesDown(*client));
  const Answer answer = LookUp(*client, "a");
  EXPECT_EQ(answer.outcome, Outcome::kDown);
  EXPECT_TRUE(absl::StrContains(answer.why, "connect")) << answer.why;
}

TEST(ClientTest, ANameThatDoesNotResolveIsSaid) {
  Endpoint endpoint;
  endpoint.host = "nowhere.invalid";
  endpoint.port = 6379;
  const auto client = ClientOf(endpoint);
  ASSERT_TRUE(GoesDown(*client));
  const std::string why = client->NodeOf("").why;
  EXPECT_TRUE(absl::StrContains(why, "nowhere.invalid") ||
              absl::StrContains(why, "timed out"))
      << why;
}

TEST(ClientTest, AServerThatComesLaterIsFound) {
  RedisServer server;
  const Endpoint endpoint = server.endpoint();
  server.Kill();
  const auto client = ClientOf(endpoint);
  ASSERT_TRUE(GoesDown(*client));
  server.Restart();
  EXPECT_TRUE(ComesUp(*client));
}

TEST(ClientTest, AStoppedServerIsDownForLookupsAndComesBack) {
  RedisServer server;
  const auto client = ClientThatIsUp(server);
  ASSERT_TRUE(Eventually([&] { return ConnectionsAt(server) == 6; }));
  server.Stop();
  // HostileTest counts them.
  EXPECT_TRUE(Eventually([&] {
    return LookUp(*client, "a", absl::Milliseconds(20)).outcome ==
           Outcome::kDown;
  }));
  server.Continue();
  EXPECT_TRUE(ComesUp(*client));
  EXPECT_EQ(LookUp(*client, "a").outcome, Outcome::kReply);
}

TEST(ClientTest, AStoppedServerIsDownForWrites) {
  RedisServer server;
  const auto client = ClientThatIsUp(server);
  server.Stop();
  EXPECT_NE(Ask(*client, {"SET", "a", "b"}, absl::Seconds(1)).outcome,
            Outcome::kReply);
  EXPECT_TRUE(GoesDown(*client));
  server.Continue();
  EXPECT_TRUE(ComesUp(*client));
}

TEST(ClientTest, AnIdleClientFindsThatTheServerIsAway) {
  RedisServer server;
  const auto client = ClientThatIsUp(server);
  server.Kill();
  EXPECT_TRUE(GoesDown(*client));
  server.Restart();
  EXPECT_TRUE(ComesUp(*client));
}

TEST(ClientTest, ClosedConnectionsPutTheNodeDownAndItComesBack) {
  const RedisServer server;
  const auto client = ClientThatIsUp(server);
  ASSERT_TRUE(Eventually([&] { return ConnectionsAt(server) == 6; }));
  server.Cli({"CLIENT", "KILL", "TYPE", "normal"});
  const Answer answer = LookUp(*client, "a");
  EXPECT_TRUE(answer.outcome == Outcome::kBroken ||
              answer.outcome == Outcome::kDown);
  EXPECT_EQ(answer.why, "the server closed the connection");
  EXPECT_TRUE(ComesUp(*client));
  EXPECT_EQ(LookUp(*client, "a").outcome, Outcome::kReply);
}

TEST(ClientTest, AReplicaRefusesAWriteWhichEndsTheConnections) {
  const LoopbackSocket nowhere;
  const RedisServer server;
  const auto client = ClientThatIsUp(server);
  ASSERT_EQ(
      server.Cli({"REPLICAOF", "127.0.0.1", absl::StrCat(nowhere.port())}),
      "OK");
  const Answer answer = Ask(*client, {"SET", "a", "b"});
  EXPECT_EQ(answer.outcome, Outcome::kDown);
  EXPECT_TRUE(absl::StartsWith(answer.why, "READONLY")) << answer.why;
  ASSERT_TRUE(ComesUp(*client));
  EXPECT_EQ(client->NodeOf("").role, "replica");
  server.Cli({"REPLICAOF", "NO", "ONE"});
  EXPECT_EQ(Ask(*client, {"SET", "a", "b"}).outcome, Outcome::kReply);
}

TEST(ClientTest, AReplicaWithoutMasterIsDown) {
  const LoopbackSocket nowhere;
  RedisOptions options;
  options.arguments = {"--replica-serve-stale-data", "no"};
  const RedisServer server(options);
  const auto client = ClientThatIsUp(server);
  server.Cli({"REPLICAOF", "127.0.0.1", absl::StrCat(nowhere.port())});
  const Answer answer = LookUp(*client, "a");
  EXPECT_EQ(answer.outcome, Outcome::kDown);
  EXPECT_TRUE(absl::StartsWith(answer.why, "MASTERDOWN")) << answer.why;
  EXPECT_EQ(StateOf(*client), Node::State::kDown);
}

TEST(ClientTest, TheServersWordsSayThatThereAreTooManyClients) {
  const RedisServer server;
  server.Cli({"CONFIG", "SET", "maxclients", "1"});
  // redis-cli has gone when it returns; one connection of two is left.
  const auto client = ClientOf(server.endpoint(), /*connections=*/2);
  EXPECT_TRUE(Eventually([&] {
    return absl::StrContains(client->NodeOf("").why, "max number of clients");
  })) << client->NodeOf("").why;
}

TEST(ClientTest, ThreadsGetTheirOwnReplies) {
  const RedisServer server;
  const auto client = ClientThatIsUp(server);
  std::vector<std::thread> threads;
  std::atomic<int> replies{0};
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 300; ++i) {
        const std::string text = absl::StrCat("value", t, "-", i);
        // Some of them end before their reply.
        const absl::Duration time =
            i % 10 == 0 ? absl::Microseconds(50 * (i % 7)) : kLong;
        const Answer answer = Ask(*client, {"ECHO", text}, time);
        if (answer.outcome != Outcome::kReply) continue;
        EXPECT_EQ(answer.reply.text, text);
        ++replies;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(replies, 1000);
}

// A login whose password a test changes.
class Password {
 public:
  explicit Password(std::string password) : password_(std::move(password)) {}
  void Set(std::string password) {
    MutexLock lock(&mutex_);
    password_ = std::move(password);
  }
  std::unique_ptr<Client> ClientOf(const RedisServer& server,
                                   const std::string& user) {
    ClientOptions options;
    options.endpoint = server.endpoint();
    options.probe = kProbe;
    options.login = [this, user]() -> absl::StatusOr<absl::optional<Login>> {
      MutexLock lock(&mutex_);
      return Login{user, password_};
    };
    return Client::Create(std::move(options));
  }

 private:
  Mutex mutex_;
  std::string password_ ABSL_GUARDED_BY(mutex_);
};

constexpr char kUsers[] =
    "user default on >first ~* &* +@all\n"
    "user fleet on >first ~p:* +@all\n"
    "user lean on >first ~p:* -@all +ping +eval +get\n"
    "user noeval on >first ~p:* +@all -@scripting\n"
    "user noprefix on >first ~q:* +@all\n";

RedisOptions WithUsers() {
  RedisOptions options;
  options.acl = kUsers;
  options.cli = {"--pass", "first"};
  return options;
}

TEST(ClientLoginTest, UsersAndTheDefaultUserLogIn) {
  const RedisServer server(WithUsers());
  Password password("first");
  for (const char* user : {"", "fleet", "lean"}) {
    const auto client = password.ClientOf(server, user);
    EXPECT_TRUE(ComesUp(*client)) << user << client->NodeOf("").why;
    EXPECT_EQ(LookUp(*client, "p:b").outcome, Outcome::kReply) << user;
  }
}

TEST(ClientLoginTest, AWrongPasswordIsSaidInTheServersWords) {
  const RedisServer server(WithUsers());
  Password password("geheim");
  const auto client = password.ClientOf(server, "fleet");
  ASSERT_TRUE(GoesDown(*client));
  const std::string why = client->NodeOf("").why;
  EXPECT_TRUE(absl::StartsWith(why, "WRONGPASS")) << why;
  EXPECT_FALSE(absl::StrContains(why, "geheim"));
  password.Set("first");
  EXPECT_TRUE(ComesUp(*client));
}

TEST(ClientLoginTest, ARotatedPasswordIsUsedAtTheNextLogin) {
  const RedisServer server(WithUsers());
  Password password("first");
  const auto client = password.ClientOf(server, "fleet");
  ASSERT_TRUE(ComesUp(*client));
  server.Cli({"ACL", "SETUSER", "fleet", "resetpass", ">second"});
  server.Cli({"CLIENT", "KILL", "USER", "fleet"});
  ASSERT_TRUE(GoesDown(*client));
  password.Set("second");
  EXPECT_TRUE(ComesUp(*client));
}

TEST(ClientLoginTest, WithoutALoginTheServerAsksForOne) {
  const RedisServer server(WithUsers());
  const auto client = ClientOf(server.endpoint());
  ASSERT_TRUE(GoesDown(*client));
  EXPECT_TRUE(absl::StartsWith(client->NodeOf("").why, "NOAUTH"));
}

TEST(ClientLoginTest, AUserWithoutEvalOrPrefixIsSaid) {
  const RedisServer server(WithUsers());
  Password password("first");
  for (const char* user : {"noeval", "noprefix"}) {
    const auto client = password.ClientOf(server, user);
    ASSERT_TRUE(GoesDown(*client));
    EXPECT_TRUE(absl::StartsWith(client->NodeOf("").why, "NOPERM"))
        << client->NodeOf("").why;
  }
}

TEST(ClientLoginTest, ACommandWithoutPermissionPutsTheNodeDown) {
  const RedisServer server(WithUsers());
  Password password("first");
  const auto client = password.ClientOf(server, "fleet");
  ASSERT_TRUE(ComesUp(*client));
  const Answer answer = LookUp(*client, "other");
  EXPECT_EQ(answer.outcome, Outcome::kDown);
  EXPECT_TRUE(absl::StartsWith(answer.why, "NOPERM")) << answer.why;
  EXPECT_TRUE(ComesUp(*client));
}

TEST(ClientLoginTest, AServerWithoutAuthDoesNotBringThePasswordIntoReasons) {
  RedisOptions options;
  options.arguments = {"--rename-command", "AUTH", ""};
  const RedisServer server(options);
  Password password("geheim");
  const auto client = password.ClientOf(server, "fleet");
  ASSERT_TRUE(GoesDown(*client));
  EXPECT_EQ(client->NodeOf("").why, "ERR unknown command 'AUTH'");
}

TEST(ClientLoginTest, ALoginThatCannotBeReadIsTheReason) {
  const RedisServer server;
  ClientOptions options;
  options.endpoint = server.endpoint();
  options.login = []() -> absl::StatusOr<absl::optional<Login>> {
    return absl::NotFoundError("no such file");
  };
  const auto client = Client::Create(std::move(options));
  ASSERT_TRUE(GoesDown(*client));
  EXPECT_EQ(client->NodeOf("").why, "no such file");
}

}  // namespace
}  // namespace fncache::resp::testing
