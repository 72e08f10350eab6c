// SPDX-License-Identifier: Apache-2.0
#include "runner/advise/advise.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cache/key/mask.h"
#include "common/field_path.h"
#include "insight/request/compare.h"
#include "insight/trace/masks_in_force.h"
#include "insight/trace/reader.h"
#include "runner/advise/composites.h"
#include "runner/client/rpc_error.h"
#include "runner/probe/masks.h"
#include "runner/probe/source.h"
#include "runner/replay/what_if.h"

namespace fncache::runner::advise {
namespace {

using insight::explain::RepeatOver;
using insight::trace::MasksInForce;
using insight::trace::TraceReader;
using insight::whatif::SettingsReader;
using replay::Question;

// Fewer hits more than that are no reason to share answers between composites.
constexpr double kWorthSharing = 0.01;
constexpr char kLifetime[] = "24h";
// `tune: on` is proposed if it would save more than this fraction of the runs.
constexpr double kWorthTuning = 0.1;

// `path` as requests have it, so that masks may be asked whether they hide it:
// an index in place of each `*`.
std::string WithIndices(absl::string_view mask) {
  std::string path;
  for (const auto& part : insight::request::SplitPath(mask)) {
    const bool element = part.index || (part.name == "*" && !part.quoted);
    path = element ? PathOfElement(path, 0) : PathBelow(path, part.name);
  }
  return path;
}

// Whether all that `mask` hides is hidden by the others, too.
bool IsCovered(const std::string& mask, const std::vector<std::string>& by) {
  std::vector<std::string> with = by;
  with.push_back(mask);
  using cache::key::MaskRules;
  using cache::key::MaskSet;
  const auto before = MaskSet::Parse(by, MaskRules::kAnyPath);
  const auto after = MaskSet::Parse(with, MaskRules::kAnyPath);
  return before.ok() && after.ok() && before->canonical() == after->canonical();
}

// The value of a function's setting; "" if it is the default.
std::string SettingOf(const insight::trace::TraceHeader& header,
                      const std::string& function, const std::string& key) {
  for (const std::string& name :
       {absl::StrCat("functions.", function, ".", key), key}) {
    const auto found = header.settings.find(name);
    if (found != header.settings.end()) return found->second;
  }
  return "";
}

// Whether the mask hides drift and no other value of the trace's requests.
bool HidesDriftOnly(const std::string& mask, const TraceRepeats& repeats) {
  const auto set =
      cache::key::MaskSet::Parse({mask}, cache::key::MaskRules::kAnyPath);
  if (!set.ok()) return false;
  const insight::request::MaskMatcher matcher(*set);
  const auto any = [&matcher](const std::vector<std::string>& paths) {
    return std::any_of(paths.begin(), paths.end(),
                       [&matcher](const std::string& path) {
                         return matcher.Masks(WithIndices(path));
                       });
  };
  return any(repeats.drift) && !any(repeats.other);
}

std::vector<std::string> TextsOf(
    const std::vector<probe::ProposedMask>& masks) {
  std::vector<std::string> texts;
  for (const probe::ProposedMask& mask : masks) texts.push_back(mask.mask);
  return texts;
}

class Adviser {
 public:
  Adviser(const AdviseOptions& options, const SettingsReader& settings)
      : options_(options), settings_(settings) {}

