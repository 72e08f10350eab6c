// SPDX-License-Identifier: Apache-2.0
// The simulation against what PROTOCOL.md ("When the runner reconciles") says,
// in simulated time, with a function that answers at once.
#include "runner/load/model/simulation.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "runner/engine/conditions.h"
#include "runner/engine/metadata.h"
#include "runner/load/model/scheduler.h"
#include "tests/runner/fake_functions.h"
#include "tests/runner/messages.h"
#include "text/object.h"
#include "text/rfc3339.h"

namespace fncache::runner::load::model {
namespace {

namespace fn = apiextensions::fn::proto::v1;
using google::protobuf::Struct;
using google::protobuf::Value;

constexpr absl::Duration kTtl = absl::Seconds(60);
const absl::Time kStart = absl::FromUnixSeconds(1790000000);

// A function that composes resources, calls those ready whose condition Ready
// is True, and whose answers the tests change while it runs.
struct Function {
  int resources = 2;
  int settings = 2;  // of each resource
  absl::Duration ttl = kTtl;
  bool required = false;
  bool extra = false;      // by the older name of what is required
  bool random = false;     // each answer differs from the one before
  bool renamed = false;    // in the name of one more resource
  bool coming = false;     // in whether there is one more resource
  bool chained = false;    // a resource waits for the one before to be ready
  bool auto_ready = true;  // says which resources are ready
  bool ready = true;       // false: it says that none is
  absl::Status status;
  std::string fatal;

  client::CallResult operator()(const fn::RunFunctionRequest& request) {
    ++calls;
    client::CallResult result;
    result.status = status;
    fn::RunFunctionResponse& response = result.response;
    if (ttl > absl::ZeroDuration()) {
      response.mutable_meta()->mutable_ttl()->set_seconds(
          absl::ToInt64Seconds(ttl));
    }
    if (!fatal.empty()) {
      fn::Result* const told = response.add_results();
      told->set_severity(fn::SEVERITY_FATAL);
      told->set_message(fatal);
      return result;
    }
    if (required) {
      auto& selector =
          (*response.mutable_requirements()->mutable_resources())["zone"];
      selector.set_api_version("v1");
      selector.set_kind("ConfigMap");
      selector.set_match_name("zone");
    }
    if (extra) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
      auto& selector =
          (*response.mutable_requirements()->mutable_extra_resources())["old"];
#pragma GCC diagnostic pop
      selector.set_api_version("v1");
      selector.set_kind("ConfigMap");
      selector.set_match_name("zone");
    }
    const Struct& composite = request.observed().composite().resource();
    text::SetText(
        response.mutable_desired()->mutable_composite()->mutable_resource(),
        {"status", "region"}, text::FindText(composite, {"spec", "region"}));
    const std::string last = absl::StrCat("bucket-", resources);
    const bool more =
        renamed || (coming && request.observed().resources().count(last) == 0);
    for (int i = 0; i < resources + (more ? 1 : 0); ++i) {
      const std::string name =
          absl::StrCat("bucket-", i == resources && renamed ? 1000 + calls : i);
      if (chained && i > 0 &&
          !IsReady(request, absl::StrCat("bucket-", i - 1))) {
        break;
      }
      fn::Resource& desired =
          (*response.mutable_desired()->mutable_resources())[name];
      Struct* const object = desired.mutable_resource();
      text::SetText(object, {"apiVersion"}, "example.org/v1");
      text::SetText(object, {"kind"}, "Bucket");
      text::SetText(object, {"spec", "region"},
                    text::FindText(composite, {"spec", "region"}));
      for (int k = 0; k < settings; ++k) {
        text::SetText(object,
                      {"spec", "forProvider", absl::StrCat("setting", k)},
                      "some value of it");
      }
      if (random) {
        text::SetText(object, {"spec", "login", "password"},
                      absl::StrCat("secret", calls));
      }
      if (!auto_ready) continue;
      if (!ready) {
        desired.set_ready(fn::READY_FALSE);
      } else if (IsReady(request, name)) {
        desired.set_ready(fn::READY_TRUE);
      }
    }
    return result;
  }

  static bool IsReady(const fn::RunFunctionRequest& request,
                      const std::string& name) {
    const auto observed = request.observed().resources().find(name);
    if (observed == request.observed().resources().end()) return false;
    for (const auto& condition :
         engine::ConditionsOf(observed->second.resource())) {
      if (condition.type == "Ready" && condition.status == "True") return true;
    }
    return false;
  }

  int calls = 0;
};

struct Reconcile {
  PipelineEnd end;
  std::vector<fn::RunFunctionRequest> requests;
};

class Recorder : public SimulationObserver {
 public:
  void OnPipelineStart(const PipelineStart& start) override {
    EXPECT_TRUE(running_.insert(start.composite).second);
    most_ = std::max(most_, running_.size());
  }
  void OnCall(const PipelineStart& start,
              const engine::CallReport& report) override {
    if (keep_requests) requests_[start.composite].push_back(report.request);
  }
  void OnReady(int composite, absl::Duration since) override {
    EXPECT_TRUE(ready.emplace(composite, since).second);
  }
  void OnPipelineEnd(const PipelineEnd& end) override {
    running_.erase(end.start.composite);
    all.push_back({end, std::move(requests_[end.start.composite])});
    requests_[end.start.composite].clear();
  }

  bool keep_requests = true;
  std::vector<Reconcile> all;
  std::map<int, absl::Duration> ready;
  size_t most() const { return most_; }

 private:
  std::set<int> running_;
  std::map<int, std::vector<fn::RunFunctionRequest>> requests_;
  size_t most_ = 0;
};

// Keeps calls until the test releases them.
class Held : public client::FunctionCaller {
 public:
  explicit Held(Function* function) : function_(function) {}
  void Call(const std::string&, const fn::RunFunctionRequest& request,
            absl::Time, Done done) override {
    if (!hold) return done((*function_)(request));
    waiting.emplace_back(std::move(done), (*function_)(request));
  }
  void LetGo() {
    auto go = std::move(waiting);
    waiting.clear();
    for (auto& [done, result] : go) done(std::move(result));
  }
  bool hold = false;
  std::vector<std::pair<Done, client::CallResult>> waiting;

