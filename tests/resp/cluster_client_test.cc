// SPDX-License-Identifier: Apache-2.0
// The client with a real Cluster of three.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "resp/client.h"
#include "resp/cluster.h"
#include "tests/common/eventually.h"
#include "tests/resp/commands.h"
#include "tests/resp/redis_server.h"

namespace fncache::resp::testing {
namespace {

class ClusterClientTest : public ::testing::Test {
 protected:
  ClusterClientTest() {
    ClientOptions options;
    options.endpoint = cluster_.node(0).endpoint();
    options.connections = 3;
    options.probe = {"EVAL", "return 1", "1", "a"};
    client_ = Client::Create(std::move(options));
    EXPECT_TRUE(ComesUp(*client_));
    // Keys of all nodes, until the client knows each.
    for (int i = 0; i < 3; ++i) {
      const std::string key = KeyOf(i);
      EXPECT_TRUE(Eventually([&] {
        return Ask(*client_, {"SET", key, "b"}).outcome == Outcome::kReply;
      }));
    }
    EXPECT_TRUE(AllUp(*client_, 3));
  }

  // A key of node `i`, and not of another number's slot.
  std::string KeyOf(int i, int number = 0) const {
    for (int n = 0;; ++n) {
      std::string key = absl::StrCat("key", number, "-", n);
      if (cluster_.OwnerOf(SlotOf(key)) == i) return key;
    }
  }

  RedisCluster cluster_;
  std::unique_ptr<Client> client_;
};

TEST_F(ClusterClientTest, EachKeyIsAtItsNode) {
  EXPECT_TRUE(client_->figures().cluster);
  const uint64_t before = client_->figures().redirections;
  for (int i = 0; i < 100; ++i) {
    const std::string key = absl::StrCat("some", i);
    EXPECT_EQ(Ask(*client_, {"SET", key, key}).reply.text, "OK");
    EXPECT_EQ(LookUp(*client_, key).reply.text, key);
    EXPECT_EQ(
        client_->NodeOf(key).address,
        absl::StrCat("127.0.0.1:",
                     cluster_.node(cluster_.OwnerOf(SlotOf(key))).port()));
  }
  // Once CLUSTER SLOTS has been read there are none.
  EXPECT_LE(client_->figures().redirections - before, 100);
  EXPECT_TRUE(Eventually([&] {
    const uint64_t now = client_->figures().redirections;
    for (int i = 0; i < 100; ++i) LookUp(*client_, absl::StrCat("some", i));
    return client_->figures().redirections == now;
  }));
}

TEST_F(ClusterClientTest, ASlotThatMovesIsFollowed) {
  const std::string key = KeyOf(1);
  const std::string fresh = absl::StrCat("{", key, "}fresh");
  const int slot = SlotOf(key);
  const uint64_t before = client_->figures().redirections;
  cluster_.BeginMove(slot, 1, 2);
  // The old node serves the keys that it has. Others get ASK.
  EXPECT_EQ(LookUp(*client_, key).reply.text, "b");
  EXPECT_EQ(client_->figures().redirections, before);
  EXPECT_EQ(Ask(*client_, {"SET", fresh, "new"}).reply.text, "OK");
  EXPECT_EQ(client_->figures().redirections, before + 1);
  EXPECT_EQ(LookUp(*client_, fresh).reply.text, "new");
  EXPECT_EQ(client_->figures().redirections, before + 2);
  cluster_.FinishMove(slot, 1, 2);
  EXPECT_EQ(LookUp(*client_, key).reply.text, "b");
  EXPECT_EQ(LookUp(*client_, fresh).reply.text, "new");
  EXPECT_EQ(client_->NodeOf(key).address,
            absl::StrCat("127.0.0.1:", cluster_.node(2).port()));
}

TEST_F(ClusterClientTest, AStoppedNodeDelaysNoOther) {
  cluster_.node(2).Stop();
  const std::string lost = KeyOf(2);
  EXPECT_TRUE(Eventually([&] {
    LookUp(*client_, lost, absl::Milliseconds(20));
    return StateOf(*client_, lost) == Node::State::kDown;
  }));
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(LookUp(*client_, KeyOf(i)).reply.text, "b");
    EXPECT_EQ(StateOf(*client_, KeyOf(i)), Node::State::kUp);
  }
  // Another node recovers meanwhile. It is down for 100 ms only, which a busy
  // machine may not see.
  const absl::Time up_since = client_->NodeOf(KeyOf(1)).since;
  cluster_.node(1).Cli({"CLIENT", "KILL", "TYPE", "normal"});
  EXPECT_TRUE(
      Eventually([&] { return client_->NodeOf(KeyOf(1)).since != up_since; }));
  EXPECT_TRUE(ComesUp(*client_, KeyOf(1)));
  EXPECT_EQ(LookUp(*client_, KeyOf(1)).reply.text, "b");
  EXPECT_EQ(StateOf(*client_, lost), Node::State::kDown);
  cluster_.node(2).Continue();
  EXPECT_TRUE(ComesUp(*client_, lost));
  EXPECT_EQ(LookUp(*client_, lost).reply.text, "b");
}

TEST_F(ClusterClientTest, TheEndpointMayBeAway) {
  cluster_.node(0).Kill();
  EXPECT_TRUE(GoesDown(*client_));
  for (int i = 1; i < 3; ++i) {
    EXPECT_EQ(LookUp(*client_, KeyOf(i)).reply.text, "b");
  }
  cluster_.node(0).Restart();
  EXPECT_TRUE(ComesUp(*client_));
}

TEST_F(ClusterClientTest, AFailoverIsFollowed) {
  RedisServer& replica = cluster_.AddReplica(1);
  const std::string key = KeyOf(1);
  cluster_.node(1).Kill();
  EXPECT_TRUE(GoesDown(*client_, key));
  EXPECT_EQ(replica.Cli({"CLUSTER", "FAILOVER", "TAKEOVER"}), "OK");
  // No node says MOVED to a client that asks none, so the slots must be read.
  EXPECT_TRUE(Eventually([&] {
    return client_->NodeOf(key).address ==
           absl::StrCat("127.0.0.1:", replica.port());
  }));
  EXPECT_TRUE(ComesUp(*client_, key));
  EXPECT_EQ(LookUp(*client_, key).reply.text, "b");
  EXPECT_TRUE(AllUp(*client_, 3));
}

TEST_F(ClusterClientTest, ANodeWithoutSlotsIsRetired) {
  // All slots of node 2 go to node 1, as when a Cluster shrinks.
  cluster_.node(2).Cli({"FLUSHALL"});
  // A node that hears of the old owner in between has them as busy again.
  EXPECT_TRUE(Eventually([&] {
    for (const int i : {2, 0, 1}) {
      cluster_.node(i).Cli({"CLUSTER", "DELSLOTSRANGE", "10923", "16383"});
    }
    return cluster_.node(1).Cli(
               {"CLUSTER", "ADDSLOTSRANGE", "10923", "16383"}) == "OK";
  }));
  const std::string key = KeyOf(2);
  EXPECT_TRUE(Eventually([&] {
    LookUp(*client_, key);
    return client_->figures().nodes.size() == 2;
  }));
  // A node that has not learned of it yet says CLUSTERDOWN.
  EXPECT_TRUE(Eventually(
      [&] { return LookUp(*client_, key).outcome == Outcome::kReply; }));
}

}  // namespace
}  // namespace fncache::resp::testing
