// SPDX-License-Identifier: Apache-2.0
#include "runner/demo/command.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/command_line.h"
#include "common/threads.h"
#include "common/utf8.h"
#include "runner/demo/child_process.h"
#include "runner/demo/demo.h"
#include "runner/demo/screen.h"

namespace fncache::runner::demo {
namespace {

constexpr char kFooter[] = R"(
It starts a slow function and the daemon as child processes on free ports of
127.0.0.1, drives them with fncache load, and keeps the cache in a temporary
directory. It leaves nothing behind but, with --out, the page and the trace of
its last step.
The function, alone:  fncache function --help
The daemon, alone:    fncache serve --help
The traffic, alone:   fncache load --help
The explanations:     fncache explain --help

Exit codes: 0 if everything that the demo claims held, else 1; 2 for flags that
do not fit.)";

// Ends the demo when a stop signal comes: children, directory and all. Signals
// are blocked everywhere else.
void WatchSignals(const std::string& folder, const DemoScreen& screen) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::thread([signals, folder, &screen] {
    int signal = 0;
    sigwait(&signals, &signal);
    ChildProcess::KillAll();
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
    screen.Interrupted();
    const char message[] = "fncache demo: interrupted\n";
    if (write(STDERR_FILENO, message, sizeof message - 1) < 0) _exit(1);
    _exit(128 + signal);
  }).detach();
}

CommandLine MakeLine(std::string* out) {
  CommandLine line(
      "Shows on one machine what fncache does: a slow function, the daemon in "
      "front of\nit, a crash, an expiry, what was saved, heartbeats with tune: "
      "on, why calls\nmissed, and the mask that ends that.",
      "fncache demo");
  line.AddOption("--out", out,
                 "Leave report.html and the last step's data here")
      .TypeName("DIR");
  line.Footer(kFooter);
  return line;
}

}  // namespace

std::string DemoHelp() {
  std::string out;
  return MakeLine(&out).Help();
}

std::vector<CommandFlag> DemoCommandFlags() {
  std::string out;
  return MakeLine(&out).Flags();
}

int DemoMain(int argc, char** argv) {
  std::string out;
  CommandLine line = MakeLine(&out);
  if (const auto code = line.ParseForMain(argc, argv)) return *code;

  constexpr int kOwnThreads = 8;
  const absl::Status threads = CheckThreads(GrpcThreads() + kOwnThreads);
  if (!threads.ok()) {
    std::fprintf(stderr, "fncache demo: %s\n",
                 std::string(threads.message()).c_str());
    return 1;
  }
  std::error_code error;
  const std::filesystem::path temporary =
      std::filesystem::temp_directory_path(error);
  std::string folder = (temporary / "fncache-demo-XXXXXX").string();
  if (error || mkdtemp(folder.data()) == nullptr) {
    std::fprintf(stderr, "fncache demo: cannot make %s\n", folder.c_str());
    return 1;
  }
  if (!out.empty()) {
    std::filesystem::create_directories(out, error);
    if (error) {
      std::fprintf(stderr, "fncache demo: --out: cannot make %s: %s\n",
                   Printable(out).c_str(), error.message().c_str());
      std::filesystem::remove_all(folder, error);
      return 1;
    }
  }
  // The watching thread outlives this function.
  static DemoScreen screen;
  WatchSignals(folder, screen);

  absl::Status status;
  bool held = false;
  {
    Demo demo({folder, out.empty() ? folder : out}, &screen);
    status = demo.Run();
    held = demo.held();
  }
  std::filesystem::remove_all(folder, error);
  if (!status.ok()) {
    std::fprintf(stderr, "fncache demo: %s\n",
                 std::string(status.message()).c_str());
    return 1;
  }
  if (!held) return 1;
  screen.Title("Everything that was claimed held.");
  if (!out.empty()) {
    screen.Line(
        absl::StrCat("The last step's two runs, side by side: ",
                     (std::filesystem::path(out) / "report.html").string()));
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    std::fprintf(stderr, "fncache demo: cannot write what was seen\n");
    return 1;
  }
  return 0;
}

}  // namespace fncache::runner::demo
