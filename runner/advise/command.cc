// SPDX-License-Identifier: Apache-2.0
#include "runner/advise/command.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/command_line.h"
#include "common/duration.h"
#include "common/standard_streams.h"
#include "common/threads.h"
#include "common/utf8.h"
#include "runner/advise/advise.h"

namespace fncache::runner::advise {
namespace {

constexpr int kFailed = 1;
constexpr int kBadUsage = 2;
constexpr int kFewestCalls = 5;
constexpr int kMostCalls = 1000000;

constexpr char kFooter[] = R"(
TRACE is the folder of a trace of level full (fncache serve --trace-dir
--trace-level full, fncache load --trace --trace-level full), or one of its
files. With --live the daemon on this machine writes one, of what comes
meanwhile.

It reads why calls missed (fncache explain), and counts the runs that got the
answer of before. Where more than a tenth of them differed in versions and times
only, it proposes tune: on. It asks each function what else it leaves unread
(fncache probe), and plays the trace under the masks and lifetimes that follow
(fncache replay). What is printed is YAML, with the reasons in comments:
it can be pasted into the daemon's file.

No mask is proposed that a probe did not find unread. Masks over what tells
composites apart are among them where those save calls: then composites share
answers, most of all while they are created.

Values of requests are sent to the functions only; none is printed.

Exit codes: 0; 1 where there is no such trace, or the daemon cannot write one;
2 for flags that do not fit.)";

struct Flags {
  std::string trace;
  bool live = false;
  std::string for_time = "1m";
  std::string dir, socket, cache_dir;
  std::vector<std::string> functions;
  int calls = 1000;
  std::string timeout = "30s";
  std::string tls_dir;
  uint64_t seed = 1;
  bool json = false;
  bool for_given = false;
};

CommandLine MakeLine(Flags* flags, CommandLine::Option* for_time = nullptr) {
  CommandLine line(
      "Says which settings a trace and its functions speak for, as YAML to "
      "paste, and\nwhat hit rate to expect.",
      "fncache advise");
  line.AddOption("TRACE", &flags->trace, "A trace of level full");
  line.AddFlag("--live", &flags->live,
               "Instead of TRACE: have the daemon on this machine write one");
  const CommandLine::Option given =
      line.AddOption("--for", &flags->for_time, "With --live: for this time")
          .TypeName("DURATION")
          .ShowDefault();
  if (for_time != nullptr) *for_time = given;
  line.AddOption("--dir", &flags->dir,
                 "With --live: a folder for the trace, which stays; default: a "
                 "folder that is removed")
      .TypeName("DIR");
  line.AddOption("--socket", &flags->socket,
                 "With --live: the daemon's admin socket")
      .TypeName("PATH");
  line.AddOption("--cache-dir", &flags->cache_dir,
                 "With --live: the daemon's cache directory, beside which its "
                 "socket is")
      .TypeName("DIR");
  line.AddOption("--function", &flags->functions,
                 "A function, as the trace names it, and where it listens; "
                 "repeats. One that is not named is not asked, and gets no "
                 "masks; with --live all are known")
      .TypeName("NAME=TARGET")
      .Repeats();
  line.AddOption("--calls", &flags->calls, "Ask each function so often at most")
      .Range(kFewestCalls, kMostCalls)
      .TypeName("N")
      .ShowDefault();
  line.AddOption("--timeout", &flags->timeout, "For each call to a function")
      .TypeName("DURATION")
      .ShowDefault();
  line.AddOption("--tls-dir", &flags->tls_dir,
                 "tls.crt, tls.key and ca.crt that the runner has; without, "
                 "functions are called in plaintext")
      .TypeName("DIR");
  line.AddOption("--seed", &flags->seed,
                 "Altered values are made from it; the same seed asks the same")
      .TypeName("N")
      .ShowDefault();
  line.AddFlag("--json", &flags->json, "Print JSON, with all paths");
  line.Footer(kFooter);
  return line;
}

int Fail(int code, absl::string_view message) {
  std::fprintf(stderr, "fncache advise: %s\n", Printable(message).c_str());
  return code;
}

int FailUsage(absl::string_view message) {
  return Fail(kBadUsage, absl::StrCat(message, "; see fncache advise --help"));
}

// A folder that only this process's user may look into, gone at the end.
class OwnFolder {
 public:
  ~OwnFolder() {
    std::error_code error;
    if (!path_.empty()) std::filesystem::remove_all(path_, error);
  }
  absl::StatusOr<std::string> Make() {
    std::error_code error;
    std::string path =
        std::filesystem::temp_directory_path(error) / "fncache-advise-XXXXXX";
    if (error || mkdtemp(path.data()) == nullptr) {
      return absl::FailedPreconditionError(
          "no folder can be made for the trace; --dir names one");
    }
    path_ = path;
    return path;
  }

