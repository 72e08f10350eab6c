// SPDX-License-Identifier: Apache-2.0
// Purges in a fleet under load: 2 s after the answer no replica serves what was
// purged. Every answer of the load is checked for that.
#include <csignal>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/common/eventually.h"
#include "tests/integration/fleet_testing.h"
#include "tests/integration/relay.h"

namespace fncache::testing {
namespace {

using FleetShortCutTest = FleetTest;

// The parameter is the kind of a purge.
class FleetPurgeTest : public FleetTest,
                       public ::testing::WithParamInterface<const char*> {
 protected:
  static constexpr char kOne[] = "load-3";

  // Replicas with a network of their own to the server.
  void StartOne() {
    networks_.push_back(std::make_unique<Relay>(server_.port()));
    ReplicaOptions options;
    options.url = networks_.back()->url();
    options.shared = kPatient;
    options.more = "stale_while_revalidate: 1m\n";
    ASSERT_NO_FATAL_FAILURE(StartReplica(options));
  }
  // The purge of the parameter, on replica 0. It covers at least `name`.
  void PurgeIt(const std::string& name, std::set<int> exempt) {
    const std::string kind = GetParam();
    Purged purged;
    purged.exempt = std::move(exempt);
    std::vector<std::string> arguments = {"--all"};
    if (kind == "Key") {
      purged.name = name;
      arguments = {"--key", KeyOf(name)};
    } else if (kind != "All") {
      arguments = {"--function", "function"};
    }
    if (kind == "Generation") {
      arguments.insert(arguments.end(), {"--generation", "v1"});
    } else if (kind == "Soft") {
      purged.soft = true;
      arguments.push_back("--soft");
    }
    const Ended purge = Purge(0, arguments, purged);
    EXPECT_EQ(purge.code, 0) << purge.out << purge.err;
  }
  void Report(const std::string& what) {
    const double seconds = absl::ToDoubleSeconds(LastOld());
    RecordProperty("last_old_answer_s", absl::StrCat(seconds));
    std::printf(
        "purge %s, %s: the last call with an older answer began %.3f s "
        "after the purge's answer\n",
        GetParam(), what.c_str(), seconds);
  }

  RedisServer server_{Tcp()};
  std::vector<std::unique_ptr<Relay>> networks_;
};

TEST_P(FleetPurgeTest, IsInForceEverywhereTwoSecondsAfterItsAnswer) {
  for (int i = 0; i < 3; ++i) ASSERT_NO_FATAL_FAILURE(StartOne());
  EXPECT_TRUE(AllShare());
  Load load(this, 3);
  load.Await(150);
  PurgeIt(kOne, {});
  AwaitPurge();
  load.Await(150);
  load.Stop();
  Report("all well");
}

// Replicas 1 and 2 ask the function before the purge, and get its answers after
// it. Replica 2 is cut off when the purge comes, replica 3 is stopped, replica
// 4 starts then.
TEST_P(FleetPurgeTest, IsInForceWhereItCouldNotBeLearnedAtOnce) {
  for (int i = 0; i < 4; ++i) ASSERT_NO_FATAL_FAILURE(StartOne());
  EXPECT_TRUE(AllShare());
  const std::vector<Wanted> older = {{"older-1", 1}, {"older-2", 1}};
  // So that their keys are known, and their entries past their time.
  for (const Wanted& wanted : older) Call(0, wanted);
  Load load(this, 3);
  load.Await(200);
  absl::SleepFor(absl::Seconds(1));
  std::vector<std::thread> callers;
  for (int i = 1; i <= 2; ++i) {
    function_->Hold(older[i - 1].name);
    callers.emplace_back([this, i, &older] { Call(i, older[i - 1]); });
    EXPECT_TRUE(Eventually([&] { return function_->held() == i; }));
  }
  networks_[2]->Cut();
  EXPECT_TRUE(TierOf(2, false));
  replica(3).away = true;
  replica(3).process->Signal(SIGSTOP);
  for (const std::string name : {kOne, "older-1", "older-2"}) {
    PurgeIt(name, {2, 3});
    if (GetParam() != std::string("Key")) break;
  }
  ASSERT_NO_FATAL_FAILURE(StartOne());
  AwaitPurge();
  function_->Release();
  for (std::thread& caller : callers) caller.join();
  load.Await(100);

  networks_[2]->Heal();
  EXPECT_TRUE(TierOf(2, true));
  replica(3).process->Signal(SIGCONT);
  replica(3).away = false;
  // Both read the record within 10 s, so they may believe for another second
  // that they know all purges.
  EndExemption(2, absl::Seconds(2));
  EndExemption(3, absl::Seconds(2));
  load.Await(100);
  absl::SleepFor(absl::Seconds(2));
  for (const Wanted& wanted : older) {
    for (int i = 0; i < replicas(); ++i) Call(i, wanted);
  }
  load.Await(150);
  EXPECT_TRUE(AllShare());
  load.Stop();
  Report("replicas away");
}

// The cut is shorter than the 10 s for which a replica believes a record.
TEST_F(FleetShortCutTest, NothingThatWasPurgedMeanwhileIsReadFromTheServer) {
  RedisServer server(Tcp());
  ASSERT_NO_FATAL_FAILURE(Start(1, server.url(), kPatient));
  Relay network(server.port());
  ReplicaOptions options;
  options.url = network.url();
  options.shared = kPatient;
  ASSERT_NO_FATAL_FAILURE(StartReplica(options));
  EXPECT_TRUE(AllShare());
  for (const bool hangs : {false, true}) {
    std::vector<std::string> names;
    for (int i = 0; i < 40; ++i) names.push_back(Filled(0));
    hangs ? network.Hang() : network.Cut();
    EXPECT_EQ(Purge(0, {"--all"}).code, 0);
    AwaitPurge();
    EXPECT_TRUE(TierOf(1, false));
    network.Heal();
    EXPECT_TRUE(TierOf(1, true));
    // At once. Its memory has none of them.
    for (const std::string& name : names) Call(1, name);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, FleetPurgeTest,
                         ::testing::Values("Key", "Generation", "Function",
                                           "All", "Soft"),
                         [](const auto& kind) { return kind.param; });

}  // namespace
}  // namespace fncache::testing
