// SPDX-License-Identifier: Apache-2.0
#include "common/threads.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>
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
