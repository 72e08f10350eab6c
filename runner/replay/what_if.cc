// SPDX-License-Identifier: Apache-2.0
#include "runner/replay/what_if.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "cache/key/mask.h"
#include "insight/explain/analysis.h"
#include "insight/trace/masks_in_force.h"
#include "insight/trace/reader.h"
#include "insight/whatif/engine.h"
#include "insight/whatif/recording.h"
#include "runner/load/threshold.h"

namespace fncache::runner::replay {
namespace {

namespace whatif = insight::whatif;
using insight::trace::TraceReader;
using whatif::CacheSettings;
using whatif::Recording;
using whatif::SettingTexts;
using whatif::Variant;

// Bytes of an entry beside its response, about.
constexpr uint64_t kEntryOverhead = 128;
constexpr int kMrcPoints = 16;
constexpr uint64_t kLeastMemory = 1 << 10;

absl::StatusOr<std::unique_ptr<TraceReader>> Open(const std::string& path) {
  return TraceReader::Open(path);
}

// The settings in the trace's header that a what-if takes.
SettingTexts Recorded(const insight::trace::TraceHeader& header,
                      const whatif::SettingsReader& reader) {
  SettingTexts texts;
  for (const auto& [name, text] : header.settings) {
    if (reader.Takes(name)) texts[name] = reader.Split(name, text);
  }
  return texts;
}

// The sets of masks that keys are to be made under, by their canonical paths.
class MaskSets {
 public:
  void Add(const cache::key::MaskSet& set) {
    if (Find(set) < 0) sets_.push_back(set);
  }
  int Find(const cache::key::MaskSet& set) const {
    for (size_t i = 0; i < sets_.size(); ++i) {
      if (sets_[i].canonical() == set.canonical()) return static_cast<int>(i);
    }
    return -1;
  }
  const std::vector<cache::key::MaskSet>& sets() const { return sets_; }

