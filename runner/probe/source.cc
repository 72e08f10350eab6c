// SPDX-License-Identifier: Apache-2.0
#include "runner/probe/source.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "cache/key/reencode.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/mutex.h"
#include "common/nearest.h"
#include "insight/trace/reader.h"
#include "runner/engine/engine.h"
#include "runner/engine/pipeline.h"
#include "runner/render/context_steps.h"
#include "runner/render/input_file.h"
#include "text/deterministic_bytes.h"

namespace fncache::runner::probe {
namespace {

using apiextensions::fn::proto::v1::RunFunctionRequest;
using insight::trace::ReadCall;
using insight::trace::TraceReader;

// The largest request that a function may get.
constexpr size_t kMaxRequest = size_t{1} << 30;

std::string NoSuch(absl::string_view what, const std::string& name,
                   const std::vector<std::string>& there) {
  return absl::StrCat(
      "no ", what, " is called \"", name, "\"", DidYouMean(name, there),
      there.empty()
          ? "; there are none"
          : absl::StrCat("; there are: ", absl::StrJoin(there, ", ")));
}

// Whether what protobuf found in a file is a request: other files become
// unknown fields at the top, if anything. An Operation's has no observed state.
bool IsRequest(const RunFunctionRequest& request) {
  if (request.has_observed()) return true;
  return request.GetReflection()->GetUnknownFields(request).empty() &&
         request.ByteSizeLong() > 0;
}

std::string Named(const RunFunctionRequest& request) {
  if (!request.observed().composite().has_resource()) return "an operation";
  const auto& fields = request.observed().composite().resource().fields();
  const auto text = [](const auto& object, const char* key) {
    const auto found = object.find(key);
    return found == object.end() ? "" : found->second.string_value();
  };
  const auto metadata = fields.find("metadata");
  const std::string kind = text(fields, "kind");
  return absl::StrCat(
      kind.empty() ? "a composite" : kind, " ",
      metadata == fields.end()
          ? ""
          : text(metadata->second.struct_value().fields(), "name"));
}

// Keeps the last request of the step that is asked about, from a pipeline's
// threads, one at a time.
class LastRequest : public engine::PipelineObserver {
 public:
  explicit LastRequest(int step) : step_(step) {}

  void OnCall(const engine::CallReport& report) override {
    if (report.step_index != step_) return;
    request_ = report.request;
    seen_ = true;
  }

  bool seen() const { return seen_; }
  const RunFunctionRequest& request() const { return request_; }

 private:
  const int step_;
  bool seen_ = false;
  RunFunctionRequest request_;
};

// How many resources were observed, and how many of their conditions are True.
using State = std::pair<size_t, size_t>;

State StateOf(const RunFunctionRequest& request) {
  State state = {0, 0};
  const auto count = [&state](const google::protobuf::Struct& object) {
    const auto status = object.fields().find("status");
    if (status == object.fields().end()) return;
    const auto& fields = status->second.struct_value().fields();
    const auto conditions = fields.find("conditions");
    if (conditions == fields.end()) return;
    for (const auto& one : conditions->second.list_value().values()) {
      const auto& condition = one.struct_value().fields();
      const auto found = condition.find("status");
      if (found != condition.end() && found->second.string_value() == "True") {
        ++state.second;
      }
    }
  };
  count(request.observed().composite().resource());
  for (const auto& one : request.observed().resources()) {
    ++state.first;
    count(one.second.resource());
  }
  return state;
}

// The newest request with one input, and the one in the earliest state.
struct Newest {
  std::string input;
  absl::Time arrived;
  RunFunctionRequest request;
  State first_state;
  RunFunctionRequest first;
};

}  // namespace

absl::StatusOr<Source> ReadRequestFile(const std::string& path) {
  const auto bytes = ReadSmallFile(path, kMaxRequest);
  if (!bytes.ok()) return bytes.status();
  RunFunctionRequest request;
  if (!cache::key::ParseRequest(*bytes, &request) || !IsRequest(request)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": is neither a RunFunctionRequest nor a trace"));
  }
  Source source;
  source.what = absl::StrCat("the request in ", path, ", for ", Named(request));
  source.requests = {std::move(request)};
  return source;
}

bool IsTrace(const std::string& path) {
  const auto folder = render::IsFolder(path);
  return (folder.ok() && *folder) || TraceReader::Open(path).ok();
}

