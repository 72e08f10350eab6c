// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "tests/common/http_get.h"
#include "tests/integration/environment.h"

namespace fncache::testing {
namespace {

int CountLines(absl::string_view all, absl::string_view text) {
  int count = 0;
  std::vector<absl::string_view> lines = absl::StrSplit(all, '\n');
  lines.pop_back();  // what has no newline yet
  for (const absl::string_view line : lines) {
    count += absl::StrContains(line, text) ? 1 : 0;
  }
  return count;
}

// The settings file that a command line or its variables name, "" for none.
std::string ConfigOf(const std::vector<std::string>& args,
                     const Process::Environment& env) {
  std::string path;
  for (const auto& [name, value] : env) {
    if (name == "FNCACHE_CONFIG") path = value;
  }
  for (size_t i = 0; i + 1 < args.size(); ++i) {
    if (args[i] == "--config") path = args[i + 1];
  }
  return std::filesystem::is_regular_file(path) ? ReadFile(path) : "";
}

// Whether a key is given anywhere. It reads no YAML: a key that is missed gets
// a second value, and its test fails on every machine.
bool Names(const std::string& key, absl::string_view words,
           const Process::Environment& env, absl::string_view config) {
  const std::string variable =
      absl::StrCat("FNCACHE_", absl::AsciiStrToUpper(key));
  for (const auto& each : env) {
    if (each.first == variable) return true;
  }
  return absl::StrContains(words, absl::StrCat(" --", key, " ")) ||
         absl::StrContains(words, absl::StrCat(" --", key, "=")) ||
         absl::StrContains(config, absl::StrCat(key, ":")) ||
         absl::StrContains(config, absl::StrCat("\"", key, "\":"));
}

// Gives the child free ports instead of the defaults of its addresses. The
// words of a shell's command count too.
void AvoidDefaultAddresses(const Process::Environment& env,
                           std::vector<std::string>* args,
                           std::vector<std::string>* environment) {
  constexpr char kAnyPort[] = "127.0.0.1:0";
  const std::string words = absl::StrCat(" ", absl::StrJoin(*args, " "), " ");
  for (const char* ends : {" --check ", " --help ", " -h ", " help "}) {
    if (absl::StrContains(words, ends)) return;
  }
  if (absl::StrContains(words, " serve ")) {
    const std::string config = ConfigOf(*args, env);
    if (!Names("admin", words, env, config)) {
      SetVariable("FNCACHE_ADMIN", kAnyPort, environment);
    }
    // An entry of `functions` needs its own.
    if (!Names("listen", words, env, config) &&
        !absl::StrContains(config, "functions")) {
      SetVariable("FNCACHE_LISTEN", kAnyPort, environment);
    }
  } else if (!args->empty() && args->front() == "function" &&
             !Names("listen", words, {}, "")) {
    args->insert(args->begin() + 1, {"--listen", kAnyPort});
  }
}

}  // namespace

Process::Process(std::vector<std::string> args, const Environment& env,
                 const std::string& program) {
  int out[2];
  int err[2];
  EXPECT_EQ(pipe2(out, O_CLOEXEC), 0);
  EXPECT_EQ(pipe2(err, O_CLOEXEC), 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out[1], 1);
  posix_spawn_file_actions_adddup2(&actions, err[1], 2);

  std::vector<std::string> environment = CleanEnvironment();
  if (args.empty() || args[0] != "serve") AllowClients(&environment);
  for (const auto& [name, value] : env) SetVariable(name, value, &environment);
  AvoidDefaultAddresses(env, &args, &environment);
  args.insert(args.begin(), program);
  const int failed =
      posix_spawnp(&pid_, program.c_str(), &actions, nullptr,
                   Pointers(args).data(), Pointers(environment).data());
  EXPECT_EQ(failed, 0) << "cannot run " << program
                       << " (tests run in the repository's root)";
  // There is no process then; to the kernel -1 would be all of them.
  if (failed != 0) {
    reaped_ = true;
    exit_code_ = 127;
  }
  posix_spawn_file_actions_destroy(&actions);
  close(out[1]);
  close(err[1]);
  stdout_reader_ = std::thread([this, fd = out[0]] { Collect(fd, &stdout_); });
  stderr_reader_ = std::thread([this, fd = err[0]] { Collect(fd, &stderr_); });
}

Process::~Process() {
  if (!reaped_) {
    Signal(SIGKILL);
    Wait();
  }
  stdout_reader_.join();
  stderr_reader_.join();
  if (::testing::Test::HasFailure()) {
    MutexLock lock(&mutex_);
    std::fprintf(stderr, "--- stderr of process %d:\n%s---\n", pid_,
                 stderr_.c_str());
  }
}

void Process::Collect(int fd, std::string* into) {
  char buffer[4096];
  ssize_t n = 0;
  while ((n = read(fd, buffer, sizeof buffer)) > 0) {
    MutexLock lock(&mutex_);
    into->append(buffer, n);
    changed_.SignalAll();
  }
  close(fd);
  MutexLock lock(&mutex_);
  --open_pipes_;
  changed_.SignalAll();
}

bool Process::WaitForStderr(absl::string_view text, int count) {
  return WaitFor(stderr_, text, count);
}

bool Process::WaitForStdout(absl::string_view text, int count) {
  return WaitFor(stdout_, text, count);
}

bool Process::WaitFor(const std::string& said, absl::string_view text,
                      int count) {
  const absl::Time until = absl::Now() + kPatience;
  MutexLock lock(&mutex_);
  while (CountLines(said, text) < count) {
    if (open_pipes_ == 0) return false;
    if (changed_.WaitWithTimeout(&mutex_, until - absl::Now()) &&
        absl::Now() >= until) {
      return false;
    }
  }
  return true;
}

std::vector<std::string> Process::Listening() const {
  constexpr absl::string_view kSaid = "listening on ";
  std::vector<std::string> addresses;
  const std::string all = Stderr();
  for (const absl::string_view line : absl::StrSplit(all, '\n')) {
    const size_t at = line.find(kSaid);
    if (at == absl::string_view::npos) continue;
    absl::string_view address = line.substr(at + kSaid.size());
    addresses.emplace_back(address.substr(0, address.find_first_of(" \",")));
  }
  return addresses;
}

void Process::Signal(int signal) {
  if (!reaped_) kill(pid_, signal);
}

int Process::Wait(absl::Duration limit) {
  if (reaped_) return exit_code_;
  int status = 0;
  const absl::Time until = absl::Now() + limit;
  {
    // Its end closes its pipes: wait for that, so that a process that hangs is
    // a failure of this test and not of the whole run.
    MutexLock lock(&mutex_);
    while (open_pipes_ > 0 && absl::Now() < until) {
      changed_.WaitWithTimeout(&mutex_, until - absl::Now());
    }
    if (open_pipes_ > 0) {
      ADD_FAILURE() << "process " << pid_ << " does not end";
      kill(pid_, SIGKILL);
    }
  }
  waitpid(pid_, &status, 0);
  reaped_ = true;
  exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return exit_code_;
}

std::string Process::Stdout() const {
  MutexLock lock(&mutex_);
  return stdout_;
}

std::string Process::Stderr() const {
  MutexLock lock(&mutex_);
  return stderr_;
}

std::string HttpGet(const std::string& address, const std::string& path,
                    int* status) {
  if (status != nullptr) *status = 0;
  const std::string answer = WholeHttpGet(address, path);
  int code = 0;
  if (answer.size() > 12 && absl::SimpleAtoi(answer.substr(9, 3), &code) &&
      status != nullptr) {
    *status = code;
  }
  const size_t body = answer.find("\r\n\r\n");
  return body == std::string::npos ? "" : answer.substr(body + 4);
}

double Sample(const std::string& exposition, absl::string_view name) {
  for (const absl::string_view line : absl::StrSplit(exposition, '\n')) {
    double value = 0;
    if (absl::StartsWith(line, name) && line.size() > name.size() &&
        line[name.size()] == ' ' &&
        absl::SimpleAtod(line.substr(name.size() + 1), &value)) {
      return value;
    }
  }
  return -1;
}

}  // namespace fncache::testing
