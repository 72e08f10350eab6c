// SPDX-License-Identifier: Apache-2.0
#include "sdk/serve/command.h"

#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "common/duration.h"
#include "common/file_limit.h"
#include "common/grpc_log.h"
#include "common/standard_streams.h"
#include "common/utf8.h"
#include "common/version.h"
#include "openssl/crypto.h"
#include "sdk/serve/address.h"

namespace fncache::sdk::serve {
namespace {

using function::Depends;
using function::Graph;
using function::ServerOptions;

// A function that does not return once its call is cancelled has this time.
constexpr absl::Duration kAfterDrain = absl::Seconds(2);

constexpr std::pair<const char*, Depends> kDepends[] = {
    {"auto", Depends::kAuto},
    {"always", Depends::kAlways},
    {"never", Depends::kNever}};
constexpr std::pair<const char*, Graph> kGraphs[] = {
    {"waiting", Graph::kWaiting},
    {"always", Graph::kAlways},
    {"never", Graph::kNever}};

template <typename Table, typename Value>
std::string NameOf(const Table& table, Value value) {
  for (const auto& [name, one] : table) {
    if (one == value) return name;
  }
  return "";
}

template <typename Table, typename Value>
void SetByName(const Table& table, const std::string& name, Value* value) {
  for (const auto& [one, its_value] : table) {
    if (name == one) *value = its_value;
  }
}

std::string WhyNoDuration(const std::string& text) {
  const auto duration = ParseGoDuration(text);
  if (duration.ok() && *duration >= absl::ZeroDuration()) return "";
  return absl::StrCat("\"", Printable(text),
                      "\" is not accepted; accepted: ", kDurationForm,
                      ", of at least 0");
}

// SIGTERM and SIGINT wait for sigwait; threads inherit the mask.
sigset_t BlockStopSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

// From now on the next stop signal ends the process at once.
void NextSignalExits(const sigset_t& signals) {
  struct sigaction action = {};
  action.sa_handler = [](int) { _exit(1); };
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
}

// A process that accepts no connection is better started again.
std::atomic<bool> listener_ended{false};
// A second signal would end it at once.
std::atomic<bool> stopping{false};

// For a process, not for a library: before its first thread.
void SetUpProcess(const ServeSettings& settings) {
  InitLogging(settings.log_level, settings.log_format);
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  // OpenSSL is not to clean up at exit, while gRPC's threads are still there.
  OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr);
  RaiseFileLimit();
  TakeGrpcLog([] {
    if (stopping.exchange(true)) return;
    listener_ended = true;
    kill(getpid(), SIGTERM);
  });
#ifdef __GLIBC__
  // malloc_trim (live_calls.cc) returns all that is free in the main arena
  // only: sixteen calls of 1 MB would leave 14 MB in the others. With one
  // arena, calls cost the same CPU time.
  mallopt(M_ARENA_MAX, 1);
#endif
  signal(SIGPIPE, SIG_IGN);
}

constexpr char kFooter[] = R"(
Run it for `crossplane render` or `fncache render`, which call it without TLS:

  NAME --insecure --debug

In a cluster Crossplane mounts tls.crt, tls.key and ca.crt, and sets
$TLS_SERVER_CERTS_DIR to their folder. Then no flag is needed.

Stop it with SIGTERM. It is not ready from then on, finishes its calls, and exits.

Exit codes: 0 after SIGTERM or SIGINT, 1 when it cannot start (port taken, file
missing), 2 for flags that do not fit.)";

}  // namespace