 private:
  Function* const function_;
};

engine::EngineInput Input() {
  engine::EngineInput input;
  input.composite = FromJson<Struct>(R"({
    "apiVersion": "example.org/v1", "kind": "XBucket",
    "metadata": {"name": "lake", "namespace": "default"},
    "spec": {"region": "eu"}})");
  input.composition = std::make_shared<const engine::Composition>(
      *engine::ParseComposition(FromJson<Struct>(R"({
    "metadata": {"name": "buckets"},
    "spec": {"mode": "Pipeline",
      "compositeTypeRef": {"apiVersion": "example.org/v1", "kind": "XBucket"},
      "pipeline": [{"step": "make", "functionRef": {"name": "fn"}}]}})")));
  return input;
}

class SimulationTest : public ::testing::Test {
 protected:
  SimulationTest() { options_.resync = absl::InfiniteDuration(); }
  ~SimulationTest() override {
    if (simulation_ != nullptr) simulation_->Stop();
    caller_.LetGo();
  }

  void Make() {
    simulation_ = std::make_unique<Simulation>(
        options_, std::vector<engine::EngineInput>{input_}, &caller_,
        &scheduler_, &scheduler_, &recorder_);
  }
  void Start() {
    Make();
    if (options_.start != StartFrom::kCreate) {
      const auto settled = simulation_->Settle(nullptr);
      ASSERT_TRUE(settled.ok()) << settled.status();
      settled_ = *settled;
      recorder_.all.clear();
    }
    simulation_->Start();
  }
  void Run(absl::Duration length) {
    scheduler_.RunUntil(scheduler_.Now() + length);
  }
  void StartSteady(int composites = 1) {
    options_.start = StartFrom::kSteady;
    options_.composites = composites;
    Start();
  }
  const PipelineEnd& End(size_t i) const { return recorder_.all.at(i).end; }
  const fn::RunFunctionRequest& Request(size_t i) const {
    return recorder_.all.at(i).requests.at(0);
  }
  absl::Duration Gap(size_t i) const {
    return End(i).start.started - End(i - 1).start.started;
  }
  static std::string TextAt(const Struct& object, text::ObjectPath path) {
    return text::FindText(object, path);
  }

