// SPDX-License-Identifier: Apache-2.0
#include "proxy/admin/command.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/command_flags.h"
#include "common/command_line.h"
#include "common/duration.h"
#include "common/file.h"
#include "common/log_level.h"
#include "common/nearest.h"
#include "common/standard_streams.h"
#include "common/utf8.h"
#include "google/protobuf/util/time_util.h"
#include "proxy/admin/client.h"
#include "proxy/admin/line.h"
#include "proxy/admin/text.h"
#include "proxy/admin/tune_text.h"
#include "proxy/admin/watch.h"
#include "proxy/settings/options.h"

namespace fncache::proxy::admin {
namespace {

using google::protobuf::util::TimeUtil;

constexpr int kFailed = 1;
constexpr int kBadUsage = 2;

// Time limits of commands that only read, and of those that may change much.
constexpr absl::Duration kSoon = absl::Minutes(1);
constexpr absl::Duration kLater = absl::Minutes(10);
// The longest time after which a level or a trace ends automatically.
constexpr absl::Duration kLongestFor = absl::Hours(8760);
// Bytes of the largest request that a function may get.
constexpr size_t kMaxRequest = size_t{2} << 30;

absl::optional<std::string> Variable(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  if (value == nullptr) return absl::nullopt;
  return std::string(value);
}

absl::Status BadUsage(absl::string_view why) {
  return absl::InvalidArgumentError(why);
}

absl::StatusOr<std::string> ParseKey(const std::string& text) {
  if (text.size() == 32 &&
      std::all_of(text.begin(), text.end(), absl::ascii_isxdigit)) {
    return absl::HexStringToBytes(text);
  }
  return BadUsage(absl::StrCat("--key: \"", PrintableStart(text),
                               "\" is not accepted; accepted: 32 hex digits"));
}

absl::StatusOr<absl::Duration> ParsePositive(absl::string_view flag,
                                             const std::string& text,
                                             absl::Duration least) {
  const auto parsed = ParseGoDuration(text);
  if (parsed.ok() && *parsed >= least) return *parsed;
  return BadUsage(absl::StrCat(flag, ": \"", PrintableStart(text),
                               "\" is not accepted; accepted: a duration from ",
                               FormatGoDuration(least), " up, such as 10m"));
}

// The range and the error text are those of the daemon.
absl::Status ParseFor(const Flags& flags, google::protobuf::Duration* out) {
  const auto parsed = ParseGoDuration(flags.for_time);
  if (!parsed.ok() || *parsed <= absl::ZeroDuration() ||
      *parsed > kLongestFor) {
    return BadUsage(absl::StrCat("--for: \"", PrintableStart(flags.for_time),
                                 "\" is not accepted; accepted: a duration "
                                 "above 0, at most 8760h, such as 10m"));
  }
  *out = TimeUtil::NanosecondsToDuration(absl::ToInt64Nanoseconds(*parsed));
  return absl::OkStatus();
}

// OK if the word is one of `accepted`; else an error that lists them.
absl::Status CheckWord(absl::string_view what, const std::string& word,
                       const std::vector<std::string>& accepted) {
  if (std::find(accepted.begin(), accepted.end(), word) != accepted.end()) {
    return absl::OkStatus();
  }
  return BadUsage(absl::StrCat(
      what, word.empty() ? " is missing" : ": \"", PrintableStart(word),
      word.empty() ? "" : "\" is not accepted", DidYouMean(word, accepted),
      "; accepted: ", absl::StrJoin(accepted, ", ")));
}

// One command with its flags. The flags are checked before the daemon is
// called.
class Invocation {
 public:
  Invocation(const Line& line, const Flags& flags)
      : line_(line), flags_(flags) {}

