// SPDX-License-Identifier: Apache-2.0
#include "runner/probe/command.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/command_line.h"
#include "common/duration.h"
#include "common/standard_streams.h"
#include "common/threads.h"
#include "common/utf8.h"
#include "runner/client/function_client.h"
#include "runner/client/rpc_error.h"
#include "runner/probe/probe.h"
#include "runner/probe/report.h"
#include "runner/probe/schemas.h"
#include "runner/probe/source.h"
#include "runner/render/flags.h"
#include "runner/render/inputs.h"

namespace fncache::runner::probe {
namespace {

constexpr int kFailed = 1;
constexpr int kBadUsage = 2;
// The request twice, and each kind of question once.
constexpr int kFewestCalls = 5;
constexpr int kMostCalls = 1000000;

constexpr char kFooter[] = R"(
Input:
  REQUEST.binpb                   a RunFunctionRequest, as it is on the wire
  TRACE                           the folder of a trace of level full, or one of
                                  its files: the newest request of the function,
                                  one for each of its inputs. What varies in the
                                  trace is asked about first
  XR COMPOSITION [FUNCTIONS]      as fncache render takes them: the pipeline is
                                  run up to the step

The function is asked again and again, never through a cache (cache-control:
no-store), with parts of the request that a mask may hide left out or altered,
and with fields that it does not have: paths and names that occur in the step's
input, fields of other requests of the trace, and of schemas. A group that makes
no difference is unread; one that does is halved. The function must have no
effects outside of its answer, as Crossplane expects of it.

Masks are proposed for leaves that were found unread, and for managedFields: an
object or a list may grow. They name resources, unless all that the function
desires were observed. That is evidence for these requests, not proof: probe
requests of several composites.

A function may say itself what an answer depends on: its hint, the trailing
metadata fncache-depends. It is printed beside what was found. A field that
changes the answer although the hint says that it does not is a bug of the
function: with `vary: on` callers would get wrong answers.

Values of the request are sent to the function only; none is printed.

Exit codes: 0; 1 where a file is not there, holds no request, or the function
does not answer it, or its hint leaves out what it reads; 2 for flags that do
not fit.)";

struct Flags {
  std::vector<std::string> files;
  std::vector<std::string> functions;
  std::string step;
  int calls = 1000;
  std::string tls_dir;
  std::string timeout = "30s";
  uint64_t seed = 1;
  bool trust_hint = false;
  bool json = false;
  // As fncache render has them.
  std::vector<std::string> observed, required, schemas, credentials, definition,
      context_values, context_files;
};

CommandLine MakeLine(Flags* flags) {
  CommandLine line(
      "Says which fields of a request a function's answer depends on, by "
      "asking it,\nand which masks follow from that.",
      "fncache probe");
  line.AddOption("FILE", &flags->files).Required().Expected(1, 3);
  line.AddOption("--function", &flags->functions,
                 "The function to ask, as the trace or the Composition names "
                 "it, and where it listens. Repeats for the other functions "
                 "of a pipeline; the first is the one that is asked, or "
                 "--step says which")
      .TypeName("NAME=TARGET")
      .Repeats();
  line.AddOption("--step", &flags->step,
                 "The step of the pipeline; default: the first of the "
                 "function")
      .TypeName("STEP");
  line.AddOption("--calls", &flags->calls,
                 "Ask so often at most; what is left then is untried")
      .Range(kFewestCalls, kMostCalls)
      .TypeName("N")
      .ShowDefault();
  line.AddOption("--timeout", &flags->timeout,
                 "For each call, and each step before the one that is asked")
      .TypeName("DURATION")
      .ShowDefault();
  line.AddOption("--tls-dir", &flags->tls_dir,
                 "tls.crt, tls.key and ca.crt that the runner has; without, "
                 "functions are called in plaintext")
      .TypeName("DIR");
  line.AddOption("--seed", &flags->seed,
                 "Altered values are made from it; the same seed asks the "
                 "same")
      .TypeName("N")
      .ShowDefault();
  line.AddFlag("--trust-hint", &flags->trust_hint,
               "Believe the function's hint (fncache-depends), and ask only "
               "what it leaves open");
  line.AddFlag("--json", &flags->json, "Print JSON, with all paths");
  const auto input = [&line](const char* names, std::vector<std::string>* into,
                             const char* help, const char* type) {
    line.AddOption(names, into, help).TypeName(type).Repeats();
  };
  input("-o,--observed-resources", &flags->observed,
        "With XR: composed resources, as the cluster has them", "PATH");
  input("-e,--required-resources", &flags->required,
        "With XR: what functions may require; repeats", "PATH");
  input("-s,--required-schemas", &flags->schemas,
        "OpenAPI v3 documents, *.json: of their kinds all fields are tried",
        "DIR");
  input("--function-credentials", &flags->credentials,
        "With XR: Secrets for the steps' credentials", "PATH");
  input("--xrd", &flags->definition,
        "With XR: its definition. Else a definition (XRD, CRD) of which all "
        "fields are tried; repeats",
        "FILE");
  input("--context-values", &flags->context_values,
        "With XR: context before the first step; repeats", "KEY=YAML");
  input("--context-files", &flags->context_files,
        "With XR: the same from files", "KEY=FILE");
  line.Usage(
      {"[flags] REQUEST.binpb|TRACE", "[flags] XR COMPOSITION [FUNCTIONS]"});
  line.Footer(kFooter);
  return line;
}

int Fail(int code, absl::string_view message) {
  std::fprintf(stderr, "fncache probe: %s\n", Printable(message).c_str());
  return code;
}

int FailUsage(absl::string_view message) {
  return Fail(kBadUsage, absl::StrCat(message, "; see fncache probe --help"));
}

class Session {
 public:
  Session(Flags flags, absl::Duration timeout,
          std::vector<client::FunctionTarget> targets)
      : flags_(std::move(flags)),
        timeout_(timeout),
        targets_(std::move(targets)) {}

