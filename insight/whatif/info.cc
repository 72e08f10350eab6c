// SPDX-License-Identifier: Apache-2.0
#include "insight/whatif/info.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "common/duration.h"
#include "common/json_tree.h"
#include "common/size.h"
#include "common/utf8.h"

namespace fncache::insight::whatif {
namespace {

constexpr double kNano = 1e-9, kMicro = 1e-6;

Spread SpreadOf(std::vector<double>* values) {
  Spread spread;
  spread.count = values->size();
  if (values->empty()) return spread;
  std::sort(values->begin(), values->end());
  const auto at = [&](double part) {
    const auto last = static_cast<double>(values->size() - 1);
    return (*values)[static_cast<size_t>(std::ceil(part * last))];
  };
  spread.least = values->front();
  spread.median = at(0.5);
  spread.p99 = at(0.99);
  spread.most = values->back();
  return spread;
}

// The values of one step, until they are summed up.
struct Values {
  std::vector<double> requests, responses, ttls, told, costs;
};

const char* LevelName(trace::Level level) {
  switch (level) {
    case trace::Level::kPaths:
      return "paths";
    case trace::Level::kFull:
      return "full";
    case trace::Level::kKeys:
      break;
  }
  return "keys";
}

std::string Counts(const std::map<std::string, uint64_t>& counts) {
  return absl::StrJoin(counts, ", ", [](std::string* out, const auto& one) {
    absl::StrAppend(out, one.first, " ", one.second);
  });
}

std::string Time(double seconds) {
  return FormatGoDuration(absl::Trunc(absl::Seconds(seconds),
                                      seconds < 1     ? absl::Microseconds(1)
                                      : seconds < 100 ? absl::Milliseconds(1)
                                                      : absl::Seconds(1)));
}

std::string Times(const Spread& spread) {
  if (spread.count == 0) return "none";
  if (spread.least == spread.most) return Time(spread.least);
  return absl::StrCat(Time(spread.least), " to ", Time(spread.most),
                      ", median ", Time(spread.median));
}

std::string Sizes(const Spread& spread) {
  if (spread.count == 0) return "none";
  const auto size = [](double bytes) {
    return absl::StrCat(static_cast<uint64_t>(bytes), " B");
  };
  if (spread.least == spread.most) return size(spread.least);
  return absl::StrCat(size(spread.least), " to ", size(spread.most),
                      ", median ", size(spread.median));
}

JsonTree SpreadJson(const Spread& spread) {
  if (spread.count == 0) return JsonTree();
  return {{"min", spread.least},
          {"p50", spread.median},
          {"p99", spread.p99},
          {"max", spread.most}};
}

}  // namespace

Info InfoOf(const Recording& recording) {
  Info info;
  info.writer = recording.header.writer;
  info.writer_version = recording.header.writer_version;
  info.level = LevelName(recording.header.level);
  info.sample = recording.header.sample;
  info.settings = recording.header.settings;
  info.dropped = recording.dropped;
  info.damaged = recording.damaged;
  info.calls = recording.calls.size();
  info.composites = static_cast<uint64_t>(
      std::count_if(recording.composites.begin(), recording.composites.end(),
                    [](const std::string& name) { return !name.empty(); }));
  for (const Pipeline& pipeline : recording.pipelines) {
    ++info.pipelines;
    ++(pipeline.timer ? info.by_timer : info.by_event);
  }
  if (recording.calls.empty()) return info;
  info.from = recording.calls.front().arrived;
  info.until = recording.calls.back().arrived;
  info.steps.resize(recording.series.size());
  std::vector<Values> values(recording.series.size());
  for (const Call& call : recording.calls) {
    const std::string outcome = trace::OutcomeName(call.outcome);
    ++info.outcomes_by_phase[recording.phases[call.phase]][outcome];
    StepInfo& step = info.steps[call.series];
    ++step.calls;
    ++step.outcomes[outcome];
    Values& of = values[call.series];
    of.requests.push_back(call.request_bytes);
    if (call.failed) continue;
    of.responses.push_back(call.response_bytes);
    if (call.ttl >= 0) of.ttls.push_back(static_cast<double>(call.ttl) * kNano);
    if (call.told >= 0) {
      of.told.push_back(static_cast<double>(call.told) * kNano);
    }
    if (call.cost > 0) of.costs.push_back(call.cost * kMicro);
  }
  for (size_t i = 0; i < values.size(); ++i) {
    StepInfo& step = info.steps[i];
    step.function = recording.functions[recording.series[i].first];
    step.step = recording.steps[recording.series[i].second];
    step.request_bytes = SpreadOf(&values[i].requests);
    step.response_bytes = SpreadOf(&values[i].responses);
    step.function_ttl = SpreadOf(&values[i].ttls);
    step.told_ttl = SpreadOf(&values[i].told);
    step.cost = SpreadOf(&values[i].costs);
  }
  return info;
}

std::string InfoText(const Info& info) {
  std::string text =
      info.writer.empty()
          ? "its beginning is lost: its writer is unknown\n"
          : absl::StrFormat("written by fncache %s %s, level %s%s\n",
                            Printable(info.writer),
                            Printable(info.writer_version), info.level,
                            info.sample < 1
                                ? absl::StrFormat(", of %g %% of composites",
                                                  100 * info.sample)
                                : "");
  if (info.calls == 0) return absl::StrCat(text, "it holds no calls\n");
  absl::StrAppend(
      &text, "from ",
      absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::FromUnixNanos(info.from),
                       absl::UTCTimeZone()),
      " for ", Time(static_cast<double>(info.until - info.from) * kNano), ": ",
      info.calls, " calls for ", info.composites, " composite",
      info.composites == 1 ? "" : "s", "\n");
  absl::StrAppend(&text, info.pipelines, " pipelines: ", info.by_timer,
                  " by a timer, ", info.by_event, " by an event\n");
  if (info.dropped > 0) {
    absl::StrAppend(&text, "the writer dropped ", info.dropped,
                    " calls, which are not in this\n");
  }
  if (info.damaged > 0) {
    absl::StrAppend(&text, info.damaged,
                    " blocks are damaged and were skipped\n");
  }
  for (const auto& [phase, outcomes] : info.outcomes_by_phase) {
    absl::StrAppend(&text, phase.empty() ? "calls" : Printable(phase), ": ",
                    Counts(outcomes), "\n");
  }
  for (const StepInfo& step : info.steps) {
    absl::StrAppend(
        &text, "\n", Printable(step.function),
        step.step.empty() ? "" : absl::StrCat(", step ", Printable(step.step)),
        ": ", step.calls, " calls\n  outcomes       ", Counts(step.outcomes),
        "\n  function's TTL ", Times(step.function_ttl), "\n  sent TTL       ",
        Times(step.told_ttl), "\n  cost           ", Times(step.cost),
        "\n  requests       ", Sizes(step.request_bytes), "\n  responses      ",
        Sizes(step.response_bytes), "\n");
  }
  return text;
}

