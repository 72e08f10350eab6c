// SPDX-License-Identifier: Apache-2.0
// DemoScreen prints what the demo shows: paragraphs, a progress line while it
// works, and a table.
//
// Colour and progress appear on a terminal only, and no colour under NO_COLOR.
// Lines of text and the table fit in 80 columns. For one thread, but for
// Interrupted, which any thread may call.
#ifndef FNCACHE_RUNNER_DEMO_SCREEN_H_
#define FNCACHE_RUNNER_DEMO_SCREEN_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace fncache::runner::demo {

class DemoScreen {
 public:
  DemoScreen();

  // A step's title, with an empty line above it.
  void Title(absl::string_view text);
  // A line with an observation, indented.
  void Line(absl::string_view text);
  // A command that is being run.
  void Command(absl::string_view text);
  // A claim that proved false; on stderr.
  void Failure(absl::string_view text);
  // Text as another command printed it.
  void Verbatim(absl::string_view text);
  // The line that the next output overwrites: the current action, and its
  // duration so far.
  void Progress(absl::string_view what, absl::Duration since);
  // Rows of a label and two values, the first row being the heads.
  void Table(const std::vector<std::vector<std::string>>& rows);

  // Leaves the terminal in order when the process ends half-way.
  void Interrupted() const;

 private:
  void ClearProgress();

  const bool terminal_;
  const bool colour_;
  bool progress_shown_ = false;
};

}  // namespace fncache::runner::demo

#endif  // FNCACHE_RUNNER_DEMO_SCREEN_H_
