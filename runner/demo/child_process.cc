// SPDX-License-Identifier: Apache-2.0
#include "runner/demo/child_process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"

namespace fncache::runner::demo {
namespace {

constexpr size_t kKeptLines = 20;

// Children that are not waited for yet.
struct Alive {
  Mutex mutex;
  std::set<pid_t> pids ABSL_GUARDED_BY(mutex);
};

Alive& TheAlive() {
  static Alive* alive = new Alive;
  return *alive;
}

// The child's environment is ours without the variables that set something:
// what is meant for the demo's caller must not change the demo.
std::vector<char*> Environment() {
  std::vector<char*> kept;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const absl::string_view text(*variable);
    if (absl::StartsWith(text, "FNCACHE_") ||
        absl::StartsWith(text, "FUNCTION_NAME=") ||
        absl::StartsWith(text, "REVISION_NAME=") ||
        absl::StartsWith(text, "TLS_SERVER_CERTS_DIR=")) {
      continue;
    }
    kept.push_back(*variable);
  }
  kept.push_back(nullptr);
  return kept;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::Start(
    const std::vector<std::string>& args, int stdout_fd) {
  std::vector<std::string> words = {"fncache"};
  words.insert(words.end(), args.begin(), args.end());
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::vector<char*> environment = Environment();
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) {
    return absl::InternalError(absl::StrCat("pipe: ", strerror(errno)));
  }
  const pid_t parent = getpid();

  Alive& alive = TheAlive();
  MutexLock lock(&alive.mutex);
  const pid_t pid = fork();
  if (pid == 0) {
    // Other threads may exist: nothing but system calls until exec.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    dup2(fds[1], STDERR_FILENO);
    if (stdout_fd >= 0) dup2(stdout_fd, STDOUT_FILENO);
    execve("/proc/self/exe", argv.data(), environment.data());
    _exit(127);
  }
  close(fds[1]);
  if (pid < 0) {
    close(fds[0]);
    return absl::InternalError(absl::StrCat("fork: ", strerror(errno)));
  }
  alive.pids.insert(pid);
  return std::unique_ptr<ChildProcess>(new ChildProcess(pid, fds[0]));
}

ChildProcess::ChildProcess(pid_t pid, int stderr_fd) : pid_(pid) {
  reader_ = std::thread([this, stderr_fd] { Read(stderr_fd); });
}

ChildProcess::~ChildProcess() {
  Signal(SIGKILL);
  Wait();
}

void ChildProcess::Read(int fd) {
  std::string text;
  char buffer[4096];
  ssize_t got;
  while ((got = read(fd, buffer, sizeof buffer)) > 0 ||
         (got < 0 && errno == EINTR)) {
    if (got > 0) text.append(buffer, static_cast<size_t>(got));
    size_t end;
    while ((end = text.find('\n')) != std::string::npos) {
      const std::string line = text.substr(0, end);
      text.erase(0, end + 1);
      MutexLock lock(&mutex_);
      if (absl::StrContains(line, " call run=")) ++calls_;
      constexpr absl::string_view kListening = "listening on ";
      const size_t at = line.find(kListening.data());
      if (at != std::string::npos) {
        const size_t from = at + kListening.size();
        listening_.push_back(line.substr(from, line.find(' ', from) - from));
      }
      last_lines_.push_back(line);
      if (last_lines_.size() > kKeptLines) last_lines_.pop_front();
      changed_.SignalAll();
    }
  }
  close(fd);
  MutexLock lock(&mutex_);
  ended_ = true;
  changed_.SignalAll();
}

absl::StatusOr<std::vector<std::string>> ChildProcess::Listening(
    size_t count, absl::Duration patience) {
  const absl::Time until = absl::Now() + patience;
  MutexLock lock(&mutex_);
  while (listening_.size() < count && !ended_ && absl::Now() < until) {
    changed_.WaitWithTimeout(&mutex_, until - absl::Now());
  }
  if (listening_.size() >= count) return listening_;
  return absl::UnavailableError(
      absl::StrCat(ended_ ? "it ended" : "it does not listen",
                   "; its last words:\n", absl::StrJoin(last_lines_, "\n")));
}

bool ChildProcess::Ended(absl::Duration patience) {
  const absl::Time until = absl::Now() + patience;
  MutexLock lock(&mutex_);
  while (!ended_ && absl::Now() < until) {
    changed_.WaitWithTimeout(&mutex_, until - absl::Now());
  }
  return ended_;
}

std::string ChildProcess::LastWords() const {
  MutexLock lock(&mutex_);
  return absl::StrJoin(last_lines_, "\n");
}

int ChildProcess::calls() const {
  MutexLock lock(&mutex_);
  return calls_;
}

void ChildProcess::Signal(int signal) {
  // Under the lock and while it is alive, so never to a reused pid.
  Alive& alive = TheAlive();
  MutexLock lock(&alive.mutex);
  if (alive.pids.count(pid_) > 0) kill(pid_, signal);
}

int ChildProcess::Wait() {
  int status = 0;
  if (waited_) return status;
  waited_ = true;
  siginfo_t info;
  // Ended, but not reaped: the pid stays ours until it is off the list.
  while (waitid(P_PID, pid_, &info, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
  }
  {
    Alive& alive = TheAlive();
    MutexLock lock(&alive.mutex);
    waitpid(pid_, &status, 0);
    alive.pids.erase(pid_);
  }
  reader_.join();
  return status;
}

void ChildProcess::KillAll() {
  Alive& alive = TheAlive();
  // The mutex is never unlocked, so that no child is started any more.
  alive.mutex.Lock();
  for (const pid_t pid : alive.pids) kill(pid, SIGKILL);
  for (const pid_t pid : alive.pids) waitpid(pid, nullptr, 0);
}

}  // namespace fncache::runner::demo
