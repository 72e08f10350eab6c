// SPDX-License-Identifier: Apache-2.0
#include "runner/function/command.h"

#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cache/key/mask.h"
#include "common/command_line.h"
#include "common/duration.h"
#include "common/log.h"
#include "common/utf8.h"
#include "runner/function/call_cost.h"
#include "runner/function/costly_calls.h"
#include "runner/function/recordings.h"
#include "runner/function/template_function.h"
#include "sdk/serve/command.h"

namespace fncache::runner::function {
namespace {

using ::fncache::function::Server;
using ::fncache::function::ServerOptions;

constexpr char kFooter[] = R"(
A step of a composition that uses it (docs/function.md has the whole schema):

  - step: buckets
    functionRef: {name: function-fncache}
    input:
      apiVersion: function.fncache.dev/v1alpha1
      kind: Template
      spec:
        resources:
        - name: bucket-${index}
          count: ${observed.composite.resource.spec.count|1}
          base:
            apiVersion: s3.aws.upbound.io/v1beta1
            kind: Bucket
            spec:
              forProvider:
                region: ${observed.composite.resource.spec.region}
        status:
          first: ${observed.resources.bucket-0.resource.metadata.name|pending}

Try it: fncache function --insecure --listen 127.0.0.1:9444 --cost sleep=2s

Exit codes: 0 after SIGTERM or SIGINT, 1 when it cannot start (port taken, file
missing), 2 for flags that do not fit.)";

// No metrics by default: several of these run on one machine.
ServerOptions Defaults() {
  ServerOptions options;
  options.address = "0.0.0.0:9443";
  options.function_options = FunctionOptions();
  return options;
}

struct Flags {
  sdk::serve::ServeFlags serve{Defaults(), LogFormat::kText};
  std::vector<std::string> cost;
  std::string ttl = "60s";
  std::string fail_rate = "0";
  std::string seed = "1";
  std::vector<std::string> fatal;
  std::vector<std::string> recorded;
  std::vector<std::string> mask;
  bool log_calls = false;
};

CommandLine MakeLine(Flags* flags) {
  CommandLine line(
      "A real composition function: renders resources from its input, or "
      "answers from\nrecordings, at a settable cost.",
      "fncache function");
  flags->serve.Define(&line, {",--listen", ",--tls-dir"});
  flags->serve.DefineComposing(&line);
  line.AddOption("--cost", &flags->cost,
                 "Cost of every call: sleep=DURATION, cpu=DURATION, or both "
                 "with a comma between; repeats add up")
      .TypeName("COST")
      .Repeats();
  line.AddOption("--ttl", &flags->ttl,
                 "TTL that the answers carry; 0 means \"do not cache\", none "
                 "leaves the field out")
      .TypeName("DURATION|none")
      .ShowDefault();
  line.AddOption("--fail-rate", &flags->fail_rate,
                 "Fraction of the calls to answer with UNAVAILABLE, 0 to 1")
      .TypeName("FRACTION")
      .ShowDefault();
  line.AddOption("--seed", &flags->seed, "Decides which calls fail")
      .TypeName("NUMBER")
      .ShowDefault();
  line.AddOption("--fatal", &flags->fatal,
                 "Answer every call with a FATAL result of this message")
      .TypeName("[TEXT]")
      .Expected(0, 1);
  line.AddOption("--recorded", &flags->recorded,
                 "Answer from the recorded calls (*.req.bin with *.rsp.bin) "
                 "below this folder; repeats")
      .TypeName("DIR")
      .Repeats();
  line.AddOption("--mask", &flags->mask,
                 "Path of the request that does not matter when it is compared "
                 "with recordings, or a named set (@versions, ...); repeats")
      .TypeName("FIELD")
      .Repeats();
  line.AddFlag("--log-calls", &flags->log_calls,
               "Log a line for every call, with its number, before answering");
  line.Footer(kFooter);
  return line;
}

absl::StatusOr<absl::optional<absl::Duration>> ParseTtl(
    const std::string& text) {
  if (text == "none") return absl::optional<absl::Duration>();
  const auto ttl = ParseGoDuration(text);
  if (!ttl.ok() || *ttl < absl::ZeroDuration()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", text, "\" is not accepted; accepted: ", kDurationForm,
        ", of at least 0, or none"));
  }
  return absl::optional<absl::Duration>(*ttl);
}

