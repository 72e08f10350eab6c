// The admin endpoint of the daemon: /metrics, /healthz, /readyz and /statusz,
// put together from what the daemon tells of itself.
//
//   GET /healthz  200 while the process can answer at all
//   GET /readyz   200 once every listener is bound and the store is open, 503
//                 before and as soon as draining starts
//   GET /metrics  the instruments, as Prometheus text
//   GET /statusz  the same for people
#ifndef FNCACHE_PROXY_TELEMETRY_ADMIN_H_
#define FNCACHE_PROXY_TELEMETRY_ADMIN_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "metrics/admin_server.h"
#include "proxy/telemetry/instruments.h"

namespace fncache::proxy::telemetry {

// What the daemon tells of itself. Called on the endpoint's threads until it is
// gone, so thread-safe and quick.
struct AdminView {
  // Every listener is bound, the store is open, and draining has not started.
  std::function<bool()> ready;
  std::function<bool()> draining;
  // The effective settings as people read them. No seeds, no passwords.
  std::string settings;
};

// Starts the endpoint on `address` (HOST:PORT; see metrics::AdminServer::Start
// for errors). Logging the result's address() is the caller's. Adds the gauge
// of readiness to `instruments`, which outlives the server: call it once.
absl::StatusOr<std::unique_ptr<metrics::AdminServer>> StartAdmin(
    const std::string& address, Instruments* instruments, AdminView view);

}  // namespace fncache::proxy::telemetry

#endif  // FNCACHE_PROXY_TELEMETRY_ADMIN_H_