std::string InfoJson(const Info& info) {
  JsonTree steps = JsonTree::Array();
  for (const StepInfo& step : info.steps) {
    steps.Append({{"function", step.function},
                  {"step", step.step},
                  {"calls", step.calls},
                  {"outcomes", step.outcomes},
                  {"request_bytes", SpreadJson(step.request_bytes)},
                  {"response_bytes", SpreadJson(step.response_bytes)},
                  {"function_ttl", SpreadJson(step.function_ttl)},
                  {"told_ttl", SpreadJson(step.told_ttl)},
                  {"cost", SpreadJson(step.cost)}});
  }
  const JsonTree all = {
      {"version", 1},
      {"writer", info.writer},
      {"writer_version", info.writer_version},
      {"level", info.level},
      {"sample", info.sample},
      {"settings", info.settings},
      {"started", static_cast<double>(info.from) * kNano},
      {"seconds", static_cast<double>(info.until - info.from) * kNano},
      {"calls", info.calls},
      {"composites", info.composites},
      {"pipelines", info.pipelines},
      {"by_timer", info.by_timer},
      {"by_event", info.by_event},
      {"outcomes", info.outcomes_by_phase},
      {"dropped", info.dropped},
      {"damaged", info.damaged},
      {"steps", steps}};
  return all.Dump(2, JsonTree::Order::kSorted) + "\n";
}

}  // namespace fncache::insight::whatif
