// SPDX-License-Identifier: Apache-2.0
// A function for probes' tests, which reads the paths that a test names.
#ifndef FNCACHE_TESTS_RUNNER_PROBE_FAKE_FUNCTION_H_
#define FNCACHE_TESTS_RUNNER_PROBE_FAKE_FUNCTION_H_

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "insight/request/nodes.h"
#include "proto/function_v1.pb.h"
#include "runner/client/function_caller.h"

namespace fncache::runner::probe {

using apiextensions::fn::proto::v1::RunFunctionRequest;
using apiextensions::fn::proto::v1::RunFunctionResponse;

// Answers from code, at once, and counts the calls.
class FakeFunction : public client::FunctionCaller {
 public:
  using Answer =
      std::function<void(const RunFunctionRequest&, RunFunctionResponse*)>;
  // The hint that comes with the answer.
  using Hint =
      std::function<absl::optional<std::string>(const RunFunctionRequest&)>;
  explicit FakeFunction(Answer answer, Hint hint = nullptr)
      : answer_(std::move(answer)), hint_(std::move(hint)) {}

  void Call(const std::string& /*function*/, const RunFunctionRequest& request,
            absl::Time /*deadline*/, Done done) override {
    ++calls_;
    client::CallResult result;
    answer_(request, &result.response);
    if (hint_ != nullptr) result.hint = hint_(request);
    done(std::move(result));
  }
  int calls() const { return calls_; }

 private:
  const Answer answer_;
  const Hint hint_;
  int calls_ = 0;
};

// The request's values at the paths that masks spell: their paths, kinds and
// values, by the mask; empty where there are none.
inline std::map<std::string, std::string> AtEach(
    const RunFunctionRequest& request, const std::set<std::string>& masks) {
  static const auto* const secret = new insight::request::FingerprintSecret(
      insight::request::FingerprintSecret::Random());
  insight::request::RequestNodes nodes(*secret);
  std::string bytes;
  request.SerializeToString(&bytes);
  std::map<std::string, std::string> found;
  if (!nodes.Read({bytes})) return found;
  for (size_t i = 0; i < nodes.nodes().size(); ++i) {
    const std::string mask = nodes.SpellMask(i);
    if (masks.count(mask) == 0) continue;
    const auto& node = nodes.nodes()[i];
    // The kind as it is in the request, the value as text that any answer
    // holds.
    const bool text = node.kind == insight::request::NodeKind::kString;
    absl::StrAppend(
        &found[mask], nodes.Spell(i), " ", static_cast<int>(node.kind), " ",
        text ? std::string(node.bytes) : absl::BytesToHexString(node.bytes),
        ";");
  }
  return found;
}

inline std::string At(const RunFunctionRequest& request,
                      const std::string& mask) {
  return AtEach(request, {mask})[mask];
}

inline void SayFatal(RunFunctionResponse* response,
                     const std::string& message) {
  auto* const one = response->add_results();
  one->set_severity(apiextensions::fn::proto::v1::SEVERITY_FATAL);
  one->set_message(message);
}

// Sets a text of the answer.
inline void Say(RunFunctionResponse* response, const std::string& key,
                const std::string& value) {
  auto& fields = *response->mutable_desired()
                      ->mutable_composite()
                      ->mutable_resource()
                      ->mutable_fields();
  fields[key].set_string_value(value);
}

// A function whose answer has the values at each of these paths.
inline FakeFunction::Answer Reads(const std::vector<std::string>& paths) {
  const std::set<std::string> masks(paths.begin(), paths.end());
  return [masks](const RunFunctionRequest& request,
                 RunFunctionResponse* response) {
    for (const auto& [mask, value] : AtEach(request, masks)) {
      Say(response, mask, value);
    }
  };
}

}  // namespace fncache::runner::probe

#endif  // FNCACHE_TESTS_RUNNER_PROBE_FAKE_FUNCTION_H_
