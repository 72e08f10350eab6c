// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <stdexcept>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/clock.h"
#include "fncache/function/testing.h"
#include "runner/client/function_caller.h"
#include "runner/engine/pipeline.h"
#include "runner/testing/call_state.h"
#include "runner/testing/messages.h"
#include "text/object.h"

namespace fncache::function::testing {

namespace engine = runner::engine;
namespace proto = apiextensions::fn::proto::v1;
using google::protobuf::Struct;

namespace {

// The step of the function, and the one before it, which desires what the call
// says that earlier steps desire.
constexpr char kStep[] = "function";
constexpr char kEarlier[] = "earlier";
constexpr int kMaxRounds = 100;

// Both functions, and the schemas that the call has by name.
class Runner : public runner::client::FunctionCaller,
               public engine::SchemaSource {
 public:
  explicit Runner(const CallState& call) : call_(call) {
    for (const auto& [name, selector] : call.bootstrap_schemas) {
      Name(name, selector);
    }
  }

  void Call(const std::string& function,
            const proto::RunFunctionRequest& request, absl::Time deadline,
            Done done) override {
    runner::client::CallResult result;
    if (function == kEarlier) {
      *result.response.mutable_desired() = call_.request.desired();
      *result.response.mutable_context() = call_.request.context();
      return done(std::move(result));
    }
    proto::RunFunctionRequest with = request;
    *with.mutable_credentials() = call_.request.credentials();
    answers.emplace_back(Run(call_, with.SerializeAsString()));
    const AnswerState& state = answers.back().state();
    for (const auto& [name, selector] :
         state.response.requirements().schemas()) {
      Name(name, selector);
    }
    result.status = state.status;
    result.response = state.response;
    done(std::move(result));
  }

  void Find(const std::string& api_version, const std::string& kind,
            absl::Time deadline,
            std::function<void(engine::FoundSchema)> done) override {
    const auto& schemas = call_.request.required_schemas();
    const auto found = schemas.find(names_[{api_version, kind}]);
    if (found == schemas.end() || !found->second.has_openapi_v3()) {
      return done(absl::optional<Struct>());
    }
    done(absl::optional<Struct>(found->second.openapi_v3()));
  }

  std::vector<Answer> answers;

 private:
  void Name(const std::string& name, const proto::SchemaSelector& selector) {
    names_[{selector.api_version(), selector.kind()}] = name;
  }

  const CallState& call_;
  // The call's name for a kind's schema.
  std::map<std::pair<std::string, std::string>, std::string> names_;
};

engine::PipelineInput InputOf(const CallState& call) {
  engine::Composition composition;
  composition.steps.resize(2);
  composition.steps[0].name = composition.steps[0].function = kEarlier;
  engine::PipelineStep& step = composition.steps[1];
  step.name = step.function = kStep;
  step.required_resources = call.bootstrap;
  step.required_schemas = call.bootstrap_schemas;
  if (call.request.has_input()) {
    *step.input.emplace().mutable_struct_value() = call.request.input();
  }
  engine::ObjectStore objects;
  for (const auto& [name, items] : call.request.required_resources()) {
    for (const proto::Resource& item : items.items()) {
      objects.Add(item.resource());
    }
  }
  engine::PipelineInput input;
  input.composition =
      std::make_shared<engine::Composition>(std::move(composition));
  input.observed = call.request.observed();
  input.objects =
      std::make_shared<const engine::ObjectStore>(std::move(objects));
  input.capabilities.clear();
  for (const int capability : call.request.meta().capabilities()) {
    input.capabilities.push_back(static_cast<proto::Capability>(capability));
  }
  return input;
}

void MergeInto(Struct* object, const Struct& from) {
  for (const auto& [key, value] : from.fields()) {
    google::protobuf::Value& to = (*object->mutable_fields())[key];
    if (value.has_struct_value() && to.has_struct_value()) {
      MergeInto(to.mutable_struct_value(), value.struct_value());
    } else {
      to = value;
    }
  }
}

void SetCondition(const proto::Condition& from, Struct* composite) {
  Struct condition;
  text::SetText(&condition, {"type"}, from.type());
  text::SetText(&condition, {"status"},
                from.status() == proto::STATUS_CONDITION_TRUE    ? "True"
                : from.status() == proto::STATUS_CONDITION_FALSE ? "False"
                                                                 : "Unknown");
  text::SetText(&condition, {"reason"}, from.reason());
  if (from.has_message()) {
    text::SetText(&condition, {"message"}, from.message());
  }
  google::protobuf::ListValue& all =
      *text::Ensure(composite, {"status", "conditions"})->mutable_list_value();
  for (google::protobuf::Value& other : *all.mutable_values()) {
    if (text::FindText(other.struct_value(), {"type"}) == from.type()) {
      *other.mutable_struct_value() = condition;
      return;
    }
  }
  *all.add_values()->mutable_struct_value() = condition;
}

// The state of the cluster once it was applied. `metadata` and `status` have
// other writers, the rest of a resource is what is desired.
void Apply(const proto::RunFunctionResponse& response, proto::State* observed) {
  auto& existing = *observed->mutable_resources();
  for (auto it = existing.begin(); it != existing.end();) {
    it = response.desired().resources().contains(it->first)
             ? std::next(it)
             : existing.erase(it);
  }
  for (const auto& [name, desired] : response.desired().resources()) {
    Struct object;
    for (const char* const section : {"metadata", "status"}) {
      if (const Struct* now =
              text::FindMap(existing[name].resource(), {section})) {
        *text::EnsureMap(&object, {section}) = *now;
      }
    }
    MergeInto(&object, desired.resource());
    if (text::FindText(object, {"metadata", "name"}).empty()) {
      text::SetText(&object, {"metadata", "name"}, name);
    }
    existing[name].mutable_resource()->Swap(&object);
  }
  Struct* const composite = observed->mutable_composite()->mutable_resource();
  if (const Struct* const status = text::FindMap(
          response.desired().composite().resource(), {"status"})) {
    MergeInto(text::EnsureMap(composite, {"status"}), *status);
  }
  for (const proto::Condition& condition : response.conditions()) {
    SetCondition(condition, composite);
  }
}

void RunProvider(const Provider& provider, proto::State* observed) {
  std::map<std::string, Struct*> sorted;
  for (auto& [name, resource] : *observed->mutable_resources()) {
    sorted[name] = resource.mutable_resource();
  }
  for (const auto& [name, object] : sorted) {
    const Value value = ToValue(*object);
    provider(name, value);
    *object = ToStruct(value);
  }
}

}  // namespace

Settled Settle(const Call& call) {
  const auto runner = std::make_shared<Runner>(call.state());
  engine::PipelineInput input = InputOf(call.state());
  input.schemas = runner;
  SimulatedClock clock(absl::UnixEpoch());
  absl::Status outcome;
  // All of it is done before RunPipeline returns.
  engine::RunPipeline(std::move(input), runner.get(), &clock, nullptr,
                      [&](engine::PipelineOutcome ended) {
                        outcome = std::move(ended.status);
                      });
  if (runner->answers.empty()) {
    auto none = std::make_shared<AnswerState>();
    none->status = outcome;
    runner->answers.emplace_back(std::move(none));
  }
  return Settled(std::move(outcome), std::move(runner->answers));
}

std::vector<Answer> Reconcile(Call call, const Provider& provider) {
  proto::State* const observed = call.state().request.mutable_observed();
  std::vector<Answer> answers;
  std::string changes;
  for (int round = 0; round < kMaxRounds; ++round) {
    // As the desired state of responses, which can be compared.
    proto::RunFunctionResponse before, after;
    *before.mutable_desired() = *observed;
    const Settled settled = Settle(call);
    answers.push_back(settled);
    if (settled.outcome().ok()) Apply(settled.state().response, observed);
    RunProvider(provider, observed);
    *after.mutable_desired() = *observed;
    changes = Difference(before, after);
    if (changes.empty()) return answers;
  }
  throw std::runtime_error(
      absl::StrCat("Reconcile: after ", kMaxRounds, " rounds, observed",
                   absl::StripPrefix(changes, "desired"), " still changes"));
}

}  // namespace fncache::function::testing