void ServeFlags::Define(CommandLine* line, const Aliases& aliases) {
  address_ = server_.address;
  line->AddOption("--address" + aliases.address, &address_,
                  "Listen here: HOST:PORT, :PORT for every address, or "
                  "unix:PATH; port 0 takes a free one")
      .TypeName("ADDR")
      .ShowDefault();
  line->AddOption("--network", &network_,
                  "Kind of the address: tcp, or unix, whose address is a path")
      .TypeName("NETWORK")
      .OneOf({"tcp", "unix"})
      .ShowDefault();
  line->AddFlag("--insecure", &server_.insecure,
                "Listen in plaintext, without certificates, also if there are "
                "some");
  line->AddOption(
          "--tls-certs-dir,--tls-server-certs-dir" + aliases.tls_certs_dir,
          &server_.tls_certs_dir,
          "Folder of tls.crt, tls.key and, if callers need a certificate, "
          "ca.crt; default: $TLS_SERVER_CERTS_DIR")
      .TypeName("DIR");
  line->AddOption("--max-recv-message-size", &server_.max_recv_message_mb,
                  "Largest request")
      .TypeName("MB")
      .Range(1, 2047)
      .ShowDefault();
  auto metrics = line->AddOption(
      "--metrics-address", &server_.metrics_address,
      "Serve metrics over HTTP here, at /metrics; empty: nowhere");
  metrics.TypeName("ADDR");
  if (!server_.metrics_address.empty()) metrics.ShowDefault();
  line->AddOption(
          "--threads", &server_.threads,
          "Functions that run at the same time; 0: 4 a core, at least 8")
      .TypeName("N")
      .Range(0, 1000)
      .ShowDefault();
  line->AddOption("--drain", &drain_,
                  "Time that calls in flight have to finish after SIGTERM")
      .TypeName("DURATION")
      .Check(&WhyNoDuration)
      .ShowDefault();
  line->AddFlag("-d,--debug", &debug_, "Log at level debug, as text");
  line->AddOption("--log-format", &log_format_,
                  default_format_ == LogFormat::kText
                      ? "Form of log lines: json or text; default: text"
                      : "Form of log lines: json or text; default: json, text "
                        "with --debug")
      .TypeName("FORMAT")
      .OneOf({"json", "text"});
}

void ServeFlags::DefineTtl(CommandLine* line) {
  ttl_ = FormatGoDuration(server_.function_options.ttl);
  line->AddOption(
          "--ttl", &ttl_,
          "TTL of responses whose function sets none; 0 forbids caching")
      .TypeName("DURATION")
      .Check(&WhyNoDuration)
      .ShowDefault();
}

void ServeFlags::DefineComposing(CommandLine* line) {
  depends_ = NameOf(kDepends, server_.depends);
  graph_ = NameOf(kGraphs, server_.function_options.graph);
  line->AddOption("--depends", &depends_,
                  "Send the hint of what a response depends on (auto: to "
                  "callers behind fncache): auto, always or never")
      .TypeName("WHEN")
      .OneOf({"auto", "always", "never"})
      .ShowDefault();
  line->AddOption("--graph", &graph_,
                  "Send the result with the graph of resources that wait for "
                  "others: waiting, always or never")
      .TypeName("WHEN")
      .OneOf({"waiting", "always", "never"})
      .ShowDefault();
}

absl::StatusOr<ServeSettings> ServeFlags::Settings() const {
  ServeSettings settings;
  settings.server = server_;
  ServerOptions& server = settings.server;
  const bool is_unix =
      network_ == "unix" && !absl::StartsWith(address_, "unix:");
  server.address = absl::StrCat(is_unix ? "unix:" : "", address_);
  const std::string why = WhyNoAddress(server.address);
  if (!why.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("--address: ", why));
  }
  const std::string why_not = WhyNoMetricsAddress(server.metrics_address);
  if (!why_not.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--metrics-address: ", why_not));
  }
  if (!server.insecure && server.tls_certs_dir.empty()) {
    const char* const mounted = std::getenv("TLS_SERVER_CERTS_DIR");
    if (mounted != nullptr) server.tls_certs_dir = mounted;
    if (server.tls_certs_dir.empty()) {
      return absl::InvalidArgumentError(
          "--insecure or --tls-certs-dir DIR is needed");
    }
  }
  absl::Duration& ttl = server.function_options.ttl;
  if (!ttl_.empty() && ttl_ != FormatGoDuration(ttl)) {
    ttl = *ParseGoDuration(ttl_);
  }
  SetByName(kDepends, depends_, &server.depends);
  SetByName(kGraphs, graph_, &server.function_options.graph);
  settings.drain = *ParseGoDuration(drain_);
  settings.log_level = debug_ ? LogLevel::kDebug : LogLevel::kInfo;
  settings.log_format = log_format_ == "json"   ? LogFormat::kZap
                        : log_format_ == "text" ? LogFormat::kText
                        : debug_                ? LogFormat::kText
                                                : default_format_;
  return settings;
}

