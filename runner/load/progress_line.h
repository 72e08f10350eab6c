// SPDX-License-Identifier: Apache-2.0
// ProgressLine: the progress of a load run on stderr: a line that is replaced
// on a terminal, else one every five seconds.
//
// Used by one thread.
#ifndef FNCACHE_RUNNER_LOAD_PROGRESS_LINE_H_
#define FNCACHE_RUNNER_LOAD_PROGRESS_LINE_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "runner/load/measure.h"
#include "runner/load/options.h"

namespace fncache::runner::load {

// Writes to stderr. A failure to write is ignored: nothing can report it.
void Say(const std::string& text);

class ProgressLine {
 public:
  explicit ProgressLine(LoadOptions::Progress how);

  // Shows a line if the last one is old enough.
  void Tell(const Measure& measure, const char* phase, uint64_t ready,
            uint64_t composites);
  // Not with --progress none, since the summary has it, too.
  void Warn(const std::string& text);
  void End();

 private:
  std::string LineOf(const Measure& measure, absl::string_view phase,
                     uint64_t ready, uint64_t composites, int64_t now) const;

  const bool none_;
  const bool terminal_;
  const int64_t began_;
  int64_t reported_;
  bool shown_ = false;
};

}  // namespace fncache::runner::load

#endif  // FNCACHE_RUNNER_LOAD_PROGRESS_LINE_H_
