// SPDX-License-Identifier: Apache-2.0
// Names whose resolution hangs, and the end of a client beside servers that do
// not answer.
#include <dlfcn.h>
#include <netdb.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/mutex.h"
#include "gtest/gtest.h"
#include "resp/client.h"
#include "tests/resp/commands.h"
#include "tests/resp/redis_server.h"
#include "tests/resp/scripted_server.h"

namespace fncache::resp::testing {
namespace {

// Resolvers of names that end in ".hang", which return when a test says so.
class Resolvers {
 public:
  void Hang() {
    MutexLock lock(&mutex_);
    ++hanging_;
    came_.push_back(absl::Now());
    while (!released_) changed_.Wait(&mutex_);
    --hanging_;
    changed_.SignalAll();
  }
  // Ends all of them, so that none is left for the next test.
  void Release() {
    MutexLock lock(&mutex_);
    released_ = true;
    changed_.SignalAll();
    while (hanging_ > 0) changed_.Wait(&mutex_);
    released_ = false;
    came_.clear();
  }
  std::vector<absl::Time> came() {
    MutexLock lock(&mutex_);
    return came_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  int hanging_ ABSL_GUARDED_BY(mutex_) = 0;
  bool released_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<absl::Time> came_ ABSL_GUARDED_BY(mutex_);
};

Resolvers& TheResolvers() {
  static auto* const resolvers = new Resolvers;
  return *resolvers;
}

std::unique_ptr<Client> ClientOf(const Endpoint& endpoint) {
  ClientOptions options;
  options.endpoint = endpoint;
  options.connections = 1;
  return Client::Create(std::move(options));
}

Endpoint Hanging() {
  Endpoint endpoint;
  endpoint.host = "name.hang";
  endpoint.port = 6379;
  return endpoint;
}

TEST(HangingNameTest, TheNextAttemptComesLater) {
  auto client = ClientOf(Hanging());
  EXPECT_TRUE(Eventually([] { return TheResolvers().came().size() == 2; }));
  const std::vector<absl::Time> came = TheResolvers().came();
  EXPECT_GE(came[1] - came[0],
            Client::kBackgroundLimit + absl::Milliseconds(1900));
  client.reset();
  TheResolvers().Release();
}

TEST(HangingNameTest, RedirectionsLeaveFewResolversBehind) {
  std::atomic<int> names{0};
  std::atomic<int> readings{0};
  ScriptedServer server([&](const ScriptedServer::Words& words,
                            const ScriptedServer::Peer& peer) {
    if (words[0] == "GET") {
      peer.Send(absl::StrCat("-MOVED 5 h", names++, ".hang:7\r\n"));
    } else if (words[0] == "CLUSTER") {
      // Retires all others.
      peer.Send("*1\r\n*3\r\n:0\r\n:9\r\n*2\r\n$9\r\n127.0.0.1\r\n:1\r\n");
      ++readings;
    }
    return words[0] == "GET" || words[0] == "CLUSTER";
  });
  auto client = ClientOf(server.endpoint());
  ASSERT_TRUE(ComesUp(*client));
  EXPECT_TRUE(Eventually([&] {
    LookUp(*client, "a");
    return readings >= 5;
  }));
  EXPECT_GT(names, 100);
  EXPECT_LE(TheResolvers().came().size(), 2 * Client::kMostNew);
  client.reset();
  TheResolvers().Release();
}

TEST(StopTest, AnAttemptToConnectEnds) {
  auto client = ClientOf(Hanging());
  EXPECT_TRUE(Eventually([] { return TheResolvers().came().size() == 1; }));
  client->Stop();
  EXPECT_TRUE(GoesDown(*client));
  EXPECT_TRUE(absl::StrContains(client->NodeOf("").why, "aborted"))
      << client->NodeOf("").why;
  client.reset();
  TheResolvers().Release();
}

TEST(StopTest, CommandsEnd) {
  RedisServer server;
  const auto client = ClientOf(server.endpoint());
  ASSERT_TRUE(ComesUp(*client));
  server.Stop();
  // One waits for its reply, the others for the connection.
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      EXPECT_EQ(Ask(*client, {"SET", "a", "b"}).outcome, Outcome::kDown);
    });
  }
  client->Stop();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(LookUp(*client, "a").why, "the client stops");
}

}  // namespace
}  // namespace fncache::resp::testing

// Instead of the C library's, in libcurl too.
extern "C" int getaddrinfo(const char* name, const char* service,
                           const addrinfo* hints, addrinfo** found) {
  if (name != nullptr && absl::EndsWith(name, ".hang")) {
    fncache::resp::testing::TheResolvers().Hang();
    return EAI_AGAIN;
  }
  static const auto next =
      reinterpret_cast<decltype(&getaddrinfo)>(dlsym(RTLD_NEXT, "getaddrinfo"));
  return next(name, service, hints, found);
}
