// SPDX-License-Identifier: Apache-2.0
#include "runner/load/generator.h"

#include <sys/utsname.h>

#include <algorithm>
#include <cstdio>
#include <thread>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "runner/load/format.h"

namespace fncache::runner::load {
namespace {

// Beyond these the generator counts as the limit of a run: seconds by which
// starts are late or answers wait, and the fraction of the pipelines' time in
// which answers wait.
constexpr double kMostDelay = 0.01;
constexpr double kMostWaiting = 0.5;

// The value behind `name` in a file of /proc.
std::string ProcValue(const char* path, absl::string_view name) {
  std::FILE* const file = std::fopen(path, "re");
  if (file == nullptr) return "";
  char line[512];
  std::string value;
  while (value.empty() && std::fgets(line, sizeof(line), file) != nullptr) {
    absl::string_view text = line;
    if (!absl::StartsWith(text, name)) continue;
    const size_t colon = text.find(':');
    if (colon == absl::string_view::npos) continue;
    value = std::string(absl::StripAsciiWhitespace(text.substr(colon + 1)));
  }
  std::fclose(file);
  return value;
}

}  // namespace

std::map<std::string, std::string> Machine() {
  std::map<std::string, std::string> machine;
  machine["cores"] = absl::StrCat(std::thread::hardware_concurrency());
  machine["cpu"] = ProcValue("/proc/cpuinfo", "model name");
  machine["memory"] = ProcValue("/proc/meminfo", "MemTotal");
  utsname name;
  if (uname(&name) == 0) {
    machine["kernel"] =
        absl::StrCat(name.sysname, " ", name.release, " ", name.machine);
  }
  return machine;
}

void JudgeGenerator(const LoadOptions& options, LoadResults* results) {
  auto& generator = results->generator;
  // One thread sends messages as they are.
  const double cores =
      options.requests.empty()
          ? std::max(1.0,
                     static_cast<double>(std::thread::hardware_concurrency()))
          : 1;
  if (generator.cpu > 0.9 * cores) {
    generator.saturated = true;
    generator.why =
        absl::StrFormat("it used %.2f of %.0f cores", generator.cpu, cores);
  } else if (generator.lag_p99 > kMostDelay) {
    generator.saturated = true;
    generator.why = absl::StrCat("p99 of its starts was ",
                                 FormatSeconds(generator.lag_p99), " late");
  } else if (generator.wait_p99 > kMostDelay ||
             generator.wait_fraction > kMostWaiting) {
    generator.saturated = true;
    generator.why = absl::StrFormat(
        "answers waited for its threads, p99 %s, %.0f%% of the pipelines' time",
        FormatSeconds(generator.wait_p99), 100 * generator.wait_fraction);
  }
}

}  // namespace fncache::runner::load
