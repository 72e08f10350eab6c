// SPDX-License-Identifier: Apache-2.0
// The tests of pipelines share this: a pipeline of fake functions over a few
// objects and schemas, run to its end, and what was called and reported.
#ifndef FNCACHE_TESTS_RUNNER_ENGINE_PIPELINE_TESTING_H_
#define FNCACHE_TESTS_RUNNER_ENGINE_PIPELINE_TESTING_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/clock.h"
#include "gtest/gtest.h"
#include "runner/engine/composition.h"
#include "runner/engine/object_store.h"
#include "runner/engine/pipeline.h"
#include "tests/runner/fake_functions.h"
#include "tests/runner/messages.h"
#include "text/object.h"

namespace fncache::runner::engine {

using google::protobuf::Struct;

inline constexpr absl::string_view kObserved = R"({
    "composite": {"resource": {"kind": "XR"}},
    "resources": {"o": {"resource": {"kind": "O"}}}})";

// An object of kind A, another of kind B and a Secret.
inline constexpr absl::string_view kA =
    R"({"apiVersion": "v1", "kind": "A", "metadata": {"name": "a"}})";
inline constexpr absl::string_view kB =
    R"({"apiVersion": "v1", "kind": "B", "metadata": {"name": "b"}})";
inline constexpr absl::string_view kSecret = R"({
    "apiVersion": "v1", "kind": "Secret",
    "metadata": {"namespace": "ns", "name": "s"}, "data": {"k": "dg=="}})";

// A response that requires the object of kind A.
inline constexpr absl::string_view kNeedsA =
    R"({"desired": {"resources": {"first": {}}}, "context": {"call": 1},
        "requirements": {"resources": {"a": {"apiVersion": "v1", "kind": "A"}}},
        "results": [{"severity": "SEVERITY_WARNING", "message": "early"}],
        "conditions": [{"type": "Early"}], "meta": {"ttl": "1s"}})";

// Schemas that are their kind's name; none for kind None, an error for Bad.
class FakeSchemas : public SchemaSource {
 public:
  void Find(const std::string& api_version, const std::string& kind,
            absl::Time deadline,
            std::function<void(FoundSchema)> done) override {
    deadlines_.push_back(deadline);
    asked_.push_back(absl::StrCat(api_version, ":", kind));
    if (kind == "Bad") return done(absl::DataLossError("bad document"));
    if (kind == "None") return done(absl::optional<Struct>());
    Struct schema;
    text::SetText(&schema, {"of"}, kind);
    done(schema);
  }
  std::vector<std::string> asked_;
  std::vector<absl::Time> deadlines_;
};

class PipelineTest : public testing::Test, public PipelineObserver {
 protected:
  // A copy of an observer's report.
  struct Report {
    std::string step;
    std::string function;
    int step_index;
    int call;
    std::string tag;
    RunFunctionResponse response;
    absl::Status status;
    std::string cache_status;
    absl::Time started;
    absl::Duration took;
  };

  PipelineTest() {
    auto store = std::make_shared<ObjectStore>();
    for (const absl::string_view object : {kA, kB, kSecret}) {
      store->Add(FromJson<Struct>(object));
    }
    input_.objects = std::move(store);
    input_.observed = FromJson<apiextensions::fn::proto::v1::State>(kObserved);
    input_.schemas = schemas_;
  }

  // A step of function `f-NAME`.
  PipelineStep& AddStep(const std::string& name) {
    composition_.steps.emplace_back();
    composition_.steps.back().name = name;
    composition_.steps.back().function = "f-" + name;
    return composition_.steps.back();
  }
  void AddStep(const std::string& name, std::vector<std::string> responses) {
    AddStep(name);
    functions_.Answer("f-" + name, std::move(responses));
  }

  void OnCall(const CallReport& report) override {
    reports_.push_back({std::string(report.step), std::string(report.function),
                        report.step_index, report.call,
                        report.request.meta().tag(), report.result.response,
                        report.result.status, report.result.cache_status,
                        report.started, report.took});
  }

  PipelineOutcome Run() {
    input_.composition = std::make_shared<Composition>(composition_);
    PipelineOutcome outcome;
    int done = 0;
    RunPipeline(input_, &functions_, &clock_, this, [&](PipelineOutcome ended) {
      outcome = std::move(ended);
      ++done;
    });
    EXPECT_EQ(done, 1);
    asked_ = functions_.asked();
    return outcome;
  }

  // Request number `i` (from 0) without meta.
  RunFunctionRequest Untagged(size_t i) {
    RunFunctionRequest request = asked_.at(i).request;
    request.clear_meta();
    return request;
  }
  void ExpectRequest(size_t i, absl::string_view more) {
    ExpectJson(Untagged(i),
               absl::StrCat(R"({"observed": )", kObserved, more, "}"));
  }
  // The function called, by its step, and how often.
  std::string Calls() const {
    std::string calls;
    for (const Report& report : reports_) {
      absl::StrAppend(&calls, calls.empty() ? "" : " ", report.step,
                      report.call);
    }
    return calls;
  }

  std::shared_ptr<FakeSchemas> schemas_ = std::make_shared<FakeSchemas>();
  Composition composition_;
  PipelineInput input_;
  FakeFunctions functions_;
  SimulatedClock clock_{absl::FromUnixSeconds(1000)};
  std::vector<Report> reports_;
  std::vector<FakeFunctions::Asked> asked_;
};

}  // namespace fncache::runner::engine

#endif  // FNCACHE_TESTS_RUNNER_ENGINE_PIPELINE_TESTING_H_
