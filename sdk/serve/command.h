// SPDX-License-Identifier: Apache-2.0
// The flags that every function has, and the life of its process. Main is made
// of them, and so is `fncache function`, which has flags of its own, too.
//
//   ServeFlags flags(defaults);
//   CommandLine line = ...;
//   flags.Define(&line);
//   if (const auto code = line.ParseForMain(argc, argv)) return *code;
//   return Serve("function-x", flags.Settings(), function);
#ifndef FNCACHE_SDK_SERVE_COMMAND_H_
#define FNCACHE_SDK_SERVE_COMMAND_H_

#include <functional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/command_line.h"
#include "common/log.h"
#include "fncache/function/serve.h"

namespace fncache::sdk::serve {

struct ServeSettings {
  function::ServerOptions server;
  LogLevel log_level = LogLevel::kInfo;
  LogFormat log_format = LogFormat::kZap;
  // Calls in flight have this time to finish after a signal.
  absl::Duration drain = absl::Seconds(25);
  // Log the start and the end, where that is not done in Serve's words.
  std::function<void(const function::Server&)> log_start;
  std::function<void()> log_end;
};

class ServeFlags {
 public:
  // More names of flags, for commands that had others before.
  struct Aliases {
    std::string address;  // such as ",--listen"
    std::string tls_certs_dir;
  };

  explicit ServeFlags(function::ServerOptions defaults,
                      LogFormat log_format = LogFormat::kZap)
      : server_(std::move(defaults)), default_format_(log_format) {}
  ServeFlags(const ServeFlags&) = delete;
  ServeFlags& operator=(const ServeFlags&) = delete;

  // Must outlive `line`'s last Parse.
  void Define(CommandLine* line, const Aliases& aliases = {});
  // The flags of a function that the SDK composes: --ttl; --graph, --depends.
  void DefineTtl(CommandLine* line);
  void DefineComposing(CommandLine* line);

  // After Parse: the flags, and $TLS_SERVER_CERTS_DIR for the folder of
  // certificates. InvalidArgument, fit for a user, if flags do not fit
  // together.
  absl::StatusOr<ServeSettings> Settings() const;

 private:
  function::ServerOptions server_;
  const LogFormat default_format_;
  std::string network_ = "tcp";
  std::string address_;
  std::string drain_ = "25s";
  std::string ttl_;
  std::string depends_;
  std::string graph_;
  std::string log_format_;
  bool debug_ = false;
};

// Serves until SIGTERM or SIGINT, then stops with the drain. Returns the exit
// code, 0 or 1; where it cannot start, it prints a line that begins with
// `name`. Precondition: the process has no other threads yet, which would get
// the signals.
int Serve(const std::string& name, ServeSettings settings,
          function::Function function);

}  // namespace fncache::sdk::serve

#endif  // FNCACHE_SDK_SERVE_COMMAND_H_