  Function function_;
  Held caller_{&function_};
  SimulatedScheduler scheduler_{kStart};
  Recorder recorder_;
  ModelOptions options_;
  engine::EngineInput input_ = Input();
  Settled settled_;
  std::unique_ptr<Simulation> simulation_;
};

const engine::Condition* Find(const std::vector<engine::Condition>& conditions,
                              const std::string& type) {
  for (const auto& condition : conditions) {
    if (condition.type == type) return &condition;
  }
  return nullptr;
}

// A new XR.

TEST_F(SimulationTest, FirstReconcileSeesNoResourcesAndNoResponsiveCondition) {
  Start();
  Run(absl::ZeroDuration());
  ASSERT_GE(recorder_.all.size(), 3u);
  const auto& first = Request(0).observed();
  EXPECT_EQ(first.resources_size(), 0);
  const Struct& composite = first.composite().resource();
  EXPECT_TRUE(engine::ConditionsOf(composite).empty());
  EXPECT_EQ(engine::NameOf(composite), "lake-000000");
  EXPECT_EQ(text::FindList(composite, {"metadata", "finalizers"})
                ->values(0)
                .string_value(),
            "composite.apiextensions.crossplane.io");
  EXPECT_NE(text::Find(composite, {"spec", "crossplane", "compositionRef"}),
            nullptr);
  EXPECT_NE(
      text::Find(composite, {"spec", "crossplane", "compositionRevisionRef"}),
      nullptr);
  EXPECT_EQ(text::Find(composite, {"spec", "crossplane", "resourceRefs"}),
            nullptr);
  // The finalizer is no change of spec; the two references are.
  EXPECT_EQ(engine::GenerationOf(composite), 3);
  EXPECT_EQ(End(0).start.trigger, Trigger::kCreate);
}

TEST_F(SimulationTest,
       SecondReconcileComesAtOnceWithAllResourcesAndResponsive) {
  Start();
  Run(absl::ZeroDuration());
  ASSERT_GE(recorder_.all.size(), 3u);
  const auto& second = Request(1).observed();
  EXPECT_EQ(second.resources_size(), 2);
  const auto conditions = engine::ConditionsOf(second.composite().resource());
  ASSERT_EQ(conditions.size(), 1u);
  EXPECT_EQ(conditions[0].type, "Responsive");
  EXPECT_EQ(conditions[0].last_transition_time, kStart);
  EXPECT_EQ(conditions[0].observed_generation, 4);  // the references' too
  EXPECT_EQ(text::FindList(second.composite().resource(),
                           {"spec", "crossplane", "resourceRefs"})
                ->values_size(),
            2);
  // The third is the second's echo: Synced and Ready have been written.
  const auto third =
      engine::ConditionsOf(Request(2).observed().composite().resource());
  EXPECT_NE(Find(third, "Synced"), nullptr);
  ASSERT_NE(Find(third, "Ready"), nullptr);
  EXPECT_EQ(Find(third, "Ready")->status, "False");
  EXPECT_EQ(Find(third, "Ready")->message,
            "Unready resources: bucket-0, bucket-1");
}

TEST_F(SimulationTest, ProvidersMakeItReadyInSoManyWritesAfterSoLong) {
  function_.resources = 1;
  Start();
  Run(absl::Seconds(1));
  const auto external = [&] {
    const fn::State state = simulation_->Observe(0);
    const Struct& object = state.resources().at("bucket-0").resource();
    EXPECT_NE(engine::NameOf(object), "");
    return engine::AnnotationOf(object, "crossplane.io/external-name") ==
           engine::NameOf(object);
  };
  EXPECT_FALSE(external());
  Run(absl::Seconds(3));
  EXPECT_TRUE(external());
  EXPECT_EQ(simulation_->counters().ready, 0u);
  Run(absl::Seconds(2));
  EXPECT_EQ(simulation_->counters().ready, 1u);
  // Every write of the provider's made a burst.
  std::set<std::string> versions;
  for (const Reconcile& reconcile : recorder_.all) {
    const auto& resources = reconcile.requests.at(0).observed().resources();
    const auto it = resources.find("bucket-0");
    if (it == resources.end()) continue;
    versions.insert(
        TextAt(it->second.resource(), {"metadata", "resourceVersion"}));
  }
  EXPECT_EQ(versions.size(), 4u);  // created, and three writes
}

TEST_F(SimulationTest, SettlesSoThatNothingIsWrittenAnyMore) {
  Start();
  Run(absl::Seconds(20));
  const size_t count = recorder_.all.size();
  EXPECT_EQ(recorder_.all.back().end.writes, 0);
  Run(absl::Seconds(30));
  EXPECT_EQ(recorder_.all.size(), count);
}

// Requeue.

TEST_F(SimulationTest, RequeuesAfterTheTtlWithATenthOfJitter) {
  StartSteady();
  Run(100 * kTtl);
  ASSERT_GT(recorder_.all.size(), 90u);
  absl::Duration least = absl::InfiniteDuration();
  absl::Duration most = absl::ZeroDuration();
  for (size_t i = 1; i < recorder_.all.size(); ++i) {
    EXPECT_EQ(End(i).start.trigger, Trigger::kTimer);
    least = std::min(least, Gap(i));
    most = std::max(most, Gap(i));
  }
  EXPECT_GE(least, 0.9 * kTtl);
  EXPECT_LT(least, 0.93 * kTtl);
  EXPECT_LE(most, 1.1 * kTtl);
  EXPECT_GT(most, 1.07 * kTtl);
}

TEST_F(SimulationTest, WithoutATtlThePollAnnotationCounts) {
  function_.ttl = absl::ZeroDuration();
  engine::AddAnnotations(&input_.composite,
                         {{"crossplane.io/poll-interval", "20s"}});
  StartSteady();
  Run(absl::Seconds(100));
  ASSERT_GE(recorder_.all.size(), 4u);
  EXPECT_GE(Gap(1), absl::Seconds(18));
  EXPECT_LE(Gap(1), absl::Seconds(22));
}

TEST_F(SimulationTest, APollAnnotationOfLessThanASecondIsASecond) {
  function_.ttl = absl::ZeroDuration();
  engine::AddAnnotations(&input_.composite,
                         {{"crossplane.io/poll-interval", "1ms"}});
  StartSteady();
  Run(absl::Seconds(10));
  EXPECT_LE(recorder_.all.size(), 12u);
  EXPECT_GE(recorder_.all.size(), 8u);
}

TEST_F(SimulationTest, WithNeitherNothingComesByItself) {
  function_.ttl = absl::ZeroDuration();
  StartSteady();
  Run(absl::Hours(5));
  EXPECT_TRUE(recorder_.all.empty());
}

TEST_F(SimulationTest, WithoutRealtimeThePollIntervalCountsAndTtlsDoNot) {
  options_.realtime = false;
  options_.poll_interval = absl::Seconds(30);
  StartSteady();
  EXPECT_EQ(simulation_->counters().ready, 1u);
  Run(absl::Minutes(10));
  ASSERT_GT(recorder_.all.size(), 15u);
  for (size_t i = 1; i < recorder_.all.size(); ++i) {
    EXPECT_GE(Gap(i), absl::Seconds(27));
    EXPECT_LE(Gap(i), absl::Seconds(33));
  }
}

TEST_F(SimulationTest, WithoutRealtimeWhatIsUnreadyBacksOff) {
  options_.realtime = false;
  options_.ready_writes = 0;
  Start();
  Run(absl::Minutes(5));
  std::vector<absl::Duration> gaps;
  for (size_t i = 1; i < recorder_.all.size(); ++i) {
    if (End(i).start.trigger == Trigger::kBackoff) gaps.push_back(Gap(i));
  }
  ASSERT_GE(gaps.size(), 5u);
  EXPECT_EQ(gaps.back(), absl::Seconds(30));
  EXPECT_TRUE(std::is_sorted(gaps.begin(), gaps.end()));
}

// Failures.

TEST_F(SimulationTest, FailuresBackOffWithoutJitterAndASuccessResetsThem) {
  StartSteady();
  function_.status = absl::InternalError("boom");
  Run(absl::Minutes(4));
  std::vector<int64_t> gaps;
  for (size_t i = 0; i < recorder_.all.size(); ++i) {
    if (End(i).start.trigger == Trigger::kBackoff) {
      gaps.push_back(absl::ToInt64Seconds(Gap(i)));
    }
  }
  ASSERT_GE(gaps.size(), 7u);
  gaps.resize(7);
  // The first failure's own write echoes, and the echo fails too.
  EXPECT_EQ(gaps, (std::vector<int64_t>{2, 4, 8, 16, 30, 30, 30}));
  function_.status = absl::OkStatus();
  Run(absl::Minutes(1));
  recorder_.all.clear();
  function_.fatal = "no such region";
  Run(absl::Minutes(2));
  ASSERT_GE(recorder_.all.size(), 3u);
  EXPECT_TRUE(End(0).fatal);
  EXPECT_EQ(End(2).start.started - End(1).start.started, absl::Seconds(2));
  const auto conditions =
      engine::ConditionsOf(simulation_->Observe(0).composite().resource());
  ASSERT_NE(Find(conditions, "Synced"), nullptr);
  EXPECT_EQ(Find(conditions, "Synced")->status, "False");
}

TEST_F(SimulationTest, AWriteToTheXrDuringItsReconcileIsAConflict) {
  options_.churn.status = 3600;
  StartSteady();
  caller_.hold = true;
  bool conflict = false;
  for (int i = 0; i < 200 && !conflict; ++i) {
    Run(absl::Seconds(10));
    caller_.LetGo();
    for (const Reconcile& reconcile : recorder_.all) {
      if (reconcile.end.status.code() != absl::StatusCode::kAborted) continue;
      conflict = true;
      EXPECT_TRUE(reconcile.end.write_failed);
    }
  }
  EXPECT_TRUE(conflict);
  // Its condition is as before.
  EXPECT_EQ(simulation_->counters().ready, 1u);
}

// Queue and workers.

TEST_F(SimulationTest, NoMoreThanTheWorkersRunAtOnce) {
  options_.composites = 50;
  options_.workers = 7;
  caller_.hold = true;
  Start();
  Run(absl::Seconds(1));
  EXPECT_EQ(recorder_.most(), 7u);
  EXPECT_EQ(simulation_->counters().queued, 43u);
  for (int i = 0; i < 400; ++i) {
    caller_.LetGo();
    Run(absl::Milliseconds(100));
  }
  EXPECT_EQ(recorder_.most(), 7u);  // and never two of one: see Recorder
  EXPECT_EQ(simulation_->counters().ready, 50u);
}

TEST_F(SimulationTest, AnEventDuringAReconcileMeansAnotherRightAfterIt) {
  options_.churn.noop = 60;
  StartSteady();
  caller_.hold = true;
  while (caller_.waiting.empty()) Run(absl::Seconds(1));
  Run(absl::Minutes(10));  // several events, one after another
  ASSERT_EQ(caller_.waiting.size(), 1u);
  const absl::Time let_go = scheduler_.Now();
  recorder_.all.clear();
  caller_.LetGo();
  Run(absl::ZeroDuration());
  ASSERT_EQ(caller_.waiting.size(), 1u);
  caller_.hold = false;
  caller_.LetGo();
  Run(absl::ZeroDuration());
  ASSERT_EQ(recorder_.all.size(), 2u);  // one for all of them
  EXPECT_EQ(End(1).start.started, let_go);
  EXPECT_EQ(End(1).start.trigger, Trigger::kEvent);
}

TEST_F(SimulationTest, AnEventBeforeTheTimerTakesItsPlace) {
  options_.churn.noop = 120;  // every 30 s, twice a TTL
  StartSteady();
  Run(absl::Hours(1));
  // After each reconcile the next timer is a whole TTL away.
  int timers = 0;
  for (size_t i = 1; i < recorder_.all.size(); ++i) {
    if (End(i).start.trigger != Trigger::kTimer) continue;
    ++timers;
    EXPECT_GE(Gap(i), 0.9 * kTtl);
  }
  EXPECT_GT(timers, 2);
  EXPECT_LT(timers, 40);
}

// Triggers.

TEST_F(SimulationTest, EveryKindOfWriteReconciles) {
  for (int kind = 0; kind < 4; ++kind) {
    recorder_.all.clear();
    options_.churn = Churn();
    (kind == 0   ? options_.churn.spec
     : kind == 1 ? options_.churn.composed
     : kind == 2 ? options_.churn.status
                 : options_.churn.noop) = 20;
    function_.ttl = absl::ZeroDuration();
    StartSteady();
    Run(absl::Hours(1));
    EXPECT_GT(recorder_.all.size(), 8u) << kind;
    EXPECT_EQ(End(0).start.trigger, Trigger::kEvent) << kind;
    simulation_->Stop();
    simulation_.reset();
    scheduler_.RunUntil(scheduler_.Now() + absl::Hours(2));
  }
}

TEST_F(SimulationTest, HeavyResyncsEveryHourSpreadByATenth) {
  function_.ttl = absl::ZeroDuration();
  options_.resync = absl::Hours(1);
  StartSteady(100);
  Run(absl::Hours(10));
  EXPECT_NEAR(recorder_.all.size(), 1000, 40);
  std::map<int, absl::Time> last;
  for (const Reconcile& reconcile : recorder_.all) {
    EXPECT_EQ(reconcile.end.start.trigger, Trigger::kResync);
    absl::Time& before = last[reconcile.end.start.composite];
    if (before != absl::Time()) {
      const absl::Duration gap = reconcile.end.start.started - before;
      EXPECT_GE(gap, absl::Minutes(54));
      EXPECT_LE(gap, absl::Minutes(66));
    }
    before = reconcile.end.start.started;
  }
}

TEST_F(SimulationTest, ARestartReconcilesAllAtOnceAndTwice) {
  options_.start = StartFrom::kCold;
  options_.composites = 20;
  Start();
  Run(absl::ZeroDuration());
  EXPECT_EQ(recorder_.all.size(), 40u);
  for (const Reconcile& reconcile : recorder_.all) {
    EXPECT_EQ(reconcile.end.start.started, kStart);
    EXPECT_EQ(reconcile.end.start.trigger, Trigger::kRestart);
    EXPECT_EQ(reconcile.end.writes, 0);
  }
}

TEST_F(SimulationTest, AChangedRequiredResourceReconcilesWhoseSelectorsTakeIt) {
  function_.required = true;
  function_.ttl = absl::ZeroDuration();
  StartSteady(3);
  simulation_->TouchRequired(FromJson<Struct>(R"({
    "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}})"));
  Run(absl::Seconds(1));
  EXPECT_TRUE(recorder_.all.empty());
  simulation_->TouchRequired(FromJson<Struct>(R"({
    "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "zone"}})"));
  Run(absl::Seconds(1));
  ASSERT_EQ(recorder_.all.size(), 3u);
  EXPECT_EQ(Request(0).required_resources().at("zone").items_size(), 1);
}

TEST_F(SimulationTest, WhatWasRequiredLastIsSentWithTheFirstCall) {
  for (const bool seed : {true, false}) {
    function_.required = true;
    options_.seed_requirements = seed;
    StartSteady();
    recorder_.all.clear();
    Run(2 * kTtl);
    ASSERT_FALSE(recorder_.all.empty());
    EXPECT_EQ(recorder_.all[0].requests.size(), seed ? 1u : 2u);
    EXPECT_EQ(Request(0).required_resources_size(), seed ? 1 : 0);
    simulation_->Stop();
    simulation_.reset();
  }
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
TEST_F(SimulationTest, ExtraResourcesAreSeededAsRequiredOnes) {
  function_.extra = true;
  StartSteady();
  Run(2 * kTtl);
  ASSERT_FALSE(recorder_.all.empty());
  // The runner's first-call shortcut compares extra resources only, so that
  // such a function is called twice however settled the composite is.
  ASSERT_EQ(recorder_.all[0].requests.size(), 2u);
  EXPECT_EQ(Request(0).required_resources().count("old"), 1u);
  EXPECT_EQ(Request(0).extra_resources_size(), 0);
  const fn::RunFunctionRequest& second = recorder_.all[0].requests[1];
  EXPECT_EQ(second.extra_resources().count("old"), 1u);
  EXPECT_EQ(second.required_resources().count("old"), 1u);
}
#pragma GCC diagnostic pop

// Settling.

TEST_F(SimulationTest, ACompositionWhoseAnswersDifferNeverSettles) {
  function_.random = true;
  function_.resources = 1;
  options_.composites = 3;
  options_.start = StartFrom::kSteady;
  Make();
  const auto settled = simulation_->Settle(nullptr);
  ASSERT_TRUE(settled.ok()) << settled.status();
  EXPECT_EQ(settled->never, 3u);
  EXPECT_EQ(
      settled->changing,
      (std::vector<std::string>{"resource bucket-0: spec.login.password"}));
  EXPECT_LT(settled->pipelines, 3u * 4 * (kSettlingRounds + 5));
}

// Each new resource has a provider, whose writes are causes of their own.
TEST_F(SimulationTest, ResourcesThatComeAndGoOrAreRenamedNeverSettle) {
  recorder_.keep_requests = false;
  for (const bool renamed : {true, false}) {
    function_.calls = 0;
    function_.resources = 1;
    function_.renamed = renamed;
    function_.coming = !renamed;
    options_.start = StartFrom::kSteady;
    Make();
    const auto settled = simulation_->Settle(nullptr);
    ASSERT_TRUE(settled.ok()) << settled.status();
    EXPECT_EQ(settled->never, 1u);
    EXPECT_EQ(settled->changing,
              (std::vector<std::string>{
                  renamed ? "the names of the desired resources"
                          : "resource bucket-1: whether it is desired"}));
    EXPECT_LE(settled->pipelines,
              2 * static_cast<unsigned>(SettlingWrites(options_)));
    EXPECT_GT(simulation_->counters().deleted, 10u);
  }
}

// A chain of thirty: each resource is desired when the one before is ready.
TEST_F(SimulationTest, ResourcesThatWaitForEachOtherSettle) {
  function_.chained = true;
  function_.resources = 30;
  options_.ready_writes = 5;
  options_.start = StartFrom::kSteady;
  Make();
  const auto settled = simulation_->Settle(nullptr);
  ASSERT_TRUE(settled.ok()) << settled.status();
  EXPECT_EQ(settled->never, 0u);
  EXPECT_EQ(settled->ready, 1u);
  EXPECT_EQ(simulation_->Observe(0).resources_size(), 30);
  EXPECT_EQ(simulation_->counters().deleted, 0u);
  EXPECT_LT(settled->pipelines,
            static_cast<unsigned>(SettlingWrites(options_)));
}

TEST_F(SimulationTest, WhatOnlyProvidersKeepBusySettles) {
  options_.start = StartFrom::kSteady;
  options_.ready_after = absl::Minutes(40);
  options_.ready_writes = 500;
  Make();
  const auto settled = simulation_->Settle(nullptr);
  ASSERT_TRUE(settled.ok()) << settled.status();
  EXPECT_EQ(settled->never, 0u);
  EXPECT_EQ(settled->ready, 1u);
  EXPECT_TRUE(settled->changing.empty());
}

TEST_F(SimulationTest, CountsThoseThatWereReadyAndAreNotAnyMore) {
  StartSteady(3);
  EXPECT_EQ(settled_.ready, 3u);
  EXPECT_EQ(simulation_->counters().lost_ready, 0u);
  function_.auto_ready = false;
  Run(2 * kTtl);
  EXPECT_EQ(simulation_->counters().ready, 0u);
  // Those that cannot become ready have a sentence of their own.
  EXPECT_EQ(simulation_->counters().lost_ready, 0u);
  EXPECT_EQ(simulation_->counters().unmarked, 3u);
  function_.auto_ready = true;
  Run(2 * kTtl);
  function_.ready = false;
  Run(2 * kTtl);
  EXPECT_EQ(simulation_->counters().lost_ready, 3u);
  EXPECT_EQ(simulation_->counters().unmarked, 0u);
  function_.ready = true;
  Run(2 * kTtl);
  EXPECT_EQ(simulation_->counters().lost_ready, 0u);
  EXPECT_EQ(simulation_->counters().unmarked, 0u);
}

TEST_F(SimulationTest, ACreationKnowsWhatNeverSettles) {
  function_.random = true;
  function_.resources = 1;
  options_.composites = 3;
  Start();
  Run(absl::Seconds(20));
  EXPECT_EQ(simulation_->restless().composites, 3u);
  EXPECT_EQ(
      simulation_->restless().changing,
      (std::vector<std::string>{"resource bucket-0: spec.login.password"}));
}

TEST_F(SimulationTest, ACreationThatSettlesOrThatOthersWriteToIsNotRestless) {
  function_.chained = true;
  function_.resources = 6;
  Start();
  Run(absl::Minutes(5));
  EXPECT_EQ(simulation_->counters().ready, 1u);
  EXPECT_EQ(simulation_->restless().composites, 0u);
  simulation_.reset();
  recorder_.ready.clear();
  function_ = Function();
  function_.random = true;
  options_.churn.spec = 3600;
  Start();
  Run(absl::Minutes(1));
  EXPECT_EQ(simulation_->restless().composites, 0u);
}

TEST_F(SimulationTest, WithoutAutoReadyNoCompositeHasLostAnything) {
  function_.auto_ready = false;
  StartSteady(2);
  EXPECT_EQ(settled_.ready, 0u);
  Run(2 * kTtl);
  EXPECT_EQ(simulation_->counters().lost_ready, 0u);
  EXPECT_EQ(simulation_->counters().unmarked, 2u);
}

TEST_F(SimulationTest, SaysHowLongANewCompositeTakesToBeReady) {
  options_.composites = 2;
  Start();
  Run(absl::Seconds(10));
  ASSERT_EQ(recorder_.ready.size(), 2u);
  for (const auto& [composite, since] : recorder_.ready) {
    EXPECT_GE(since, absl::Seconds(4.5));
    EXPECT_LE(since, absl::Seconds(5.5));
  }
  // Settled ones were not created in the run.
  simulation_.reset();
  recorder_.ready.clear();
  StartSteady();
  Run(2 * kTtl);
  EXPECT_TRUE(recorder_.ready.empty());
}

TEST_F(SimulationTest, DemandFollowsFromTtlsAndChurn) {
  options_.churn.noop = 36;
  StartSteady(30);
  const Demand demand = simulation_->demand();
  EXPECT_NEAR(demand.pipelines, 0.5, 1e-9);
  EXPECT_NEAR(demand.churn, 0.3, 1e-9);
  EXPECT_EQ(demand.shortest, kTtl);
  EXPECT_EQ(demand.longest, kTtl);
}

// Providers.

TEST_F(SimulationTest, IdentifiersAppearOnceAResourceIsReady) {
  function_.resources = 1;
  Start();
  Run(absl::Seconds(4));
  const auto status = [&] {
    return *text::FindMap(
        simulation_->Observe(0).resources().at("bucket-0").resource(),
        {"status"});
  };
  EXPECT_EQ(text::Find(status(), {"atProvider", "id"}), nullptr);
  EXPECT_EQ(text::FindText(status(), {"atProvider", "state"}), "creating");
  EXPECT_EQ(text::FindText(status(), {"atProvider", "endpoint", "zone"}),
            "zone-a");
  EXPECT_EQ(text::Find(status(), {"atProvider", "writes"})->number_value(), 2);
  Run(absl::Seconds(4));
  EXPECT_EQ(text::FindText(status(), {"atProvider", "id"}).substr(0, 7),
            "bucket-");
  EXPECT_NE(text::FindText(status(), {"atProvider", "id"}),
            text::FindText(status(), {"atProvider", "arn"}));
  EXPECT_EQ(text::FindText(status(), {"atProvider", "state"}), "available");
  EXPECT_NE(text::Find(status(), {"atProvider", "endpoint", "address"}),
            nullptr);
  EXPECT_EQ(text::Find(status(), {"atProvider", "writes"})->number_value(), 3);
}

void RemoveVersions(fn::RunFunctionRequest* request);

TEST_F(SimulationTest, AHeartbeatChangesOneTimeAndVersionsOnly) {
  options_.churn.composed = 30;
  StartSteady();
  Run(absl::Minutes(20));
  int changed = 0;
  for (size_t i = 1; i < recorder_.all.size(); ++i) {
    fn::RunFunctionRequest a = Request(i - 1);
    fn::RunFunctionRequest b = Request(i);
    for (fn::RunFunctionRequest* const one : {&a, &b}) {
      RemoveVersions(one);
      for (auto& [name, resource] :
           *one->mutable_observed()->mutable_resources()) {
        const std::string checked = text::FindText(
            resource.resource(), {"status", "atProvider", "lastChecked"});
        EXPECT_FALSE(checked.empty());
        text::Remove(resource.mutable_resource(),
                     {"status", "atProvider", "lastChecked"});
      }
    }
    changed += End(i).start.trigger == Trigger::kEvent ? 1 : 0;
    EXPECT_EQ(a.SerializeAsString().size(), b.SerializeAsString().size());
    EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(a, b));
  }
  EXPECT_GT(changed, 4);
}

TEST_F(SimulationTest, TheScenariosFieldsAreWritten) {
  StatusField field;
  field.path = {"atProvider", "vpcId"};
  field.when = StatusField::When::kHeartbeat;
  field.content = StatusField::Content::kCounter;
  options_.status = StatusWith({field});
  options_.churn.composed = 60;
  function_.resources = 1;
  StartSteady();
  const std::string before =
      TextAt(simulation_->Observe(0).resources().at("bucket-0").resource(),
             {"status", "atProvider", "lastChecked"});
  Run(absl::Minutes(20));
  const Struct after =
      simulation_->Observe(0).resources().at("bucket-0").resource();
  EXPECT_EQ(TextAt(after, {"status", "atProvider", "lastChecked"}), before);
  ASSERT_NE(text::Find(after, {"status", "atProvider", "vpcId"}), nullptr);
  EXPECT_GT(
      text::Find(after, {"status", "atProvider", "vpcId"})->number_value(), 5);
}

// Breaker.

TEST_F(SimulationTest, FlappingOpensTheBreakerForFiveMinutesWithProbes) {
  ScenarioEvent event;
  event.kind = ScenarioEvent::Kind::kFlapping;
  event.length = absl::Minutes(6);
  event.rate = 10;
  options_.events = {event};
  function_.ttl = absl::ZeroDuration();
  StartSteady();
  Run(absl::Minutes(1));
  EXPECT_EQ(simulation_->counters().breaker_openings, 1u);
  EXPECT_GT(simulation_->counters().events_dropped, 300u);
  // 100 tokens and what came back, at two each.
  const size_t before = recorder_.all.size();
  EXPECT_GE(before, 45u);
  EXPECT_LE(before, 60u);
  Run(absl::Minutes(4));
  EXPECT_NEAR(recorder_.all.size() - before, 8, 2);  // a probe every 30 s
  const auto conditions = engine::ConditionsOf(
      Request(recorder_.all.size() - 1).observed().composite().resource());
  EXPECT_EQ(Find(conditions, "Responsive")->status, "False");
  Run(absl::Minutes(1));
  EXPECT_EQ(simulation_->counters().breaker_openings, 2u);
}

TEST_F(SimulationTest, FlappingEndsAsItBegan) {
  ScenarioEvent event;
  event.kind = ScenarioEvent::Kind::kFlapping;
  event.length = absl::Seconds(1);
  event.rate = 5;
  options_.events = {event};
  StartSteady();
  const auto synced = [&] {
    const auto observed = simulation_->Observe(0);
    return Find(engine::ConditionsOf(
                    observed.resources().at("bucket-0").resource()),
                "Synced")
        ->status;
  };
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) {
    Run(absl::Milliseconds(20));
    seen.insert(synced());
  }
  EXPECT_EQ(seen.size(), 2u);
  EXPECT_EQ(synced(), "True");
}

