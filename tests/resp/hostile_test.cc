// SPDX-License-Identifier: Apache-2.0
// Peers that do what no server does: a reply is never taken for another's, and
// memory and time stay bounded.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "common/threads.h"
#include "gtest/gtest.h"
#include "resp/client.h"
#include "tests/common/resident_size.h"
#include "tests/resp/commands.h"
#include "tests/resp/scripted_server.h"

namespace fncache::resp::testing {
namespace {

using Peer = ScriptedServer::Peer;
using Words = ScriptedServer::Words;

std::unique_ptr<Client> ClientOf(const ScriptedServer& server,
                                 int connections = 2) {
  ClientOptions options;
  options.endpoint = server.endpoint();
  options.connections = connections;
  auto client = Client::Create(std::move(options));
  EXPECT_TRUE(ComesUp(*client));
  return client;
}

std::string Bulk(absl::string_view text) {
  return absl::StrCat("$", text.size(), "\r\n", text, "\r\n");
}

// Answers each GET with `bytes`, which may be no reply at all.
ScriptedServer::Script Says(std::string bytes) {
  return [bytes](const Words& words, const Peer& peer) {
    return words[0] == "GET" && (peer.Send(bytes), true);
  };
}

TEST(HostileTest, ASecondReplyIsNeverAnothers) {
  ScriptedServer server([](const Words& words, const Peer& peer) {
    if (words[0] != "GET") return false;
    peer.Send(Bulk(words[1]) + Bulk(words[1]));
    return true;
  });
  const auto client = ClientOf(server);
  for (int i = 0; i < 50; ++i) {
    const std::string key = absl::StrCat("key", i);
    const Answer answer = LookUp(*client, key);
    if (answer.outcome == Outcome::kReply) {
      EXPECT_EQ(answer.reply.text, key);
    }
    ASSERT_TRUE(ComesUp(*client));
  }
  EXPECT_GT(client->figures().broken, 0);
}

TEST(HostileTest, BytesThatNothingAskedForEndTheConnection) {
  absl::Notification sent;
  ScriptedServer server([&](const Words& words, const Peer& peer) {
    if (words[0] == "SET") {
      peer.Send("+OK\r\n");
      peer.Send(Bulk("foreign"));
      if (!sent.HasBeenNotified()) sent.Notify();
      return true;
    }
    if (words[0] == "GET") peer.Send(Bulk(words[1]));
    return words[0] == "GET";
  });
  const auto client = ClientOf(server, /*connections=*/1);
  Ask(*client, {"SET", "a", "b"});
  sent.WaitForNotification();
  for (int i = 0; i < 10; ++i) {
    const Answer answer = LookUp(*client, "mine");
    if (answer.outcome == Outcome::kReply) {
      EXPECT_EQ(answer.reply.text, "mine");
    }
  }
  EXPECT_EQ(client->figures().broken, 1);
}

TEST(HostileTest, ALateReplyIsNeverAnothers) {
  Mutex mutex;
  std::string late;  // guarded by mutex
  ScriptedServer server([&](const Words& words, const Peer& peer) {
    if (words[0] != "GET") return false;
    MutexLock lock(&mutex);
    // Each reply waits for the next command of its connection.
    if (!late.empty()) peer.Send(late);
    late = Bulk(words[1]);
    return true;
  });
  const auto client = ClientOf(server, /*connections=*/1);
  const uint64_t broken = client->figures().broken;
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(ComesUp(*client));
    const std::string key = absl::StrCat("key", i);
    const Answer answer = LookUp(*client, key, absl::Milliseconds(5));
    EXPECT_NE(answer.outcome == Outcome::kReply && answer.reply.text == key,
              true);
    EXPECT_NE(answer.outcome, Outcome::kError);
    {
      MutexLock lock(&mutex);
      late.clear();
    }
  }
  EXPECT_EQ(client->figures().broken, broken);
}

TEST(HostileTest, AReplyByteForByteIsAReply) {
  ScriptedServer server([](const Words& words, const Peer& peer) {
    if (words[0] != "GET") return false;
    for (const char c : Bulk(words[1])) peer.Send(std::string(1, c));
    return true;
  });
  const auto client = ClientOf(server);
  EXPECT_EQ(LookUp(*client, "a key").reply.text, "a key");
}

TEST(HostileTest, AnnouncedLengthsTakeNoMemory) {
  for (const char* bytes : {"$2000000000\r\nabc", "*2000000000\r\n:1\r\n",
                            "*1000000000\r\n*1000000000\r\n*1000000000\r\n"}) {
    ScriptedServer server(Says(bytes));
    const auto client = ClientOf(server);
    const size_t before = ResidentSize();
    EXPECT_EQ(LookUp(*client, "a", absl::Milliseconds(50)).outcome,
              Outcome::kTimeout);
    EXPECT_LT(ResidentSize(), before + (32 << 20));
  }
}

TEST(HostileTest, AnEndlessReplyEndsAtItsBound) {
  for (const char* start : {"*2000000000\r\n", "$2000000000\r\n", "+"}) {
    ScriptedServer server([start](const Words& words, const Peer& peer) {
      if (words[0] != "GET") return false;
      std::string more;
      while (more.size() < 64 << 10) more += ":1\r\n";
      if (*start == '+') more.assign(64 << 10, 'x');
      peer.Send(start);
      while (peer.Send(more)) {
      }
      return true;
    });
    const auto client = ClientOf(server);
    const size_t before = ResidentSize();
    const Answer answer = Ask(*client, {"GET", "a"}, kLong, true, 1 << 20);
    EXPECT_EQ(answer.outcome, Outcome::kBroken);
    EXPECT_EQ(answer.why, "the reply is too large");
    EXPECT_LT(ResidentSize(), before + (32 << 20));
    EXPECT_EQ(client->figures().broken, 1);
    EXPECT_EQ(StateOf(*client), Node::State::kUp);
  }
}

TEST(HostileTest, AReplyThatCreepsEndsWithTheTime) {
  for (const char* start : {"$1000000\r\n", "*1000000\r\n$1000000\r\n"}) {
    ScriptedServer server([start](const Words& words, const Peer& peer) {
      if (words[0] != "GET") return false;
      peer.Send(start);
      while (peer.Send("x")) {
      }
      return true;
    });
    const auto client = ClientOf(server);
    EXPECT_EQ(Ask(*client, {"GET", "a"}, absl::Milliseconds(20), true, 16 << 20)
                  .outcome,
              Outcome::kTimeout);
  }
}

TEST(HostileTest, WhatIsNoResp2IsBrokenAndCounted) {
  for (const char* bytes :
       {"HTTP/1.1 400 Bad Request\r\n\r\n", "garbage", "%1\r\n+a\r\n+b\r\n",
        "$1\r\nabc", "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n",
        ":1\r\n:1\r\n"}) {
    ScriptedServer server(Says(bytes));
    const auto client = ClientOf(server);
    EXPECT_EQ(LookUp(*client, "a").outcome, Outcome::kBroken) << bytes;
    EXPECT_EQ(client->figures().broken, 1);
  }
}

TEST(HostileTest, APeerThatClosesAnywhereIsDownAndRetried) {
  const std::string whole = "*2\r\n$1\r\na\r\n:1\r\n";
  for (size_t size = 0; size < whole.size(); size += 4) {
    ScriptedServer server([&](const Words& words, const Peer& peer) {
      if (words[0] != "GET") return false;
      peer.Send(whole.substr(0, size));
      peer.Close();
      return true;
    });
    const auto client = ClientOf(server);
    const Answer answer = LookUp(*client, "a");
    EXPECT_EQ(answer.outcome, Outcome::kBroken);
    EXPECT_EQ(answer.why, "the server closed the connection");
    EXPECT_TRUE(ComesUp(*client));
  }
}

TEST(HostileTest, NoPingReplyPutsTheNodeDown) {
  std::atomic<bool> silent{false};
  ScriptedServer server([&](const Words& words, const Peer&) {
    return silent && words[0] == "PING";
  });
  const auto client = ClientOf(server);
  silent = true;
  EXPECT_TRUE(GoesDown(*client));
  silent = false;
  EXPECT_TRUE(ComesUp(*client));
}

TEST(HostileTest, LookupsThatWaitForAConnectionDoNotCount) {
  absl::Notification taken;
  absl::Notification free;
  ScriptedServer server([&](const Words& words, const Peer& peer) {
    if (words[0] != "SET") return false;
    taken.Notify();
    free.WaitForNotification();
    peer.Send("+OK\r\n");
    return true;
  });
  const auto client = ClientOf(server, /*connections=*/1);
  std::thread writer([&] {
    EXPECT_EQ(Ask(*client, {"SET", "a", "b"}).outcome, Outcome::kReply);
  });
  taken.WaitForNotification();
  for (int i = 0; i < 10; ++i) {
    const Answer answer = LookUp(*client, "a", absl::Milliseconds(1));
    EXPECT_EQ(answer.outcome, Outcome::kTimeout);
    EXPECT_EQ(answer.why, "no idle connection in time");
  }
  EXPECT_EQ(StateOf(*client), Node::State::kUp);
  free.Notify();
  writer.join();
}

TEST(HostileTest, TheThirdLookupWithoutAReplyPutsTheNodeDown) {
  ScriptedServer server(
      [](const Words& words, const Peer&) { return words[0] == "GET"; });
  const auto client = ClientOf(server, /*connections=*/4);
  for (int i = 0; i < 3; ++i) {
    // A new connection must be there each time.
    Answer answer;
    EXPECT_TRUE(Eventually([&] {
      answer = LookUp(*client, "a", absl::Milliseconds(20));
      return answer.why != "no idle connection in time";
    }));
    EXPECT_EQ(answer.outcome, Outcome::kTimeout);
    EXPECT_EQ(StateOf(*client), i < 2 ? Node::State::kUp : Node::State::kDown);
  }
  EXPECT_EQ(client->NodeOf("").why, "3 lookups got no reply");
  EXPECT_EQ(LookUp(*client, "a").outcome, Outcome::kDown);
  EXPECT_TRUE(ComesUp(*client));
}

TEST(HostileTest, AReplyResetsTheCountOfLookups) {
  ScriptedServer server([&](const Words& words, const Peer& peer) {
    if (words[0] != "GET") return false;
    if (words[1] == "there") peer.Send(Bulk(words[1]));
    return true;
  });
  const auto client = ClientOf(server, /*connections=*/4);
  for (int i = 0; i < 4; ++i) {
    for (int lost = 0; lost < 2; ++lost) {
      LookUp(*client, "lost", absl::Milliseconds(10));
    }
    EXPECT_EQ(LookUp(*client, "there").outcome, Outcome::kReply);
  }
  EXPECT_EQ(StateOf(*client), Node::State::kUp);
}

TEST(HostileTest, AServerThatRepeatsThePasswordIsNotQuoted) {
  ScriptedServer server([](const Words& words, const Peer& peer) {
    if (words[0] != "AUTH") return false;
    peer.Send(absl::StrCat("-ERR ", words[1], " ", words[1], "\r\n"));
    return true;
  });
  ClientOptions options;
  options.endpoint = server.endpoint();
  options.login = [] { return Login{"", "geheim"}; };
  const auto client = Client::Create(std::move(options));
  EXPECT_TRUE(GoesDown(*client));
  EXPECT_EQ(client->NodeOf("").why, "ERR *** ***");
}

// A client with the password "geheim".
std::unique_ptr<Client> ClientWithPassword(const ScriptedServer& server) {
  ClientOptions options;
  options.endpoint = server.endpoint();
  options.login = [] { return Login{"", "geheim"}; };
  options.probe = {"EVAL", "return 1", "1", "a"};
  return Client::Create(std::move(options));
}

// Answers the command `name` so, and others well.
ScriptedServer::Script Repeats(std::string name, std::string bytes) {
  return [name, bytes](const Words& words, const Peer& peer) {
    if (words[0] == name) return peer.Send(bytes), true;
    return words[0] != "PING" && (peer.Send("+OK\r\n"), true);
  };
}

TEST(HostileTest, NoReplyBringsThePasswordIntoReasons) {
  // One is across the limit of a reason.
  for (const int before : {0, 314, 316, 319, 320}) {
    const std::string error = absl::StrCat(
        "-ERR geheim", std::string(before, 'x'), "geheimgeheim\r\n");
    for (const char* name : {"AUTH", "PING", "EVAL"}) {
      ScriptedServer server(Repeats(name, error));
      const auto client = ClientWithPassword(server);
      ASSERT_TRUE(GoesDown(*client));
      const std::string why = client->NodeOf("").why;
      EXPECT_TRUE(absl::StartsWith(why, "ERR ***")) << why;
      EXPECT_FALSE(absl::StrContains(why, "g")) << name << why;
    }
    ScriptedServer server(Repeats("GET", error));
    const auto client = ClientWithPassword(server);
    ASSERT_TRUE(ComesUp(*client));
    EXPECT_FALSE(absl::StrContains(LookUp(*client, "a").why, "g"));
  }
}

TEST(HostileTest, VersionRoleAndAddressesDoNotHaveThePassword) {
  ScriptedServer server([](const Words& words, const Peer& peer) {
    if (words[0] == "PING") return false;
    peer.Send(words[0] == "HELLO"
                  ? absl::StrCat("*4\r\n", Bulk("version"), Bulk("7geheim"),
                                 Bulk("role"), Bulk("geheim\n"))
              : words[0] == "GET" ? "-MOVED 1 127.0.0.1geheim:1\r\n"
                                  : "+OK\r\n");
    return true;
  });
  const auto client = ClientWithPassword(server);
  ASSERT_TRUE(ComesUp(*client));
  EXPECT_EQ(client->NodeOf("").version, "7***");
  EXPECT_EQ(client->NodeOf("").role, "***?");
  LookUp(*client, "a");
  EXPECT_TRUE(Eventually([&] {
    const std::vector<Node> nodes = client->figures().nodes;
    for (const Node& node : nodes) {
      EXPECT_FALSE(absl::StrContains(node.address, "geheim"));
      EXPECT_FALSE(absl::StrContains(node.why, "geheim"));
    }
    return nodes.size() == 2 && (nodes[0].state == Node::State::kDown ||
                                 nodes[1].state == Node::State::kDown);
  }));
}

TEST(HostileTest, WordsOfAServerAreOneShortLine) {
  ScriptedServer server(
      Says(absl::StrCat("-ERR \x1b[1m\n", std::string(9000, 'x'), "\r\n")));
  const auto client = ClientOf(server);
  const Answer answer = LookUp(*client, "a");
  EXPECT_EQ(answer.outcome, Outcome::kError);
  EXPECT_TRUE(absl::StartsWith(answer.why, "ERR ?[1m?xxx"));
  EXPECT_LT(answer.why.size(), 400);
}

TEST(HostileTest, RedirectionsAreFollowedOnce) {
  std::string path;
  ScriptedServer server([&](const Words& words, const Peer& peer) {
    if (words[0] == "GET") peer.Send("-MOVED 1 127.0.0.1:1\r\n");
    return words[0] == "GET";
  });
  const auto client = ClientOf(server);
  EXPECT_EQ(LookUp(*client, "a").outcome, Outcome::kDown);
  EXPECT_TRUE(client->figures().cluster);
  EXPECT_EQ(client->figures().redirections, 1);
}

TEST(HostileTest, NodesAreBounded) {
  std::atomic<int> named{0};
  int port = 0;
  ScriptedServer server(
      [&](const Words& words, const Peer& peer) {
        if (words[0] != "GET") return false;
        const int i = named++;
        peer.Send(absl::StrCat("-MOVED ", i % 10000, " 127.9.", i / 200 % 200,
                               ".", i % 200 + 1, ":", port, "\r\n"));
        return true;
      },
      /*tcp=*/true);
  port = server.endpoint().port;
  const auto client = ClientOf(server, /*connections=*/1);
  EXPECT_TRUE(Eventually([&] {
    LookUp(*client, "a");
    return client->figures().nodes.size() == Client::kMostNodes;
  }));
  for (int i = 0; i < 300; ++i) LookUp(*client, "a");
  EXPECT_EQ(client->figures().nodes.size(), Client::kMostNodes);
}

TEST(HostileTest, NodesThatHaveNeverBeenUpAreFew) {
  std::atomic<int> readings{0};
  std::string slots = "*400\r\n";
  for (int i = 0; i < 400; ++i) {
    slots +=
        absl::StrCat("*3\r\n:", i, "\r\n:", i, "\r\n*3\r\n",
                     Bulk(absl::StrCat("127.9.", i / 200, ".", i % 200 + 1)),
                     ":1\r\n", Bulk("id"));
  }
  ScriptedServer server([&](const Words& words, const Peer& peer) {
    if (words[0] == "GET") peer.Send("-MOVED 1 127.9.0.1:1\r\n");
    if (words[0] == "CLUSTER") {
      ++readings;
      peer.Send(slots);
    }
    return words[0] == "GET" || words[0] == "CLUSTER";
  });
  const auto client = ClientOf(server);
  LookUp(*client, "a");
  // The slots of other nodes keep it reading. The endpoint is up.
  EXPECT_TRUE(Eventually([&] { return readings >= 4; }));
  EXPECT_EQ(client->figures().nodes.size(), Client::kMostNew + 1);
}

// Gets a MOVED without a thread for its node. Returns 0: that made
// no node; 77: threads cannot be limited here.
int LookUpWithoutThreads() {
  ScriptedServer server(Says("-MOVED 1 127.0.0.1:1\r\n"));
  const auto client = ClientOf(server, /*connections=*/1);
  // The limit is not for root, whose name this takes back to remove its files.
  const bool root = geteuid() == 0;
  const rlimit none = {0, 0};
  if (root && setresuid(12345, 12345, 0) != 0) return 77;
  if (setrlimit(RLIMIT_NPROC, &none) != 0) return 77;
  const bool limited = !CheckThreads(1).ok();
  const Answer answer = LookUp(*client, "a");
  if (root && seteuid(0) != 0) return 1;
  if (!limited) return 77;
  return answer.outcome == Outcome::kDown &&
                 absl::StartsWith(answer.why, "not followed: MOVED") &&
                 client->figures().nodes.size() == 1
             ? 0
             : 1;
}

TEST(HostileDeathTest, AThreadThatCannotBeMadeIsANodeLess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      std::exit(LookUpWithoutThreads()),
      [](int status) {
        return WIFEXITED(status) &&
               (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 77);
      },
      "");
}

}  // namespace
}  // namespace fncache::resp::testing
