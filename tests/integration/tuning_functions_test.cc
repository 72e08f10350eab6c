// SPDX-License-Identifier: Apache-2.0
// Functions that read what a cache may not expect. Each lives through the same
// events, and each answer is compared with the function's answer to that very
// request. Each function gets the verdict of its row.
#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "gtest/gtest.h"
#include "tests/integration/tuning_testing.h"

namespace fncache::testing {
namespace {

// The clock of functions that have one, in seconds of TimeText.
std::atomic<int64_t> function_clock{0};

std::string Sync(const Request& request, const std::string& name) {
  return Text(Resource(request, name), {"status", "atProvider", "lastSync"});
}
int64_t SyncSeconds(const Request& request, const std::string& name) {
  return SecondsOf(Sync(request, name));
}
const pb::Struct& Ready(const Request& request) {
  return Find(Resource(request, "a"), {"status", "conditions"})
      ->list_value()
      .values(0)
      .struct_value();
}
std::string Transition(const Request& request) {
  return Text(Ready(request), {"lastTransitionTime"});
}
std::string CronTime(const Request& request, const std::string& field) {
  return Text(Resource(request, "cron"), {"status", field});
}
std::string Manager(const Request& request) {
  return Text(Find(Resource(request, "a"), {"metadata", "managedFields"})
                  ->list_value()
                  .values(0)
                  .struct_value(),
              {"manager"});
}

// The same for equal messages.
std::string Bytes(const google::protobuf::Message& message) {
  std::string bytes;
  {
    pb::io::StringOutputStream stream(&bytes);
    pb::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    message.SerializeToCodedStream(&coded);
  }
  return bytes;
}

enum class Verdict {
  kProven,
  kTimes,  // reads times, and hits across versions alone
  kAll,    // reads versions
  kMoves,  // proven, and called when `move` changes drift
  kOther,  // proven, and `move` makes another key
};

struct Row {
  const char* name;
  Verdict verdict;
  Behaviour behaviour;
  void (*move)(Cluster*) = nullptr;
  const char* why = "";    // how the call after `move` missed
  bool remembers = false;  // answers by tag
};

class TuningFunctionTest : public TuningTest,
                           public ::testing::WithParamInterface<Row> {
 protected:
  void Live(int times) {
    for (int i = 0; i < times; ++i) {
      cluster_.Tick();
      CallAndWait();
    }
    for (int i = 0; i < 3; ++i) {
      ++cluster_.versions;
      CallAndWait();
    }
  }

  // The events of a composite. Each of these calls is compared.
  void LiveThroughEvents() {
    cluster_.phase = "Pending";
    Live(4);
    cluster_.phase = "Active";
    Live(4);
    cluster_.available = 1;
    Live(4);
    cluster_.available = 3;
    Live(4);
    ++cluster_.generation;
    Live(3);
    cluster_.observed_generation = cluster_.generation;
    Live(3);
    cluster_.ready = "False";
    cluster_.transition = 60 * cluster_.beats;
    function_clock = cluster_.transition + 1;
    Live(4);
    cluster_.ready = "True";
    cluster_.transition = 60 * cluster_.beats;
    function_clock = cluster_.transition + 1;
    Live(4);
    function_clock = cluster_.transition + 6;
    Live(4);
    // A flap that no request showed.
    cluster_.transition = 60 * cluster_.beats;
    function_clock = cluster_.transition + 1;
    Live(4);
    function_clock = cluster_.transition + 6;
    Live(2);
    for (const int lead : {-10, 0, -10, 10}) {
      cluster_.lead = lead;
      Live(4);
    }
    for (const int success : {-60, 0, 5}) {
      cluster_.success = success;
      Live(4);
    }
    cluster_.manager = "kubectl-edit";
    Live(3);
    cluster_.manager = "provider";
    Live(3);
    cluster_.finished.set_string_value(TimeText(0));
    Live(4);
    cluster_.finished.set_string_value("never");
    Live(2);
    cluster_.finished.set_string_value("");
    Live(2);
    cluster_.finished.set_number_value(0);
    Live(2);
    cluster_.finished.set_null_value(pb::NULL_VALUE);
    Live(2);
    cluster_.finished.clear_kind();
    Live(2);
    cluster_.tier = "gold";
    Live(4);
    cluster_.color = "red";
    Live(4);
  }
};

TEST_P(TuningFunctionTest, GetsTheVerdictOfItsRow) {
  const Row& row = GetParam();
  function_clock = 100;
  Behaviour behaviour = row.behaviour;
  if (row.remembers) {
    expected_ = row.behaviour;
    struct Memory {
      Mutex mutex;
      std::map<std::string, Reply> replies;
    };
    behaviour = [memory = std::make_shared<Memory>(),
                 &row](const Request& request) {
      MutexLock lock(&memory->mutex);
      return memory->replies
          .emplace(request.meta().tag(), row.behaviour(request))
          .first->second;
    };
  }
  Start(behaviour);
  std::string verdict;
  const bool reads =
      row.verdict == Verdict::kTimes || row.verdict == Verdict::kAll;
  if (!reads) {
    ASSERT_TRUE(TickUntil(IsAcross)) << "it was not proven";
    EXPECT_EQ(function_->questions(), 4);
    verdict = "proven";
  } else {
    ASSERT_TRUE(TickUntil([](const Got& got) { return got.why() == "read"; }))
        << "it was not found to read drift";
    EXPECT_EQ(hits_, 0);
    const bool across_versions = TickVersionsUntil([&](const Got& got) {
      return got.across() ||
             (row.verdict == Verdict::kAll && got.why() == "read");
    });
    EXPECT_TRUE(across_versions);
    EXPECT_EQ(hits_, row.verdict == Verdict::kTimes ? 1 : 0);
    verdict = row.verdict == Verdict::kTimes ? "read: times" : "read: all";
  }
  if (row.move != nullptr) {
    for (int i = 0; i < 3; ++i) {
      row.move(&cluster_);
      cluster_.Tick();
      const Got got = CallAndWait();
      EXPECT_FALSE(got.hit()) << got.cache;
      if (i == 0) {
        EXPECT_EQ(got.why(), row.why) << got.cache;
      }
    }
    absl::StrAppend(&verdict, ", called when it moves");
  }
  if (row.verdict != Verdict::kMoves) {
    LiveThroughEvents();
    LiveThroughEvents();
  }
  if (row.verdict == Verdict::kTimes) {
    EXPECT_EQ(hits_of_times_, 0);
    EXPECT_GT(hits_, 10) << "across versions alone";
  } else if (row.verdict == Verdict::kAll) {
    EXPECT_EQ(hits_, 0);
  }
  EXPECT_EQ(wrong_, 0);
  Report(row.name, verdict);
}

void SetFinished(Cluster* cluster) {
  static constexpr int kKinds = 3;
  static int next = 0;
  switch (next++ % kKinds) {
    case 0:
      return cluster->finished.set_string_value(TimeText(0));
    case 1:
      return cluster->finished.set_string_value("never");
    default:
      return cluster->finished.set_null_value(pb::NULL_VALUE);
  }
}

Reply BothOrders(const Request& request) {
  return Sync(request, "a") < Sync(request, "b") &&
         CronTime(request, "lastScheduleTime") <
             CronTime(request, "lastSuccessfulTime");
}

// While one of two orders is met, only a random order that meets both shows
// that they matter: half of the proofs do not find it. Then answers are late as
// long as the entry answers, and no longer.
TEST_F(TuningTest, TwoOrdersMayBeProvenWhileOneIsMet) {
  may_be_wrong_ = true;
  Start(BothOrders);
  cluster_.success = -60;
  bool proven = false;
  for (int i = 0; i < 40 && !proven; ++i) {
    proxy::PurgeOrder order;  // forgets that the step reads
    order.what = cache::store::Bans::Kind::kFunction;
    order.function = "function";
    ASSERT_TRUE(daemon_->Purge(order).ok());
    ASSERT_TRUE(TickUntil([&](const Got& got) {
      proven = got.across();
      return proven || got.why() == "read";
    }));
  }
  ASSERT_TRUE(proven);
  EXPECT_EQ(wrong_, 0);
  cluster_.success = 5;
  cluster_.Tick();
  EXPECT_TRUE(CallAndWait().across());
  EXPECT_EQ(wrong_, 1);
  clock_.Advance(absl::Minutes(61));
  cluster_.Tick();
  EXPECT_FALSE(CallAndWait().hit());
  cluster_.Tick();
  EXPECT_TRUE(TickUntil([](const Got& got) { return got.why() == "read"; }));
  EXPECT_EQ(wrong_, 1);
  Report("both, one met", "late, then read: times");
}

INSTANTIATE_TEST_SUITE_P(
    Functions, TuningFunctionTest,
    ::testing::Values(
        Row{"plain", Verdict::kProven,
            [](const Request& request) -> Reply {
              return Text(Composite(request), {"spec", "tier"});
            }},
        Row{"conditions", Verdict::kProven,
            [](const Request& request) -> Reply {
              return Text(Ready(request), {"status"}) == "True";
            }},
        Row{"required", Verdict::kProven,
            [](const Request& request) -> Reply {
              return Text(Required(request), {"data", "color"});
            }},
        Row{"words", Verdict::kProven,
            [](const Request& request) -> Reply {
              return Text(Resource(request, "a"), {"status", "phase"}) ==
                     "Active";
            }},
        Row{"numbers", Verdict::kProven,
            [](const Request& request) -> Reply {
              const pb::Struct& a = Resource(request, "a");
              return Number(a, {"status", "replicas"}) ==
                     Number(a, {"status", "availableReplicas"});
            }},
        Row{"gate", Verdict::kProven,
            [](const Request& request) -> Reply {
              const pb::Struct& a = Resource(request, "a");
              const double observed =
                  Number(a, {"status", "observedGeneration"});
              return observed >= 0 &&
                     observed == Number(a, {"metadata", "generation"});
            }},
        Row{"pass", Verdict::kTimes,
            [](const Request& request) -> Reply { return Sync(request, "a"); }},
        Row{"age", Verdict::kTimes,
            [](const Request& request) -> Reply {
              return Text(Ready(request), {"status"}) == "True" &&
                     function_clock - SecondsOf(Transition(request)) >= 5;
            }},
        Row{"order", Verdict::kTimes,
            [](const Request& request) -> Reply {
              return CronTime(request, "lastSuccessfulTime") >=
                     CronTime(request, "lastScheduleTime");
            }},
        Row{"equal", Verdict::kTimes,
            [](const Request& request) -> Reply {
              return Sync(request, "a") == Sync(request, "b");
            }},
        Row{"newest", Verdict::kTimes,
            [](const Request& request) -> Reply {
              return Sync(request, "a") > Sync(request, "b") ? "a" : "b";
            }},
        Row{"both", Verdict::kTimes, BothOrders},
        Row{"fatal", Verdict::kTimes,
            [](const Request& request) -> Reply {
              Reply reply("fresh");
              // A year before the epoch of these tests.
              reply.fatal = SyncSeconds(request, "a") < -31'536'000;
              if (reply.fatal) reply.text = "too old";
              return reply;
            }},
        Row{"ttl", Verdict::kTimes,
            [](const Request& request) -> Reply {
              Reply reply("constant");
              reply.ttl = 3600 + SyncSeconds(request, "a") % 7;
              return reply;
            }},
        Row{"memo", Verdict::kTimes,
            [](const Request& request) -> Reply { return Sync(request, "a"); },
            nullptr, "", /*remembers=*/true},
        Row{"rollout", Verdict::kAll,
            [](const Request& request) -> Reply {
              return Version(Required(request));
            }},
        Row{"digest", Verdict::kAll,
            [](const Request& request) -> Reply {
              return absl::StrCat(
                  std::hash<std::string>()(Bytes(request.observed())));
            }},
        Row{"manager", Verdict::kMoves,
            [](const Request& request) -> Reply {
              return Manager(request) == "kubectl-edit";
            },
            [](Cluster* cluster) {
              cluster->manager =
                  cluster->manager == "provider" ? "kubectl-edit" : "provider";
            },
            "moved metadata managedFields"},
        Row{"event", Verdict::kMoves,
            [](const Request& request) -> Reply {
              const int64_t at = SecondsOf(Transition(request));
              return at >= 500 && at < 1000;
            },
            [](Cluster* cluster) { cluster->transition += 500; },
            "moved status lastTransitionTime"},
        Row{"appears", Verdict::kOther,
            [](const Request& request) -> Reply {
              return Find(Resource(request, "a"), {"status", "finishedAt"}) !=
                     nullptr;
            },
            SetFinished},
        Row{"kind", Verdict::kOther,
            [](const Request& request) -> Reply {
              const pb::Value* const value =
                  Find(Resource(request, "a"), {"status", "finishedAt"});
              if (value == nullptr) return "absent";
              if (value->string_value().size() == 20) return "time";
              return value->ShortDebugString();
            },
            SetFinished}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace fncache::testing