TEST_F(SimulationTest, AResyncOfMoreThanFiftyResourcesTripsTheBreaker) {
  for (const int resources : {40, 60}) {
    options_.resync = absl::Hours(1);
    function_.resources = resources;
    function_.ttl = absl::ZeroDuration();
    StartSteady();
    Run(absl::Hours(1));
    EXPECT_EQ(simulation_->counters().breaker_openings,
              resources > 50 ? 1u : 0u);
    simulation_->Stop();
    simulation_.reset();
  }
}

TEST_F(SimulationTest, HeavyARunBelowTheBreakersRateGoesOnForEver) {
  options_.churn.noop = 600;  // every six seconds
  StartSteady();
  Run(absl::Hours(2));
  EXPECT_NEAR(recorder_.all.size(), 1200, 120);
  EXPECT_EQ(simulation_->counters().breaker_openings, 0u);
}

// Steady state and echoes.

void RemoveVersions(fn::RunFunctionRequest* request) {
  request->clear_meta();
  const auto remove = [](Struct* object) {
    text::Remove(object, {"metadata", "resourceVersion"});
    text::Remove(object, {"metadata", "managedFields"});
  };
  remove(request->mutable_observed()->mutable_composite()->mutable_resource());
  for (auto& [name, resource] :
       *request->mutable_observed()->mutable_resources()) {
    remove(resource.mutable_resource());
  }
}

