// SPDX-License-Identifier: Apache-2.0
#include "runner/replay/options.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/duration.h"
#include "common/size.h"
#include "common/utf8.h"

namespace fncache::runner::replay {
namespace {

using insight::whatif::SettingsReader;
using Texts = std::vector<std::string>;

constexpr char kFooter[] = R"(
TRACE is the folder of a trace (fncache serve --trace-dir, fncache load --trace)
or one of its files.

What if:
  The trace's calls are played through the cache as it is, on a simulated clock,
  once for each set of settings. Settings are the daemon's, by name: ttl.max,
  requeue_ttl, mask, cache.memory..., of one function as functions.NAME.KEY.
  What is not asked about is as the trace's daemon had it, or the default. All
  --what-if together are one set; a --sweep is a set for each of its values.
  A..B is eight values from A to B. Masks need a trace of level paths.
  Memory alone is played: no disk tier, no shared one.

Arrivals:
  model     where a setting changes the TTL that the runner is told, pipelines
            that a timer caused come when it would have let them come
  recorded  every call comes when it came

Thresholds:
  hits:rate>0.8  runs:rate<50  hits{step=S}:count>100  runs{function=F}:count<9
  Each must hold for every set of settings.

Play:
  --play sends the messages of a trace of level full to a function or a daemon,
  with the pauses between them, and compares the answers with those recorded.

Exit codes: 0; 1 for what is not possible; 2 for flags that do not fit; 99 for
a threshold that fails, or answers that differ.)";

// Values of a range, by what its ends are.
constexpr int kRangeValues = 8;
constexpr size_t kMostQuestions = 200;

absl::Status Wrong(absl::string_view flag, absl::string_view text,
                   absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat(flag, " ", Printable(text), ": ", why));
}

// From `a` to `b` by equal factors; by equal steps where one of them is 0.
std::vector<double> Between(double a, double b) {
  std::vector<double> values;
  for (int i = 0; i < kRangeValues; ++i) {
    const double part = static_cast<double>(i) / (kRangeValues - 1);
    values.push_back(a > 0 && b > 0 ? a * std::pow(b / a, part)
                                    : a + (b - a) * part);
  }
  return values;
}

absl::StatusOr<Texts> Range(absl::string_view a, absl::string_view b) {
  Texts texts;
  double least = 0, most = 0;
  // A plain number first: 0 is a duration, too.
  if (absl::SimpleAtod(a, &least) && absl::SimpleAtod(b, &most)) {
    for (int i = 0; i < kRangeValues; ++i) {
      const double part = static_cast<double>(i) / (kRangeValues - 1);
      texts.push_back(absl::StrFormat("%.6g", least + (most - least) * part));
    }
    return texts;
  }
  const auto first = ParseGoDuration(a), last = ParseGoDuration(b);
  if (first.ok() && last.ok()) {
    for (const double seconds :
         Between(absl::ToDoubleSeconds(*first), absl::ToDoubleSeconds(*last))) {
      const absl::Duration unit =
          seconds >= 100 ? absl::Seconds(1) : absl::Milliseconds(1);
      texts.push_back(FormatGoDuration(
          absl::Trunc(absl::Seconds(seconds) + unit / 2, unit)));
    }
    return texts;
  }
  const auto small = ParseSize(a), large = ParseSize(b);
  if (small.ok() && large.ok()) {
    for (const double bytes :
         Between(static_cast<double>(*small), static_cast<double>(*large))) {
      texts.push_back(absl::StrCat(
          static_cast<uint64_t>(std::llround(bytes / 1024)), "KiB"));
    }
    return texts;
  }
  return absl::InvalidArgumentError(
      "accepted: KEY=A..B with two durations, two sizes or two numbers");
}

// KEY=VALUE.
absl::StatusOr<std::pair<std::string, std::string>> Pair(
    absl::string_view flag, const std::string& text,
    const SettingsReader& reader) {
  const std::pair<std::string, std::string> pair =
      absl::StrSplit(text, absl::MaxSplits('=', 1));
  if (text.find('=') == std::string::npos || pair.first.empty()) {
    return Wrong(flag, text, "accepted: KEY=VALUE, such as ttl.max=1h");
  }
  if (!reader.Takes(pair.first)) {
    const auto why = reader.Read({{pair.first, {pair.second}}});
    return absl::InvalidArgumentError(
        absl::StrCat(flag, ": ", why.status().message()));
  }
  return pair;
}

// The values of KEY=A,B,C, each of which may be given alone.
absl::StatusOr<Texts> ValuesOf(const std::string& text,
                               const std::string& values) {
  const size_t dots = values.find("..");
  if (dots != std::string::npos) {
    const auto range = Range(absl::string_view(values).substr(0, dots),
                             absl::string_view(values).substr(dots + 2));
    if (range.ok()) return range;
    return Wrong("--sweep", text, range.status().message());
  }
  Texts all;
  // Commas in quotes are a path's.
  std::string value;
  bool quoted = false;
  for (const char c : values) {
    if (c == '"') quoted = !quoted;
    if (c == ',' && !quoted) {
      all.push_back(std::exchange(value, ""));
    } else {
      value += c;
    }
  }
  all.push_back(value);
  return all;
}

}  // namespace