// `message` may have several lines, of which the later ones are indented, and
// names of files that hold anything.
void Complain(absl::string_view message) {
  std::vector<std::string> lines;
  for (const absl::string_view line : absl::StrSplit(message, '\n')) {
    lines.push_back(Printable(line));
  }
  std::fprintf(stderr, "fncache function: %s\n",
               absl::StrJoin(lines, "\n  ").c_str());
}

// Refuses a flag that does not fit, and returns the exit code for it.
int Refuse(absl::string_view message) {
  Complain(message);
  return 2;
}

// Reports a start that failed though the flags fit, and returns the exit code
// for it.
int CannotStart(absl::string_view message) {
  Complain(message);
  return 1;
}

int Serve(sdk::serve::ServeSettings settings, const CostOptions& costs,
          ::fncache::function::Function function) {
  CostlyCalls calls(costs);
  settings.server.interceptor = calls.Interceptor();
  settings.log_start = [](const Server& server) {
    Log(LogLevel::kInfo, absl::StrCat("listening on ", server.address()));
    if (server.metrics_address().empty()) return;
    Log(LogLevel::kInfo, "metrics", {{"address", server.metrics_address()}});
  };
  settings.log_end = [&calls] {
    const CallCounts counts = calls.counts();
    Log(LogLevel::kInfo, "stopped",
        {{"calls", counts.calls},
         {"answered", counts.answered},
         {"failed", counts.failed},
         {"cancelled", counts.cancelled}});
  };
  return sdk::serve::Serve("fncache function", std::move(settings),
                           std::move(function));
}

}  // namespace

std::string FunctionHelp() {
  Flags flags;
  return MakeLine(&flags).Help();
}

std::vector<CommandFlag> FunctionCommandFlags() {
  Flags flags;
  return MakeLine(&flags).Flags();
}

int FunctionMain(int argc, char** argv) {
  Flags flags;
  CommandLine line = MakeLine(&flags);
  if (const auto code = line.ParseForMain(argc, argv)) return *code;

  auto settings = flags.serve.Settings();
  if (!settings.ok()) return Refuse(settings.status().message());
  CostOptions options;
  if (!absl::SimpleAtod(flags.fail_rate, &options.fail_rate) ||
      !(options.fail_rate >= 0 && options.fail_rate <= 1)) {
    return Refuse(absl::StrCat("--fail-rate: \"", flags.fail_rate,
                               "\" is not accepted; accepted: a fraction from "
                               "0 to 1"));
  }
  if (!absl::SimpleAtoi(flags.seed, &options.seed)) {
    return Refuse(absl::StrCat("--seed: \"", flags.seed,
                               "\" is not accepted; accepted: a whole number "
                               "from 0 on"));
  }
  const auto cost = ParseCallCost(flags.cost);
  if (!cost.ok()) {
    return Refuse(absl::StrCat("--cost: ", cost.status().message()));
  }
  TemplateOptions answers;
  const auto ttl = ParseTtl(flags.ttl);
  if (!ttl.ok()) return Refuse(absl::StrCat("--ttl: ", ttl.status().message()));
  answers.ttl = *ttl;
  if (line.Given("--fatal")) {
    answers.fatal = flags.fatal.empty() || flags.fatal[0].empty()
                        ? "this function fails, as --fatal asks"
                        : flags.fatal[0];
  }

  options.cost = *cost;
  options.log_calls = flags.log_calls;

  if (flags.recorded.empty()) {
    if (!flags.mask.empty()) return Refuse("--mask: needs --recorded DIR");
    return Serve(*std::move(settings), options,
                 TemplateFunction(std::move(answers)));
  }
  if (answers.fatal.has_value()) {
    return Refuse("--fatal and --recorded: accepted is one of them");
  }
  if (line.Given("--ttl") && !answers.ttl.has_value()) {
    return Refuse("--ttl none: not with --recorded; accepted: a duration");
  }
  const auto masks =
      cache::key::MaskSet::Parse(flags.mask, cache::key::MaskRules::kAnyPath);
  if (!masks.ok()) {
    return Refuse(absl::StrCat("--mask: ", masks.status().message()));
  }
  const auto recordings =
      Recordings::Load(flags.recorded, *masks,
                       line.Given("--ttl") ? answers.ttl : absl::nullopt);
  if (!recordings.ok()) {
    return CannotStart(
        absl::StrCat("--recorded: ", recordings.status().message()));
  }
  return Serve(*std::move(settings), options, (*recordings)->Function());
}

}  // namespace fncache::runner::function
