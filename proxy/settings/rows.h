// What the rows of settings.cc do with accepted texts; settings_check.cc uses
// it to make options. See settings.h.
#ifndef FNCACHE_PROXY_SETTINGS_ROWS_H_
#define FNCACHE_PROXY_SETTINGS_ROWS_H_

#include "absl/status/status.h"
#include "common/settings.h"
#include "proxy/settings/options.h"

namespace fncache::proxy::settings {

// Put every setting of the daemon, or of one function, into its option. The
// values were accepted by the table; what is unset keeps the options' default.
absl::Status ApplyToDaemon(const SettingValues& values, DaemonOptions* options);
absl::Status ApplyToFunction(const SettingValues& values,
                             FunctionOptions* options);

}  // namespace fncache::proxy::settings

#endif  // FNCACHE_PROXY_SETTINGS_ROWS_H_