int Serve(const std::string& name, ServeSettings settings,
          function::Function function) {
  SetUpProcess(settings);
  const sigset_t signals = BlockStopSignals();
  auto server =
      function::Server::Start(std::move(settings.server), std::move(function));
  if (!server.ok()) {
    std::fprintf(stderr, "%s: %s\n", name.c_str(),
                 Printable(server.status().message()).c_str());
    return 1;
  }
  if (settings.log_start) {
    settings.log_start(**server);
  } else {
    Log(LogLevel::kInfo, "listening",
        {{"address", (*server)->address()},
         {"metrics", (*server)->metrics_address()}});
  }
  int signal = 0;
  sigwait(&signals, &signal);
  stopping = true;
  NextSignalExits(signals);
  const int code = listener_ended ? 1 : 0;
  Log(LogLevel::kInfo, "stopping",
      {{"signal", code != 0           ? "none"
                  : signal == SIGTERM ? "SIGTERM"
                                      : "SIGINT"},
       {"drain", FormatGoDuration(settings.drain)}});
  absl::Notification stopped;
  std::thread stop([&] {
    (*server)->Stop(settings.drain);
    stopped.Notify();
  });
  if (!stopped.WaitForNotificationWithTimeout(settings.drain + kAfterDrain)) {
    Log(LogLevel::kWarning,
        "functions do not return from cancelled calls: they are left behind");
    _exit(code);
  }
  stop.join();
  if (settings.log_end) {
    settings.log_end();
  } else {
    Log(LogLevel::kInfo, "stopped");
  }
  return code;
}

}  // namespace fncache::sdk::serve

namespace fncache::function {

int Main(int argc, char** argv, std::string_view name, Function function,
         Options options) {
  const std::string called(name);
  ServerOptions defaults;
  defaults.metrics_address = ":8080";
  defaults.function_options = std::move(options);
  sdk::serve::ServeFlags flags(std::move(defaults));
  CommandLine line("A composition function for Crossplane.", called);
  flags.Define(&line);
  flags.DefineTtl(&line);
  flags.DefineComposing(&line);
  bool version = false;
  line.AddFlag("--version", &version, "Print the version of the SDK");
  line.Footer(absl::StrReplaceAll(sdk::serve::kFooter, {{"NAME", called}}));
  // CLI11 takes `--flag=` for a flag without its value.
  std::vector<const char*> arguments;
  for (int i = 0; i < argc; ++i) {
    if (absl::string_view(argv[i]) == "--metrics-address=") {
      arguments.insert(arguments.end(), {"--metrics-address", ""});
    } else {
      arguments.push_back(argv[i]);
    }
  }
  if (const auto code = line.ParseForMain(static_cast<int>(arguments.size()),
                                          arguments.data())) {
    return *code;
  }
  if (version) {
    return PrintResult(
        called, absl::StrCat(called, " (SDK of fncache ", Version(), ")\n"));
  }
  auto settings = flags.Settings();
  if (!settings.ok()) {
    std::fprintf(stderr, "%s: %s; see %s --help\n", called.c_str(),
                 std::string(settings.status().message()).c_str(),
                 called.c_str());
    return 2;
  }
  return sdk::serve::Serve(called, *std::move(settings), std::move(function));
}

}  // namespace fncache::function
