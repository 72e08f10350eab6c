// SPDX-License-Identifier: Apache-2.0
#include "insight/explain/command.h"

#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/command_flags.h"
#include "common/command_line.h"
#include "common/duration.h"
#include "common/file.h"
#include "common/standard_streams.h"
#include "common/utf8.h"
#include "insight/explain/analysis.h"
#include "insight/trace/reader.h"
#include "nlohmann/json.hpp"

namespace fncache::insight::explain {
namespace {

constexpr int kFailed = 1;
constexpr int kBadUsage = 2;
// The largest request that a function may get.
constexpr size_t kMaxRequest = size_t{2} << 30;

constexpr char kFooter[] = R"(
TRACE is the folder of a trace (fncache serve --trace-dir, fncache load --trace)
or one of its files. Two files are two requests as they are on the wire; what
differs between them is printed, values never.

Why a request missed:
  new         the first one of its composite by its method (v1, v1beta1)
  changed     the composite's requests are not what they were: see what changed
  expired     an equal request's answer was there, past its time
  evicted     it was there in its time, and went to make room
  purged      an operator removed it
  generation  it was another build's of the function
  not-stored  the answer before was not one to keep: no TTL, FATAL, an error...
  unknown     nothing is known of the requests before

Masks are tried on the trace: how many of its misses would have been hits. What
the daemon's own masks hide is left out before anything is compared. The
function is not asked whether it reads what a mask hides: fncache probe asks it,
and fncache advise does both.

Exit codes: 0; 1 for a trace or request that cannot be read; 2 for flags that
do not fit.)";

struct Flags {
  std::vector<std::string> files;
  std::string by = "path";
  std::string lifetime;
  bool json = false;
  AnalysisOptions options;
};

CommandLine MakeLine(Flags* flags) {
  CommandLine line(
      "Says why requests missed, which writer changed them, and which mask "
      "would\nhave made hits of them.",
      "fncache explain");
  line.Usage({"[flags] TRACE", "[flags] A.binpb B.binpb"});
  line.AddOption("FILE", &flags->files).Required().Expected(1, 2);
  line.AddOption("--function", &flags->options.function,
                 "Only calls of this function")
      .TypeName("NAME");
  line.AddOption("--xr", &flags->options.composite,
                 "Only calls for this composite")
      .TypeName("[NAMESPACE/]NAME");
  line.AddOption("--phase", &flags->options.phase,
                 "Only calls of this phase of a load (settle, warmup, measure)")
      .TypeName("PHASE");
  line.AddOption("--last", &flags->options.last,
                 "Only the last N misses; 0: all")
      .Check([](const std::string& text) { return WhyNoWholeNumber(text); })
      .TypeName("N")
      .ShowDefault();
  line.AddOption("--by", &flags->by, "Changes by path, section or writer")
      .OneOf({"path", "section", "writer"})
      .TypeName("path|section|writer")
      .ShowDefault();
  line.AddOption(
          "--lifetime", &flags->lifetime,
          "Try masks as if every answer had this lifetime; default: its own")
      .TypeName("DURATION");
  line.AddFlag("--json", &flags->json, "Print JSON");
  line.Footer(kFooter);
  return line;
}

int Fail(int code, absl::string_view message) {
  std::fprintf(stderr, "fncache explain: %s\n", Printable(message).c_str());
  return code;
}

// Which calls were asked for, as the end of a sentence.
std::string Asked(const AnalysisOptions& options) {
  std::string text;
  if (!options.function.empty()) {
    absl::StrAppend(&text, " of function ", options.function);
  }
  if (!options.composite.empty()) {
    absl::StrAppend(&text, " for composite ", options.composite);
  }
  if (!options.phase.empty()) {
    absl::StrAppend(&text, " of phase ", options.phase);
  }
  return text;
}

std::string DifferencesText(const std::vector<Difference>& differences) {
  if (differences.empty()) {
    return "The two are one request: their keys are equal.\n";
  }
  std::string text = absl::StrCat(differences.size(), " difference",
                                  differences.size() == 1 ? "" : "s", ":\n");
  for (const Difference& one : differences) {
    absl::StrAppend(
        &text, "  ", Printable(one.path), ": ", one.change,
        one.writer.empty()
            ? ""
            : absl::StrCat(", written last by ", Printable(one.writer)),
        !one.allowed       ? "; no mask may hide it"
        : one.mask.empty() ? "; no mask is proposed"
                           : absl::StrCat("; mask ", Printable(one.mask),
                                          " (the function was not asked)"),
        "\n");
  }
  return text;
}

std::string DifferencesJson(const std::vector<Difference>& differences) {
  using nlohmann::json;
  json list = json::array();
  for (const Difference& one : differences) {
    list.push_back({{"path", one.path},
                    {"section", one.section},
                    {"change", one.change},
                    {"writer", one.writer},
                    {"mask", one.mask},
                    {"allowed", one.allowed}});
  }
  return json{{"version", 1}, {"differences", list}}.dump(
             2, ' ', false, json::error_handler_t::replace) +
         "\n";
}

bool IsRequest(const std::string& path) {
  const auto bytes = ReadSmallFile(path, kMaxRequest);
  return bytes.ok() && !bytes->empty() && Compare(*bytes, "").ok();
}

int ExplainTwo(const Flags& flags) {
  std::string requests[2];
  for (int i = 0; i < 2; ++i) {
    auto bytes = ReadSmallFile(flags.files[i], kMaxRequest);
    if (!bytes.ok()) return Fail(kFailed, bytes.status().message());
    requests[i] = *std::move(bytes);
    if (!Compare(requests[i], "").ok()) {
      return Fail(kFailed,
                  absl::StrCat(flags.files[i], ": is no RunFunctionRequest"));
    }
  }
  const auto differences = Compare(requests[0], requests[1]);
  if (!differences.ok()) return Fail(kFailed, differences.status().message());
  return PrintResult("fncache explain", flags.json
                                            ? DifferencesJson(*differences)
                                            : DifferencesText(*differences));
}

}  // namespace

