// SPDX-License-Identifier: Apache-2.0
#include "insight/explain/analysis.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/duration.h"
#include "insight/explain/first_reading.h"
#include "insight/explain/proposed_mask.h"
#include "insight/explain/second_reading.h"
#include "insight/explain/traced_calls.h"
#include "insight/request/compare.h"
#include "insight/request/identity.h"
#include "insight/request/match_paths.h"
#include "insight/request/nodes.h"
#include "insight/trace/masks_in_force.h"

namespace fncache::insight::explain {
namespace {

constexpr absl::Duration kShown = absl::Milliseconds(1);

}  // namespace

absl::StatusOr<Analysis> Analyze(const OpenTrace& open,
                                 const AnalysisOptions& options) {
  auto reader = open();
  if (!reader.ok()) return reader.status();
  const auto masks = trace::MasksInForce::Of(
      options.in_force ? (*reader)->header() : trace::TraceHeader(),
      options.masked);
  if (!masks.ok()) return masks.status();
  InForce in_force(*masks, /*tuned=*/options.in_force);
  Learned learned = FirstReading(options, &in_force).Read(reader->get());
  Analysis analysis = std::move(learned.analysis);
  if (!analysis.has_paths || learned.changed.empty()) return analysis;
  SecondReading second(options, CandidatesOf(**reader, learned.changed),
                       &in_force);
  uint64_t all = 0;
  if (options.last > 0) {
    all = analysis.calls - analysis.hits - analysis.bypasses;
  }
  auto again = open();
  if (!again.ok()) return again.status();
  second.Read(again->get(), all > options.last ? all - options.last : 0);
  analysis.masks = second.Choose();
  return analysis;
}

std::string TooShortForTimers(absl::Duration span, absl::Duration longest_ttl) {
  if (span >= longest_ttl) return "";
  return absl::StrCat(
      "the trace covers ", FormatGoDuration(absl::Trunc(span, kShown)),
      ", less than the longest TTL in it (",
      FormatGoDuration(absl::Trunc(longest_ttl, kShown)),
      "): it is too short for timers, and does not show what happens when a "
      "TTL is over");
}

absl::StatusOr<std::vector<Difference>> Compare(absl::string_view a,
                                                absl::string_view b) {
  const request::FingerprintSecret secret =
      request::FingerprintSecret::Random();
  request::RequestNodes left(secret), right(secret);
  if (!left.Read({a})) {
    return absl::InvalidArgumentError("the first is no RunFunctionRequest");
  }
  if (!right.Read({b})) {
    return absl::InvalidArgumentError("the second is no RunFunctionRequest");
  }
  std::map<std::string, std::string> writers;
  for (const request::ObjectWriter& one : request::WritersOf(right.nodes())) {
    writers[one.object] = one.manager;
  }
  std::vector<Difference> differences;
  const auto add = [&](const std::string& path, absl::string_view change,
                       request::NodeKind kind) {
    Difference difference;
    difference.path = path;
    difference.section = request::SectionOf(path);
    difference.change = std::string(change);
    const auto writer = writers.find(request::ObjectOf(path));
    if (writer != writers.end()) difference.writer = writer->second;
    difference.allowed = !request::MaskFor(path).empty();
    difference.mask = ProposedMask(path, IsLeaf(kind));
    differences.push_back(std::move(difference));
  };
  const absl::Span<const request::Node> before = left.nodes();
  const absl::Span<const request::Node> now = right.nodes();
  request::MatchPaths(
      request::PathsOf(now), request::PathsOf(before), [&](size_t i, size_t j) {
        if (i == request::kNoMatch) {
          if (before[j].kind == request::NodeKind::kMap) return;
          add(left.Spell(j), "removed", before[j].kind);
        } else if (j == request::kNoMatch) {
          if (now[i].kind == request::NodeKind::kMap) return;
          add(right.Spell(i), "added", now[i].kind);
        } else if (before[j].kind != now[i].kind ||
                   before[j].value != now[i].value) {
          add(right.Spell(i), "changed",
              IsLeaf(before[j].kind) ? now[i].kind : before[j].kind);
        }
      });
  return differences;
}

}  // namespace fncache::insight::explain
