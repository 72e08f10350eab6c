// SPDX-License-Identifier: Apache-2.0
// `fncache advise`: the settings that a trace and its functions suggest.
#ifndef FNCACHE_RUNNER_ADVISE_COMMAND_H_
#define FNCACHE_RUNNER_ADVISE_COMMAND_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/command_flags.h"
#include "insight/whatif/settings.h"

namespace fncache::runner::advise {

// The data about the daemon that --live needs. This module does not know the
// daemon: main connects the two.
struct LiveRequest {
  std::string socket;     // --socket; "" = not given
  std::string cache_dir;  // --cache-dir, as that
  std::string dir;        // the daemon writes its trace there
  absl::Duration for_time = absl::Minutes(1);
};
// Makes the daemon trace at level full for that time. Returns the functions'
// addresses by name.
using RecordLive =
    std::function<absl::StatusOr<std::map<std::string, std::string>>(
        const LiveRequest&)>;

// Runs it: argv[0] is its name. Returns the exit code.
int AdviseMain(int argc, char** argv,
               const insight::whatif::SettingsReader& settings,
               const RecordLive& record);
// The text that --help prints.
std::string AdviseHelp();
// The flags that the help explains.
std::vector<CommandFlag> AdviseCommandFlags();

}  // namespace fncache::runner::advise

#endif  // FNCACHE_RUNNER_ADVISE_COMMAND_H_
