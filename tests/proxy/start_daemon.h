// SPDX-License-Identifier: Apache-2.0
// StartDaemon: Daemon::Start for tests. A daemon of a test takes no address
// that a default names, because another daemon of this machine may have it.
//
// Tests call nothing else to start a daemon in their own process; the test
// tests/docs/ports_test.cc fails for one that does.
#ifndef FNCACHE_TESTS_PROXY_START_DAEMON_H_
#define FNCACHE_TESTS_PROXY_START_DAEMON_H_

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "proxy/daemon.h"
#include "proxy/settings/options.h"

namespace fncache::proxy {

// Every default of an address becomes a free port of loopback, and the default
// of the admin socket becomes no socket: /run/fncache belongs to the machine.
// Addresses that differ from the default stay.
inline absl::StatusOr<std::unique_ptr<Daemon>> StartDaemon(
    settings::DaemonOptions options, Daemon::Extras extras = {}) {
  constexpr char kAnyPort[] = "127.0.0.1:0";
  if (options.admin == settings::DaemonOptions().admin) {
    options.admin = kAnyPort;
  }
  if (!options.admin_socket.has_value()) options.admin_socket = "";
  for (settings::FunctionOptions& function : options.functions) {
    if (function.listen == settings::FunctionOptions().listen) {
      function.listen = kAnyPort;
    }
  }
  return Daemon::Start(std::move(options), std::move(extras));
}

}  // namespace fncache::proxy

#endif  // FNCACHE_TESTS_PROXY_START_DAEMON_H_