  int Run() {
    // Before any other reason, which may only follow from a mistyped name.
    for (const std::string& file : flags_.files) {
      if (file == "-" || access(file.c_str(), F_OK) == 0) continue;
      return Fail(kFailed, absl::StrCat(file, ": ", std::strerror(errno)));
    }
    const bool rendered = flags_.files.size() > 1;
    const int code = rendered ? FromPipeline() : FromFile();
    return code != 0 ? code : Probe();
  }

 private:
  absl::Status Connect(std::vector<client::FunctionTarget> targets) {
    auto client = client::FunctionClient::CreateUncached(std::move(targets),
                                                         flags_.tls_dir);
    if (!client.ok()) return client.status();
    client_ = *std::move(client);
    return absl::OkStatus();
  }

  int FromFile() {
    if (targets_.empty()) {
      return FailUsage("--function NAME=TARGET is needed");
    }
    if (targets_.size() > 1) {
      return FailUsage("--function: repeats with XR COMPOSITION only");
    }
    for (const auto* given :
         {&flags_.observed, &flags_.required, &flags_.credentials,
          &flags_.context_values, &flags_.context_files}) {
      if (!given->empty()) {
        return FailUsage("files to render go with XR COMPOSITION only");
      }
    }
    function_ = targets_[0].name;
    const std::string& path = flags_.files[0];
    const bool trace = IsTrace(path);
    if (!trace && !flags_.step.empty()) {
      return FailUsage("--step: not with a request");
    }
    auto source =
        trace ? ReadTrace(path, function_, flags_.step) : ReadRequestFile(path);
    if (!source.ok()) return Fail(kFailed, source.status().message());
    source_ = *std::move(source);
    const absl::Status status = Connect(targets_);
    return status.ok() ? 0 : Fail(kFailed, status.message());
  }

