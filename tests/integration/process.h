// SPDX-License-Identifier: Apache-2.0
// A child process of the binary under test (or of another program), and waiting
// for what it says.
//
// Every wait is for a thing and fails after kPatience. Not thread-safe but for
// what is said otherwise; the destructor kills what still runs.
#ifndef FNCACHE_TESTS_INTEGRATION_PROCESS_H_
#define FNCACHE_TESTS_INTEGRATION_PROCESS_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/mutex.h"
#include "tests/common/temp_dir.h"

namespace fncache::testing {

// The longest wait in a test before it fails. It is generous, because
// sanitizers and busy machines are slow.
constexpr absl::Duration kPatience = absl::Seconds(60);

class Process {
 public:
  using Environment = std::vector<std::pair<std::string, std::string>>;

  // Runs `program` (a path, or a name to be found in the PATH), by default the
  // binary, with `args`. The environment is this process's without any
  // FNCACHE_*, FUNCTION_NAME, REVISION_NAME and TLS_SERVER_CERTS_DIR, plus
  // `env`.
  //
  // A daemon or a function takes no address that a default names (9901, 9443),
  // because another one on this machine may have it: if neither `args` nor
  // `env` nor the settings file names an address, it gets a free port.
  explicit Process(std::vector<std::string> args, const Environment& env = {},
                   const std::string& program = FNCACHE_BINARY);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // Blocks until stderr has `count` lines that contain `text`; false if the
  // process closed stderr first, or kPatience passed.
  bool WaitForStderr(absl::string_view text, int count = 1);
  // The same of stdout: what is written there first may be read later.
  bool WaitForStdout(absl::string_view text, int count = 1);

  // The addresses of all `listening on HOST:PORT` so far, in order of
  // appearance.
  std::vector<std::string> Listening() const;

  void Signal(int signal);
  // Waits for the end; the exit code, or 128 + the signal that ended it. After
  // `limit` the test has failed.
  int Wait(absl::Duration limit = 2 * kPatience);

  pid_t pid() const { return pid_; }
  std::string Stdout() const;
  std::string Stderr() const;

 private:
  void Collect(int fd, std::string* into);
  bool WaitFor(const std::string& said, absl::string_view text,
               int count) ABSL_NO_THREAD_SAFETY_ANALYSIS;

  pid_t pid_ = -1;
  bool reaped_ = false;
  int exit_code_ = -1;
  mutable Mutex mutex_;
  mutable CondVar changed_;
  std::string stdout_ ABSL_GUARDED_BY(mutex_);
  std::string stderr_ ABSL_GUARDED_BY(mutex_);
  int open_pipes_ ABSL_GUARDED_BY(mutex_) = 2;
  std::thread stdout_reader_;
  std::thread stderr_reader_;
};

// The body of GET http://ADDRESS/PATH, "" if nothing answers; `status` gets the
// HTTP status.
std::string HttpGet(const std::string& address, const std::string& path,
                    int* status = nullptr);

// The value of one sample in a Prometheus text exposition, `name` with its
// labels as exposed; -1 if absent.
double Sample(const std::string& exposition, absl::string_view name);

}  // namespace fncache::testing

#endif  // FNCACHE_TESTS_INTEGRATION_PROCESS_H_
