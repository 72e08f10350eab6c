// SPDX-License-Identifier: Apache-2.0
// A fleet in change, under load: slots that move, failover, values of 1 MiB,
// clocks that are wrong, replicas that end, and new versions.
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "tests/common/eventually.h"
#include "tests/integration/fleet_testing.h"
#include "tests/integration/relay.h"

namespace fncache::testing {
namespace {

constexpr char kRedirections[] = "fncache_shared_redirections_total";

// ---------------------------------------------------------------------- Load

using FleetLoadTest = FleetTest;

TEST_F(FleetLoadTest, SlotsThatMoveAreFollowed) {
  RedisCluster cluster;
  ASSERT_NO_FATAL_FAILURE(Start(3, cluster.node(0).url(), kPatient));
  const auto names = [&](int node) {
    const std::string all = cluster.node(node).Cli({"KEYS", "*"});
    return std::set<std::string>(absl::StrSplit(all, '\n', absl::SkipEmpty()));
  };
  for (int i = 0; i < 4; ++i) {
    // A composite of node 0.
    std::string composite;
    std::string name;
    EXPECT_TRUE(Eventually([&] {
      const std::set<std::string> before = names(0);
      composite = Filled(0);
      for (const std::string& each : names(0)) {
        if (before.count(each) == 0) name = each;
      }
      return !name.empty();
    }));
    Load load(this);
    const int slot =
        std::atoi(cluster.node(0).Cli({"CLUSTER", "KEYSLOT", name}).c_str());
    const int to = 1 + i % 2;
    cluster.BeginMove(slot, 0, to);
    cluster.node(0).Cli({"MIGRATE", "127.0.0.1",
                         absl::StrCat(cluster.node(to).port()), name, "0",
                         "5000"});
    // ASK, and then MOVED.
    const Answered asked = Call(1, composite);
    EXPECT_TRUE(asked.hit) << asked.cache;
    cluster.FinishMove(slot, 0, to);
    const Answered moved = Call(2, composite);
    EXPECT_TRUE(moved.hit) << moved.cache;
    if (i == 0) MeasureMisses("slots that move");
    load.Await(30);
  }
  EXPECT_GE(Metric(1, kRedirections), 1);
  EXPECT_GE(Metric(2, kRedirections), 1);
  EXPECT_TRUE(AllShare());
}

TEST_F(FleetLoadTest, AFailoverIsFollowed) {
  const std::vector<std::string> at_once = {"--repl-diskless-sync-delay", "0"};
  RedisServer first(Tcp(at_once));
  RedisServer second(Tcp(at_once));
  second.Cli({"REPLICAOF", "127.0.0.1", absl::StrCat(first.port())});
  ASSERT_TRUE(Eventually([&] {
    return absl::StrContains(second.Cli({"INFO", "replication"}),
                             "master_link_status:up");
  }));
  // A service that follows the master.
  Relay service(first.port());
  ASSERT_NO_FATAL_FAILURE(Start(2, service.url(), kPatient));
  EXPECT_TRUE(AllShare());
  EXPECT_EQ(Purge(0, {"--all"}).code, 0);
  Load load(this);
  load.Await(50);
  second.Cli({"REPLICAOF", "NO", "ONE"});
  first.Cli({"REPLICAOF", "127.0.0.1", absl::StrCat(second.port())});
  // Connections to the old one are still there: it is read-only.
  MeasureMisses("failover, the old master is read-only");
  service.LeadTo(second.port());
  MeasureMisses("failover, the service has the new one");
  EXPECT_TRUE(AllShare());
  AwaitPurge();
  load.Await(50);
  EXPECT_TRUE(
      absl::StrContains(second.Cli({"INFO", "replication"}), "role:master"));
}

TEST_F(FleetLoadTest, ValuesOfAMebibyteDoNotDelaySmallOnes) {
  RedisServer server(Tcp());
  ASSERT_NO_FATAL_FAILURE(
      Start(2, server.url(), "  max_entry_bytes: 4MiB\n  timeout: 1s\n"));
  std::vector<Wanted> wanted = Load::Usual();
  for (int i = 0; i < 4; ++i) {
    wanted.push_back(
        {absl::StrCat("large-", i), i % 2 == 0 ? 2 : 3600, 1 << 20});
  }
  Load load(this, 2, wanted);
  load.Await(50);
  MeasureMisses("values of 1 MiB beside small ones");
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(Shares(0, 1, 1 << 20));
  EXPECT_TRUE(AllShare());
}

// -------------------------------------------------------------------- Clocks

using FleetClockTest = FleetTest;

TEST_F(FleetClockTest, AServerThatIsAheadIsDown) {
  RedisServer right(Tcp());
  for (const int ahead : {1500, 10'000, -1500}) {
    RedisServer wrong(ClockAhead(ahead));
    Relay service(wrong.port());
    const int first = replicas();
    for (int i = 0; i < 2; ++i) {
      ASSERT_NO_FATAL_FAILURE(StartReplica({service.url()}));
    }
    for (int i = first; i < replicas(); ++i) {
      EXPECT_TRUE(replica(i).process->WaitForStderr("clock"));
      EXPECT_TRUE(TierOf(i, false));
      EXPECT_NEAR(Metric(i, "fncache_shared_clock_difference_seconds"),
                  -ahead / 1000.0, 0.4);
    }
    MeasureMisses(absl::StrCat("the server's clock is ", ahead, " ms ahead"),
                  20);
    EXPECT_FALSE(IsUp(first));
    service.LeadTo(right.port());
    EXPECT_TRUE(TierOf(first, true));
    EXPECT_TRUE(Shares(first, first + 1));
    for (int i = first; i < replicas(); ++i) Kill(i);
  }
}

// Heavy: no sanitizer lets a library be loaded before itself.
using FleetClockHeavyTest = FleetTest;

TEST_F(FleetClockHeavyTest, AReplicaThatIsAheadIsAlone) {
  RedisServer server(Tcp());
  ASSERT_NO_FATAL_FAILURE(Start(2, server.url()));
  Load load(this);
  for (const int ahead : {1500, 10'000, -1500}) {
    ReplicaOptions options;
    options.url = server.url();
    options.environment = {{"LD_PRELOAD", Preload("clock_ahead")},
                           {"CLOCK_AHEAD", absl::StrCat(ahead)}};
    const int wrong = StartReplica(options);
    EXPECT_TRUE(replica(wrong).process->WaitForStderr("clock"));
    EXPECT_TRUE(TierOf(wrong, false));
    EXPECT_NEAR(Metric(wrong, "fncache_shared_clock_difference_seconds"),
                ahead / 1000.0, 0.4);
    MeasureMisses(absl::StrCat("a replica's clock is ", ahead, " ms ahead"),
                  21);
    EXPECT_FALSE(IsUp(wrong));
    EXPECT_TRUE(Shares(0, 1));
    Kill(wrong);
  }
}

TEST_F(FleetClockHeavyTest, APurgeTakesWhatAClockAheadHasStamped) {
  RedisServer server(Tcp());
  ASSERT_NO_FATAL_FAILURE(Start(2, server.url(), kPatient));
  ReplicaOptions options;
  options.url = server.url();
  options.shared = kPatient;
  options.environment = {{"LD_PRELOAD", Preload("clock_ahead")},
                         {"CLOCK_AHEAD", "700"}};
  const int ahead = StartReplica(options);
  lateness_ += absl::Seconds(1);
  EXPECT_TRUE(TierBecomes(true));
  Load load(this);
  for (const bool all : {true, false}) {
    // It has the latest stamp when the purge comes.
    const std::string name = Filled(ahead);
    const std::string key = KeyOf(name);
    const Ended purge =
        all ? Purge(0, {"--all"}) : Purge(0, {"--key", key}, {name});
    EXPECT_EQ(purge.code, 0) << purge.err;
    AwaitPurge();
    for (int i = 0; i < replicas(); ++i) EXPECT_GT(Call(i, name).run, 1);
  }
  EXPECT_TRUE(AllShare());
}

// ------------------------------------------------------------------ Replicas

class FleetReplicasTest : public FleetTest {
 protected:
  RedisServer server_;
};

TEST_F(FleetReplicasTest, OneThatIsKilledDoesNotMatterToTheOthers) {
  ASSERT_NO_FATAL_FAILURE(Start(3, server_.url()));
  EXPECT_TRUE(AllShare());
  Load load(this);
  load.Await(50);
  Kill(1);
  MeasureMisses("kill -9 of a replica");
  EXPECT_TRUE(AllShare());
  ASSERT_NO_FATAL_FAILURE(StartAgain(1));
  EXPECT_TRUE(AllShare());
}

TEST_F(FleetReplicasTest, OneThatIsStoppedDoesNotMatterToTheOthers) {
  ASSERT_NO_FATAL_FAILURE(Start(3, server_.url()));
  EXPECT_TRUE(AllShare());
  Load load(this);
  load.Await(50);
  replica(1).away = true;
  replica(1).process->Signal(SIGSTOP);
  MeasureMisses("SIGSTOP of a replica");
  EXPECT_TRUE(AllShare());
  replica(1).process->Signal(SIGCONT);
  replica(1).away = false;
  EXPECT_TRUE(AllShare());
}

// Each answer is checked for the build of the replica's function.
TEST_F(FleetReplicasTest, AGenerationRollsOutWithoutAnAnswerOfTheOtherOne) {
  ASSERT_NO_FATAL_FAILURE(Start(3, server_.url()));
  FleetFunction next("v2");
  Load load(this);
  load.Await(50);
  for (int i = 0; i < replicas(); ++i) {
    Kill(i);
    replica(i).options.generation = "v2";
    replica(i).options.function = &next;
    ASSERT_NO_FATAL_FAILURE(StartAgain(i));
    EXPECT_TRUE(TierOf(i, true));
    load.Await(60);
    if (i == 1) MeasureMisses("a generation rolls out", 21);
  }
  // From now on the new one's entries are shared.
  EXPECT_TRUE(Eventually([&] {
    const std::string name = Filled(0);
    return Call(1, name).hit && next.RunsOf(name) == 1;
  }));
}

// Each answer of a replica without the mask is checked for the request's note.
TEST_F(FleetReplicasTest, AMaskRollsOutWithoutAnAnswerToAnotherRequest) {
  ASSERT_NO_FATAL_FAILURE(Start(3, server_.url()));
  std::vector<Wanted> wanted;
  for (int i = 0; i < 4; ++i) {
    for (const char* const note : {"", "a", "b"}) {
      wanted.push_back(
          {absl::StrCat("masked-", i), i == 0 ? 2 : 3600, 500, note});
    }
  }
  Load load(this, 2, wanted);
  load.Await(50);
  for (int i = 0; i < replicas(); ++i) {
    Kill(i);
    replica(i).options.hides_notes = true;
    ASSERT_NO_FATAL_FAILURE(StartAgain(i));
    EXPECT_TRUE(TierOf(i, true));
    load.Await(60);
    if (i == 1) MeasureMisses("a mask rolls out", 21);
  }
  EXPECT_TRUE(AllShare());
}

}  // namespace
}  // namespace fncache::testing