 private:
  std::string path_;
};

// Flags that do not go together: why not.
std::string Contradiction(const Flags& flags) {
  if (flags.live == !flags.trace.empty()) {
    return flags.live ? "--live: writes a trace, and goes without TRACE"
                      : "TRACE or --live is needed";
  }
  if (flags.live) return "";
  for (const auto& [name, given] :
       {std::make_pair("--for", flags.for_given),
        std::make_pair("--dir", !flags.dir.empty()),
        std::make_pair("--socket", !flags.socket.empty()),
        std::make_pair("--cache-dir", !flags.cache_dir.empty())}) {
    if (given) return absl::StrCat(name, ": goes with --live");
  }
  return "";
}

// Given settings replace the daemon's settings with the same name.
absl::Status Record(const Flags& flags, absl::Duration for_time,
                    const RecordLive& record, OwnFolder* own,
                    AdviseOptions* options) {
  LiveRequest request;
  request.socket = flags.socket;
  request.cache_dir = flags.cache_dir;
  request.for_time = for_time;
  request.dir = flags.dir;
  if (request.dir.empty()) {
    auto made = own->Make();
    if (!made.ok()) return made.status();
    request.dir = *std::move(made);
  }
  std::fprintf(stderr, "tracing the daemon's calls for %s\n",
               FormatGoDuration(for_time).c_str());
  const auto targets = record(request);
  if (!targets.ok()) return targets.status();
  options->trace = request.dir;
  for (const auto& [name, target] : *targets) {
    const bool given = std::any_of(
        options->targets.begin(), options->targets.end(),
        [&name = name](const auto& one) { return one.name == name; });
    if (!given) options->targets.push_back({name, target});
  }
  return absl::OkStatus();
}

}  // namespace

std::string AdviseHelp() {
  Flags flags;
  return MakeLine(&flags).Help();
}

std::vector<CommandFlag> AdviseCommandFlags() {
  Flags flags;
  return MakeLine(&flags).Flags();
}

int AdviseMain(int argc, char** argv,
               const insight::whatif::SettingsReader& settings,
               const RecordLive& record) {
  Flags flags;
  CommandLine::Option for_option;
  CommandLine line = MakeLine(&flags, &for_option);
  if (const auto code = line.ParseForMain(argc, argv)) return *code;
  flags.for_given = for_option.given();
  if (const std::string why = Contradiction(flags); !why.empty()) {
    return FailUsage(why);
  }
  AdviseOptions options;
  options.trace = flags.trace;
  options.tls_dir = flags.tls_dir;
  options.calls = flags.calls;
  options.seed = flags.seed;
  const auto timeout = ParsePositiveGoDuration(flags.timeout);
  if (!timeout.ok()) {
    return FailUsage(absl::StrCat("--timeout: ", timeout.status().message()));
  }
  options.timeout = *timeout;
  const auto for_time = ParsePositiveGoDuration(flags.for_time);
  if (!for_time.ok()) {
    return FailUsage(absl::StrCat("--for: ", for_time.status().message()));
  }
  for (const std::string& text : flags.functions) {
    auto target = client::ParseFunctionTarget(text);
    if (!target.ok()) {
      return FailUsage(absl::StrCat("--function: ", target.status().message()));
    }
    options.targets.push_back(*std::move(target));
  }
  constexpr int kOwnThreads = 4;
  const absl::Status threads = CheckThreads(GrpcThreads() + kOwnThreads);
  if (!threads.ok()) return Fail(kFailed, threads.message());
  // A write to a connection that is gone says so instead.
  signal(SIGPIPE, SIG_IGN);
  OwnFolder own;
  if (flags.live) {
    const absl::Status status =
        Record(flags, *for_time, record, &own, &options);
    if (!status.ok()) {
      return Fail(absl::IsInvalidArgument(status) ? kBadUsage : kFailed,
                  status.message());
    }
  }
  const auto advice = Advise(options, settings);
  if (!advice.ok()) {
    return Fail(
        kFailed,
        absl::StrCat(advice.status().message(),
                     flags.live ? "; --for says how long is traced" : ""));
  }
  return PrintResult("fncache advise",
                     flags.json ? AdviceJson(*advice) : AdviceText(*advice));
}

}  // namespace fncache::runner::advise
