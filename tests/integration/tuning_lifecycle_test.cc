// SPDX-License-Identifier: Apache-2.0
// Tuning across restarts, purges and reloads, behind another daemon, and under
// load.
#include <sys/mount.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/common/eventually.h"
#include "tests/integration/tuning_testing.h"

namespace fncache::testing {
namespace {

namespace fs = std::filesystem;

Reply Tier(const Request& request) {
  return Text(Composite(request), {"spec", "tier"});
}
Reply Sync(const Request& request) {
  return Text(Resource(request, "a"), {"status", "atProvider", "lastSync"});
}

class TuningLifecycleTest : public TuningTest {
 protected:
  double Metric(const std::string& name) const {
    return Sample(Get("/metrics"), name);
  }
  // Ticks until an entry answers across drift. The result has the request with
  // which that entry was filled.
  Request Prove() {
    Request filled;
    EXPECT_TRUE(TickUntil([&](const Got& got) {
      if (!got.hit()) filled = cluster_.Make();
      return got.across();
    }));
    return filled;
  }
};

TEST_F(TuningLifecycleTest, AKilledDaemonHitsAtOnceButNotAcrossDrift) {
  const std::string disk = absl::StrCat("generation: g\ncache: {dir: \"",
                                        dir_.File("cache"), "\"}\n");
  StartProcess(Tier, disk);
  std::map<std::string, Request> filled;
  for (int i = 0; i < 5; ++i) {
    cluster_.name = absl::StrCat("logs-", i);
    filled[cluster_.name] = Prove();
  }
  // The last fill of each is on disk: this entry came after all of them.
  ASSERT_TRUE(Eventually(
      [&] { return Metric("fncache_tier_entries{tier=\"disk\"}") == 5; }));
  cluster_.name = "last";
  CallOnce();
  ASSERT_TRUE(Eventually(
      [&] { return Metric("fncache_tier_entries{tier=\"disk\"}") == 6; }));
  process_->Signal(SIGKILL);
  EXPECT_EQ(process_->Wait(), 128 + SIGKILL);
  RestartProcess("tune: on\ntune_share: 1\n" + disk);
  const int questions = function_->questions();
  for (const auto& [name, request] : filled) {
    const Got own = Call(request);
    EXPECT_TRUE(own.hit() && !own.across()) << name << ": " << own.cache;
  }
  for (const auto& [name, request] : filled) {
    cluster_.name = name;
    const int before = function_->questions();
    // The entry on disk, and two repeats.
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(function_->questions(), before);
      cluster_.Tick();
      EXPECT_EQ(CallAndWait().why(), "unproven");
    }
    EXPECT_TRUE(TickUntil(IsAcross));
    EXPECT_EQ(function_->questions(), before + 4);
  }
  EXPECT_EQ(function_->questions(), questions + 20);
  EXPECT_EQ(wrong_, 0);
}

// A purge or a reload ends a proof, whichever question is being answered.
TEST_F(TuningLifecycleTest, WhatIsForgottenDuringAQuestionIsNotProven) {
  const std::string on = "tune: on\ntune_share: 1\nstale_if_error: 10m\n";
  Start(Tier);
  Reload(on);
  using proxy::PurgeOrder;
  using Kind = cache::store::Bans::Kind;
  const auto purge = [&](Kind what, bool soft) {
    PurgeOrder order;
    order.what = what;
    order.soft = soft;
    if (what == Kind::kKey) {
      proxy::LookUpOrder of;
      of.request = cluster_.Make().SerializeAsString();
      const auto key = daemon_->KeyOf(of);
      ASSERT_TRUE(key.ok()) << key.status();
      order.key = *key;
    } else if (what == Kind::kFunction) {
      order.function = "function";
    }
    const auto result = daemon_->Purge(order);
    ASSERT_TRUE(result.ok()) << result.status();
  };
  int reloads = 0;
  const std::vector<std::pair<std::string, std::function<void()>>> events = {
      {"purge of the key", [&] { purge(Kind::kKey, false); }},
      {"soft purge of the key", [&] { purge(Kind::kKey, true); }},
      {"purge of the function", [&] { purge(Kind::kFunction, false); }},
      {"soft purge of the function", [&] { purge(Kind::kFunction, true); }},
      {"reload",
       [&] {
         Reload(absl::StrCat(on, "max_released: ", 10 + ++reloads, "\n"));
       }},
      {"tune: off", [&] { Reload("tune: off\n"); }},
      {"tune_share: 0", [&] { Reload("tune: on\ntune_share: 0\n"); }},
  };
  int names = 0;
  for (const auto& [what, event] : events) {
    for (int question = 1; question <= 4; ++question) {
      SCOPED_TRACE(absl::StrCat(what, " during question ", question));
      cluster_.name = absl::StrCat("logs-", ++names);
      const int before = function_->questions();
      const int hits = hits_;
      function_->HoldQuestions();
      for (int i = 0; i < 3; ++i) {
        cluster_.Tick();
        EXPECT_FALSE(CallOnce().hit());
      }
      for (int i = 1; i <= question; ++i) {
        if (i > 1) function_->Step();
        ASSERT_TRUE(Eventually([&] {
          return function_->held() == 1 && function_->questions() == before + i;
        }));
      }
      event();
      cluster_.Tick();
      const Got during = CallOnce();
      EXPECT_FALSE(during.across()) << during.cache;
      function_->Release();
      WaitUntilQuiet();
      EXPECT_EQ(function_->questions(), before + question);
      cluster_.Tick();
      EXPECT_FALSE(CallAndWait().across()) << "that proof must not count";
      EXPECT_EQ(hits_, hits);
      Reload(on);
      EXPECT_TRUE(TickUntil(IsAcross)) << "it is proven later";
    }
  }
  EXPECT_EQ(wrong_, 0);
}

TEST_F(TuningLifecycleTest, APurgeEndsAProofThatCounted) {
  Start(Tier, "stale_if_error: 10m\n");
  for (const bool soft : {false, true}) {
    for (const std::string what : {"key", "function", "all"}) {
      SCOPED_TRACE(absl::StrCat(soft ? "soft " : "", what));
      ASSERT_TRUE(TickUntil(IsAcross));
      proxy::PurgeOrder order;
      order.soft = soft;
      if (what == "key") {
        proxy::LookUpOrder of;
        of.request = cluster_.Make().SerializeAsString();
        order.key = *daemon_->KeyOf(of);
      } else {
        order.what = cache::store::Bans::Kind::kFunction;
        order.function = what == "function" ? "function" : "";
      }
      ASSERT_TRUE(daemon_->Purge(order).ok());
      for (int i = 0; i < 2; ++i) {
        cluster_.Tick();
        EXPECT_FALSE(CallOnce().hit());
      }
    }
  }
  EXPECT_EQ(wrong_, 0);
}

// A purge of a key leaves what its step reads; a purge of the function does
// not.
TEST_F(TuningLifecycleTest, APurgeOfTheFunctionForgetsWhatItReads) {
  Start(Sync);
  const auto is_read = [](const Got& got) { return got.why() == "read"; };
  ASSERT_TRUE(TickUntil(is_read));
  proxy::PurgeOrder order;
  order.what = cache::store::Bans::Kind::kFunction;
  order.function = "function";
  ASSERT_TRUE(daemon_->Purge(order).ok());
  const int questions = function_->questions();
  cluster_.Tick();
  CallAndWait();
  cluster_.Tick();
  EXPECT_EQ(CallAndWait().why(), "unproven");
  EXPECT_TRUE(TickUntil(is_read));
  EXPECT_GT(function_->questions(), questions);
}

TEST_F(TuningLifecycleTest, OffFindsItsOldEntriesAndOnItsOwn) {
  Start(Tier);
  Reload("tune: off\n");
  const Request off = cluster_.Make();
  EXPECT_FALSE(Call(off).hit());
  Reload("tune: on\ntune_share: 1\n");
  EXPECT_FALSE(Call(off).hit());
  const Request on = Prove();
  Reload("tune: off\n");
  EXPECT_TRUE(Call(off).hit());
  cluster_.Tick();
  EXPECT_FALSE(CallOnce().hit()) << "nothing answers across drift";
  Reload("tune: on\ntune_share: 1\n");
  const Got own = Call(on);
  EXPECT_TRUE(own.hit() && !own.across());
  cluster_.Tick();
  EXPECT_TRUE(CallOnce().across()) << "the proof still counts";
}

TEST_F(TuningLifecycleTest, AProofCountsForAnHourAndNotBeyondTheLifetime) {
  Start([](const Request& request) {
    Reply reply = Tier(request);
    reply.ttl = 24 * 3600;
    return reply;
  });
  Prove();
  clock_.Advance(absl::Minutes(59));
  cluster_.Tick();
  EXPECT_TRUE(CallOnce().across());
  clock_.Advance(absl::Minutes(2));
  cluster_.Tick();
  EXPECT_EQ(CallOnce().why(), "old");
  cluster_.Tick();
  EXPECT_TRUE(CallOnce().across()) << "the same answer keeps the proof";
  const int questions = function_->questions();
  // After a day the proof is too old, though its entry is not.
  for (int hour = 0; hour < 24; ++hour) {
    clock_.Advance(absl::Hours(1) + absl::Seconds(1));
    cluster_.Tick();
    EXPECT_FALSE(CallAndWait().hit());
  }
  EXPECT_EQ(function_->questions(), questions + 4);
}

TEST_F(TuningLifecycleTest, CallsThatAvoidTheCacheCauseNoQuestions) {
  Start(Tier);
  for (const std::string name : {"authorization", "cache-control"}) {
    for (int i = 0; i < 6; ++i) {
      cluster_.Tick();
      const Got got = Call(cluster_.Make(), {{name, "no-store"}});
      EXPECT_FALSE(got.hit());
      WaitUntilQuiet();
    }
  }
  // Those calls themselves count as questions here, because of their metadata.
  EXPECT_EQ(function_->runs(), 12);
  Prove();
  const int runs = function_->runs();
  for (const std::string value : {"no-store", "no-cache"}) {
    cluster_.Tick();
    EXPECT_FALSE(Call(cluster_.Make(), {{"cache-control", value}}).hit());
    WaitUntilQuiet();
  }
  cluster_.Tick();
  EXPECT_FALSE(Call(cluster_.Make(), {{"authorization", "me"}}).hit());
  WaitUntilQuiet();
  EXPECT_EQ(function_->runs(), runs + 3);
  cluster_.Tick();
  EXPECT_TRUE(CallOnce().across()) << "the proof still counts";
  EXPECT_EQ(wrong_, 0);
}

TEST_F(TuningLifecycleTest, AGracefulStopDoesNotWaitForAQuestion) {
  StartProcess(Tier);
  function_->HoldQuestions();
  for (int i = 0; i < 3; ++i) {
    cluster_.Tick();
    CallOnce();
  }
  ASSERT_TRUE(Eventually([&] { return function_->held() == 1; }));
  process_->Signal(SIGTERM);
  EXPECT_EQ(process_->Wait(), 0) << process_->Stderr();
  EXPECT_EQ(function_->held(), 1) << "the question has two minutes";
}

// Callers of one drift wait for a flight, while a later call fills the key.
TEST_F(TuningLifecycleTest, ALaterFillOfOtherDriftIsNotForThoseThatWait) {
  const Request first = cluster_.Make();
  const std::string first_sync = Sync(first).text;
  std::atomic<bool> goes_on{false};
  const StopsFunction stops{this};
  Start([&](const Request& request) {
    const Reply reply = Sync(request);
    if (reply.text == first_sync) {
      EXPECT_TRUE(Eventually([&] { return goes_on.load(); }));
    }
    return reply;
  });
  expected_ = Sync;
  std::vector<std::thread> callers;
  std::atomic<int> right{0};
  for (int i = 0; i < 3; ++i) {
    callers.emplace_back([&, stub = Stub().release()] {
      const std::unique_ptr<fn::FunctionRunnerService::Stub> own(stub);
      grpc::ClientContext context;
      context.set_deadline(absl::ToChronoTime(absl::Now() + kPatience));
      Response response;
      EXPECT_TRUE(own->RunFunction(&context, first, &response).ok());
      right += Text(response.desired().resources().at("bucket").resource(),
                    {"spec", "text"}) == first_sync;
    });
  }
  ASSERT_TRUE(Eventually([&] {
    return Metric(
               "fncache_collapsed_callers_waiting{function_name=\"function"
               "\"}") == 2;
  }));
  for (int i = 0; i < 3; ++i) {
    cluster_.Tick();
    EXPECT_FALSE(CallOnce().hit());
  }
  goes_on = true;
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(right, 3);
  // The callers that waited called the function later than all others.
  EXPECT_TRUE(Call(first).hit());
  EXPECT_FALSE(CallOnce().hit());
  EXPECT_EQ(wrong_, 0);
}

// Drift that a mask covers is masked, and is no drift any more.
TEST_F(TuningLifecycleTest, MasksApplyFirst) {
  Start(Tier);
  const std::string resource = "observed.resources.*.resource.";
  for (const std::string& mask :
       {resource + "metadata.managedFields.*.time",
        resource + "metadata.managedFields.*.manager",
        resource + "status.conditions.*.lastTransitionTime",
        resource + "status.atProvider", std::string("@versions"),
        std::string("@times")}) {
    SCOPED_TRACE(mask);
    Reload(absl::StrCat("tune: on\ntune_share: 1\nmask: [\"", mask, "\"]\n"));
    ASSERT_TRUE(TickUntil(IsAcross));
    ++cluster_.versions;
    const Got versions = CallOnce();
    EXPECT_TRUE(versions.hit());
    cluster_.Tick();
    ++cluster_.transition;
    const bool masked =
        mask == "@times" || absl::EndsWith(mask, "TransitionTime");
    const Got moved = CallAndWait();
    EXPECT_EQ(moved.across(), masked) << moved.cache;
    EXPECT_EQ(moved.why(), masked ? "" : "moved status lastTransitionTime");
  }
  EXPECT_EQ(wrong_, 0);
}

TEST_F(TuningLifecycleTest, AChainOfDaemonsIsNeverWrong) {
  for (const std::string which : {"A", "B"}) {
    cluster_ = Cluster();
    cluster_.input = which;
    StartProcess([](const Request& request) {
      const bool reads = Text(request.input(), {"which"}) == "B";
      return reads ? Sync(request) : Tier(request);
    });  // the one nearer to the function
    const std::string file = dir_.File("outer.yaml");
    WriteFile(file, absl::StrCat("insecure: true\nlisten: \"127.0.0.1:0\"\n"
                                 "upstream: \"",
                                 process_->Listening()[0],
                                 "\"\nadmin: \"127.0.0.1:0\"\ndrain: 1s\n"
                                 "tune: on\ntune_share: 1\n"));
    const std::unique_ptr<Process> inner = std::move(process_);
    process_ = std::make_unique<Process>(std::vector<std::string>{
        "serve", "--config", file, "--admin-socket", dir_.File("outer.sock")});
    ASSERT_TRUE(process_->WaitForStderr("(admin:")) << process_->Stderr();
    stub_ = Stub();
    for (int i = 0; i < 60; ++i) {
      cluster_.Tick();
      CallAndWait();
    }
    EXPECT_EQ(wrong_, 0);
    const int runs = function_->runs() - function_->questions();
    if (Text(cluster_.Make().input(), {"which"}) == "A") {
      EXPECT_LT(runs, 60) << "the inner one answers across drift";
    } else {
      EXPECT_EQ(runs, 60);
    }
    process_ = nullptr;
  }
}

TEST_F(TuningLifecycleTest, AStormOfDriftLeavesOthersProven) {
  std::atomic<int> runs{0};
  const StopsFunction stops{this};
  Start([&](const Request& request) -> Reply {
    // C answers otherwise each time, and B reads what drifts.
    const std::string which = Text(request.input(), {"which"});
    if (which == "C") return absl::StrCat(++runs);
    if (which == "B") return Version(Composite(request));
    return Tier(request);
  });
  std::atomic<bool> over{false};
  std::atomic<int> drifts{0};
  std::vector<std::thread> storms;
  for (const std::string which : {"A", "B", "C"}) {
    storms.emplace_back([&, which, stub = Stub().release()] {
      const std::unique_ptr<fn::FunctionRunnerService::Stub> own(stub);
      Cluster storm;
      storm.name = "storm";
      storm.input = which;
      while (!over) {
        storm.Tick();
        clock_.Advance(absl::Microseconds(1));
        const Request request = storm.Make();
        grpc::ClientContext context;
        context.set_deadline(absl::ToChronoTime(absl::Now() + kPatience));
        Response response;
        const bool ok = own->RunFunction(&context, request, &response).ok();
        const std::string text =
            Text(response.desired().resources().at("bucket").resource(),
                 {"spec", "text"});
        if (which == "A") {
          EXPECT_EQ(text, "silver");
        } else if (which == "B") {
          EXPECT_EQ(text, Version(Composite(request)));
        }
        EXPECT_TRUE(ok);
        ++drifts;
      }
    });
  }
  for (int i = 0; i < 20; ++i) {
    cluster_.name = absl::StrCat("logs-", i);
    EXPECT_TRUE(Eventually([&] {
      cluster_.Tick();
      return CallOnce().across();
    })) << cluster_.name;
  }
  EXPECT_TRUE(Eventually([&] { return drifts > 3000; }));
  over = true;
  for (std::thread& storm : storms) storm.join();
  EXPECT_EQ(Metric("fncache_tier_entries{tier=\"memory\"}"), 23)
      << "each key has one entry";
  EXPECT_EQ(wrong_, 0);
}

// A disk without space costs fills there, and no answer is wrong.
TEST_F(TuningLifecycleTest, AFullDiskCostsNoProof) {
  const std::string mounted = dir_.File("small");
  ASSERT_TRUE(fs::create_directory(mounted));
  if (mount("none", mounted.c_str(), "tmpfs", 0, "size=16m") != 0) {
    GTEST_SKIP() << "may not mount here: " << strerror(errno);
  }
  StartProcess(Tier, absl::StrCat("generation: g\ncache: {dir: \"", mounted,
                                  "/cache\", disk: 64MiB}\n"));
  {
    std::ofstream filler(mounted + "/filler", std::ios::binary);
    const std::string block(1 << 16, 'x');
    while (filler.write(block.data(), block.size()).flush()) {
    }
  }
  for (int i = 0; i < 10; ++i) {
    cluster_.name = absl::StrCat("logs-", i);
    EXPECT_TRUE(TickUntil(IsAcross));
  }
  EXPECT_EQ(wrong_, 0);
  process_->Signal(SIGKILL);
  process_->Wait();
  fs::remove(mounted + "/filler");
  RestartProcess(
      absl::StrCat("tune: on\ntune_share: 1\ngeneration: g\n"
                   "cache: {dir: \"",
                   mounted, "/cache\", disk: 64MiB}\n"));
  for (int i = 0; i < 10; ++i) {
    cluster_.name = absl::StrCat("logs-", i);
    cluster_.Tick();
    EXPECT_FALSE(CallOnce().across());
  }
  EXPECT_EQ(wrong_, 0);
  process_ = nullptr;
  EXPECT_EQ(umount2(mounted.c_str(), MNT_DETACH), 0);
}

}  // namespace
}  // namespace fncache::testing