std::string ExplainHelp() {
  Flags flags;
  return MakeLine(&flags).Help();
}

std::vector<CommandFlag> ExplainCommandFlags() {
  Flags flags;
  return MakeLine(&flags).Flags();
}

int ExplainMain(int argc, char** argv) {
  Flags flags;
  CommandLine line = MakeLine(&flags);
  if (const auto code = line.ParseForMain(argc, argv)) return *code;
  if (!flags.lifetime.empty()) {
    const auto lifetime = ParseGoDuration(flags.lifetime);
    if (!lifetime.ok() || *lifetime <= absl::ZeroDuration()) {
      return Fail(kBadUsage,
                  absl::StrCat("--lifetime: ", flags.lifetime,
                               " is none; accepted: a duration over zero, such "
                               "as 24h or 1h30m"));
    }
    flags.options.lifetime = *lifetime;
  }
  if (flags.files.size() == 2) return ExplainTwo(flags);
  const auto analysis =
      Analyze([&flags] { return trace::TraceReader::Open(flags.files[0]); },
              flags.options);
  if (!analysis.ok()) {
    return Fail(kFailed, IsRequest(flags.files[0])
                             ? absl::StrCat(flags.files[0],
                                            ": is a request; accepted: a "
                                            "trace, or two requests")
                             : std::string(analysis.status().message()));
  }
  if (analysis->calls == 0) {
    return Fail(kFailed, absl::StrCat(flags.files[0], ": holds no calls",
                                      Asked(flags.options)));
  }
  return PrintResult(
      "fncache explain",
      flags.json ? AnalysisJson(*analysis) : AnalysisText(*analysis, flags.by));
}

}  // namespace fncache::insight::explain