  int FromPipeline() {
    if (targets_.empty() && flags_.step.empty()) {
      return FailUsage("--function NAME=TARGET or --step STEP is needed");
    }
    std::vector<std::string> arguments = {"render"};
    arguments.insert(arguments.end(), flags_.files.begin(), flags_.files.end());
    const auto pass = [&](const char* name,
                          const std::vector<std::string>& values) {
      for (const std::string& value : values) {
        arguments.push_back(absl::StrCat(name, "=", value));
      }
    };
    pass("--function", flags_.functions);
    pass("--step-timeout", {flags_.timeout});
    pass("--observed-resources", flags_.observed);
    pass("--required-resources", flags_.required);
    pass("--required-schemas", flags_.schemas);
    pass("--function-credentials", flags_.credentials);
    pass("--xrd", flags_.definition);
    pass("--context-values", flags_.context_values);
    pass("--context-files", flags_.context_files);
    std::vector<char*> pointers;
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    const auto render = render::ParseRenderFlags(
        static_cast<int>(pointers.size()), pointers.data());
    if (!render.ok()) {
      return Fail(absl::IsNotFound(render.status()) ? kFailed : kBadUsage,
                  absl::StrReplaceAll(
                      render.status().message(),
                      {{"fncache render --help", "fncache probe --help"}}));
    }
    const auto inputs = render::LoadRenderInputs(*render);
    if (!inputs.ok()) return Fail(kFailed, inputs.status().message());
    const auto step =
        FindStep(*inputs->composition, targets_.empty() ? "" : targets_[0].name,
                 flags_.step);
    if (!step.ok()) return Fail(kFailed, step.status().message());
    function_ = inputs->composition->steps[*step].function;
    const absl::Status status = Connect(inputs->functions);
    if (!status.ok()) return Fail(kFailed, status.message());
    auto source = MakeRequest(*render, *inputs, *step, client_.get());
    if (!source.ok()) {
      return Fail(kFailed, absl::StrCat("the pipeline did not come to step ",
                                        inputs->composition->steps[*step].name,
                                        ": ", source.status().message()));
    }
    source_ = *std::move(source);
    return 0;
  }

  int Probe() {
    ProbeOptions options;
    options.function = function_;
    options.calls = flags_.calls;
    options.timeout = timeout_;
    options.seed = flags_.seed;
    options.trust_hint = flags_.trust_hint;
    auto schemas = ReadSchemas(flags_.schemas, flags_.definition);
    if (!schemas.ok()) return Fail(kFailed, schemas.status().message());
    source_.knowledge.schemas = *std::move(schemas);
    auto result = RunProbe(std::move(source_.requests), source_.variation,
                           source_.knowledge, options, client_.get());
    if (!result.ok()) {
      return Fail(kFailed,
                  absl::StrCat(function_, ": ",
                               client::PlainRpcError(result.status())));
    }
    ProbeReport report;
    report.function = function_;
    report.source = source_.what;
    report.trace_calls = source_.variation.calls();
    report.result = *std::move(result);
    const int printed = PrintResult(
        "fncache probe", flags_.json ? ReportJson(report) : ReportText(report));
    const size_t unnamed = report.result.hint.unnamed.size();
    if (printed != 0 || unnamed == 0) return printed;
    return Fail(kFailed,
                absl::StrCat(function_, ": its hint leaves out what it reads (",
                             unnamed, unnamed == 1 ? " path)" : " paths)"));
  }

  const Flags flags_;
  const absl::Duration timeout_;
  const std::vector<client::FunctionTarget> targets_;
  std::string function_;
  Source source_;
  std::unique_ptr<client::FunctionClient> client_;
};

}  // namespace

std::string ProbeHelp() {
  Flags flags;
  return MakeLine(&flags).Help();
}

std::vector<CommandFlag> ProbeCommandFlags() {
  Flags flags;
  return MakeLine(&flags).Flags();
}

int ProbeMain(int argc, char** argv) {
  Flags flags;
  CommandLine line = MakeLine(&flags);
  if (const auto code = line.ParseForMain(argc, argv)) return *code;
  const auto timeout = ParsePositiveGoDuration(flags.timeout);
  if (!timeout.ok()) {
    return FailUsage(absl::StrCat("--timeout: ", timeout.status().message()));
  }
  std::vector<client::FunctionTarget> targets;
  for (const std::string& text : flags.functions) {
    auto target = client::ParseFunctionTarget(text);
    if (!target.ok()) {
      return FailUsage(absl::StrCat("--function: ", target.status().message()));
    }
    targets.push_back(*std::move(target));
  }
  constexpr int kOwnThreads = 4;
  const absl::Status threads = CheckThreads(GrpcThreads() + kOwnThreads);
  if (!threads.ok()) return Fail(kFailed, threads.message());
  // A write to a connection that is gone says so instead.
  signal(SIGPIPE, SIG_IGN);
  return Session(std::move(flags), *timeout, std::move(targets)).Run();
}

}  // namespace fncache::runner::probe
