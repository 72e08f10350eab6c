// SPDX-License-Identifier: Apache-2.0
// Demo: the story that `fncache demo` tells, step by step.
//
// Every step starts what it needs as child processes of this binary, sends the
// traffic of a few composites, compares every answer with what the function
// alone gave, and shows what it saw.
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

class Demo {
 public:
  // `folder` is an empty folder for the cache; both outlive the demo.
  Demo(std::string folder, DemoScreen* screen);
  ~Demo();

  // An error if a step could not be run at all. Whether everything that was
  // claimed held is told by held().
  absl::Status Run();
  bool held() const;

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace fncache::runner::demo

#endif  // FNCACHE_RUNNER_DEMO_DEMO_H_