absl::StatusOr<Source> ReadTrace(const std::string& path,
                                 const std::string& function,
                                 const std::string& step) {
  auto opened = TraceReader::Open(path);
  if (!opened.ok()) return opened.status();
  TraceReader& reader = **opened;
  Source source;
  std::set<std::string> functions, steps;
  std::vector<Newest> newest;
  std::set<std::string> left_out;
  bool any = false;
  ReadCall call;
  while (reader.Next(&call)) {
    functions.insert(call.call.function);
    if (call.call.function != function) continue;
    if (!call.call.step.empty()) steps.insert(call.call.step);
    if (!step.empty() && call.call.step != step) continue;
    any = true;
    if (call.has_previous) {
      std::vector<absl::string_view> changed;
      changed.reserve(call.changed.size());
      for (const auto id : call.changed) changed.push_back(reader.PathOf(id));
      source.variation.AddCall(changed);
    }
    RunFunctionRequest request;
    if (call.request_message.empty() ||
        !cache::key::ParseRequest(call.request_message, &request)) {
      continue;
    }
    std::string input = text::DeterministicBytes(request.input());
    auto same =
        std::find_if(newest.begin(), newest.end(),
                     [&](const Newest& one) { return one.input == input; });
    if (same == newest.end()) {
      if (newest.size() == kMostInputs) {
        left_out.insert(std::move(input));
        continue;
      }
      newest.push_back(
          {std::move(input), call.call.arrived, {}, StateOf(request), request});
      same = newest.end() - 1;
    }
    source.knowledge.seen.Add(request);
    if (const State state = StateOf(request); state < same->first_state) {
      same->first_state = state;
      same->first = request;
    }
    if (call.call.arrived < same->arrived) continue;
    same->arrived = call.call.arrived;
    same->request = std::move(request);
  }
  const auto names = [](const std::set<std::string>& all) {
    return std::vector<std::string>(all.begin(), all.end());
  };
  if (functions.count(function) == 0) {
    return absl::NotFoundError(absl::StrCat(
        path, ": ", NoSuch("function", function, names(functions))));
  }
  if (!any) {
    return absl::NotFoundError(absl::StrCat(
        path, ": ",
        steps.empty() ? "the trace knows no steps; leave out --step"
                      : NoSuch("step", step, names(steps))));
  }
  if (newest.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        path,
        ": holds no requests; a trace does at level full only (trace.level: "
        "full, fncache load --trace-level full)"));
  }
  source.what = absl::StrCat("the newest request of ", path, ", for ",
                             Named(newest[0].request));
  if (newest.size() > 1) {
    absl::StrAppend(&source.what, ", one for each of ", newest.size(),
                    " inputs");
  }
  if (!left_out.empty()) {
    absl::StrAppend(&source.what, " (", left_out.size(),
                    " more are not looked at)");
  }
  bool earlier = false;
  for (Newest& one : newest) {
    const bool other = StateOf(one.request) != one.first_state;
    earlier = earlier || other;
    source.requests.push_back(std::move(one.request));
    if (other) source.requests.push_back(std::move(one.first));
  }
  if (earlier) absl::StrAppend(&source.what, ", and one in an earlier state");
  return source;
}

absl::StatusOr<int> FindStep(const engine::Composition& composition,
                             const std::string& function,
                             const std::string& step) {
  std::vector<std::string> there;
  for (size_t i = 0; i < composition.steps.size(); ++i) {
    const engine::PipelineStep& one = composition.steps[i];
    if (one.function == render::kContextFunction) continue;
    if (step.empty() ? one.function == function : one.name == step) {
      return static_cast<int>(i);
    }
    there.push_back(step.empty() ? one.function : one.name);
  }
  return absl::NotFoundError(absl::StrCat(
      "the Composition's pipeline: ", step.empty()
                                          ? NoSuch("function", function, there)
                                          : NoSuch("step", step, there)));
}

absl::StatusOr<Source> MakeRequest(const render::RenderFlags& flags,
                                   const render::RenderInputs& inputs, int step,
                                   client::FunctionCaller* caller) {
  const render::CompositeToRender& composite = inputs.composites.at(0);
  if (!composite.status.ok()) return composite.status;
  engine::Composition composition = *inputs.composition;
  composition.steps.resize(static_cast<size_t>(step) + 1);
  const std::string name = composition.steps.back().name;
  engine::EngineInput input = render::InputOf(inputs, composite);
  input.composition =
      std::make_shared<const engine::Composition>(std::move(composition));
  engine::EngineOptions options;
  options.capabilities = flags.capabilities;
  options.deadline = absl::Now() + flags.timeout;
  options.step_timeout = flags.step_timeout;
  render::ContextSteps with_context(caller, inputs.context);
  SystemClock clock;
  LastRequest last(step);
  absl::Status status;
  absl::Notification done;
  engine::Render(std::move(input), options, &with_context, &clock, &last,
                 [&](const engine::EngineOutcome& outcome) {
                   status = outcome.status;
                   ReleaseTo(&done);
                   done.Notify();
                 });
  done.WaitForNotification();
  AcquireFrom(&done);
  // An error of the probed step itself is left to the probe.
  if (!last.seen()) {
    return status.ok() ? absl::InternalError(
                             absl::StrCat("step ", name, " was not called"))
                       : status;
  }
  Source source;
  source.what = absl::StrCat("the request of step ", name, " for ",
                             Named(last.request()));
  source.requests = {last.request()};
  return source;
}

}  // namespace fncache::runner::probe
