// SPDX-License-Identifier: Apache-2.0
#include "runner/render/internal_command.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/help_text.h"
#include "common/nearest.h"
#include "common/standard_streams.h"
#include "common/threads.h"
#include "common/utf8.h"
#include "runner/client/function_client.h"
#include "runner/render/engine_protocol.h"
#include "runner/render/error_line.h"

namespace fncache::runner::render {
namespace {

constexpr size_t kMaxRequestBytes = size_t{1} << 30;

constexpr char kHelp[] =
    R"(Renders as Crossplane's own engine does: a RenderRequest on standard input, a
RenderResponse on standard output, both protobuf. It is what

  crossplane render --crossplane-binary fncache XR COMPOSITION FUNCTIONS

runs; people use fncache render.

Usage: fncache internal render [flags]

Flags:
      --timeout DURATION          For all calls of functions together (default
                                  2m)
  -h, --help                      Print this

Exit codes: 0; 3 where a step returned a FATAL result, with what could be
rendered; 1 for any other failure; 80 for bad usage.
)";

int Fail(int exit_code, absl::string_view message) {
  std::fputs(ErrorLine(message).c_str(), stderr);
  return exit_code;
}

struct Arguments {
  bool help = false;
  absl::Duration timeout = absl::Minutes(2);
};

absl::StatusOr<Arguments> ParseArguments(const std::vector<std::string>& args) {
  Arguments parsed;
  bool render = false;
  for (size_t i = 0; i < args.size(); ++i) {
    absl::string_view arg = args[i];
    if (arg == "--help" || arg == "-h") {
      parsed.help = true;
      return parsed;
    }
    if (absl::ConsumePrefix(&arg, "--timeout") &&
        (arg.empty() || absl::ConsumePrefix(&arg, "="))) {
      if (args[i] == "--timeout") {
        if (++i == args.size()) {
          return absl::InvalidArgumentError(
              "--timeout: missing value, expecting \"<duration>\"");
        }
        arg = args[i];
      }
      const auto timeout = ParseGoDuration(arg);
      if (!timeout.ok() || *timeout < absl::ZeroDuration()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "--timeout: expected duration but got \"", Printable(arg),
            "\"; accepted: ", kDurationForm, ", of at least 0"));
      }
      parsed.timeout = *timeout;
      continue;
    }
    if (absl::StartsWith(args[i], "-")) {
      return absl::InvalidArgumentError(
          absl::StrCat("unknown flag ", Printable(args[i]),
                       DidYouMean(args[i].substr(0, args[i].find('=')),
                                  {"--help", "--timeout"})));
    }
    if (render || args[i] != "render") {
      return absl::InvalidArgumentError(
          absl::StrCat("unexpected argument ", Printable(args[i])));
    }
    render = true;
  }
  if (!render) return absl::InvalidArgumentError("expected \"render\"");
  return parsed;
}

absl::StatusOr<std::string> ReadRequest() {
  std::string bytes;
  std::vector<char> buffer(1 << 16);
  while (true) {
    const ssize_t got = read(STDIN_FILENO, buffer.data(), buffer.size());
    if (got == 0) return bytes;
    if (got < 0) {
      if (errno == EINTR) continue;
      return absl::InternalError(strerror(errno));
    }
    if (bytes.size() + static_cast<size_t>(got) > kMaxRequestBytes) {
      return absl::ResourceExhaustedError(
          absl::StrCat("it is larger than ", kMaxRequestBytes >> 20, " MiB"));
    }
    bytes.append(buffer.data(), static_cast<size_t>(got));
  }
}

}  // namespace

std::string InternalHelp() { return kHelp; }

std::vector<CommandFlag> InternalCommandFlags() {
  return {
      {{"--timeout"}, "DURATION", "For all calls of functions together", false},
      {{"-h", "--help"}, "", kHelpOfHelp, false}};
}

int InternalMain(int argc, char** argv) {
  const auto arguments =
      ParseArguments(std::vector<std::string>(argv + 1, argv + argc));
  if (!arguments.ok()) {
    return Fail(kEngineUsage, arguments.status().message());
  }
  if (arguments->help) return PrintResult("fncache internal", kHelp);
  // Without the signal, write reports that the reader has closed the pipe.
  signal(SIGPIPE, SIG_IGN);
  if (!HadStandardStream(STDIN_FILENO)) {
    return Fail(kEngineFailed,
                "cannot read render request from stdin: it is closed");
  }
  if (!HadStandardStream(STDOUT_FILENO)) {
    return Fail(kEngineFailed,
                "cannot write render response: stdout is closed");
  }
  const absl::Status threads = CheckThreads(GrpcThreads());
  if (!threads.ok()) return Fail(kEngineFailed, threads.message());
  const absl::Time deadline = absl::Now() + arguments->timeout;
  auto request = ReadRequest();
  if (!request.ok()) {
    return Fail(kEngineFailed,
                absl::StrCat("cannot read render request from stdin: ",
                             request.status().message()));
  }
  SystemClock clock;
  const EngineAnswer answer = AnswerRenderRequest(
      *request, deadline,
      [](std::vector<client::FunctionTarget> functions)
          -> absl::StatusOr<std::unique_ptr<client::FunctionCaller>> {
        client::FunctionClientOptions options;
        options.functions = std::move(functions);
        return client::FunctionClient::Create(std::move(options));
      },
      &clock);
  if (!answer.output.empty()) {
    const absl::Status written = WriteStdout(answer.output);
    if (!written.ok()) {
      return Fail(kEngineFailed, absl::StrCat("cannot write render response: ",
                                              written.message()));
    }
  }
  return answer.exit_code == 0 ? 0 : Fail(answer.exit_code, answer.message);
}

}  // namespace fncache::runner::render
