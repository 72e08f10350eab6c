// SPDX-License-Identifier: Apache-2.0
#include "proxy/daemon_threads.h"

#include <algorithm>

#include "common/threads.h"

namespace fncache::proxy {
namespace {

// More workers than this have shown no benefit.
constexpr int kMostWorkers = 8;

}  // namespace

int WorkersOf(const settings::DaemonOptions& options) {
  return options.workers > 0 ? options.workers
                             : std::min(UsableCores(), kMostWorkers);
}

std::unique_ptr<ThreadPool> MakeAssistants() {
  constexpr size_t kMostWaiting = 1024;  // more than workers hand over
  const int cores = UsableCores();
  if (cores == 1) return nullptr;
  return std::make_unique<ThreadPool>(std::min(cores, kMostWorkers) - 1,
                                      kMostWaiting);
}

}  // namespace fncache::proxy
