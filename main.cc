// fncache: dispatches to its commands. Each command owns its own flags.
#include <iostream>

#include "CLI/CLI.hpp"

#include "absl/synchronization/mutex.h"

int main(int argc, char** argv) {
  // Debian's abseil detects deadlocks by default: 210 ns a lock instead of 7.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  CLI::App app{"fncache: a caching proxy for composition functions"};
  app.set_version_flag("--version", "fncache 0.1.0");
  CLI11_PARSE(app, argc, argv);
  return 0;
}
