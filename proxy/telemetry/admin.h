// SPDX-License-Identifier: Apache-2.0
// The admin endpoint of the daemon. It serves facts about the daemon:
//
//   GET /         the list of pages
//   GET /healthz  200 while every worker has run a task within 10 s
//   GET /readyz   200 once every listener is bound and the store is open, 503
//                 before, while connections cannot be accepted, and as soon
//                 as draining starts
//   GET /metrics  the instruments, as Prometheus text
//   GET /statusz  the state of the daemon, for people, live if scripts run;
//                 ?format=json for programs
//
// It owns the history, from which /statusz shows the last minute, and a thread
// that feeds it.
#ifndef FNCACHE_PROXY_TELEMETRY_ADMIN_H_
#define FNCACHE_PROXY_TELEMETRY_ADMIN_H_

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "insight/explain/miss_memory.h"
#include "metrics/admin_server.h"
#include "proxy/telemetry/function_facts.h"
#include "proxy/telemetry/history.h"
#include "proxy/telemetry/instruments.h"
#include "proxy/telemetry/reload_figures.h"
#include "proxy/telemetry/settings_list.h"

namespace fncache::proxy::telemetry {

// The number of paths and writers of each function that /statusz lists.
inline constexpr size_t kMissesListed = 5;

// AdminView is the endpoint's view of the daemon. The endpoint's threads call
// the functions until it is destroyed, so they are thread-safe and quick.
struct AdminView {
  // Every listener is bound, the store is open, and draining has not started.
  std::function<bool()> ready;
  // The daemon was ready, and has not begun to drain. If it is not ready all
  // the same, it accepts no connections. May be empty.
  std::function<bool()> started;
  std::function<bool()> draining;
  // Every worker serves; may be empty.
  std::function<bool()> alive;
  // Each function's target, by FunctionId.
  std::vector<std::string> upstreams;
  // The most frequent changes in requests that missed; may be empty.
  std::function<std::vector<insight::explain::MissMemory::FunctionTop>()>
      misses;
  // The facts of each function, by FunctionId. The function may be empty, and
  // so may its result.
  std::function<std::vector<FunctionFacts>()> facts;
  // The settings in force. No seeds, no passwords.
  std::function<std::vector<ListedSetting>()> settings;
  // The state of the settings file; may be empty.
  std::function<ReloadFigures()> reload;
};

class Admin {
 public:
  // Starts the endpoint on `address` (HOST:PORT; see
  // metrics::AdminServer::Start for errors). The caller logs address(). Adds
  // the gauge of readiness to `instruments`, so start one endpoint only. The
  // instruments and the clock outlive it. Every `tick` of real time the history
  // takes a reading, with the clock's time.
  static absl::StatusOr<std::unique_ptr<Admin>> Start(
      const std::string& address, Instruments* instruments, Clock* clock,
      AdminView view, absl::Duration tick = History::kInterval);
  ~Admin();
  Admin(const Admin&) = delete;
  Admin& operator=(const Admin&) = delete;

  // HOST:PORT, with the real port.
  const std::string& address() const { return server_->address(); }
  int port() const { return server_->port(); }

 private:
  Admin(Instruments* instruments, Clock* clock, AdminView view);
  metrics::AdminServer::Pages Pages();
  metrics::AdminServer::Response Readiness() const;
  metrics::AdminServer::Response StatusPage(absl::string_view query) const;
  void FeedHistory(absl::Duration tick);

  Instruments* const instruments_;
  const AdminView view_;
  const absl::Time started_;
  History history_;
  Mutex mutex_;
  CondVar stopped_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<metrics::AdminServer> server_;
  std::thread feeder_;
};

}  // namespace fncache::proxy::telemetry

#endif  // FNCACHE_PROXY_TELEMETRY_ADMIN_H_
