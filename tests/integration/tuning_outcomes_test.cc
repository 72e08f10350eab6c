// SPDX-License-Identifier: Apache-2.0
// Functions whose answers depend on more than the request, that fail, or that
// take their time; and the questions that reach them.
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/eventually.h"
#include "tests/integration/tuning_testing.h"

namespace fncache::testing {
namespace {

using ::testing::HasSubstr;

std::string Sync(const Request& request, const std::string& name) {
  return Text(Resource(request, name), {"status", "atProvider", "lastSync"});
}
Reply Tier(const Request& request) {
  return Text(Composite(request), {"spec", "tier"});
}
std::string TextOf(const Response& response) {
  return Text(response.desired().resources().at("bucket").resource(),
              {"spec", "text"});
}

class TuningOutcomeTest : public TuningTest {
 protected:
  // The step is asked nothing, whatever it is called with.
  void ExpectSilent(int calls) {
    const int questions = function_->questions();
    for (int i = 0; i < calls; ++i) {
      cluster_.Tick();
      EXPECT_EQ(CallAndWait().why(), "unproven");
    }
    EXPECT_EQ(function_->questions(), questions);
    EXPECT_EQ(hits_of_times_, 0);
  }
};

// Most composites do not show what the function reads.
TEST_F(TuningOutcomeTest, Gold) {
  Start([](const Request& request) -> Reply {
    if (Text(Composite(request), {"spec", "tier"}) != "gold") return "silver";
    return Sync(request, "a") < Sync(request, "b");
  });
  for (int i = 0; i < 60; ++i) {
    cluster_.name = absl::StrCat("silver-", i);
    ASSERT_TRUE(TickUntil(IsAcross)) << i;
    cluster_.Tick();
    EXPECT_TRUE(CallAndWait().across());
  }
  const int hits = hits_;
  cluster_.tier = "gold";
  for (const int lead : {10, -10, 10, -10, 0, 10}) {
    cluster_.lead = lead;
    for (int i = 0; i < 6; ++i) {
      cluster_.Tick();
      CallAndWait();
    }
  }
  EXPECT_EQ(hits_, hits);
  // From now on the step's other keys are not believed either.
  cluster_.name = "silver-0";
  cluster_.tier = "silver";
  cluster_.Tick();
  EXPECT_EQ(CallAndWait().why(), "read");
  EXPECT_EQ(wrong_, 0);
  Report("gold", "read: times, by gold alone");
}

TEST_F(TuningOutcomeTest, Two) {
  Start([](const Request& request) -> Reply {
    return Text(request.input(), {"which"}) == "A" ? Sync(request, "a") : "B";
  });
  cluster_.input = "B";
  ASSERT_TRUE(TickUntil(IsAcross));
  cluster_.input = "A";
  ASSERT_TRUE(TickUntil([](const Got& got) { return got.why() == "read"; }));
  cluster_.input = "B";
  for (int i = 0; i < 10; ++i) {
    cluster_.Tick();
    EXPECT_TRUE(CallAndWait().across());
  }
  cluster_.input = "A";
  cluster_.Tick();
  EXPECT_EQ(CallAndWait().why(), "read");
  EXPECT_EQ(wrong_, 0);
  Report("two", "A read: times, B proven");
}

// One answer of 20 differs.
TEST_F(TuningOutcomeTest, Flaky) {
  std::atomic<int> runs{0};
  const StopsFunction stops{this};
  Start([&](const Request&) -> Reply {
    return ++runs % 20 == 0 ? "other" : "usual";
  });
  accepts_ = [](const Request&, const Response& response) {
    return TextOf(response) == "usual" || TextOf(response) == "other";
  };
  // Until a question gets the other answer: then the request as it came and
  // that question get the usual one.
  bool silent = false;
  for (int i = 0; i < 20 && !silent; ++i) {
    cluster_.name = absl::StrCat("logs-", i);
    const int questions = function_->questions();
    for (int tick = 0; tick < 4; ++tick) {
      cluster_.Tick();
      CallAndWait();
    }
    silent = i > 0 && function_->questions() == questions;
  }
  ASSERT_TRUE(silent) << "it was not found to vary";
  const int hits = hits_;
  for (int i = 0; i < 4; ++i) {
    cluster_.name = absl::StrCat("more-", i);
    for (int tick = 0; tick < 5; ++tick) {
      cluster_.Tick();
      const Got got = CallAndWait();
      EXPECT_FALSE(got.across());
      EXPECT_NE(got.why(), "read");
    }
  }
  EXPECT_EQ(hits_, hits);
  clock_.Advance(absl::Minutes(11));
  cluster_.name = "later";
  EXPECT_TRUE(TickUntil(IsAcross)) << "it may be asked again";
  Report("flaky", "varies");
}

// Gives each of two answers `period` times.
TEST_F(TuningOutcomeTest, Alternating) {
  for (const int period : {1, 2, 3}) {
    SCOPED_TRACE(period);
    std::atomic<int> runs{0};
    if (daemon_ != nullptr) daemon_->Drain();
    daemon_ = nullptr;
    const StopsFunction stops{this};
    Start([&](const Request&) -> Reply {
      return (runs++ / period) % 2 == 0 ? "even" : "odd";
    });
    accepts_ = [](const Request&, const Response& response) {
      return TextOf(response) == "even" || TextOf(response) == "odd";
    };
    calls_ = hits_ = 0;
    for (int i = 0; i < 40; ++i) {
      cluster_.Tick();
      EXPECT_NE(CallAndWait().why(), "read");
    }
    EXPECT_EQ(hits_, 0);
    Report(absl::StrCat("alternating", period), "varies");
  }
}

// Answers by a file that changes. Time is simulated, so the file changes every
// third run.
TEST_F(TuningOutcomeTest, World) {
  std::atomic<int> runs{0};
  std::atomic<bool> changes{true};
  const StopsFunction stops{this};
  Start([&](const Request&) -> Reply {
    const int run = changes ? ++runs : runs.load();
    return absl::StrCat("world ", run / 3);
  });
  accepts_ = [&](const Request&, const Response& response) {
    // With each answer the file stays or has changed once since.
    return TextOf(response) == absl::StrCat("world ", runs / 3);
  };
  may_be_wrong_ = true;
  for (int i = 0; i < 20; ++i) {
    cluster_.Tick();
    EXPECT_NE(CallAndWait().why(), "read");
  }
  EXPECT_EQ(hits_, 0);
  may_be_wrong_ = false;
  wrong_ = 0;
  changes = false;
  CallAndWait();
  ExpectSilent(10);
  // Pauses double with each proof that varies.
  clock_.Advance(absl::Minutes(50));
  EXPECT_TRUE(TickUntil(IsAcross)) << "it is proven once the file stays";
  EXPECT_EQ(wrong_, 0);
  Report("world", "varies, then proven");
}

TEST_F(TuningOutcomeTest, Failing) {
  std::atomic<int> runs{0};
  const StopsFunction stops{this};
  Start([&](const Request& request) {
    Reply reply = Tier(request);
    if (++runs % 3 == 0) reply.code = grpc::StatusCode::RESOURCE_EXHAUSTED;
    return reply;
  });
  expected_ = Tier;
  int failed = 0;
  for (int i = 0; i < 60; ++i) {
    cluster_.Tick();
    const Got got = CallAndWait();
    failed += got.status.ok() ? 0 : 1;
    EXPECT_FALSE(got.across()) << "no proof has four answers";
    // Longer than any pause after an error.
    clock_.Advance(absl::Minutes(11));
  }
  // The first failure is a caller's. Then each proof has one.
  EXPECT_GE(failed, 1);
  EXPECT_GT(function_->questions(), 20);
  EXPECT_EQ(wrong_, 0);
  Report("failing", "unproven");
}

TEST_F(TuningOutcomeTest, Hanging) {
  Start(Tier);
  function_->HoldQuestions();
  for (int i = 0; i < 3; ++i) {
    cluster_.Tick();
    EXPECT_FALSE(CallOnce().hit());
  }
  ASSERT_TRUE(Eventually([&] { return function_->held() == 1; }));
  for (int i = 0; i < 10; ++i) {
    cluster_.Tick();
    EXPECT_EQ(CallOnce().why(), "unproven");
  }
  EXPECT_EQ(function_->held(), 1) << "questions follow one after the other";
  EXPECT_EQ(hits_, 0);
  function_->Release();
  WaitUntilQuiet();
  EXPECT_TRUE(TickUntil(IsAcross));
  EXPECT_EQ(wrong_, 0);
  Report("hanging", "proven, when it answered");
}

TEST_F(TuningOutcomeTest, Slow) {
  Start([](const Request& request) -> Reply { return Sync(request, "a"); });
  function_->HoldCalls();
  std::vector<std::thread> callers;
  std::vector<Got> got(6);
  std::atomic<int> wrong{0};
  // Two callers of each of three drifts.
  for (int i = 0; i < 6; ++i) {
    if (i % 2 == 0) cluster_.Tick();
    callers.emplace_back(
        [&, i, request = cluster_.Make(), stub = Stub().release()] {
          const std::unique_ptr<fn::FunctionRunnerService::Stub> own(stub);
          grpc::ClientContext context;
          context.set_deadline(absl::ToChronoTime(absl::Now() + kPatience));
          got[i].status = own->RunFunction(&context, request, &got[i].response);
          if (TextOf(got[i].response) != Sync(request, "a")) ++wrong;
        });
    // The callers of a drift come one after the other.
    const int drifts = i / 2 + 1;
    ASSERT_TRUE(Eventually([&] { return function_->held() == drifts; }));
  }
  ASSERT_TRUE(Eventually([&] {
    return absl::StrContains(
        Get("/metrics"),
        "fncache_collapsed_callers_waiting{function_name=\"function\"} 3");
  }));
  function_->Release();
  for (std::thread& caller : callers) caller.join();
  for (const Got& each : got) EXPECT_TRUE(each.status.ok());
  EXPECT_EQ(wrong, 0);
  WaitUntilQuiet();
  calls_ = 6;
  Report("slow", "own answers by drift");
}

// Times and versions keep their formats: digits become digits.
void ExpectSameFormats(const pb::Value& came, const pb::Value& asked,
                       const std::string& where) {
  ASSERT_EQ(came.kind_case(), asked.kind_case()) << where;
  if (came.has_struct_value()) {
    ASSERT_EQ(came.struct_value().fields_size(),
              asked.struct_value().fields_size());
    for (const auto& [key, value] : came.struct_value().fields()) {
      ASSERT_TRUE(asked.struct_value().fields().contains(key)) << key;
      ExpectSameFormats(value, asked.struct_value().fields().at(key),
                        where + "." + key);
    }
  } else if (came.has_list_value()) {
    ASSERT_EQ(came.list_value().values_size(),
              asked.list_value().values_size());
    for (int i = 0; i < came.list_value().values_size(); ++i) {
      ExpectSameFormats(came.list_value().values(i),
                        asked.list_value().values(i), where);
    }
  } else if (came.has_string_value()) {
    const auto shape = [](std::string text) {
      for (char& c : text) {
        if (absl::ascii_isdigit(c)) c = '0';
        if (absl::ascii_islower(c)) c = 'a';
      }
      return text;
    };
    EXPECT_EQ(shape(came.string_value()), shape(asked.string_value())) << where;
  } else {
    EXPECT_EQ(came.ShortDebugString(), asked.ShortDebugString()) << where;
  }
}

TEST_F(TuningOutcomeTest, Counting) {
  Start(Tier);
  function_->HoldQuestions();
  // Twenty composites become due at once. No question precedes or delays an
  // answer: each call ends while all questions hang.
  std::set<std::string> own_tags;
  for (int tick = 0; tick < 4; ++tick) {
    cluster_.Tick();
    for (int i = 0; i < 20; ++i) {
      cluster_.name = absl::StrCat("logs-", i);
      const Request request = cluster_.Make();
      own_tags.insert(request.meta().tag());
      EXPECT_FALSE(Call(request, {{"x-tenant", "blue"}}).hit());
    }
  }
  EXPECT_TRUE(Eventually([&] { return function_->held() == 2; }));
  cluster_.Tick();
  for (int i = 0; i < 20; ++i) {
    cluster_.name = absl::StrCat("logs-", i);
    CallOnce();
  }
  EXPECT_EQ(function_->questions(), 2) << "never three at once";
  EXPECT_EQ(hits_, 0);
  function_->Release();
  for (int i = 0; i < 20; ++i) {
    cluster_.name = absl::StrCat("logs-", i);
    EXPECT_TRUE(TickUntil(IsAcross));
  }
  EXPECT_LE(function_->most_questions(), 2);
  std::set<std::string> tags;
  int questions = 0;
  size_t tenants = 0;
  for (const Function::Asked& asked : function_->asked()) {
    if (!asked.question) continue;
    ++questions;
    const std::string& tag = asked.request.meta().tag();
    EXPECT_THAT(tag, ::testing::MatchesRegex("[0-9a-f]{64}"));
    EXPECT_TRUE(tags.insert(tag).second) << tag;
    EXPECT_EQ(own_tags.count(tag), 0u);
    EXPECT_EQ(asked.metadata.count("cache-control"), 1u);
    EXPECT_EQ(asked.metadata.count("grpc-encoding"), 0u);
    tenants += asked.metadata.count("x-tenant");
    Cluster as_it_came = cluster_;
    as_it_came.name = Text(Composite(asked.request), {"metadata", "name"});
    const Request came = as_it_came.Make();
    for (const std::string name : {"a", "b", "cron"}) {
      pb::Value before, after;
      *before.mutable_struct_value() = Resource(came, name);
      *after.mutable_struct_value() = Resource(asked.request, name);
      ExpectSameFormats(before, after, name);
      EXPECT_NE(Version(Resource(came, name)),
                Version(Resource(asked.request, name)));
    }
  }
  EXPECT_EQ(questions, 80);
  EXPECT_GT(tenants, 0u) << "questions carry their caller's metadata";
  EXPECT_EQ(wrong_, 0);
  Report("counting", "own tags, two at once");
}

// Questions are asked uncompressed, and are keyed as the caller's request is.
TEST_F(TuningOutcomeTest, CompressedRequestsAreTuned) {
  Start(Tier);
  compresses_ = true;
  EXPECT_TRUE(TickUntil(IsAcross));
  EXPECT_EQ(function_->questions(), 4);
  for (const Function::Asked& asked : function_->asked()) {
    if (!asked.question) continue;
    EXPECT_EQ(asked.metadata.count("grpc-encoding"), 0u);
  }
  // Callers that do not compress get the same entry.
  compresses_ = false;
  cluster_.Tick();
  EXPECT_TRUE(CallOnce().across());
  EXPECT_EQ(wrong_, 0);
}

// An entry past its time passes the same gate.
TEST_F(TuningOutcomeTest, OldEntriesAnswerAcrossDriftOnlyWhereTheyAreProven) {
  for (const bool reads : {false, true}) {
    SCOPED_TRACE(reads ? "reads" : "proven");
    std::atomic<bool> fails{false};
    const auto answer = [reads](const Request& request) -> Reply {
      Reply reply = reads ? Reply(Sync(request, "a")) : Tier(request);
      reply.ttl = 60;
      return reply;
    };
    if (daemon_ != nullptr) daemon_->Drain();
    daemon_ = nullptr;
    cluster_ = Cluster();
    const StopsFunction stops{this};
    Start(
        [&fails, answer](const Request& request) {
          Reply reply = answer(request);
          if (fails) reply.code = grpc::StatusCode::UNAVAILABLE;
          return reply;
        },
        "stale_if_error: 3h\n");
    expected_ = answer;
    if (reads) {
      ASSERT_TRUE(
          TickUntil([](const Got& got) { return got.why() == "read"; }));
    } else {
      ASSERT_TRUE(TickUntil(IsAcross));
    }
    fails = true;
    clock_.Advance(absl::Minutes(10));
    cluster_.Tick();
    const Got old = CallOnce();
    EXPECT_EQ(old.status.ok(), !reads) << old.cache;
    EXPECT_EQ(old.across(), !reads) << old.cache;
    // A hit across drift, fresh or not, is not older than an hour.
    clock_.Advance(absl::Minutes(51));
    cluster_.Tick();
    EXPECT_FALSE(CallOnce().status.ok());
    EXPECT_EQ(wrong_, 0);
  }
}

TEST_F(TuningOutcomeTest, StaleWhileRevalidatePassesTheGate) {
  const auto answer = [](const Request& request) -> Reply {
    Reply reply = Sync(request, "a");
    reply.ttl = 60;
    return reply;
  };
  Start(answer, "stale_while_revalidate: 1h\n");
  ASSERT_TRUE(TickUntil([](const Got& got) { return got.why() == "read"; }));
  for (int i = 0; i < 5; ++i) {
    clock_.Advance(absl::Minutes(2));
    EXPECT_TRUE(CallAndWait().hit()) << "its own entry, which is stale";
    cluster_.Tick();
    EXPECT_EQ(CallAndWait().why(), "read");
  }
  EXPECT_EQ(hits_, 0);
  EXPECT_EQ(wrong_, 0);
}

// An answer that is not stored ends the proof.
TEST_F(TuningOutcomeTest, AnAnswerThatIsNotStoredEndsTheProof) {
  std::atomic<bool> fatal{false};
  const StopsFunction stops{this};
  Start([&](const Request& request) {
    Reply reply = Tier(request);
    reply.fatal = fatal;
    return reply;
  });
  ASSERT_TRUE(TickUntil(IsAcross));
  cluster_.Tick();
  ++cluster_.transition;
  fatal = true;
  EXPECT_EQ(CallAndWait().why(), "moved status lastTransitionTime");
  fatal = false;
  --cluster_.transition;
  cluster_.Tick();
  EXPECT_EQ(CallAndWait().why(), "unproven");
  EXPECT_EQ(wrong_, 0);
}

// The promise of `tune: on` is broken: this function remembers what it saw.
TEST_F(TuningOutcomeTest, Effect) {
  std::atomic<int64_t> highest{0};
  const StopsFunction stops{this};
  Start([&](const Request& request) -> Reply {
    const int64_t seen = std::stoll(Version(Composite(request)));
    int64_t before = highest;
    while (before < seen && !highest.compare_exchange_weak(before, seen)) {
    }
    return absl::StrCat(highest.load());
  });
  // Its answer if there were no questions.
  expected_ = [](const Request& request) -> Reply {
    return Version(Composite(request));
  };
  may_be_wrong_ = true;
  for (int i = 0; i < 20; ++i) {
    cluster_.Tick();
    CallAndWait();
  }
  EXPECT_GT(wrong_, 0) << "questions have no effect on it any more?";
  // The page names the promise, and the risk if it is not kept.
  const std::string page = FNCACHE_SOURCE_DIR "/docs/tuning.md";
  if (std::filesystem::exists(page)) {
    EXPECT_THAT(ReadFile(page), HasSubstr("memory"));
  }
  Report("effect", "wrong by design");
}

}  // namespace
}  // namespace fncache::testing