bool Equal(const fn::RunFunctionRequest& a, const fn::RunFunctionRequest& b) {
  return google::protobuf::util::MessageDifferencer::Equals(a, b);
}

TEST_F(SimulationTest, SettledRequestsAreEqual) {
  StartSteady();
  Run(10 * kTtl);
  ASSERT_GE(recorder_.all.size(), 9u);
  for (size_t i = 1; i < recorder_.all.size(); ++i) {
    EXPECT_TRUE(Equal(Request(0), Request(i)));
    EXPECT_EQ(End(i).writes, 0);
  }
}

TEST_F(SimulationTest, AVersionOnlyWriteChangesVersionsAndTimesOnly) {
  options_.churn.noop = 30;
  StartSteady();
  Run(absl::Minutes(20));
  int changed = 0;
  for (size_t i = 1; i < recorder_.all.size(); ++i) {
    fn::RunFunctionRequest a = Request(i - 1);
    fn::RunFunctionRequest b = Request(i);
    changed += Equal(a, b) ? 0 : 1;
    RemoveVersions(&a);
    RemoveVersions(&b);
    EXPECT_TRUE(Equal(a, b));
  }
  EXPECT_GT(changed, 4);
}

TEST_F(SimulationTest, AnEchoDiffersInWhatWasWritten) {
  StartSteady();
  function_.resources = 3;
  Run(absl::ZeroDuration());
  Run(kTtl);
  // The request that brought the change, then its echo with one more resource.
  size_t i = 0;
  while (i < recorder_.all.size() && End(i).writes == 0) ++i;
  ASSERT_LT(i + 1, recorder_.all.size());
  EXPECT_EQ(End(i + 1).start.trigger, Trigger::kEvent);
  EXPECT_EQ(Gap(i + 1), absl::ZeroDuration());
  EXPECT_EQ(Request(i + 1).observed().resources_size(), 3);
  fn::RunFunctionRequest a = Request(i);
  fn::RunFunctionRequest b = Request(i + 1);
  RemoveVersions(&a);
  RemoveVersions(&b);
  EXPECT_EQ(a.observed().resources().at("bucket-0").SerializeAsString().size(),
            b.observed().resources().at("bucket-0").SerializeAsString().size());
}

