// SPDX-License-Identifier: Apache-2.0
#include "runner/advise/repeats.h"

#include <memory>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/hash/hash.h"
#include "cache/key/digest.h"
#include "cache/key/mask.h"
#include "cache/response.h"
#include "common/clock.h"
#include "common/method.h"
#include "insight/explain/miss_memory.h"
#include "insight/explain/traced_calls.h"
#include "insight/request/node_drift.h"
#include "insight/request/nodes.h"
#include "insight/trace/reader.h"

namespace fncache::runner::advise {
namespace {

using insight::explain::MissMemory;
using insight::explain::MissMemoryOptions;
using insight::explain::RepeatOver;
using insight::request::FingerprintSecret;
using insight::request::Node;
using insight::request::NodeDrift;
using insight::request::NodeKind;
using insight::trace::Outcome;
using insight::trace::ReadCall;
using insight::trace::TraceReader;

// Bytes. Beyond this, composites are sampled.
constexpr uint64_t kMemory = 512 << 20;
// The fraction of a lifetime in which an entry is no longer served.
constexpr double kMargin = 0.1;

// Whether a node has a value. Others are there when a value below them is.
bool HasValue(NodeKind kind) {
  switch (kind) {
    case NodeKind::kMessage:
    case NodeKind::kStruct:
    case NodeKind::kList:
    case NodeKind::kMap:
      return false;
    default:
      return true;
  }
}

class Counter {
 public:
  explicit Counter(const insight::trace::MasksInForce& in_force)
      : in_force_(in_force), clock_(absl::UnixEpoch()) {
    MissMemoryOptions options;
    options.bytes = kMemory;
    options.paths_bytes_per_second = MissMemoryOptions::kUnbounded;
    options.bytes_per_second = MissMemoryOptions::kUnbounded;
    memory_ = std::make_unique<MissMemory>(options, &clock_);
  }

  void Add(const ReadCall& read) {
    const insight::trace::TracedCall& call = read.call;
    const bool is_run = !insight::explain::IsHit(call.outcome) &&
                        call.outcome != Outcome::kBypass && call.status == 0;
    if (!is_run || read.request_message.empty() ||
        read.response_message.empty()) {
      return;
    }
    const auto view = cache::ReadResponse(read.response_message);
    OfFunction& function = FunctionOf(call.function);
    const cache::key::KeyScope scope = {call.function, call.method,
                                        call.generation};
    // The trace's own keys are without drift where `tune` was on.
    const cache::key::Digest digest =
        cache::key::Digester(cache::key::Seed{}, scope, function.masks)
            .Compute({read.request_message}, &scratch_);
    if (!view.ok() || !digest.keyed) return;
    clock_.Set(call.arrived);
    insight::explain::Lookup lookup;
    if (call.reason == cache::Reason::kExpired) lookup.found = call.reason;
    memory_->Explain(call.function,
                     call.method == MethodName(Method::kV1beta1)
                         ? Method::kV1beta1
                         : Method::kV1,
                     call.generation, digest.key, function.masks,
                     {read.request_message}, lookup);
    const auto over =
        memory_->OnAnswer(digest.key, view->body, call.function_ttl);
    if (over.has_value()) {
      ++function.counts.runs;
      if (*over != RepeatOver::kNone) {
        ++function.counts.over[static_cast<size_t>(*over)];
      }
    }
    if (insight::explain::IsKept(call)) {
      const absl::Duration lives = call.lifetime.value_or(
          call.function_ttl.value_or(absl::ZeroDuration()));
      memory_->OnStored(digest.key,
                        call.arrived + call.latency + (1 - kMargin) * lives);
    } else {
      memory_->OnNotStored(digest.key, insight::explain::NotStored::kNoTtl);
    }
    NotePaths(read.request_message, &function);
  }

  std::map<std::string, TraceRepeats> Take() {
    std::map<std::string, TraceRepeats> all;
    for (auto& [name, function] : functions_) {
      for (const auto& [path, is_drift] : function.paths) {
        (is_drift ? function.counts.drift : function.counts.other)
            .push_back(path);
      }
      all[name] = std::move(function.counts);
    }
    return all;
  }

 private:
  struct OfFunction {
    cache::key::MaskSet masks;
    TraceRepeats counts;
    // Whether they were drift each time.
    std::map<std::string, bool> paths;
    // By the hash of a path with its indices: whether it was drift then.
    absl::flat_hash_map<uint64_t, bool> seen;
  };

  OfFunction& FunctionOf(const std::string& name) {
    const auto [at, added] = functions_.try_emplace(name);
    if (added) {
      auto masks = cache::key::MaskSet::Parse(in_force_.Texts(name),
                                              cache::key::MaskRules::kAnyPath);
      if (masks.ok()) at->second.masks = *std::move(masks);
    }
    return at->second;
  }

  void NotePaths(const std::string& request, OfFunction* function) {
    if (!nodes_.Read({request})) return;
    drifts_.Read(nodes_.nodes());
    for (size_t i = 0; i < nodes_.nodes().size(); ++i) {
      const Node& node = nodes_.nodes()[i];
      const bool is_drift = drifts_[i] != NodeDrift::kNone;
      if (!is_drift && !HasValue(node.kind)) continue;
      const auto [at, added] = function->seen.try_emplace(node.path, is_drift);
      if (!added && at->second == is_drift) continue;
      at->second = is_drift;
      const auto path =
          function->paths.try_emplace(nodes_.SpellMask(i), is_drift).first;
      path->second = path->second && is_drift;
    }
  }

  const insight::trace::MasksInForce& in_force_;
  SimulatedClock clock_;
  std::unique_ptr<MissMemory> memory_;
  cache::key::DigestScratch scratch_;
  insight::request::RequestNodes nodes_{FingerprintSecret::Random()};
  insight::request::NodeDrifts drifts_;
  std::map<std::string, OfFunction> functions_;
};

}  // namespace

absl::StatusOr<std::map<std::string, TraceRepeats>> CountRepeats(
    const std::string& trace, const insight::trace::MasksInForce& in_force) {
  auto reader = TraceReader::Open(trace);
  if (!reader.ok()) return reader.status();
  Counter counter(in_force);
  ReadCall call;
  while ((*reader)->Next(&call)) counter.Add(call);
  return counter.Take();
}

}  // namespace fncache::runner::advise