  absl::StatusOr<Advice> Run() {
    const auto open = [this] { return TraceReader::Open(options_.trace); };
    auto reader = open();
    if (!reader.ok()) return reader.status();
    const insight::trace::TraceHeader header = (*reader)->header();
    auto analysis = insight::explain::Analyze(open, {});
    if (!analysis.ok()) return analysis.status();
    if (analysis->calls == 0) {
      return absl::FailedPreconditionError(
          absl::StrCat(options_.trace, ": holds no calls"));
    }
    auto in_force = MasksInForce::Of(header, {});
    if (!in_force.ok()) return in_force.status();
    advice_.trace = options_.trace;
    advice_.analysis = *std::move(analysis);
    for (const auto& one : header.settings) {
      advice_.several |= absl::StartsWith(one.first, "functions.");
    }
    const absl::Status connected = Connect();
    if (!connected.ok()) return connected;
    auto repeats = CountRepeats(options_.trace, *in_force);
    if (!repeats.ok()) return repeats.status();
    for (const std::string& function : advice_.analysis.functions) {
      FunctionAdvice one;
      one.function = function;
      one.in_force = in_force->Texts(function);
      one.repeats = std::move((*repeats)[function]);
      one.tune_in_force = SettingOf(header, function, "tune") == "on";
      one.tune = !one.tune_in_force &&
                 SettingOf(header, function, "key") != "tag" &&
                 static_cast<double>(one.repeats.Over(RepeatOver::kDrift)) >
                     kWorthTuning * static_cast<double>(one.repeats.runs);
      Ask(&one);
      advice_.functions.push_back(std::move(one));
    }
    const absl::Status status = Expect();
    if (!status.ok()) return status;
    NoteUnknown(header);
    return std::move(advice_);
  }

 private:
  absl::Status Connect() {
    for (const client::FunctionTarget& target : options_.targets) {
      const auto& known = advice_.analysis.functions;
      if (std::find(known.begin(), known.end(), target.name) == known.end()) {
        return absl::NotFoundError(absl::StrCat(
            options_.trace, ": no function is called \"", target.name,
            "\"; there are: ", absl::StrJoin(known, ", ")));
      }
    }
    auto client = client::FunctionClient::CreateUncached(options_.targets,
                                                         options_.tls_dir);
    if (!client.ok()) return client.status();
    client_ = *std::move(client);
    return absl::OkStatus();
  }

  void Ask(FunctionAdvice* one) {
    const bool known = std::any_of(
        options_.targets.begin(), options_.targets.end(),
        [one](const auto& target) { return target.name == one->function; });
    if (!known) {
      one->not_asked = absl::StrCat("--function ", one->function,
                                    "=TARGET says where it listens");
      return;
    }
    auto source = probe::ReadTrace(options_.trace, one->function, "");
    if (!source.ok()) {
      one->not_asked = std::string(source.status().message());
      return;
    }
    probe::ProbeOptions options;
    options.function = one->function;
    options.calls = options_.calls;
    options.timeout = options_.timeout;
    options.seed = options_.seed;
    one->asked_with = source->what;
    one->compared = source->variation.calls();
    auto result =
        probe::RunProbe(std::move(source->requests), source->variation,
                        source->knowledge, options, client_.get());
    if (!result.ok()) {
      one->not_asked = client::PlainRpcError(result.status());
      return;
    }
    one->probe = *std::move(result);
    for (const probe::ProposedMask& mask : one->probe.masks) {
      if (IsCovered(mask.mask, one->in_force)) continue;
      const bool tuned = one->tune || one->tune_in_force;
      if (tuned && HidesDriftOnly(mask.mask, one->repeats)) {
        one->drift_masks.push_back(mask.mask);
      } else {
        one->masks.push_back(mask);
      }
    }
    FindIdentity(one);
  }

