// SPDX-License-Identifier: Apache-2.0
#include "runner/engine/pipeline.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "google/protobuf/struct.pb.h"
#include "proto/function_v1.pb.h"
#include "runner/engine/requirements.h"
#include "runner/engine/step_request.h"
#include "sdk/schema/group_version.h"
#include "text/quoted.h"

namespace fncache::runner::engine {

namespace fn = apiextensions::fn::proto::v1;

namespace {

using sdk::schema::ParseGroupVersion;

absl::Duration TtlOf(const fn::RunFunctionResponse& response) {
  const auto& ttl = response.meta().ttl();
  return absl::Seconds(ttl.seconds()) + absl::Nanoseconds(ttl.nanos());
}

// One run of a pipeline. Each pending operation has a reference to it, which
// keeps it alive. One thread at a time drives it, so that its state needs no
// lock.
class Pipeline : public std::enable_shared_from_this<Pipeline> {
 public:
  Pipeline(PipelineInput input, client::FunctionCaller* caller, Clock* clock,
           PipelineObserver* observer,
           std::function<void(PipelineOutcome)> done)
      : composition_(std::move(input.composition)),
        objects_(input.objects != nullptr
                     ? std::move(input.objects)
                     : std::make_shared<const ObjectStore>()),
        schema_source_(std::move(input.schemas)),
        capabilities_(std::move(input.capabilities)),
        deadline_(input.deadline),
        step_timeout_(input.step_timeout),
        caller_(caller),
        clock_(clock),
        observer_(observer),
        done_(std::move(done)),
        shared_observed_(input.shared_observed != nullptr
                             ? std::move(input.shared_observed)
                             : std::make_shared<const SharedObserved>(
                                   std::move(input.observed))) {
    // Lent, not owned: nothing writes to a request's `observed`.
    request_.unsafe_arena_set_allocated_observed(
        const_cast<fn::State*>(&shared_observed_->state()));
    // The first step is sent an empty desired state and an empty context,
    // rather than none.
    request_.mutable_desired();
    request_.mutable_context();
  }

  ~Pipeline() { request_.unsafe_arena_release_observed(); }

  // Goes on until something has to be waited for, or to the end. A loop: what
  // is answered at once does not nest.
  void Drive() {
    bool arrived = true;
    while (arrived) {
      switch (next_) {
        case Next::kBeginStep:
          BeginStep();
          break;
        case Next::kFetchSchema:
          arrived = FetchSchema();
          break;
        case Next::kTakeSchema:
          TakeSchema();
          break;
        case Next::kFetched:
          Fetched();
          break;
        case Next::kCall:
          arrived = Call();
          break;
        case Next::kTakeResponse:
          TakeResponse();
          break;
        case Next::kEnd:
          End();
          return;
      }
    }
    // Another thread may be driving already: nothing is touched from here on.
  }

 private:
  enum class Next {
    kBeginStep,
    kFetchSchema,
    kTakeSchema,
    kFetched,
    kCall,
    kTakeResponse,
    kEnd,
  };
  // Which of two is done first: the thread that starts a call, or the call's
  // answer. The second of them continues the pipeline.
  enum class First { kNobody, kStarter, kAnswer };

  // Runs `start`, which causes one Arrived(), now or later, on any thread. True
  // if the caller must continue; if false, Arrived() does. (Callbacks move
  // their reference out of themselves, since continuing may destroy them.)
  template <typename Start>
  bool Await(Start start) {
    first_.store(First::kNobody);
    start();
    return first_.exchange(First::kStarter) == First::kAnswer;
  }

  void Arrived() {
    if (first_.exchange(First::kAnswer) == First::kStarter) Drive();
  }

  const PipelineStep& step() const { return composition_->steps[index_]; }

  void Fail(absl::Status status) {
    outcome_.status = std::move(status);
    next_ = Next::kEnd;
  }
  void FailRun(const absl::Status& status) {
    Fail(Prefixed(absl::StrCat("cannot run Composition pipeline step ",
                               text::Quoted(step().name)),
                  status));
  }

