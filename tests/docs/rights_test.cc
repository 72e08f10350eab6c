// SPDX-License-Identifier: Apache-2.0
// The user of docs/fleets.md has the rights that the shared tier uses at its
// server, and no others.
#include <signal.h>

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "cache/store/bans.h"
#include "cache/store/seal.h"
#include "cache/store/shared_store.h"
#include "common/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "resp/client.h"
#include "resp/cluster.h"
#include "tests/cache/store/store_testing.h"
#include "tests/common/eventually.h"
#include "tests/docs/markdown.h"
#include "tests/resp/redis_server.h"

namespace fncache::docs {
namespace {

using cache::store::Bans;
using cache::store::PutResult;
using cache::store::Seal;
using cache::store::SharedStore;
using cache::store::SharedStoreOptions;
using cache::store::testing::EntryOf;
using cache::store::testing::EntrySpec;
using cache::store::testing::KeyOf;
using resp::testing::RedisCluster;
using resp::testing::RedisOptions;
using resp::testing::RedisServer;

constexpr char kSecret[] = "0123456789abcdef0123456789abcdef";
constexpr char kPassword[] = "PASSWORD";
constexpr char kInACluster[] = " +cluster|slots +asking";

// The user's line on the page.
std::string RightsOnThePage() {
  const std::string page = ReadSource("docs/fleets.md");
  for (absl::string_view line : absl::StrSplit(page, '\n')) {
    if (absl::StrContains(line, absl::StrCat("user fncache on >", kPassword))) {
      return std::string(line);
    }
  }
  ADD_FAILURE() << "docs/fleets.md has no user";
  return "";
}

RedisOptions ServerWith(const std::string& rights) {
  RedisOptions options;
  options.acl = "user default on nopass ~* &* +@all\n" + rights + "\n";
  return options;
}

std::set<std::string> Granted(const std::string& rights) {
  std::set<std::string> granted;
  for (absl::string_view word : absl::StrSplit(rights, ' ')) {
    if (absl::ConsumePrefix(&word, "+")) granted.emplace(word);
  }
  return granted;
}

// The commands that the server has run, in scripts and outside, without those
// that need no right and those of the test.
std::set<std::string> Used(const RedisServer& server) {
  std::set<std::string> used;
  const std::string statistics = server.Cli({"INFO", "commandstats"});
  for (absl::string_view line : absl::StrSplit(statistics, '\n')) {
    if (!absl::ConsumePrefix(&line, "cmdstat_")) continue;
    const std::string name(line.substr(0, line.find(':')));
    if (absl::StrContains(line, ":calls=0,")) continue;
    static const auto* const kOthers = new std::set<std::string>{
        "auth", "hello", "info", "config|resetstat", "acl|log"};
    if (kOthers->count(name) == 0) used.insert(name);
  }
  return used;
}

class SharedRightsTest : public ::testing::Test {
 protected:
  SharedRightsTest() { signal(SIGPIPE, SIG_IGN); }

  void Open(const resp::Endpoint& endpoint) {
    resp::ClientOptions client;
    client.endpoint = endpoint;
    client.login = [] {
      return absl::make_optional(resp::Login{"fncache", kPassword});
    };
    client.probe = {"EVAL", "return 1", "1", "fncache:1:probe"};
    SharedStoreOptions options;
    options.server = resp::Client::Create(std::move(client));
    options.secret = kSecret;
    options.functions = {{"f", "v1"}};
    options.timeout = absl::Seconds(1);
    options.sync_by_itself = false;
    store_ = SharedStore::Create(std::move(options), &bans_, &clock_, nullptr);
    store_->Attach(&bans_, absl::Now());
    ASSERT_TRUE(Eventually([&] { return store_->Sync().ok(); }))
        << store_->Sync();
  }

  cache::store::EntryRef NewEntry(uint64_t n) {
    EntrySpec spec;
    spec.started = absl::Now() - absl::Seconds(1);
    return EntryOf(n, spec);
  }