TEST_F(SimulationTest, ASpecWriteBumpsGenerationAndObservedGeneration) {
  options_.churn.spec = 6;
  StartSteady();
  const int64_t before =
      engine::GenerationOf(simulation_->Observe(0).composite().resource());
  Run(absl::Hours(1));
  const Struct after = simulation_->Observe(0).composite().resource();
  const int64_t generation = engine::GenerationOf(after);
  EXPECT_GT(generation, before);
  for (const auto& condition : engine::ConditionsOf(after)) {
    EXPECT_EQ(condition.observed_generation, generation) << condition.type;
  }
}

TEST_F(SimulationTest, WhatAnAnswerLeavesOutIsDeleted) {
  StartSteady();
  function_.resources = 1;
  Run(2 * kTtl);
  const fn::State state = simulation_->Observe(0);
  EXPECT_EQ(state.resources_size(), 1);
  EXPECT_EQ(text::FindList(state.composite().resource(),
                           {"spec", "crossplane", "resourceRefs"})
                ->values_size(),
            1);
}

TEST_F(SimulationTest, ObjectsLookAsARealControlPlanesDo) {
  StartSteady();
  const fn::State state = simulation_->Observe(0);
  const Struct& composite = state.composite().resource();
  std::set<std::string> managers;
  const auto add = [&](const Struct& object) {
    for (const Value& value :
         text::FindList(object, {"metadata", "managedFields"})->values()) {
      const Struct& entry = value.struct_value();
      managers.insert(absl::StrCat(TextAt(entry, {"manager"}).substr(0, 37),
                                   " ", TextAt(entry, {"operation"}), " ",
                                   TextAt(entry, {"subresource"})));
      EXPECT_TRUE(text::ParseRfc3339(TextAt(entry, {"time"})).has_value());
    }
  };
  add(composite);
  EXPECT_EQ(managers, (std::set<std::string>{
                          "apiextensions.crossplane.io/composite Apply ",
                          "apiextensions.crossplane.io/composite Apply status",
                          "crossplane Update ", "crossplane Update status",
                          "kubectl-create Update "}));
  managers.clear();
  add(state.resources().at("bucket-0").resource());
  EXPECT_EQ(managers, (std::set<std::string>{
                          "apiextensions.crossplane.io/composed/ Apply ",
                          "provider Update ", "provider Update status"}));
  const auto conditions = engine::ConditionsOf(composite);
  ASSERT_EQ(conditions.size(), 3u);
  EXPECT_EQ(TextAt(composite, {"metadata", "uid"}).size(), 36u);
}