  void BeginStep() {
    if (index_ == composition_->steps.size()) {
      next_ = Next::kEnd;
      return;
    }
    step_deadline_ = std::min(deadline_, clock_->Now() + step_timeout_);
    const absl::Status status = FillStep(step(), *objects_, &request_);
    if (!status.ok()) return Fail(status);
    loop_.reset();
    Fetch(BootstrapSelectors(step()));
  }

  // Fetches the resources at once, and begins to fetch the schemas, which come
  // one by one.
  void Fetch(Selectors selectors) {
    required_ = FetchResources(selectors, *objects_);
    for (auto* const some :
         {&selectors.extra_resources, &selectors.resources}) {
      for (auto& [name, selector] : *some) {
        outcome_.fetched_resources.push_back(std::move(selector));
      }
    }
    schemas_ = std::move(selectors.schemas);
    schema_index_ = 0;
    next_ = Next::kFetchSchema;
  }

  bool FetchSchema() {
    if (schema_index_ == schemas_.size()) {
      next_ = Next::kFetched;
      return true;
    }
    const fn::SchemaSelector& selector = schemas_[schema_index_].second;
    outcome_.fetched_schemas.push_back(selector);
    next_ = Next::kTakeSchema;
    // The runner fails at what is no apiVersion, whether it has schemas or not.
    const auto group_version = ParseGroupVersion(selector.api_version());
    if (!group_version.ok()) {
      found_ = group_version.status();
      return true;
    }
    if (schema_source_ == nullptr) {
      found_ = absl::optional<google::protobuf::Struct>();
      return true;
    }
    return Await([&] {
      schema_source_->Find(
          selector.api_version(), selector.kind(), step_deadline_,
          [self = shared_from_this()](FoundSchema found) mutable {
            const auto kept = std::move(self);
            kept->found_ = std::move(found);
            kept->Arrived();
          });
    });
  }

  void TakeSchema() {
    const std::string& name = schemas_[schema_index_].first;
    if (!found_.ok()) {
      if (loop_.has_value()) {
        return FailRun(Prefixed(absl::StrCat("fetching schema for ", name),
                                found_.status()));
      }
      return Fail(Prefixed(
          absl::StrCat(
              "cannot fetch bootstrap required schema for requirement ",
              text::Quoted(name)),
          found_.status()));
    }
    fn::Schema schema;
    if (found_->has_value()) schema.mutable_openapi_v3()->Swap(&**found_);
    required_.schemas[name].Swap(&schema);
    ++schema_index_;
    next_ = Next::kFetchSchema;
  }

  // Called once required_ holds all that was to be fetched.
  void Fetched() {
    if (!loop_.has_value()) {
      loop_.emplace(std::move(required_));
      loop_->FillFirst(&request_);
      request_.clear_meta();
      std::string tag = shared_observed_->tagger().Tag(&request_);
      request_.mutable_meta()->set_tag(std::move(tag));
      for (const fn::Capability capability : capabilities_) {
        request_.mutable_meta()->add_capabilities(capability);
      }
      next_ = Next::kCall;
      return;
    }
    const absl::StatusOr<bool> again =
        loop_->Fetched(std::move(required_), &request_);
    if (!again.ok()) return FailRun(again.status());
    if (!*again) return EndStep();
    TakeContext();
    next_ = Next::kCall;
  }

  bool Call() {
    next_ = Next::kTakeResponse;
    started_ = clock_->Now();
    return Await([&] {
      caller_->Call(
          step().function, request_, step_deadline_,
          [self = shared_from_this()](client::CallResult result) mutable {
            const auto kept = std::move(self);
            kept->ended_ = kept->clock_->Now();
            kept->result_ = std::move(result);
            kept->Arrived();
          });
    });
  }

