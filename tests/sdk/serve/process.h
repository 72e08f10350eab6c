// SPDX-License-Identifier: Apache-2.0
// A function as a process of its own: function_hello of tests/function.
#ifndef FNCACHE_TESTS_SDK_SERVE_PROCESS_H_
#define FNCACHE_TESTS_SDK_SERVE_PROCESS_H_

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "nlohmann/json_fwd.hpp"
#include "tests/common/eventually.h"
#include "tests/common/http_get.h"
#include "tests/common/temp_dir.h"
#include "tests/sdk/serve/serving.h"

namespace fncache::sdk::serve {

// Standard output and error are files.
class Process {
 public:
  explicit Process(std::vector<std::string> flags,
                   const std::vector<std::string>& environment = {}) {
    flags.insert(flags.begin(), FNCACHE_HELLO);
    std::vector<char*> argv;
    for (std::string& flag : flags) argv.push_back(flag.data());
    argv.push_back(nullptr);
    std::vector<std::string> set = environment;
    for (char** one = environ; *one != nullptr; ++one) {
      if (!absl::StartsWith(*one, "TLS_SERVER_CERTS_DIR=")) set.push_back(*one);
    }
    std::vector<char*> envp;
    for (std::string& one : set) envp.push_back(one.data());
    envp.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, Path("out").c_str(),
                                     O_WRONLY | O_CREAT, 0600);
    posix_spawn_file_actions_addopen(&actions, 2, Path("err").c_str(),
                                     O_WRONLY | O_CREAT, 0600);
    EXPECT_EQ(posix_spawn(&pid_, FNCACHE_HELLO, &actions, nullptr, argv.data(),
                          envp.data()),
              0);
    posix_spawn_file_actions_destroy(&actions);
  }
  ~Process() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // Its exit code, or minus the signal that ended it.
  int Wait() {
    int status = 0;
    EXPECT_EQ(waitpid(pid_, &status, 0), pid_);
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  pid_t pid() const { return pid_; }
  void Signal(int number) const { EXPECT_EQ(kill(pid_, number), 0); }
  // A number of /proc/PID/status, such as VmRSS in kB.
  int Status(const std::string& name) const {
    std::ifstream status(absl::StrCat("/proc/", pid_, "/status"));
    for (std::string line; std::getline(status, line);) {
      if (absl::StartsWith(line, name + ":")) {
        return std::atoi(line.c_str() + name.size() + 1);
      }
    }
    return 0;
  }

  std::string Out() const { return Read("out"); }
  std::string Err() const { return Read("err"); }
  // The first line of the log with this message, which is JSON; or null.
  nlohmann::json Line(const std::string& message) const;
  // A field of it; empty if there is none.
  std::string Field(const std::string& message, const std::string& name) const;
  bool Logs(const std::string& message) const {
    return Eventually([&] { return !Field(message, "msg").empty(); });
  }
  std::string address() const {
    EXPECT_TRUE(Eventually([&] {
      return !Field("listening", "address").empty() || Ended();
    })) << Err();
    return Field("listening", "address");
  }

 private:
  // Whether the process has ended, without taking its exit code.
  bool Ended() const {
    siginfo_t info = {};
    return waitid(P_PID, static_cast<id_t>(pid_), &info,
                  WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == pid_;
  }
  std::string Path(const std::string& name) const {
    return dir_.path() + "/" + name;
  }
  std::string Read(const std::string& name) const {
    std::ifstream file(Path(name));
    return std::string(std::istreambuf_iterator<char>(file), {});
  }

  testing::TempDir dir_;
  pid_t pid_ = 0;
};

// Flags of most tests.
inline const std::vector<std::string> kPlain = {
    "--insecure", "--address", "127.0.0.1:0", "--metrics-address",
    "127.0.0.1:0"};

// Waits for a call of v1.
inline bool HasCall(const Process& process) {
  const std::string metrics = process.Field("listening", "metrics");
  return Eventually([&] {
    return absl::StrContains(
        testing::WholeHttpGet(metrics, "/metrics"),
        "started_total{grpc_method=\"RunFunction\",grpc_service="
        "\"apiextensions.fn.proto.v1.FunctionRunnerService\",grpc_type="
        "\"unary\"} 1\n");
  });
}

inline grpc::Status Call(const std::string& address) {
  grpc::ClientContext context;
  v1::RunFunctionResponse response;
  return v1::FunctionRunnerService::NewStub(Connect(address))
      ->RunFunction(&context, {}, &response);
}

}  // namespace fncache::sdk::serve

#endif  // FNCACHE_TESTS_SDK_SERVE_PROCESS_H_
