// SPDX-License-Identifier: Apache-2.0
#include "runner/probe/answer.h"

#include <utility>

#include "proto/function_v1.pb.h"
#include "runner/client/function_caller.h"
#include "text/deterministic_bytes.h"

namespace fncache::runner::probe {
namespace {

using apiextensions::fn::proto::v1::RunFunctionResponse;

// Adds the paths of `a` at which `b` has another value or none.
void AddMissing(const function::FlatMessage& a, const function::FlatMessage& b,
                std::set<std::string>* paths) {
  for (const auto& [path, value] : a) {
    const auto other = b.find(path);
    if (other == b.end() || other->second != value) paths->insert(path);
  }
}

}  // namespace

std::string FatalMessage(const RunFunctionResponse& response) {
  for (const auto& result : response.results()) {
    if (result.severity() != apiextensions::fn::proto::v1::SEVERITY_FATAL) {
      continue;
    }
    return result.message().empty() ? "no message" : result.message();
  }
  return "";
}

Original::Original(RunFunctionResponse response) {
  response.clear_meta();
  bytes_ = text::DeterministicBytes(response);
  flat_ = function::Flatten(response);
}

std::set<std::string> Original::Differences(
    const RunFunctionResponse& answer) const {
  const function::FlatMessage flat = function::Flatten(answer);
  std::set<std::string> paths;
  AddMissing(flat_, flat, &paths);
  AddMissing(flat, flat_, &paths);
  return paths;
}

bool Original::IsSame(const client::CallResult& answer) const {
  if (!answer.status.ok()) return false;
  RunFunctionResponse response = answer.response;
  response.clear_meta();
  if (text::DeterministicBytes(response) == bytes_) return true;
  for (const std::string& path : Differences(response)) {
    if (unstable_.count(path) == 0) return false;
  }
  return true;
}

bool Original::Learn(RunFunctionResponse response) {
  response.clear_meta();
  const size_t before = unstable_.size();
  if (text::DeterministicBytes(response) != bytes_) {
    unstable_.merge(Differences(response));
  }
  return unstable_.size() > before;
}

}  // namespace fncache::runner::probe
