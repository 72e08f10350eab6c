// SPDX-License-Identifier: Apache-2.0
// Tells the service manager how the daemon is: the datagrams of sd_notify(3),
// for units of Type=notify. Without $NOTIFY_SOCKET nobody wants to know, and
// nothing is sent. A message that cannot be sent is dropped: nothing depends on
// it but the manager's view.
//
// Thread-safe.
#ifndef FNCACHE_PROXY_SERVICE_NOTIFY_H_
#define FNCACHE_PROXY_SERVICE_NOTIFY_H_

#include "absl/strings/string_view.h"

namespace fncache::proxy {

// Lines of VARIABLE=VALUE, such as "READY=1". True if they were sent.
bool NotifyService(absl::string_view state);

}  // namespace fncache::proxy

#endif  // FNCACHE_PROXY_SERVICE_NOTIFY_H_