  // Finds the paths that differ between composites, and their unread leaves.
  void FindIdentity(FunctionAdvice* one) {
    const auto differences = CompareComposites(options_.trace, one->function);
    if (!differences.ok()) return;
    one->composites = differences->composites;
    std::vector<std::string> hidden = one->in_force;
    for (const std::string& mask : TextsOf(one->masks)) hidden.push_back(mask);
    hidden.insert(hidden.end(), one->drift_masks.begin(),
                  one->drift_masks.end());
    const std::vector<probe::ProposedMask> leaves = probe::UnreadLeaves(
        one->probe.fields, one->probe.results, one->probe.not_probed.empty());
    const auto hides = [](const std::vector<std::string>& masks,
                          const std::string& path) {
      const auto set =
          cache::key::MaskSet::Parse(masks, cache::key::MaskRules::kAnyPath);
      return set.ok() &&
             insight::request::MaskMatcher(*set).Masks(WithIndices(path));
    };
    std::set<std::string> identity;
    for (const std::string& path : differences->paths) {
      if (hides(hidden, path)) continue;
      const auto leaf = std::find_if(leaves.begin(), leaves.end(),
                                     [&](const probe::ProposedMask& mask) {
                                       return hides({mask.mask}, path);
                                     });
      if (leaf != leaves.end()) {
        identity.insert(leaf->mask);
      } else {
        one->apart.push_back(path);
      }
    }
    one->identity.assign(identity.begin(), identity.end());
  }

  // `tune`: with `tune: on` where it is proposed.
  Question With(const std::string& label, bool tune, bool masks, bool identity,
                bool lifetime) const {
    Question question;
    question.label = tune ? absl::StrCat("tune: on, ", label) : label;
    if (tune && label.empty()) question.label = "tune: on";
    for (const FunctionAdvice& one : advice_.functions) {
      std::vector<std::string>& texts =
          question.texts[absl::StrCat("functions.", one.function, ".mask")];
      texts = one.in_force;
      // Tuning saves no more than masks over all drift would.
      if (tune) {
        texts.insert(texts.end(), one.drift_masks.begin(),
                     one.drift_masks.end());
      }
      if (masks) {
        for (const std::string& mask : TextsOf(one.masks)) {
          texts.push_back(mask);
        }
      }
      if (identity) {
        texts.insert(texts.end(), one.identity.begin(), one.identity.end());
      }
    }
    if (lifetime) {
      question.texts["ttl.min"] = {kLifetime};
      question.texts["requeue_ttl"] = {"original"};
    }
    return question;
  }

  absl::Status Expect() {
    const bool masks = std::any_of(
        advice_.functions.begin(), advice_.functions.end(),
        [](const FunctionAdvice& one) { return !one.masks.empty(); });
    const bool identity = std::any_of(
        advice_.functions.begin(), advice_.functions.end(),
        [](const FunctionAdvice& one) { return !one.identity.empty(); });
    const bool tune = std::any_of(
        advice_.functions.begin(), advice_.functions.end(),
        [](const FunctionAdvice& one) { return !one.drift_masks.empty(); });
    advice_.as_if_masked =
        tune || std::any_of(advice_.functions.begin(), advice_.functions.end(),
                            [](const FunctionAdvice& one) {
                              return one.tune_in_force;
                            });
    std::vector<Question> questions = {Question()};
    questions.push_back(With("these lifetimes", false, false, false, true));
    if (tune) {
      questions.push_back(With("", true, false, false, false));
      questions.push_back(With("these lifetimes", true, false, false, true));
    }
    if (masks) {
      questions.push_back(With("these masks", tune, true, false, false));
      questions.push_back(
          With("these masks and lifetimes", tune, true, false, true));
    }
    if (identity) {
      questions.push_back(
          With("these masks, those of identity too", tune, true, true, false));
      questions.push_back(
          With("these masks, those of identity too, and "
               "lifetimes",
               tune, true, true, true));
    }
    replay::ReplayFlags flags;
    flags.trace = options_.trace;
    const auto all = replay::AnswerWhatIf(flags, questions, settings_);
    if (!all.ok()) return all.status();
    flags.creation = true;
    flags.arrivals = "recorded";
    const auto creation = replay::AnswerWhatIf(flags, questions, settings_);
    if (!creation.ok()) return creation.status();
    const auto add = [&](const std::string& name,
                         const insight::whatif::Outcome& outcome,
                         const insight::whatif::Outcome& created) {
      Expected expected;
      expected.settings = name;
      expected.hit_rate = outcome.all.HitRate();
      expected.runs = outcome.all.function_runs;
      expected.creation = created.all.HitRate();
      advice_.expected.push_back(std::move(expected));
    };
    add("measured", all->report.measured, creation->report.measured);
    for (size_t i = 0; i < all->report.rows.size(); ++i) {
      add(all->report.rows[i].question.Label(), all->report.rows[i].outcome,
          creation->report.rows[i].outcome);
    }
    if (identity) {
      // With lifetimes and without: where it is worth more counts.
      const size_t rows = advice_.expected.size();
      for (const size_t with : {rows - 1, rows - 2}) {
        const Expected& shared = advice_.expected[with];
        // The same settings without those masks are two rows before.
        const Expected& alone = advice_.expected[with - 2];
        for (const auto rate : {&Expected::hit_rate, &Expected::creation}) {
          advice_.share |= (shared.*rate).value_or(0) >=
                           (alone.*rate).value_or(0) + kWorthSharing;
        }
      }
    }
    return absl::OkStatus();
  }

