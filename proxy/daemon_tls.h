// SPDX-License-Identifier: Apache-2.0
// DaemonTls: the daemon's certificates, of both sides, and their metrics. It
// reads changed files again while it lives.
//
// Open is called once; the rest is thread-safe.
#ifndef FNCACHE_PROXY_DAEMON_TLS_H_
#define FNCACHE_PROXY_DAEMON_TLS_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/handshake_failure.h"
#include "proxy/settings/options.h"
#include "proxy/telemetry/instruments.h"
#include "proxy/transport/tls.h"

namespace fncache::proxy {

class DaemonTls {
 public:
  // The files are checked every `interval`. `instruments` outlives this object.
  absl::Status Open(const settings::DaemonOptions& options,
                    absl::Duration interval,
                    telemetry::Instruments* instruments);

  // Null = plaintext.
  transport::ServerTls* server() const { return server_.get(); }
  transport::ClientTls* client() const { return client_.get(); }

 private:
  std::unique_ptr<HandshakeObserver> handshakes_;
  std::unique_ptr<transport::ServerTls> server_;
  std::unique_ptr<transport::ClientTls> client_;
};

}  // namespace fncache::proxy

#endif  // FNCACHE_PROXY_DAEMON_TLS_H_
