// SPDX-License-Identifier: Apache-2.0
#include "runner/advise/composites.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cache/key/reencode.h"
#include "insight/explain/analysis.h"
#include "insight/trace/reader.h"
#include "proto/function_v1.pb.h"
#include "runner/probe/variation.h"
#include "text/deterministic_bytes.h"

namespace fncache::runner::advise {
namespace {

using apiextensions::fn::proto::v1::RunFunctionRequest;
using insight::trace::ReadCall;
using insight::trace::TraceReader;

// The most composites that are compared for each step and state.
constexpr size_t kMostCompared = 5;

// Two requests can have one answer only if these are equal: the kind, the
// input, and the set of resources.
std::string ShapeOf(const RunFunctionRequest& request) {
  std::string shape = text::DeterministicBytes(request.input());
  const auto& composite = request.observed().composite().resource().fields();
  for (const char* key : {"apiVersion", "kind"}) {
    const auto found = composite.find(key);
    if (found != composite.end()) {
      absl::StrAppend(&shape, "\n", found->second.string_value());
    }
  }
  std::set<std::string> names;
  for (const auto& one : request.observed().resources())
    names.insert(one.first);
  for (const auto& one : request.desired().resources()) {
    names.insert(absl::StrCat("desired ", one.first));
  }
  for (const std::string& name : names) absl::StrAppend(&shape, "\n", name);
  return shape;
}

}  // namespace

absl::StatusOr<Differences> CompareComposites(const std::string& trace,
                                              const std::string& function) {
  auto reader = TraceReader::Open(trace);
  if (!reader.ok()) return reader.status();
  // By shape, the newest request of each composite.
  std::map<std::string, std::map<std::string, std::string>> requests;
  ReadCall call;
  while ((*reader)->Next(&call)) {
    RunFunctionRequest request;
    if (call.call.function != function || call.request_message.empty() ||
        !cache::key::ParseRequest(call.request_message, &request)) {
      continue;
    }
    const auto& whose = call.call.composite;
    auto& of_shape = requests[ShapeOf(request)];
    const std::string name =
        absl::StrCat(whose.object_namespace, "/", whose.name, "/", whose.uid);
    if (of_shape.size() >= kMostCompared && of_shape.count(name) == 0) continue;
    of_shape[name] = call.request_message;
  }
  Differences differences;
  for (const auto& [shape, composites] : requests) {
    if (composites.size() < 2) continue;
    differences.composites =
        std::max(differences.composites, static_cast<int>(composites.size()));
    const std::string& first = composites.begin()->second;
    for (auto at = std::next(composites.begin()); at != composites.end();
         ++at) {
      const auto found = insight::explain::Compare(first, at->second);
      if (!found.ok()) return found.status();
      for (const auto& one : *found) {
        differences.paths.insert(probe::SpelledAsMask(one.path));
      }
    }
  }
  return differences;
}

}  // namespace fncache::runner::advise
