// SPDX-License-Identifier: Apache-2.0
// `fncache advise`: which settings a trace and its functions speak for.
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

// What --live needs of the daemon, which this module does not know: main brings
// the two together.
struct LiveRequest {
  std::string socket;     // --socket; "" = not given
  std::string cache_dir;  // --cache-dir, as that
  std::string dir;        // where the daemon is to write its trace
  absl::Duration for_time = absl::Minutes(1);
};
// Has the daemon trace at level full for that time. By function, where it
// listens.
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
