// SPDX-License-Identifier: Apache-2.0
// Reports the daemon's state to the service manager, with the datagrams of
// sd_notify(3), for units of Type=notify. Without $NOTIFY_SOCKET nothing is
// sent. A message that cannot be sent is dropped: only the manager's view
// depends on it.
//
// Thread-safe.
#ifndef FNCACHE_PROXY_SERVICE_NOTIFY_H_
#define FNCACHE_PROXY_SERVICE_NOTIFY_H_

#include "absl/strings/string_view.h"

namespace fncache::proxy {

// `state` has lines of VARIABLE=VALUE, such as "READY=1". True if they were
// sent.
bool NotifyService(absl::string_view state);

}  // namespace fncache::proxy

#endif  // FNCACHE_PROXY_SERVICE_NOTIFY_H_
