// SPDX-License-Identifier: Apache-2.0
// ChildProcess: this same binary, run as another of its commands.
//
// Its stderr is read as it comes, to learn its addresses and the number of
// calls that it has logged. One list has all children that are alive, so that
// the end of the process can end them, too.
//
// Thread-safe but for construction and Wait. Start children from the main
// thread: they are killed when the thread that started them ends.
#ifndef FNCACHE_RUNNER_DEMO_CHILD_PROCESS_H_
#define FNCACHE_RUNNER_DEMO_CHILD_PROCESS_H_

#include <sys/types.h>

#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/mutex.h"

namespace fncache::runner::demo {

class ChildProcess {
 public:
  // Runs /proc/self/exe with `args`, without the environment variables that set
  // this program's settings. The child prints to `stdout_fd`, which stays the
  // caller's; by default to the stdout of this process.
  static absl::StatusOr<std::unique_ptr<ChildProcess>> Start(
      const std::vector<std::string>& args, int stdout_fd = -1);
  // Kills the child if it runs.
  ~ChildProcess();

  pid_t pid() const { return pid_; }

  // Waits until the child has said `listening on` `count` times, and returns
  // the addresses in that order. An error, with the child's last words, if it
  // ends or takes longer than `patience`.
  absl::StatusOr<std::vector<std::string>> Listening(size_t count,
                                                     absl::Duration patience);

  // How many calls it has logged (function --log-calls).
  int calls() const;

  // Waits for its end, but for no longer than `patience`; true if it came.
  bool Ended(absl::Duration patience);
  // The last lines of its stderr.
  std::string LastWords() const;

  void Signal(int signal);
  // Waits for the child's end and returns what waitpid says.
  int Wait();

  // Kills every child of this process that Start made, and prevents further
  // starts. For the process's last moments.
  static void KillAll() ABSL_NO_THREAD_SAFETY_ANALYSIS;

 private:
  ChildProcess(pid_t pid, int stderr_fd);
  void Read(int fd);

  const pid_t pid_;
  bool waited_ = false;
  mutable Mutex mutex_;
  CondVar changed_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  int calls_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::string> listening_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::string> last_lines_ ABSL_GUARDED_BY(mutex_);
  std::thread reader_;
};

}  // namespace fncache::runner::demo

#endif  // FNCACHE_RUNNER_DEMO_CHILD_PROCESS_H_
