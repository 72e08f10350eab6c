// SPDX-License-Identifier: Apache-2.0
// ThreadsRest: whether a process has anything left to do at once; AwaitRest
// waits until it has not.
#ifndef FNCACHE_TESTS_COMMON_THREADS_REST_H_
#define FNCACHE_TESTS_COMMON_THREADS_REST_H_

#include <sys/types.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace fncache::testing {

// Whether the process has no thread that can run, other than the caller's. On a
// busy machine a pause alone may pass while a daemon gets no time to make its
// next question.
inline bool ThreadsRest(pid_t pid) {
  const std::string own = std::to_string(gettid());
  std::error_code error;
  const std::filesystem::path tasks = absl::StrCat("/proc/", pid, "/task");
  for (const auto& task : std::filesystem::directory_iterator(tasks, error)) {
    if (task.path().filename() == own) continue;
    std::ifstream file(task.path() / "stat");
    std::string stat;
    std::getline(file, stat);
    // The state follows the name, which may have parentheses itself. A thread
    // that has ended has none.
    const size_t name_end = stat.rfind(')');
    if (name_end == std::string::npos) continue;
    const char state = stat[name_end + 2];
    if (state == 'R' || state == 'D') return false;
  }
  EXPECT_FALSE(error) << tasks << ": " << error.message();
  return true;
}

// Returns once `count` is what it was, and `rests` is true, at four looks in a
// row.
inline void AwaitRest(const std::function<int()>& count,
                      const std::function<bool()>& rests) {
  for (int still = 0, before = -1; still < 4;) {
    const int now = count();
    still = now == before && rests() ? still + 1 : 0;
    before = now;
    absl::SleepFor(absl::Milliseconds(1));
  }
}

}  // namespace fncache::testing

#endif  // FNCACHE_TESTS_COMMON_THREADS_REST_H_
