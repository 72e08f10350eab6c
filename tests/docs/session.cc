// SPDX-License-Identifier: Apache-2.0
#include "tests/docs/session.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <regex>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/integration/environment.h"

namespace fncache::docs {
namespace {

namespace fs = std::filesystem;

// Pages name these ports: fncache listens on 9443 and 9445, functions on 9444
// and 9446, the admin endpoint is 9901.
constexpr int kPorts[] = {9443, 9444, 9445, 9446, 9901};

// Longer than any block takes, under any sanitizer.
constexpr absl::Duration kPatience = absl::Minutes(3);

bool IsFree(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool free =
      bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  close(fd);
  return free;
}

// A name that one process at a time can have, and that no end of it leaves
// taken; -1 if it is. See unix(7), "abstract".
int TakeName(const std::string& name) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path + 1, sizeof address.sun_path - 1);
  const socklen_t length = offsetof(sockaddr_un, sun_path) + 1 + name.size();
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), length) == 0) return fd;
  close(fd);
  return -1;
}

size_t Count(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos;
       at = text.find(part, at + part.size())) {
    ++count;
  }
  return count;
}

// Commands that a block leaves running: `... &` at the end of a line, with the
// lines that a backslash joins to it.
std::vector<std::string> Background(const std::string& commands) {
  std::vector<std::string> background;
  for (absl::string_view line :
       absl::StrSplit(absl::StrReplaceAll(commands, {{"\\\n", " "}}), '\n')) {
    if (!line.empty() && line.back() == '&') background.emplace_back(line);
  }
  return background;
}

}  // namespace

void Session::TakePorts() {
  // Below the ports that the system assigns automatically.
  constexpr int kFirst = 15000;
  constexpr int kPieces = 3000;
  constexpr int kCount = sizeof kPorts / sizeof *kPorts;
  std::random_device random;
  std::uniform_int_distribution<int> any(0, kPieces - 1);
  while (true) {
    const int start = kFirst + kCount * any(random);
    ports_lock_ = TakeName(absl::StrCat("fncache-docs-", start));
    if (ports_lock_ < 0) continue;
    int free = 0;
    while (free < kCount && IsFree(start + free)) ++free;
    if (free < kCount) {
      close(ports_lock_);
      continue;
    }
    for (int i = 0; i < kCount; ++i) ports_[kPorts[i]] = start + i;
    return;
  }
}

Session::Session() : cwd_(clone_.path()) {
  TakePorts();
  if (pipe2(alive_, O_CLOEXEC) != 0) std::abort();
  // Processes that a block leaves running become this process's children, so
  // that they can be waited for.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const fs::path source(FNCACHE_SOURCE_DIR);
  const fs::path clone(clone_.path());
  fs::create_directories(clone / "build/release");
  fs::create_symlink(fs::absolute(FNCACHE_BINARY),
                     clone / "build/release/fncache");
  // Debian's redis-tools has the server under another name.
  const char* const server = std::getenv("FNCACHE_TEST_REDIS_SERVER");
  fs::create_symlink(
      server != nullptr && *server != 0 ? server : "/usr/bin/redis-check-rdb",
      clone / "build/release/redis-server");
  for (const auto& file :
       fs::recursive_directory_iterator(source / "examples")) {
    if (!file.is_regular_file()) continue;
    const fs::path copy = clone / file.path().lexically_relative(source);
    fs::create_directories(copy.parent_path());
    testing::WriteFile(copy,
                       WithPorts(testing::ReadFile(file.path().string())));
  }
  fs::copy(source / "proto", clone / "proto");
}

Session::~Session() {
  for (const pid_t group : groups_) kill(-group, SIGTERM);
  const absl::Time until = absl::Now() + absl::Seconds(30);
  for (const pid_t group : groups_) {
    // Until none of the group is left.
    while (waitpid(-group, nullptr, WNOHANG) >= 0) {
      if (absl::Now() > until) kill(-group, SIGKILL);
      absl::SleepFor(absl::Milliseconds(2));
    }
  }
  for (const int fd : {alive_[0], alive_[1], ports_lock_}) close(fd);
}

std::string Session::WithPorts(std::string text) const {
  for (const auto& [named, used] : ports_) {
    text = std::regex_replace(text, std::regex(absl::StrCat(":", named, "\\b")),
                              absl::StrCat(":", used));
  }
  return text;
}

bool Session::Listens(const std::string& log,
                      const std::string& commands) const {
  const std::string said = testing::ReadFile(log);
  size_t endpoints = 0;  // of daemons that have one
  size_t servers = 0;
  const std::vector<std::string> background = Background(commands);
  for (const std::string& command : background) {
    endpoints += Count(command, " serve ") - Count(command, "--admin ''");
    servers += Count(command, "redis-server ");
  }
  // A daemon's admin endpoint is logged last.
  return Count(said, "(admin: ") >= endpoints &&
         Count(said, "eady to accept connections") >= servers &&
         Count(said, "listening on") + Count(said, "\"msg\":\"listening\"") +
                 servers >=
             background.size() + endpoints;
}

absl::Status Session::ListensOnItsPorts(const std::string& log) const {
  const std::string said = testing::ReadFile(log);
  for (const auto& [named, used] : ports_) {
    const std::regex at(absl::StrCat("listening on \\S*:", named, "\\b"));
    if (std::regex_search(said, at)) {
      return absl::FailedPreconditionError(
          absl::StrCat("a command of the page listens on port ", named,
                       " by default: name the address\n", said));
    }
  }
  return absl::OkStatus();
}