// Arithmetic.

TEST_F(SimulationTest, HeavySettledCompositesArriveOncePerTtlEach) {
  recorder_.keep_requests = false;
  function_.resources = 1;
  constexpr int kComposites = 1000;
  StartSteady(kComposites);
  Run(10 * kTtl);
  // N / TTL a second. Each composite has ten renewals in ten TTLs, give or take
  // one by its phase and by 5.8 % of a TTL a round.
  EXPECT_NEAR(recorder_.all.size(), 10.0 * kComposites,
              0.01 * 10 * kComposites);
  double sum = 0;
  double squares = 0;
  int gaps = 0;
  std::map<int, absl::Time> last;
  std::vector<int> arrivals(100);
  for (const Reconcile& reconcile : recorder_.all) {
    const absl::Time at = reconcile.end.start.started;
    ++arrivals[std::min<int64_t>(99, (at - kStart) / absl::Seconds(6))];
    absl::Time& before = last[reconcile.end.start.composite];
    if (before != absl::Time()) {
      const double gap = absl::FDivDuration(at - before, kTtl);
      sum += gap;
      squares += gap * gap;
      ++gaps;
    }
    before = at;
  }
  const double mean = sum / gaps;
  const double spread = std::sqrt(squares / gaps - mean * mean);
  EXPECT_NEAR(mean, 1.0, 0.003);
  EXPECT_NEAR(spread, 0.0577, 0.002);  // 0.1 / sqrt(3)
  // Evenly over the time, as phases are: 100 a tenth of a TTL.
  for (const int count : arrivals) EXPECT_NEAR(count, 100, 50);
}

