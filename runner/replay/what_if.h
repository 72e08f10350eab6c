// SPDX-License-Identifier: Apache-2.0
// Answers what was asked of a trace: reads it, plays it under each set of
// settings, and puts what came of it beside what was measured.
//
// Thread-safe.
#ifndef FNCACHE_RUNNER_REPLAY_WHAT_IF_H_
#define FNCACHE_RUNNER_REPLAY_WHAT_IF_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "insight/whatif/settings.h"
#include "runner/replay/options.h"
#include "runner/replay/report.h"

namespace fncache::runner::replay {

struct Answer {
  Report report;
  std::string mrc;  // CSV; "" unless it was asked for
};

// InvalidArgument is a flag's fault and names it. Any other error means that
// the question cannot be answered (FailedPrecondition: the trace lacks the
// data).
absl::StatusOr<Answer> AnswerWhatIf(
    const ReplayFlags& flags, std::vector<Question> questions,
    const insight::whatif::SettingsReader& reader);

}  // namespace fncache::runner::replay

#endif  // FNCACHE_RUNNER_REPLAY_WHAT_IF_H_
