// SPDX-License-Identifier: Apache-2.0
#include "common/threads.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <fstream>
#include <system_error>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"

namespace fncache {
namespace {

constexpr char kWhereToLook[] =
    "; look at the limits of processes (ulimit -u, the container's pids) and "
    "of memory";

std::terminate_handler next_handler = nullptr;

void OnTerminate() {
  try {
    if (const std::exception_ptr thrown = std::current_exception()) {
      std::rethrow_exception(thrown);
    }
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::resource_unavailable_try_again) {
      std::fprintf(stderr, "fncache: cannot make a thread%s\n", kWhereToLook);
      _exit(1);
    }
  } catch (...) {
    // Other errors are explained by the next handler.
  }
  next_handler();
}

}  // namespace

int GrpcThreads() {
  // Two executors and the event engine grow with the cores; beside them there
  // are timers, the thread that polls for callbacks, and short-lived helpers.
  const int cores =
      static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  return 8 + 5 * cores;
}

int UsableCores() {
  int cores =
      static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) {
    cores = std::max(1, CPU_COUNT(&allowed));
  }
  // "QUOTA PERIOD", or "max PERIOD" (Documentation/admin-guide/cgroup-v2.rst in
  // the kernel's sources); in a container it is its own group's.
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  double quota = 0;
  double period = 0;
  if (file >> quota >> period && quota > 0 && period > 0) {
    cores = std::min(cores,
                     std::max(1, static_cast<int>(std::ceil(quota / period))));
  }
  return cores;
}

absl::Status CheckThreads(int count) {
  absl::Notification all_made;
  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(count));
  absl::Status status;
  for (int i = 0; i < count && status.ok(); ++i) {
    try {
      threads.emplace_back([&all_made] { all_made.WaitForNotification(); });
    } catch (const std::system_error& error) {
      status = absl::ResourceExhaustedError(
          absl::StrCat("cannot make the ", count,
                       " threads that may be needed, only ", i, kWhereToLook));
    }
  }
  all_made.Notify();
  for (std::thread& thread : threads) thread.join();
  return status;
}

void ExitWhereThreadsAreMissing() {
  next_handler = std::set_terminate(OnTerminate);
}

}  // namespace fncache
