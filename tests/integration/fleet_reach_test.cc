// SPDX-License-Identifier: Apache-2.0
// A fleet whose server cannot be reached, or not in time: calls are misses at
// worst, and the tier comes back.
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/common/eventually.h"
#include "tests/common/loopback_socket.h"
#include "tests/integration/fleet_testing.h"
#include "tests/integration/relay.h"

namespace fncache::testing {
namespace {

using FleetReachTest = FleetTest;

TEST_F(FleetReachTest, AServerThatStopsIsDownUntilItContinues) {
  RedisServer server(Tcp());
  ASSERT_NO_FATAL_FAILURE(Start(2, server.url()));
  EXPECT_TRUE(AllShare());
  {
    Load load(this);
    load.Await(50);
    server.Stop();
    MeasureMisses("SIGSTOP of the server");
    EXPECT_TRUE(TierBecomes(false));
    MeasureMisses("the same, once that is known");
    server.Continue();
    EXPECT_TRUE(AllShare());
  }
  for (int i = 0; i < replicas(); ++i) {
    EXPECT_GE(Metric(i, "fncache_shared_lookups_total", "result=\"timeout\""),
              0);
    EXPECT_GE(Metric(i, "fncache_shared_lookups_total", "result=\"down\""), 1);
  }
}

TEST_F(FleetReachTest, ANodeThatStopsCostsItsKeysAlone) {
  RedisCluster cluster;
  ASSERT_NO_FATAL_FAILURE(Start(2, cluster.node(0).url()));
  EXPECT_TRUE(AllShare());
  for (int i = 0; i < replicas(); ++i) {
    EXPECT_TRUE(Reaches(i, "fncache_shared_nodes", "state=\"up\"", 3));
  }
  {
    Load load(this);
    cluster.node(2).Stop();
    MeasureMisses("SIGSTOP of one node of three");
    for (int i = 0; i < replicas(); ++i) {
      EXPECT_TRUE(Reaches(i, "fncache_shared_nodes", "state=\"up\"", 2));
    }
    cluster.node(2).Continue();
    for (int i = 0; i < replicas(); ++i) {
      EXPECT_TRUE(Reaches(i, "fncache_shared_nodes", "state=\"up\"", 3));
    }
  }
  EXPECT_TRUE(AllShare());
}

TEST_F(FleetReachTest, ABlackHoleIsDownFromTheStartOn) {
  // It listens, and accepts nothing.
  const LoopbackSocket hole;
  hole.Listen(1);
  const std::string url = absl::StrCat("redis://", hole.target());
  for (int i = 0; i < 2; ++i) {
    ASSERT_NO_FATAL_FAILURE(StartReplica({url}));
  }
  MeasureMisses("a black hole from the start");
  EXPECT_TRUE(TierBecomes(false));
  int status = 0;
  HttpGet(replica(0).admin, "/readyz", &status);
  EXPECT_EQ(status, 200);
}

TEST_F(FleetReachTest, ANetworkThatSwallowsEverythingIsDownUntilItHeals) {
  RedisServer server(Tcp());
  Relay network(server.port());
  ASSERT_NO_FATAL_FAILURE(Start(2, network.url()));
  EXPECT_TRUE(AllShare());
  Load load(this);
  load.Await(50);
  network.Hang();
  MeasureMisses("the network becomes a black hole");
  EXPECT_TRUE(TierBecomes(false));
  network.Heal();
  EXPECT_TRUE(AllShare());
}

TEST_F(FleetReachTest, ARefusedConnectionIsDownUntilTheServerIsThere) {
  RedisServer server(Tcp());
  ASSERT_NO_FATAL_FAILURE(Start(2, server.url()));
  EXPECT_TRUE(AllShare());
  Load load(this);
  load.Await(50);
  server.Kill();
  MeasureMisses("refused: the server was killed");
  EXPECT_TRUE(TierBecomes(false));
  server.Restart();
  EXPECT_TRUE(AllShare());
}

TEST_F(FleetReachTest, ADaemonThatStartsFirstServesUntilTheServerComes) {
  RedisServer server(Tcp());
  server.Kill();
  for (int i = 0; i < 2; ++i) {
    ASSERT_NO_FATAL_FAILURE(StartReplica({server.url()}));
    int status = 0;
    HttpGet(replica(i).admin, "/readyz", &status);
    EXPECT_EQ(status, 200);
    EXPECT_FALSE(IsUp(i));
  }
  MeasureMisses("started before the server");
  // Memory works meanwhile.
  Call(0, "early");
  EXPECT_TRUE(Call(0, "early").hit);
  server.Restart();
  EXPECT_TRUE(AllShare());
}

// Heavy: no sanitizer lets a library be loaded before itself.
using FleetNameHeavyTest = FleetTest;

TEST_F(FleetNameHeavyTest, ANameThatResolvesLaterIsFound) {
  RedisServer server(Tcp());
  ReplicaOptions options;
  options.url = absl::StrCat("redis://late.example:", server.port());
  options.environment = {{"LATE_NAME", dir_.File("resolves")},
                         {"LD_PRELOAD", Preload("late_name")}};
  for (int i = 0; i < 2; ++i) {
    ASSERT_NO_FATAL_FAILURE(StartReplica(options));
  }
  MeasureMisses("a name that does not resolve");
  EXPECT_TRUE(TierBecomes(false));
  WriteFile(dir_.File("resolves"), "");
  EXPECT_TRUE(AllShare());
}

}  // namespace
}  // namespace fncache::testing
