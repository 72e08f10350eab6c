// SPDX-License-Identifier: Apache-2.0
// The command line of `fncache load`.
//
// Pure functions over arguments and files, thread-safe.
#ifndef FNCACHE_RUNNER_LOAD_OPTIONS_H_
#define FNCACHE_RUNNER_LOAD_OPTIONS_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/command_flags.h"
#include "insight/trace/traced_call.h"
#include "runner/load/model/simulation.h"
#include "runner/load/scenario.h"
#include "runner/load/schedule.h"
#include "runner/render/flags.h"

namespace fncache::runner::load {

struct LoadOptions {
  enum class Loop { kModel, kOpen, kClosed };
  enum class Progress { kAuto, kPlain, kNone };

  bool help = false;
  render::RenderFlags render;  // with `requests` tls_dir only
  // With --request: the files, and the target.
  std::vector<std::string> requests;
  std::string target;
  std::vector<std::pair<std::string, std::string>> metadata;

  // Settling ends this long after its beginning if pipelines have failed and
  // none has succeeded. Where no call was ever answered, calls that still wait
  // this long after the duration are cancelled, and count as failures. Not a
  // flag.
  absl::Duration patience = absl::Seconds(15);

  model::ModelOptions model;
  // With --scenario: of the model's events, those that need more than it has.
  std::vector<FunctionUpgrade> upgrades;
  std::vector<std::string> event_locations;  // FILE:LINE, of each event
  Loop loop = Loop::kModel;
  double rate = 0;  // open loop without stages
  std::vector<Stage> stages;
  int concurrency = 0;
  int connections = 1;
  absl::Duration duration = absl::Minutes(1);
  uint64_t total = 0;  // 0 = until the time is over
  absl::Duration warmup;
  uint64_t max_in_flight = 10000;
  std::vector<std::string> thresholds;
  std::vector<std::string> find_max;
  bool abort_on_fail = false;
  bool percentiles = false;
  std::string json;  // "-" = standard output
  std::string html;
  std::string junit;
  std::string summary_markdown;
  std::string csv;
  std::string trace_dir;
  insight::trace::Level trace_level = insight::trace::Level::kPaths;
  Progress progress = Progress::kAuto;
  std::string baseline;
  double max_change = 0.1;
  std::vector<std::string> admin_urls;  // HOST:PORT
  // The settings in the results: every flag that was given.
  std::map<std::string, std::string> given;
};

// Reads the scenario's file, if there is one. InvalidArgument, on one line,
// names the flag, or the file, line and key, and what is accepted. Any other
// status is that of a file that cannot be read.
absl::StatusOr<LoadOptions> ParseLoadOptions(int argc, char** argv);

// `fncache load report FILE... [--html FILE]`.
struct ReportOptions {
  bool help = false;
  std::vector<std::string> files;  // one or two
  std::string html;
  bool percentiles = false;
};
absl::StatusOr<ReportOptions> ParseReportOptions(int argc, char** argv);

std::string LoadHelp();
std::vector<CommandFlag> LoadCommandFlags();

}  // namespace fncache::runner::load

#endif  // FNCACHE_RUNNER_LOAD_OPTIONS_H_
