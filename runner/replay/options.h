// SPDX-License-Identifier: Apache-2.0
// The command line of `fncache replay`.
//
// Pure functions, thread-safe.
#ifndef FNCACHE_RUNNER_REPLAY_OPTIONS_H_
#define FNCACHE_RUNNER_REPLAY_OPTIONS_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/command_line.h"
#include "insight/whatif/engine.h"
#include "insight/whatif/settings.h"

namespace fncache::runner::replay {

enum class GroupBy { kNothing, kFunction, kStep, kComposite };

struct ReplayFlags {
  std::string trace;
  bool info = false;
  std::vector<std::string> what_if, sweep, thresholds;
  std::string arrivals = "model", by;
  std::string mrc, json, html, export_as;
  bool suggest_masks = false;
  // Count the calls of composites that are created in the trace only, each when
  // it came (insight/whatif/recording.h). Not a flag: fncache advise asks so.
  bool creation = false;
  bool play = false;
  std::string target, speed = "1", tls_dir;
};

// The parser, which fills `flags`; they must outlive its Parse.
CommandLine MakeReplayLine(ReplayFlags* flags);

// One set of settings that is asked about: what it is called, and what of the
// trace's own settings it replaces.
struct Question {
  std::vector<std::pair<std::string, std::string>> what_if;
  insight::whatif::SettingTexts texts;
  // The label of a suggestion, whose settings would be long; "" otherwise.
  std::string label;

  // `label`; else KEY=VALUE KEY=VALUE, or "as recorded" of none.
  std::string Label() const;
};

// Of --what-if and --sweep: each value of a sweep with all of the what-ifs, and
// sweeps with each other. InvalidArgument names the flag and what is accepted.
absl::StatusOr<std::vector<Question>> QuestionsOf(
    const ReplayFlags& flags, const insight::whatif::SettingsReader& reader);

}  // namespace fncache::runner::replay

#endif  // FNCACHE_RUNNER_REPLAY_OPTIONS_H_