  void NoteUnknown(const insight::trace::TraceHeader& header) {
    const auto say = [this](std::string sentence) {
      advice_.unknown.push_back(std::move(sentence));
    };
    for (const FunctionAdvice& one : advice_.functions) {
      const std::string whose = absl::StrCat(one.function, ": ");
      if (one.tune) {
        say(absl::StrCat(whose,
                         "whether it has effects outside its answers, or "
                         "remembers what it was asked: tune: on needs a "
                         "function without"));
      }
      if (!one.not_asked.empty()) {
        say(absl::StrCat(
            whose, "was not asked, so no mask is proposed: ", one.not_asked));
        continue;
      }
      if (!one.probe.complete) {
        say(absl::StrCat(whose, "the probe ended after ", one.probe.calls,
                         " calls (--calls), before all of it was asked"));
      }
      if (!one.probe.not_probed.empty()) {
        say(absl::StrCat(whose,
                         "what it reads of resources that were not observed: ",
                         absl::StrJoin(one.probe.not_probed, ", ")));
      }
      if (!one.probe.failing.empty()) {
        say(absl::StrCat(
            whose, "what it reads once these have a value that it takes: ",
            absl::StrJoin(one.probe.failing, ", ")));
      }
      if (!one.probe.unstable.empty()) {
        say(absl::StrCat(whose,
                         "why its answer to one request varies: it asks "
                         "something else, and gets no longer lifetime"));
      }
      if (one.composites < 2) {
        say(absl::StrCat(whose,
                         "what tells composites apart: the trace has no "
                         "two of one kind with the same resources"));
      }
    }
    say("whether an answer depends on anything outside of its request (a "
        "clock, "
        "chance, another system): no question shows it");
    say("requests unlike those of the trace: probe requests of other "
        "composites (fncache probe), and prove masks in service (mode: "
        "shadow)");
    const std::string short_of = insight::explain::TooShortForTimers(
        advice_.analysis.span, advice_.analysis.longest_ttl);
    if (!short_of.empty()) say(short_of);
    if (!advice_.expected.empty() && !advice_.expected.back().creation) {
      say("the hit rate while composites are created: none is in the trace");
    }
    if (header.writer == "load") {
      say("the daemon's own settings: the trace is a load's, and does not know "
          "them");
    }
    if (advice_.analysis.dropped > 0 || advice_.analysis.damaged > 0) {
      say(absl::StrCat(
          advice_.analysis.dropped, " calls that were dropped and ",
          advice_.analysis.damaged, " blocks of the trace that are damaged"));
    }
  }

  const AdviseOptions& options_;
  const SettingsReader& settings_;
  std::unique_ptr<client::FunctionClient> client_;
  Advice advice_;
};

}  // namespace

absl::StatusOr<Advice> Advise(const AdviseOptions& options,
                              const SettingsReader& settings) {
  return Adviser(options, settings).Run();
}

}  // namespace fncache::runner::advise
