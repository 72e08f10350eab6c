// SPDX-License-Identifier: Apache-2.0
#include "proxy/daemon_tls.h"

#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace fncache::proxy {

absl::Status DaemonTls::Open(const settings::DaemonOptions& options,
                             absl::Duration interval,
                             telemetry::Instruments* instruments) {
  const auto watch = [&](const std::string& dir, TlsSide side)
      -> absl::StatusOr<std::unique_ptr<transport::TlsWatcher>> {
    auto watcher = transport::TlsWatcher::Create(
        dir, side,
        [instruments, side](bool taken_up) {
          if (taken_up) {
            instruments->CertificateReloaded(side);
          } else {
            instruments->CertificateReloadFailed(side);
          }
        },
        interval);
    if (watcher.ok()) {
      instruments->WatchCertificate(
          side, [watcher = watcher->get()] { return watcher->expiry(); });
    }
    return watcher;
  };
  handshakes_ = std::make_unique<HandshakeObserver>(
      [instruments](const HandshakeFailure& failure) {
        instruments->HandshakeFailed(failure.side, failure.fault);
      });
  if (options.tls_dir.has_value()) {
    auto watcher = watch(*options.tls_dir, TlsSide::kServer);
    if (!watcher.ok()) return watcher.status();
    server_ = std::make_unique<transport::ServerTls>(*std::move(watcher));
  }
  if (options.upstream_tls_dir.has_value()) {
    auto watcher = watch(*options.upstream_tls_dir, TlsSide::kClient);
    if (!watcher.ok()) return watcher.status();
    client_ = std::make_unique<transport::ClientTls>(*std::move(watcher));
  }
  return absl::OkStatus();
}

}  // namespace fncache::proxy