CommandLine MakeReplayLine(ReplayFlags* flags) {
  CommandLine line(
      "Says what is in a trace and what other settings would have given for "
      "it,\nor replays it.",
      "fncache replay");
  line.AddOption("TRACE", &flags->trace).Required();
  line.AddFlag("--info", &flags->info, "Say what is in the trace");
  line.AddOption("--what-if", &flags->what_if,
                 "A setting that is not as it was; repeats")
      .TypeName("KEY=VALUE")
      .RepeatsWithLists();
  line.AddOption("--sweep", &flags->sweep,
                 "Several values of a setting; repeats")
      .TypeName("KEY=A,B,C|KEY=A..B")
      .RepeatsWithLists();
  line.AddOption("--arrivals", &flags->arrivals, "When calls come")
      .OneOf({"recorded", "model"})
      .TypeName("recorded|model")
      .ShowDefault();
  line.AddOption("--by", &flags->by, "Tell them apart")
      .OneOf({"function", "step", "xr"})
      .TypeName("function|step|xr");
  line.AddOption("--mrc", &flags->mrc,
                 "Write the miss ratio by cache.memory, as CSV")
      .TypeName("FILE");
  line.AddFlag("--suggest-masks", &flags->suggest_masks,
               "Try the masks that would have made hits, beside those in "
               "force, and say what each gives. The function is not asked "
               "whether it reads what they hide");
  line.AddOption("--threshold", &flags->thresholds,
                 "A condition that must hold (see below); repeats")
      .TypeName("EXPR")
      .RepeatsWithLists();
  line.AddOption(
          "--json",
          [flags](const std::vector<std::string>& files) {
            flags->json = files.empty() || files[0].empty() ? "-" : files[0];
          },
          "Write the results as JSON; -, or nothing: stdout")
      .TypeName("FILE")
      .Expected(0, 1);
  line.AddOption("--html", &flags->html, "Write the results as a page")
      .TypeName("FILE");
  line.AddOption("--export", &flags->export_as, "Print the results as CSV")
      .OneOf({"csv"})
      .TypeName("csv");
  line.AddFlag("--play", &flags->play, "Send the trace's messages");
  line.AddOption("--target", &flags->target, "Where --play sends them")
      .TypeName("ADDR");
  line.AddOption("--speed", &flags->speed,
                 "How fast --play goes: a factor, or without pauses")
      .TypeName("N|max")
      .ShowDefault();
  line.AddOption("--tls-dir", &flags->tls_dir,
                 "tls.crt, tls.key and ca.crt for --play; default: plaintext")
      .TypeName("DIR");
  line.Footer(kFooter);
  return line;
}

std::string Question::Label() const {
  if (!label.empty()) return label;
  if (what_if.empty()) return "as recorded";
  return absl::StrJoin(what_if, " ", absl::PairFormatter("="));
}

absl::StatusOr<std::vector<Question>> QuestionsOf(
    const ReplayFlags& flags, const SettingsReader& reader) {
  Question base;
  for (const std::string& text : flags.what_if) {
    const auto pair = Pair("--what-if", text, reader);
    if (!pair.ok()) return pair.status();
    base.what_if.push_back(*pair);
    // A list's values add up; of anything else two are one too many.
    Texts& texts = base.texts[pair->first];
    for (std::string& one : reader.Split(pair->first, pair->second)) {
      texts.push_back(std::move(one));
    }
  }
  if (const auto checked = reader.Read(base.texts); !checked.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--what-if: ", checked.status().message()));
  }
  std::vector<Question> questions = {std::move(base)};
  for (const std::string& text : flags.sweep) {
    const auto pair = Pair("--sweep", text, reader);
    if (!pair.ok()) return pair.status();
    const auto values = ValuesOf(text, pair->second);
    if (!values.ok()) return values.status();
    std::vector<Question> more;
    for (const Question& question : questions) {
      for (const std::string& value : *values) {
        Question one = question;
        one.what_if.emplace_back(pair->first, value);
        one.texts[pair->first] = reader.Split(pair->first, value);
        if (const auto checked = reader.Read(one.texts); !checked.ok()) {
          return absl::InvalidArgumentError(
              absl::StrCat("--sweep: ", checked.status().message()));
        }
        more.push_back(std::move(one));
      }
    }
    questions = std::move(more);
    if (questions.size() > kMostQuestions) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--sweep: comes to more than ", kMostQuestions, " sets of settings"));
    }
  }
  return questions;
}

}  // namespace fncache::runner::replay