 private:
  std::vector<cache::key::MaskSet> sets_;
};

bool Same(const cache::key::MaskSet& a, const cache::key::MaskSet& b) {
  return a.canonical() == b.canonical();
}

// Whether any function may have other masks than it had.
bool ChangesMasks(const CacheSettings& base, const CacheSettings& now) {
  std::vector<const cache::key::MaskSet*> all = {&base.defaults.masks,
                                                 &now.defaults.masks};
  for (const auto* settings : {&base, &now}) {
    for (const auto& one : settings->functions) {
      all.push_back(&one.second.masks);
    }
  }
  return std::any_of(all.begin(), all.end(), [&](const auto* one) {
    return !Same(*one, *all.front());
  });
}

std::string NoPaths(uint64_t damaged) {
  if (damaged == 0) return "the trace has no paths (trace.level: keys)";
  return absl::StrCat(damaged,
                      " blocks of the trace are damaged, and no call with "
                      "paths is left");
}

absl::StatusOr<Variant> VariantOf(const Recording& recording,
                                  const CacheSettings& base,
                                  const CacheSettings& settings,
                                  const MaskSets& masks) {
  Variant variant;
  variant.settings = settings;
  for (const std::string& function : recording.functions) {
    const cache::key::MaskSet& now = settings.Of(function).masks;
    const bool same = Same(now, base.Of(function).masks);
    variant.masked_of.push_back(same ? -1 : masks.Find(now));
    if (!same && !recording.has_nodes) {
      return absl::FailedPreconditionError(
          absl::StrCat("mask: ", NoPaths(recording.damaged),
                       ", so that masks cannot be tried on it"));
    }
  }
  return variant;
}

std::vector<Group> GroupsOf(const Recording& recording, const std::string& by,
                            const whatif::Outcome& measured,
                            const whatif::Outcome& predicted) {
  std::vector<Group> groups;
  std::map<std::string, size_t> numbers;
  const auto group = [&](const std::string& name) -> Group& {
    const auto [at, added] = numbers.try_emplace(name, groups.size());
    if (added) groups.push_back({name, {}, {}});
    return groups[at->second];
  };
  if (by == "xr") {
    for (size_t i = 0; i < recording.composites.size(); ++i) {
      Group& one = group(recording.composites[i]);
      one.measured.Add(measured.composites[i]);
      one.predicted.Add(predicted.composites[i]);
    }
    // Those first for which the function works most.
    std::stable_sort(
        groups.begin(), groups.end(), [](const Group& a, const Group& b) {
          return a.measured.function_runs > b.measured.function_runs;
        });
    return groups;
  }
  for (size_t i = 0; i < recording.series.size(); ++i) {
    const auto& [function, step] = recording.series[i];
    Group& one = group(by == "step" ? recording.steps[step]
                                    : recording.functions[function]);
    one.measured.Add(measured.series[i]);
    one.predicted.Add(predicted.series[i]);
  }
  return groups;
}

// The outcome in the words of a load, whose thresholds are asked of it.
load::LoadResults AsResults(const Recording& recording,
                            const whatif::Outcome& outcome) {
  load::LoadResults results;
  results.duration = outcome.seconds;
  for (size_t i = 0; i < recording.series.size(); ++i) {
    const whatif::Tally& tally = outcome.series[i];
    for (const auto& [name, count] : {std::make_pair("hit", tally.hits),
                                      {"stale", tally.stale},
                                      {"collapsed", tally.collapsed},
                                      {"miss", tally.misses},
                                      {"bypass", tally.bypasses}}) {
      load::CallResults calls;
      calls.function = recording.functions[recording.series[i].first];
      calls.step = recording.steps[recording.series[i].second];
      calls.outcome = name;
      calls.count = count;
      results.calls.push_back(std::move(calls));
    }
  }
  return results;
}

absl::StatusOr<std::vector<load::Threshold>> ThresholdsOf(
    const ReplayFlags& flags, const Recording& recording) {
  const load::ThresholdNames names{recording.steps, recording.functions};
  std::vector<load::Threshold> thresholds;
  for (const std::string& text : flags.thresholds) {
    auto threshold = load::ParseThreshold(text, names);
    if (!threshold.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--threshold: ", threshold.status().message()));
    }
    if (threshold->metric != "hits" && threshold->metric != "runs") {
      return absl::InvalidArgumentError(absl::StrCat(
          "--threshold: \"", text, "\": a what-if says nothing of ",
          threshold->metric, "; accepted: hits, runs"));
    }
    thresholds.push_back(*std::move(threshold));
  }
  return thresholds;
}

// Sizes of memory from too little to more than enough.
std::vector<uint64_t> MrcSizes(const Recording& recording) {
  absl::flat_hash_map<cache::key::Key, uint64_t> entries;
  for (const whatif::Call& call : recording.calls) {
    if (!call.keyed) continue;
    uint64_t& bytes = entries[call.key];
    bytes = std::max(bytes, call.response_bytes + kEntryOverhead);
  }
  uint64_t all = 0;
  for (const auto& one : entries) all += one.second;
  const double most =
      std::max<double>(2.0 * static_cast<double>(all), 16.0 * kLeastMemory);
  const double least =
      std::max<double>(most / 512, static_cast<double>(kLeastMemory));
  std::vector<uint64_t> sizes;
  for (int i = 0; i < kMrcPoints; ++i) {
    const double part = static_cast<double>(i) / (kMrcPoints - 1);
    const auto size = static_cast<uint64_t>(
        std::llround(least * std::pow(most / least, part) / kLeastMemory) *
        static_cast<int64_t>(kLeastMemory));
    if (sizes.empty() || size > sizes.back()) sizes.push_back(size);
  }
  return sizes;
}

// The question with `added` beside its own masks: those that it asks about,
// else those in force.
Question WithMasks(const Question& base, const std::string& label,
                   const insight::trace::MasksInForce& in_force,
                   const std::vector<std::string>& functions,
                   const std::vector<std::string>& added) {
  Question with = base;
  with.label = label;
  const auto asked = base.texts.find("mask");
  const auto beside = [&added](std::vector<std::string> masks) {
    masks.insert(masks.end(), added.begin(), added.end());
    return masks;
  };
  if (asked != base.texts.end()) {
    with.texts["mask"] = beside(asked->second);
  } else {
    for (const std::string& mask : in_force.Texts("")) {
      with.what_if.emplace_back("mask", mask);
    }
    for (const std::string& function : functions) {
      with.texts[absl::StrCat("functions.", function, ".mask")] =
          beside(in_force.Texts(function));
    }
  }
  for (const std::string& mask : added) with.what_if.emplace_back("mask", mask);
  return with;
}

// The masks that would have made hits, as questions: each with those above it.
absl::Status SuggestMasks(const ReplayFlags& flags, const Question& base,
                          const whatif::SettingsReader& reader,
                          std::vector<Question>* questions, Report* report) {
  insight::explain::AnalysisOptions options;
  // Masks of the question replace those in force.
  const auto asked = base.texts.find("mask");
  if (asked != base.texts.end()) {
    options.masked = asked->second;
    options.in_force = false;
  }
  const auto open = [&flags] { return Open(flags.trace); };
  auto analysis = Analyze(open, options);
  if (!analysis.ok()) return analysis.status();
  if (!analysis->has_paths) {
    return absl::FailedPreconditionError(
        absl::StrCat("--suggest-masks: ", NoPaths(analysis->damaged)));
  }
  const auto header = open();
  if (!header.ok()) return header.status();
  const auto in_force =
      insight::trace::MasksInForce::Of((*header)->header(), {});
  if (!in_force.ok()) return in_force.status();
  report->masks = analysis->masks;
  if (report->masks.empty()) {
    report->notes.emplace_back(
        "no mask that could be proposed without asking the function would have "
        "made hits");
  }
  std::vector<std::string> added;
  for (size_t i = 0; i < report->masks.size(); ++i) {
    const std::vector<std::string>& masks = report->masks[i].masks;
    added.insert(added.end(), masks.begin(), masks.end());
    const std::string label = absl::StrCat(
        base.what_if.empty() ? "" : absl::StrCat(base.Label(), " and "),
        "masks 1", i == 0 ? "" : absl::StrCat(" to ", i + 1));
    Question with =
        WithMasks(base, label, *in_force, analysis->functions, added);
    if (reader.Read(with.texts).ok()) questions->push_back(std::move(with));
  }
  return absl::OkStatus();
}

// The length of the trace, and the longest TTL that a function gave or a runner
// got.
std::string TooShort(const Recording& recording) {
  int64_t first = 0, longest = 0;
  if (!recording.calls.empty()) first = recording.calls.front().arrived;
  for (const whatif::Call& call : recording.calls) {
    longest = std::max({longest, call.ttl, call.told});
  }
  const int64_t last =
      recording.calls.empty() ? 0 : recording.calls.back().arrived;
  return insight::explain::TooShortForTimers(absl::Nanoseconds(last - first),
                                             absl::Nanoseconds(longest));
}

void AddNotes(const Recording& recording, const whatif::SettingsReader& reader,
              bool masks, Report* report) {
  const insight::trace::TraceHeader& header = recording.header;
  if (header.writer == "load") {
    report->notes.emplace_back(
        "the trace is a load's, which does not know the daemon's settings: "
        "what is not asked about is as by default");
  }
  const auto disk = header.settings.find("cache.dir");
  if (disk != header.settings.end() && !disk->second.empty()) {
    report->notes.emplace_back(
        "the daemon had a disk tier, which is not played: with it, what memory "
        "evicts is still answered");
  }
  for (std::string& note : reader.NotPlayed(header.settings)) {
    report->notes.push_back(std::move(note));
  }
  const std::string too_short = TooShort(recording);
  if (!too_short.empty()) report->notes.push_back(too_short);
  if (recording.dropped > 0) {
    report->notes.push_back(absl::StrCat("the writer dropped ",
                                         recording.dropped,
                                         " calls, which are not in this"));
  }
  if (recording.damaged > 0) {
    report->notes.push_back(
        absl::StrCat(recording.damaged,
                     " blocks of the trace are damaged and were skipped"));
  }
  if (masks && recording.without_nodes > 0) {
    report->notes.push_back(
        absl::StrCat(recording.without_nodes,
                     " calls have no paths in the trace and kept their keys"));
  }
}

}  // namespace

absl::StatusOr<Answer> AnswerWhatIf(const ReplayFlags& flags,
                                    std::vector<Question> questions,
                                    const whatif::SettingsReader& reader) {
  Answer answer;
  Report& report = answer.report;
  report.trace = flags.trace;
  report.arrivals = flags.arrivals;
  report.by = flags.by;
  if (flags.suggest_masks) {
    const Question base = questions.front();
    const absl::Status status =
        SuggestMasks(flags, base, reader, &questions, &report);
    if (!status.ok()) return status;
  }
  auto opened = Open(flags.trace);
  if (!opened.ok())
    return absl::FailedPreconditionError(opened.status().message());
  const SettingTexts recorded = Recorded((*opened)->header(), reader);
  const auto base = reader.Read(recorded);
  if (!base.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the trace's own settings: ", base.status().message()));
  }
  std::vector<CacheSettings> settings;
  MaskSets masks;
  for (const Question& question : questions) {
    auto one = reader.Read(whatif::Overlaid(recorded, question.texts));
    if (!one.ok()) return one.status();
    if (ChangesMasks(*base, *one)) {
      masks.Add(one->defaults.masks);
      for (const auto& function : one->functions) {
        masks.Add(function.second.masks);
      }
    }
    settings.push_back(*std::move(one));
  }
  auto recording = whatif::Read(opened->get(), masks.sets());
  if (!recording.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat(flags.trace, ": ", recording.status().message()));
  }
  if (recording->calls.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(flags.trace, ": holds no calls"));
  }
  if (flags.creation) {
    for (whatif::Call& call : recording->calls) call.measured = call.creation;
  }
  const auto thresholds = ThresholdsOf(flags, *recording);
  if (!thresholds.ok()) return thresholds.status();
  std::vector<Variant> variants;
  for (const CacheSettings& one : settings) {
    auto variant = VariantOf(*recording, *base, one, masks);
    if (!variant.ok()) return variant.status();
    variants.push_back(*std::move(variant));
  }
  whatif::ReplayOptions options;
  options.arrivals = flags.arrivals == "recorded" ? whatif::Arrivals::kRecorded
                                                  : whatif::Arrivals::kModel;
  options.by_composite = flags.by == "xr";
  const std::vector<uint64_t> sizes =
      flags.mrc.empty() ? std::vector<uint64_t>() : MrcSizes(*recording);
  for (const uint64_t size : sizes) {
    variants.push_back(variants.front());
    variants.back().settings.memory = size;
  }
  std::vector<whatif::Outcome> outcomes =
      ReplayAll(*recording, variants, options);
  report.measured = Measured(*recording, options.by_composite);
  for (size_t i = 0; i < questions.size(); ++i) {
    Row row;
    row.question = std::move(questions[i]);
    row.outcome = std::move(outcomes[i]);
    if (!flags.by.empty()) {
      row.groups = GroupsOf(*recording, flags.by, report.measured, row.outcome);
    }
    const load::LoadResults results = AsResults(*recording, row.outcome);
    for (const load::Threshold& threshold : *thresholds) {
      row.thresholds.push_back(Evaluate(threshold, results));
    }
    if (row.outcome.cut) {
      report.notes.push_back(absl::StrCat(
          row.question.Label(),
          ": lets the runner come a thousand times as often, and was ended"));
    }
    report.rows.push_back(std::move(row));
  }
  if (!sizes.empty()) {
    std::vector<std::pair<uint64_t, whatif::Outcome>> points;
    for (size_t i = 0; i < sizes.size(); ++i) {
      points.emplace_back(sizes[i], std::move(outcomes[questions.size() + i]));
    }
    answer.mrc = MrcCsv(points);
  }
  AddNotes(*recording, reader, !masks.sets().empty(), &report);
  return answer;
}

}  // namespace fncache::runner::replay