TEST_F(SimulationTest, HeavyAHerdSpreadsByTheJitterOfEachRound) {
  recorder_.keep_requests = false;
  function_.resources = 1;
  options_.start = StartFrom::kCold;
  options_.composites = 400;
  options_.workers = 2000;
  Start();
  Run(6 * kTtl);
  std::map<int, int> round;
  std::map<int, std::vector<double>> times;
  for (const Reconcile& reconcile : recorder_.all) {
    if (reconcile.end.start.trigger != Trigger::kTimer) continue;
    times[++round[reconcile.end.start.composite]].push_back(
        absl::FDivDuration(reconcile.end.start.started - kStart, kTtl));
  }
  for (const int r : {1, 4}) {
    double sum = 0;
    double squares = 0;
    for (const double time : times[r]) {
      sum += time;
      squares += time * time;
    }
    const double n = static_cast<double>(times[r].size());
    ASSERT_EQ(n, 400);
    EXPECT_NEAR(std::sqrt(squares / n - sum / n * (sum / n)),
                0.0577 * std::sqrt(r), 0.01);
  }
}

// The model itself.

TEST_F(SimulationTest, TheSameSeedGivesTheSameRun) {
  const auto run = [](uint64_t seed) {
    Function function;
    Held caller(&function);
    SimulatedScheduler scheduler(kStart);
    Recorder recorder;
    ModelOptions options;
    options.composites = 5;
    options.seed = seed;
    options.churn = {20, 20, 20, 20};
    Simulation simulation(options, {Input()}, &caller, &scheduler, &scheduler,
                          &recorder);
    simulation.Start();
    scheduler.RunUntil(kStart + absl::Minutes(15));
    std::string text;
    for (const Reconcile& reconcile : recorder.all) {
      absl::StrAppend(&text, reconcile.end.start.composite, " ",
                      TriggerName(reconcile.end.start.trigger), " ",
                      absl::FormatTime(reconcile.end.start.started), " ",
                      reconcile.requests.at(0).meta().tag(), "\n");
    }
    return text;
  };
  const std::string one = run(1);
  EXPECT_EQ(one, run(1));
  EXPECT_NE(one, run(2));
}

TEST_F(SimulationTest, ChurnFollowsFromTheSeedAndNotFromAnswers) {
  const auto writes = [&](int resources) {
    recorder_.all.clear();
    function_.resources = resources;
    function_.ttl = absl::ZeroDuration();
    options_.churn.spec = 30;
    StartSteady();
    std::vector<absl::Time> times;
    const absl::Time start = scheduler_.Now();
    Run(absl::Hours(1));
    for (const Reconcile& reconcile : recorder_.all) {
      if (times.empty() || reconcile.end.start.due != times.back()) {
        times.push_back(reconcile.end.start.due);
      }
    }
    std::vector<absl::Duration> since;
    for (const absl::Time time : times) since.push_back(time - start);
    simulation_->Stop();
    simulation_.reset();
    return since;
  };
  const auto few = writes(1);
  EXPECT_GT(few.size(), 15u);
  EXPECT_EQ(few, writes(4));
}

TEST_F(SimulationTest, ABurstCreatesNewOnes) {
  ScenarioEvent event;
  event.kind = ScenarioEvent::Kind::kBurst;
  event.at = absl::Seconds(30);
  event.composites = 7;
  options_.events = {event};
  StartSteady(3);
  Run(absl::Seconds(29));
  EXPECT_EQ(simulation_->counters().composites, 3u);
  Run(absl::Seconds(20));
  EXPECT_EQ(simulation_->counters().composites, 10u);
  EXPECT_EQ(simulation_->counters().ready, 10u);
}

TEST_F(SimulationTest, RunSettledChangesNothing) {
  options_.start = StartFrom::kSteady;
  Make();
  ASSERT_TRUE(simulation_->Settle(nullptr).ok());
  const fn::State before = simulation_->Observe(0);
  function_.resources = 5;
  int done = 0;
  for (int i = 0; i < 3; ++i) {
    simulation_->RunSettled(0, kStart, [&](const PipelineEnd& end) {
      EXPECT_TRUE(end.status.ok());
      EXPECT_EQ(end.ttl, kTtl);
      ++done;
    });
  }
  EXPECT_EQ(done, 3);
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(
      simulation_->Observe(0), before));
  EXPECT_TRUE(simulation_->Idle());
}

TEST_F(SimulationTest, SettlingFailsWithTheFirstFailureIfAllFail) {
  function_.status = absl::UnavailableError("nobody there");
  options_.start = StartFrom::kSteady;
  Make();
  const auto settled = simulation_->Settle(nullptr);
  EXPECT_FALSE(settled.ok());
  EXPECT_NE(settled.status().message().find("nobody there"), std::string::npos);
}

TEST_F(SimulationTest, HeavyCompositesOfTwentyResourcesFitInTheirMemory) {
  recorder_.keep_requests = false;
  function_.resources = 20;
  function_.settings = 20;
  constexpr int kComposites = 20;
  StartSteady(kComposites);
  EXPECT_EQ(simulation_->counters().ready, kComposites);
  const size_t bytes = simulation_->MemoryBytes() / kComposites;
  EXPECT_LT(bytes, 150u << 10);
  EXPECT_GT(bytes, 10u << 10);
  RecordProperty("bytes", static_cast<int>(bytes));
}

TEST(ModelOptionsTest, RangesAreNamed) {
  ModelOptions options;
  EXPECT_TRUE(Validate(options).ok());
  options.workers = 0;
  EXPECT_NE(Validate(options).message().find("--workers must be from 1"),
            absl::string_view::npos);
  options = ModelOptions();
  options.churn.spec = -1;
  EXPECT_FALSE(Validate(options).ok());
}

}  // namespace
}  // namespace fncache::runner::load::model
