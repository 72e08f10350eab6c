// SPDX-License-Identifier: Apache-2.0
// A fleet whose server loses data, or has no memory for it: calls are misses at
// worst, and purges hold.
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/common/eventually.h"
#include "tests/integration/fleet_testing.h"

namespace fncache::testing {
namespace {

constexpr char kWrites[] = "fncache_shared_writes_total";

class FleetDataTest : public FleetTest {
 protected:
  // The number of values on the server, the record included.
  int Values() const { return std::atoi(server_.Cli({"DBSIZE"}).c_str()); }
  // A replica that starts under `load` learns the purge from the record.
  void ExpectAStarterLearns(Load* load) {
    ReplicaOptions options;
    options.url = server_.url();
    EXPECT_TRUE(TierOf(StartReplica(options), true));
    AwaitPurge();
    load->Await(100);
  }

  // On a socket: here the network is not at fault.
  RedisServer server_;
};

TEST_F(FleetDataTest, WithoutMemoryAndEvictionFillsAreRefused) {
  ASSERT_NO_FATAL_FAILURE(Start(2, server_.url(), kPatient));
  const std::string before = Filled(0);
  server_.Cli({"CONFIG", "SET", "maxmemory-policy", "noeviction"});
  server_.Cli({"CONFIG", "SET", "maxmemory", "1"});
  {
    Load load(this);
    MeasureMisses("out of memory, without eviction");
    EXPECT_TRUE(Reaches(0, kWrites, "result=\"refused\"", 1));
    EXPECT_TRUE(Reaches(1, kWrites, "result=\"refused\"", 1));
    // It can still be read.
    EXPECT_TRUE(TierBecomes(true));
    EXPECT_TRUE(Call(1, before).hit);
    // A purge cannot be written, and says so.
    const Ended purge = Purge(0, {"--all"}, {"", false, {1}});
    EXPECT_EQ(purge.code, 1) << purge.out;
    EXPECT_FALSE(Call(0, before).hit);
    server_.Cli({"CONFIG", "SET", "maxmemory", "0"});
    // It is retried, so replica 1 learns it now.
    EXPECT_TRUE(Eventually([&] { return Call(1, before).run > 1; }));
    EndExemption(1, absl::ZeroDuration());
    AwaitPurge();
    load.Await(100);
  }
  EXPECT_TRUE(AllShare());
}

TEST_F(FleetDataTest, WithEvictionTheTierStaysUpAndPurgesHold) {
  ASSERT_NO_FATAL_FAILURE(Start(2, server_.url(), kPatient));
  EXPECT_EQ(Purge(0, {"--all"}).code, 0);
  server_.Cli({"CONFIG", "SET", "maxmemory-policy", "allkeys-random"});
  // Less than the server needs for itself and a few values: nothing stays long,
  // not even the record.
  server_.Cli({"CONFIG", "SET", "maxmemory", "1200000"});
  {
    Load load(this);
    MeasureMisses("out of memory, with eviction");
    for (int i = 0; i < 30; ++i) Call(i % 2, {NewName(), 3600, 100'000});
    EXPECT_TRUE(TierBecomes(true));
    server_.Cli({"CONFIG", "SET", "maxmemory", "0"});
  }
  EXPECT_TRUE(AllShare());
}

TEST_F(FleetDataTest, FlushedDataIsFilledAgainAndAPurgeIsNotForgotten) {
  ASSERT_NO_FATAL_FAILURE(Start(2, server_.url(), kPatient));
  EXPECT_TRUE(AllShare());
  Load load(this);
  load.Await(50);
  EXPECT_EQ(Purge(0, {"--all"}).code, 0);
  server_.Cli({"FLUSHALL"});
  MeasureMisses("FLUSHALL");
  EXPECT_TRUE(AllShare());
  // The record is there again: a replica that starts learns the purge.
  ExpectAStarterLearns(&load);
}

TEST_F(FleetDataTest, FlushedScriptsDoNotMatter) {
  ASSERT_NO_FATAL_FAILURE(Start(2, server_.url()));
  EXPECT_TRUE(AllShare());
  Load load(this);
  for (int i = 0; i < 5; ++i) {
    server_.Cli({"SCRIPT", "FLUSH"});
    load.Await(10);
  }
  MeasureMisses("SCRIPT FLUSH");
  EXPECT_TRUE(AllShare());
  for (int i = 0; i < replicas(); ++i) {
    EXPECT_LE(Metric(i, kWrites, "result=\"refused\""), 0);
  }
}

TEST_F(FleetDataTest, KilledConnectionsComeBack) {
  ASSERT_NO_FATAL_FAILURE(Start(2, server_.url()));
  EXPECT_TRUE(AllShare());
  Load load(this);
  for (int i = 0; i < 10; ++i) {
    server_.Cli({"CLIENT", "KILL", "TYPE", "normal"});
    load.Await(10);
  }
  MeasureMisses("CLIENT KILL");
  EXPECT_TRUE(AllShare());
}

TEST_F(FleetDataTest, ARestartWithoutDataIsAMissAndAPurgeIsNotForgotten) {
  ASSERT_NO_FATAL_FAILURE(Start(2, server_.url(), kPatient));
  EXPECT_TRUE(AllShare());
  Load load(this);
  load.Await(50);
  EXPECT_EQ(Purge(0, {"--all"}).code, 0);
  server_.Restart();
  MeasureMisses("a restart without data");
  EXPECT_TRUE(AllShare());
  ExpectAStarterLearns(&load);
  EXPECT_TRUE(Eventually([&] { return Values() > 1; }));
}

}  // namespace
}  // namespace fncache::testing