void Session::AddProgram(const std::string& name, const std::string& script) {
  const fs::path path = fs::path(cwd_) / name;
  fs::create_directories(path.parent_path());
  testing::WriteFile(path, "#!/bin/sh\n" + script + "\n");
  fs::permissions(path, fs::perms::owner_all);
}

absl::Status Session::Run(const std::string& commands) {
  const std::string log =
      logs_.File(absl::StrCat("block-", log_files_.size(), ".log"));
  log_files_.push_back(log);
  const std::string next = logs_.File("cwd");
  // The first job kills the group when the pipe's other end is closed
  // everywhere.
  const std::string script = absl::StrCat(
      "{ read -r -u 9 || kill -KILL 0; } </dev/null >/dev/null 2>&1 &\n",
      "set -e -o pipefail\nexec 9<&- </dev/null >>'", log, "' 2>&1\ncd '", cwd_,
      "'\n", WithPorts(commands), "\npwd >'", next, "'\n");
  testing::WriteFile(log, "");

  std::vector<std::string> variables = testing::CleanEnvironment();
  testing::AllowClients(&variables);
  for (std::string& variable : variables) {
    if (absl::StartsWith(variable, "PATH=")) {
      variable.insert(sizeof "PATH=" - 1, clone_.path() + "/build/release:");
    }
  }
  const char* const arguments[] = {"bash", "-c", script.c_str(), nullptr};
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);
  pid_t pid = 0;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, alive_[0], 9);
  const int spawned = posix_spawnp(&pid, "bash", &actions, &attributes,
                                   const_cast<char**>(arguments),
                                   testing::Pointers(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (spawned != 0) return absl::InternalError("bash cannot be started");
  groups_.push_back(pid);

  const absl::Time until = absl::Now() + kPatience;
  int status = 0;
  while (waitpid(pid, &status, WNOHANG) == 0) {
    if (absl::Now() > until) {
      kill(-pid, SIGKILL);
      waitpid(pid, &status, 0);
      return absl::DeadlineExceededError(testing::ReadFile(log));
    }
    absl::SleepFor(absl::Milliseconds(2));
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return absl::InternalError(
        absl::StrCat("exit status ", status, "\n", testing::ReadFile(log)));
  }
  while (!Listens(log, commands)) {
    // The first job lives on, so this is one of the commands'.
    if (waitpid(-pid, &status, WNOHANG) > 0) {
      return absl::InternalError(absl::StrCat("one of them ended with status ",
                                              status, " instead of listening\n",
                                              testing::ReadFile(log)));
    }
    if (absl::Now() > until) {
      return absl::DeadlineExceededError(
          absl::StrCat("does not listen\n", testing::ReadFile(log)));
    }
    absl::SleepFor(absl::Milliseconds(2));
  }
  cwd_ = testing::ReadFile(next);
  cwd_.erase(cwd_.find_last_not_of('\n') + 1);
  return ListensOnItsPorts(log);
}

std::string Session::Output() const {
  std::string all;
  for (const std::string& log : log_files_) all += testing::ReadFile(log);
  return all;
}

std::string Normalized(const std::string& text) {
  static const std::regex* const kTimes =
      new std::regex("20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z");
  static const std::regex* const kTtl = new std::regex("ttl=-?[0-9]+");
  static const std::regex* const kDurations =
      new std::regex("([0-9]+(\\.[0-9]+)?(h|ms|m|s|us|\xc2\xb5s|ns))+");
  std::string out = std::regex_replace(text, *kTimes, "TIME");
  out = std::regex_replace(out, *kTtl, "ttl=N");
  return std::regex_replace(out, *kDurations, "SPAN");
}

std::string WithoutNumbers(const std::string& text) {
  static const std::regex* const kKeys = new std::regex("\\b[0-9a-f]{32}\\b");
  static const std::regex* const kSizes =
      new std::regex("[0-9]+(\\.[0-9]+)? ([KMGT]i)?B\\b");
  static const std::regex* const kNumbers =
      new std::regex("[0-9]+([.,][0-9]+)*");
  static const std::regex* const kSpaces = new std::regex(" +");
  std::string out = std::regex_replace(Normalized(text), *kKeys, "KEY");
  out = std::regex_replace(out, *kSizes, "SIZE");
  out = std::regex_replace(out, *kNumbers, "N");
  return std::regex_replace(out, *kSpaces, " ");
}

bool HasLines(const std::string& output, const std::string& expected,
              std::string* missing) {
  const std::vector<std::string> have =
      absl::StrSplit(Normalized(output), '\n');
  const std::string normalized = Normalized(expected);
  auto at = have.begin();
  for (absl::string_view line : absl::StrSplit(normalized, '\n')) {
    if (line.empty()) continue;
    at = std::find(at, have.end(), line);
    if (at == have.end()) {
      *missing = std::string(line);
      return false;
    }
    ++at;
  }
  return true;
}

bool HasLinesLike(const std::string& output, const std::string& expected,
                  std::string* missing) {
  const std::set<std::string> have =
      absl::StrSplit(WithoutNumbers(output), '\n');
  const std::string wanted = WithoutNumbers(expected);
  for (absl::string_view line : absl::StrSplit(wanted, '\n')) {
    if (line.empty() || have.count(std::string(line)) > 0) continue;
    *missing = std::string(line);
    return false;
  }
  return true;
}

}  // namespace fncache::docs