  // Returns the exit code if the command did not fail. InvalidArgument is wrong
  // usage.
  absl::StatusOr<int> Run() {
    const absl::Status given = CheckNoneEmpty();
    if (!given.ok()) return given;
    if (line_.stats->parsed()) return Stats();
    if (line_.lookup->parsed()) return LookUp();
    if (line_.purge->parsed()) return Purge();
    if (line_.explain->parsed()) return Explain();
    if (line_.config->parsed()) return Config();
    if (line_.reload->parsed()) return Reload();
    if (line_.trace_start->parsed()) return StartTrace();
    if (line_.trace_stop->parsed()) return StopTrace();
    if (line_.trace->parsed()) {
      return BadUsage("what to do is missing; accepted: start, stop");
    }
    if (line_.log->parsed()) return LogLevel();
    if (line_.tune->parsed()) return Tune();
    return Shadow();
  }

 private:
  // An empty value is an error. A script's unset variable must not act like a
  // flag that is not given: purge --key "$KEY" --all.
  absl::Status CheckNoneEmpty() const {
    for (const CommandLine* at = &line_.top; at != nullptr;
         at = at->given_command()) {
      for (const CommandLine::Option& option : at->options()) {
        const std::string name = option.name();
        if (option == line_.watch || option == line_.generation ||
            !absl::StartsWith(name, "--") || option.argument().empty()) {
          continue;
        }
        for (const std::string& value : option.results()) {
          if (!value.empty()) continue;
          return BadUsage(absl::StrCat(name, ": must not be empty"));
        }
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> Socket() const {
    SocketSearch search;
    search.flag = flags_.socket;
    search.cache_dir = flags_.cache_dir;
    search.environment = Variable;
    return FindSocket(search);
  }

  template <typename Request, typename Response>
  absl::StatusOr<Response> Call(Client::Method<Request, Response> method,
                                const Request& request,
                                absl::Duration patience) {
    const absl::StatusOr<std::string> socket = Socket();
    if (!socket.ok()) return socket.status();
    socket_ = *socket;
    auto client = Client::Connect(socket_);
    if (!client.ok()) return client.status();
    return (*client)->Call(method, request, patience);
  }

  // The daemon has done its work by then, so a failure to print says so.
  absl::StatusOr<int> Print(absl::string_view text, int code = 0) const {
    const absl::Status status = WriteStdout(text);
    if (status.ok()) return code;
    return absl::UnavailableError(absl::StrCat(
        socket_, ": the daemon has answered, but its answer ",
        "cannot be written to standard output: ", status.message()));
  }

  absl::StatusOr<int> Stats() const {
    WatchOptions options;
    options.json = flags_.json;
    if (line_.watch.given()) {
      const auto every =
          ParsePositive("--watch", flags_.watch.empty() ? "1s" : flags_.watch,
                        absl::Milliseconds(100));
      if (!every.ok()) return every.status();
      options.every = *every;
    }
    const absl::StatusOr<std::string> socket = Socket();
    if (!socket.ok()) return socket.status();
    options.socket = *socket;
    return WatchStats(options);
  }

  absl::StatusOr<int> LookUp() {
    v1::LookUpRequest request;
    if (flags_.key.empty() == flags_.request.empty()) {
      return BadUsage("one of --key and --request is needed");
    }
    if (!flags_.key.empty()) {
      const auto key = ParseKey(flags_.key);
      if (!key.ok()) return key.status();
      request.set_key(*key);
    } else {
      auto bytes = ReadSmallFile(flags_.request, kMaxRequest);
      if (!bytes.ok()) {
        return absl::UnknownError(
            absl::StrCat("--request: ", bytes.status().message()));
      }
      request.set_request(*std::move(bytes));
    }
    if (!flags_.method.empty()) {
      const absl::Status status =
          CheckWord("--method", flags_.method, {"v1", "v1beta1"});
      if (!status.ok()) return status;
      request.set_method(flags_.method);
    }
    request.set_function(flags_.function);
    const auto response = Call(&v1::Admin::Stub::LookUp, request, kLater);
    if (!response.ok()) return response.status();
    return Print(LookUpText(*response));
  }

  absl::StatusOr<int> Purge() {
    v1::PurgeRequest request;
    request.set_soft(flags_.soft);
    const bool of_generation = line_.generation.given();
    std::string what;
    if (flags_.all) {
      if (!flags_.key.empty() || !flags_.function.empty() || of_generation) {
        return BadUsage("--all goes with --soft only");
      }
      request.mutable_all();
      what = "everything";
    } else if (!flags_.key.empty()) {
      if (of_generation) return BadUsage("--key does not go with --generation");
      const auto key = ParseKey(flags_.key);
      if (!key.ok()) return key.status();
      request.set_key(*key);
      request.set_function(flags_.function);
      what = absl::StrCat("key ", flags_.key);
      if (!flags_.function.empty()) {
        absl::StrAppend(&what, " of function ", flags_.function);
      }
    } else if (!flags_.function.empty()) {
      request.mutable_of_function()->set_function(flags_.function);
      what = absl::StrCat("function ", flags_.function);
      if (of_generation) {
        constexpr size_t kMost = settings::kMaxGenerationBytes;
        if (flags_.generation.size() > kMost) {
          return BadUsage(absl::StrCat(
              "--generation: has ", flags_.generation.size(),
              " bytes; accepted: a text of at most ", kMost, " bytes"));
        }
        request.mutable_of_function()->set_generation(flags_.generation);
        absl::StrAppend(&what, ", generation \"", flags_.generation, "\"",
                        flags_.generation.empty() ? " (none)" : "");
      }
    } else {
      return BadUsage(of_generation
                          ? "--generation needs --function"
                          : "one of --key, --function and --all is needed");
    }
    const auto response = Call(&v1::Admin::Stub::Purge, request, kLater);
    if (!response.ok()) return response.status();
    return Print(PurgeText(what, flags_.soft, socket_, *response),
                 response->unreached().empty() ? 0 : kFailed);
  }

  absl::StatusOr<int> Explain() {
    v1::ExplainRequest request;
    request.set_function(flags_.function);
    request.set_last(flags_.last);
    const auto response = Call(&v1::Admin::Stub::Explain, request, kSoon);
    if (!response.ok()) return response.status();
    return Print(flags_.json ? ExplainJson(*response) : ExplainText(*response));
  }

  absl::StatusOr<int> Config() {
    const auto response =
        Call(&v1::Admin::Stub::Config, v1::ConfigRequest(), kSoon);
    if (!response.ok()) return response.status();
    return Print(response->yaml());
  }

  absl::StatusOr<int> Reload() {
    const auto response =
        Call(&v1::Admin::Stub::Reload, v1::ReloadRequest(), kLater);
    if (!response.ok()) {
      // Settings that are not accepted are no wrong usage of this command.
      return absl::FailedPreconditionError(response.status().message());
    }
    return Print(ReloadText(*response));
  }

  absl::StatusOr<int> StartTrace() {
    v1::StartTraceRequest request;
    if (!flags_.dir.empty() && flags_.dir.front() != '/') {
      return BadUsage(absl::StrCat("--dir: \"", PrintableStart(flags_.dir),
                                   "\" is not accepted, as it is on the "
                                   "daemon's machine; accepted: an absolute "
                                   "path"));
    }
    request.set_dir(flags_.dir);
    if (!flags_.level.empty()) {
      const absl::Status status =
          CheckWord("--level", flags_.level, {"keys", "paths", "full"});
      if (!status.ok()) return status;
      request.set_level(flags_.level);
    }
    if (!flags_.for_time.empty()) {
      const absl::Status status = ParseFor(flags_, request.mutable_for_time());
      if (!status.ok()) return status;
    }
    const auto response = Call(&v1::Admin::Stub::StartTrace, request, kSoon);
    if (!response.ok()) return response.status();
    return Print(StartTraceText(*response));
  }

  absl::StatusOr<int> StopTrace() {
    const auto response =
        Call(&v1::Admin::Stub::StopTrace, v1::StopTraceRequest(), kSoon);
    if (!response.ok()) return response.status();
    return Print(StopTraceText(*response));
  }

  absl::StatusOr<int> LogLevel() {
    v1::SetLogLevelRequest request;
    absl::Status status = CheckWord("LEVEL", flags_.level, LogLevelNames());
    if (!status.ok()) return status;
    request.set_level(flags_.level);
    if (!flags_.for_time.empty()) {
      status = ParseFor(flags_, request.mutable_for_time());
      if (!status.ok()) return status;
    }
    const auto response = Call(&v1::Admin::Stub::SetLogLevel, request, kSoon);
    if (!response.ok()) return response.status();
    return Print(LogLevelText(*response));
  }

  absl::StatusOr<int> Shadow() {
    const auto response =
        Call(&v1::Admin::Stub::Shadow, v1::ShadowRequest(), kSoon);
    if (!response.ok()) return response.status();
    return Print(flags_.json ? absl::StrCat(response->json(), "\n")
                             : ShadowText(*response));
  }

  absl::StatusOr<int> Tune() {
    v1::TuneRequest request;
    request.set_function(flags_.function);
    const auto response = Call(&v1::Admin::Stub::Tune, request, kSoon);
    if (!response.ok()) return response.status();
    return Print(flags_.json ? TuneJson(*response) : TuneText(*response));
  }

  const Line& line_;
  const Flags& flags_;
  std::string socket_;  // the one that was called
};

// "fncache admin purge".
std::string NameOf(const Line& line) {
  std::string name = "fncache admin";
  for (const CommandLine* at = line.top.given_command(); at != nullptr;
       at = at->given_command()) {
    absl::StrAppend(&name, " ", at->name());
  }
  return name;
}

int Fail(const Line& line, const absl::Status& status) {
  const std::string name = NameOf(line);
  const bool usage = absl::IsInvalidArgument(status);
  std::fprintf(stderr, "%s: %s%s\n", name.c_str(),
               Printable(status.message()).c_str(),
               usage ? absl::StrCat("; see ", name, " --help").c_str() : "");
  return usage ? kBadUsage : kFailed;
}

absl::Status NotParsed(const Line& line) {
  const std::vector<std::string> extras = line.top.remaining();
  const bool command = line.top.given_command() != nullptr;
  if (!extras.empty() && !command && extras.front().rfind('-', 0) != 0) {
    return CheckWord("command", extras.front(), AdminWords());
  }
  return BadUsage(line.top.error());
}

}  // namespace

std::string AdminHelp() {
  Flags flags;
  return MakeLine(&flags).top.Help();
}

std::vector<std::string> AdminWords() {
  Flags flags;
  return MakeLine(&flags).top.words();
}

std::vector<CommandFlag> AdminCommandFlags() {
  Flags values;
  const Line made = MakeLine(&values);
  std::vector<CommandFlag> all = made.top.Flags();
  const auto add = [&all](const CommandLine& line) {
    for (CommandFlag& flag : line.Flags()) {
      const bool known =
          std::any_of(all.begin(), all.end(), [&flag](const CommandFlag& one) {
            return one.names.back() == flag.names.back();
          });
      if (!known) all.push_back(std::move(flag));
    }
  };
  for (const CommandLine* const command : made.top.commands()) {
    add(*command);
    for (const CommandLine* const inner : command->commands()) {
      add(*inner);
    }
  }
  return all;
}

int AdminMain(int argc, char** argv) {
  Flags flags;
  Line line = MakeLine(&flags);
  const CommandLine::Outcome outcome = line.top.Parse(argc, argv);
  if (outcome == CommandLine::Outcome::kHelp) {
    return PrintResult("fncache admin", line.top.Help());
  }
  if (outcome == CommandLine::Outcome::kError) {
    return Fail(line, NotParsed(line));
  }
  if (line.top.given_command() == nullptr) {
    return Fail(line, CheckWord("a command", "", AdminWords()));
  }
  const absl::StatusOr<int> code = Invocation(line, flags).Run();
  return code.ok() ? *code : Fail(line, code.status());
}

}  // namespace fncache::proxy::admin
