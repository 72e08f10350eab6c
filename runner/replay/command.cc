// SPDX-License-Identifier: Apache-2.0
#include "runner/replay/command.h"

#include <algorithm>
#include <cstdio>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/command_line.h"
#include "common/file.h"
#include "common/standard_streams.h"
#include "common/threads.h"
#include "common/utf8.h"
#include "insight/trace/reader.h"
#include "insight/whatif/info.h"
#include "insight/whatif/recording.h"
#include "runner/replay/options.h"
#include "runner/replay/play.h"
#include "runner/replay/report.h"
#include "runner/replay/what_if.h"

namespace fncache::runner::replay {
namespace {

constexpr int kNotPossible = 1;
constexpr int kBadUsage = 2;
constexpr int kFailed = 99;

int Fail(int code, absl::string_view message) {
  std::fprintf(stderr, "fncache replay: %s\n", Printable(message).c_str());
  return code;
}

int Fail(const absl::Status& status) {
  return Fail(kNotPossible, status.message());
}

// Text to standard output, unless JSON goes there.
int Print(const ReplayFlags& flags, const std::string& text,
          const std::string& json) {
  if (flags.json == "-") return PrintResult("fncache replay", json);
  if (!flags.json.empty()) {
    const absl::Status status = WriteTextFile(flags.json, json);
    if (!status.ok()) return Fail(status);
  }
  return PrintResult("fncache replay", text);
}

int TellInfo(const ReplayFlags& flags) {
  auto reader = insight::trace::TraceReader::Open(flags.trace);
  if (!reader.ok()) return Fail(reader.status());
  const auto recording = insight::whatif::Read(reader->get(), {});
  if (!recording.ok()) return Fail(recording.status());
  const auto info = insight::whatif::InfoOf(*recording);
  return Print(flags, InfoText(info), InfoJson(info));
}

int PlayIt(const ReplayFlags& flags) {
  PlayOptions options;
  options.trace = flags.trace;
  options.target = flags.target;
  options.tls_dir = flags.tls_dir;
  if (flags.speed == "max") {
    options.speed = absl::nullopt;
  } else {
    double speed = 0;
    if (!absl::SimpleAtod(flags.speed, &speed) ||
        !(speed > 0 && speed <= 1e6)) {
      return Fail(kBadUsage,
                  absl::StrCat("--speed: ", flags.speed,
                               " is not accepted; accepted: a number above 0, "
                               "or max"));
    }
    options.speed = speed;
  }
  const auto played = Play(options);
  if (!played.ok()) return Fail(played.status());
  const int printed = Print(flags, PlayedText(*played), PlayedJson(*played));
  if (printed != 0) return printed;
  return played->different > 0 ? kFailed : 0;
}

int TellWhatIf(const ReplayFlags& flags,
               const insight::whatif::SettingsReader& settings) {
  auto questions = QuestionsOf(flags, settings);
  if (!questions.ok()) return Fail(kBadUsage, questions.status().message());
  const auto answer = AnswerWhatIf(flags, *std::move(questions), settings);
  if (!answer.ok()) {
    return Fail(
        absl::IsInvalidArgument(answer.status()) ? kBadUsage : kNotPossible,
        answer.status().message());
  }
  const Report& report = answer->report;
  absl::Status status;
  if (!flags.mrc.empty()) status.Update(WriteTextFile(flags.mrc, answer->mrc));
  if (!flags.html.empty()) {
    status.Update(WriteTextFile(flags.html, ReportPage(report)));
  }
  if (!status.ok()) return Fail(status);
  const int printed = Print(
      flags, flags.export_as.empty() ? ReportText(report) : ReportCsv(report),
      ReportJson(report));
  if (printed != 0) return printed;
  for (const Row& row : report.rows) {
    for (const load::ThresholdResults& one : row.thresholds) {
      if (!one.ok) return kFailed;
    }
  }
  return 0;
}

// Flags that do not go together: why not.
std::string Contradiction(const ReplayFlags& flags) {
  const bool asks = !flags.what_if.empty() || !flags.sweep.empty() ||
                    !flags.mrc.empty() || flags.suggest_masks ||
                    !flags.thresholds.empty() || !flags.by.empty() ||
                    !flags.html.empty() || !flags.export_as.empty();
  if (flags.info && (asks || flags.play)) {
    return "--info: says what is in the trace, and goes with --json alone";
  }
  if (flags.play && asks) {
    return "--play: sends the trace, and goes with --target, --speed, "
           "--tls-dir and --json alone";
  }
  if (flags.play && flags.target.empty()) {
    return "--play: needs --target ADDR, where the messages go";
  }
  if (!flags.play && (!flags.target.empty() || !flags.tls_dir.empty())) {
    return absl::StrCat(flags.target.empty() ? "--tls-dir" : "--target",
                        ": goes with --play");
  }
  if (flags.json == "-" && !flags.export_as.empty()) {
    return "--export: --json - goes to standard output, too";
  }
  return "";
}

}  // namespace

std::string ReplayHelp() {
  ReplayFlags flags;
  return MakeReplayLine(&flags).Help();
}

std::vector<CommandFlag> ReplayCommandFlags() {
  ReplayFlags flags;
  return MakeReplayLine(&flags).Flags();
}

int ReplayMain(int argc, char** argv,
               const insight::whatif::SettingsReader& settings) {
  ReplayFlags flags;
  CommandLine line = MakeReplayLine(&flags);
  if (const auto code = line.ParseForMain(argc, argv)) return *code;
  const std::string wrong = Contradiction(flags);
  if (!wrong.empty()) return Fail(kBadUsage, wrong);
  if (flags.info) return TellInfo(flags);
  if (flags.play) {
    const absl::Status threads = CheckThreads(GrpcThreads() + 4);
    if (!threads.ok()) return Fail(threads);
    return PlayIt(flags);
  }
  return TellWhatIf(flags, settings);
}

}  // namespace fncache::runner::replay