  void Fill(uint64_t n) {
    EXPECT_EQ(store_->Put(KeyOf(n), NewEntry(n), absl::Now()),
              PutResult::kStored);
    EXPECT_TRUE(store_->Get(KeyOf(n), absl::Now()).entry);
  }

  // All that the tier does to a server.
  void UseAll(RedisServer* server) {
    for (uint64_t n = 0; n < 4; ++n) Fill(n);
    EXPECT_EQ(store_->EraseUpTo(KeyOf(0), absl::Now(), 0, absl::Now(), nullptr),
              PutResult::kStored);
    EXPECT_TRUE(store_->Erase(KeyOf(1)));
    EXPECT_TRUE(
        store_->Purge(KeyOf(2), absl::Now() + absl::Seconds(1), absl::Now())
            .lasting);
    const std::string name = Seal(kSecret, "fncache").NameOf(KeyOf(3));
    server->Cli({"SETRANGE", name, "50", "damaged"});
    EXPECT_FALSE(store_->Get(KeyOf(3), absl::Now()).entry);
    bans_.Ban(Bans::Kind::kAll, "", "", absl::Now(), /*soft=*/false);
    EXPECT_TRUE(store_->Sync().ok());
    EXPECT_EQ(server->Cli({"EXISTS", name}), "0");
  }

  SystemClock clock_;
  Bans bans_;
  std::unique_ptr<SharedStore> store_;
};

TEST_F(SharedRightsTest, TheRightsOnThePageAreThoseThatAreUsed) {
  const std::string rights = RightsOnThePage();
  RedisServer server(ServerWith(rights));
  server.Cli({"CONFIG", "RESETSTAT"});
  Open(server.endpoint());
  UseAll(&server);
  EXPECT_EQ(server.Cli({"ACL", "LOG"}), "");
  std::set<std::string> used = Used(server);
  used.erase("setrange");
  used.erase("exists");
  EXPECT_EQ(used, Granted(rights));
}

TEST_F(SharedRightsTest, TheUserOfTheExampleHasTheSameRights) {
  const std::string example = absl::StrReplaceAll(
      RightsOnThePage(), {{kPassword, "$(cat fleet.password)"}});
  EXPECT_THAT(ReadSource("docs/fleets.md"), ::testing::HasSubstr(example));
}

TEST_F(SharedRightsTest, AClusterNeedsTheTwoThatThePageAdds) {
  ASSERT_THAT(
      ReadSource("docs/fleets.md"),
      ::testing::HasSubstr(absl::StrCat(
          "In a Cluster add `", absl::StripAsciiWhitespace(kInACluster), "`")));
  const std::string rights = RightsOnThePage() + kInACluster;
  RedisCluster cluster(3, ServerWith(rights));
  for (int i = 0; i < cluster.size(); ++i) {
    cluster.node(i).Cli({"CONFIG", "RESETSTAT"});
  }
  Open(cluster.node(0).endpoint());
  ASSERT_TRUE(Eventually([&] {
    return store_->Put(KeyOf(7), NewEntry(7), absl::Now()) ==
           PutResult::kStored;
  }));
  // An entry that is not there leads to the slot's next node.
  const int slot = resp::SlotOf(Seal(kSecret, "fncache").NameOf(KeyOf(8)));
  const int from = cluster.OwnerOf(slot);
  cluster.BeginMove(slot, from, (from + 1) % cluster.size());
  ASSERT_TRUE(Eventually([&] {
    return store_->Put(KeyOf(8), NewEntry(8), absl::Now()) ==
           PutResult::kStored;
  }));
  std::set<std::string> used;
  for (int i = 0; i < cluster.size(); ++i) {
    EXPECT_EQ(cluster.node(i).Cli({"ACL", "LOG"}), "");
    used.merge(Used(cluster.node(i)));
  }
  EXPECT_THAT(used, ::testing::IsSupersetOf({"cluster|slots", "asking"}));
}

}  // namespace
}  // namespace fncache::docs