  void TakeResponse() {
    ++calls_;
    if (observer_ != nullptr) {
      observer_->OnCall({step().name, step().function, static_cast<int>(index_),
                         calls_, request_, result_, started_,
                         ended_ - started_});
    }
    if (!result_.status.ok()) return FailRun(result_.status);
    if (loop_->IsLast(result_.response)) return EndStep();
    Fetch(RequiredSelectors(result_.response.requirements()));
  }

  void TakeContext() {
    if (result_.response.has_context()) {
      request_.mutable_context()->Swap(result_.response.mutable_context());
    } else {
      request_.clear_context();
    }
  }

  // Called when the response at hand is the step's last.
  void EndStep() {
    fn::RunFunctionResponse& response = result_.response;
    const absl::Duration ttl = TtlOf(response);
    if (ttl > absl::ZeroDuration() &&
        (outcome_.ttl == absl::ZeroDuration() || ttl < outcome_.ttl)) {
      outcome_.ttl = ttl;
    }
    for (fn::Condition& condition : *response.mutable_conditions()) {
      outcome_.conditions.push_back(std::move(condition));
    }
    for (fn::Result& result : *response.mutable_results()) {
      if (result.severity() == fn::SEVERITY_FATAL) {
        outcome_.fatal = true;
        return Fail(absl::FailedPreconditionError(
            absl::StrCat("pipeline step ", text::Quoted(step().name),
                         " returned a fatal result: ", result.message())));
      }
      outcome_.results.push_back({step().name, std::move(result)});
    }
    if (response.has_desired()) {
      request_.mutable_desired()->Swap(response.mutable_desired());
    } else {
      request_.clear_desired();
    }
    TakeContext();
    ++index_;
    calls_ = 0;
    next_ = Next::kBeginStep;
  }

  void End() {
    if (outcome_.status.ok()) {
      outcome_.desired.Swap(request_.mutable_desired());
      if (index_ > 0 && request_.has_context()) {
        outcome_.context = std::move(*request_.mutable_context());
      }
    }
    const auto done = std::move(done_);
    done(std::move(outcome_));
  }

  const std::shared_ptr<const Composition> composition_;
  const std::shared_ptr<const ObjectStore> objects_;
  const std::shared_ptr<SchemaSource> schema_source_;
  const std::vector<fn::Capability> capabilities_;
  const absl::Time deadline_;
  const absl::Duration step_timeout_;
  client::FunctionCaller* const caller_;
  Clock* const clock_;
  PipelineObserver* const observer_;
  std::function<void(PipelineOutcome)> done_;

  Next next_ = Next::kBeginStep;
  std::atomic<First> first_{First::kNobody};
  PipelineOutcome outcome_;

  // One request serves all steps, and only what changes is swapped in and out,
  // because most of a request is `observed`, which never changes.
  const std::shared_ptr<const SharedObserved> shared_observed_;
  fn::RunFunctionRequest request_;

  size_t index_ = 0;  // of the step
  absl::Time step_deadline_;
  absl::optional<RequirementsLoop> loop_;  // once bootstrap is fetched
  int calls_ = 0;                          // of the step, answered
  absl::Time started_;                     // the last call
  absl::Time ended_;
  client::CallResult result_;

  Required required_;
  Selectors::Named<fn::SchemaSelector> schemas_;  // to be fetched
  size_t schema_index_ = 0;
  FoundSchema found_;
};

}  // namespace

std::vector<fn::Capability> AllCapabilities() {
  return {fn::CAPABILITY_CAPABILITIES, fn::CAPABILITY_REQUIRED_RESOURCES,
          fn::CAPABILITY_CREDENTIALS, fn::CAPABILITY_CONDITIONS,
          fn::CAPABILITY_REQUIRED_SCHEMAS};
}

void RunPipeline(PipelineInput input, client::FunctionCaller* caller,
                 Clock* clock, PipelineObserver* observer,
                 std::function<void(PipelineOutcome)> done) {
  std::make_shared<Pipeline>(std::move(input), caller, clock, observer,
                             std::move(done))
      ->Drive();
}

}  // namespace fncache::runner::engine
