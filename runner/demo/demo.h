// SPDX-License-Identifier: Apache-2.0
// Demo: the story that `fncache demo` tells, step by step.
//
// Every step starts its child processes of this binary, drives them with
// `fncache load` and `fncache replay`, and shows the results. The claims of a
// step are checked against those results, the function's own log and the
// daemon's metrics.
//
// Single use: Run once, from the main thread.
#ifndef FNCACHE_RUNNER_DEMO_DEMO_H_
#define FNCACHE_RUNNER_DEMO_DEMO_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "runner/demo/screen.h"

namespace fncache::runner::demo {

struct DemoFolders {
  std::string work;  // an empty one, for the cache and results
  // The folder in which the last step leaves its page, results, trace and
  // inputs. They replace those of an earlier demo; may be `work`.
  std::string out;
};

class Demo {
 public:
  // The folders exist. They and `screen` must outlive the demo.
  Demo(DemoFolders folders, DemoScreen* screen);
  ~Demo();

  // An error if a step could not be run at all. held() returns whether every
  // claim was true.
  absl::Status Run();
  bool held() const;

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace fncache::runner::demo

#endif  // FNCACHE_RUNNER_DEMO_DEMO_H_
