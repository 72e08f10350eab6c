// SPDX-License-Identifier: Apache-2.0
// Daemon: the life of `fncache serve`. It makes the store, listeners, upstreams
// and the admin endpoint in the necessary order, and ends them in the necessary
// order.
//
// Start returns once every listener is bound, the store is open (except a disk
// tier without disk space) and calls are accepted. Drain stops gracefully:
// - The daemon is not ready at once, but accepts calls for `drain_delay`.
// - Then it takes no new calls, and unary calls may finish until `drain` is
//   over. Streams are cancelled once no unary call is left.
// - When `drain` is over, all calls that are left are cancelled.
// - At last the write-behind queue is flushed.
//
// While it runs, settings can be read again (Reload). reload.h explains that,
// and live_settings.h puts them in force.
//
// Thread-safety: Start, Drain and destruction are called from one thread, the
// rest from any. It touches no signals, so tests can have daemons in their own
// process.
#ifndef FNCACHE_PROXY_DAEMON_H_
#define FNCACHE_PROXY_DAEMON_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/clock.h"
#include "common/log.h"
#include "proxy/live_settings.h"
#include "proxy/purge.h"
#include "proxy/reload.h"
#include "proxy/settings/options.h"
#include "proxy/telemetry/function_facts.h"
#include "proxy/telemetry/settings_list.h"
#include "proxy/telemetry/shadow_report.h"
#include "proxy/telemetry/tune_report.h"

namespace fncache::proxy {

class Daemon {
 public:
  struct Extras {
    // The cache's clock; null = the system's. Outlives the daemon.
    Clock* clock = nullptr;
    // The settings in force, for /statusz; used without `start`.
    std::vector<telemetry::ListedSetting> settings;
    // The source of the options, so that they can be read again.
    absl::optional<StartSettings> start;
    // The interval at which the settings file is checked.
    absl::Duration config_interval = absl::Seconds(10);
    // Polled while Start waits for the cache directory's lock; true ends the
    // wait, and Start returns Cancelled.
    std::function<bool()> cancelled;
    // How long a call without a deadline waits for a connection.
    absl::Duration connect_limit = absl::Seconds(60);
    // The interval at which certificate files are checked.
    absl::Duration tls_interval = absl::Seconds(2);
    // The interval at which a disk tier without disk space is tried again.
    absl::Duration disk_retry = absl::Seconds(30);
  };

  // Fails if, for example, a port is taken, a directory is locked or
  // certificates are missing. The message names the object. Logs `listening on
  // ADDRESS` for each listener and for the admin endpoint.
  static absl::StatusOr<std::unique_ptr<Daemon>> Start(
      settings::DaemonOptions options, Extras extras);
  // Cancels the calls that are left, if it was not drained.
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  // The address of each function's listener as in the settings, but with the
  // real port; in the order of the functions.
  const std::vector<std::string>& addresses() const { return addresses_; }
  // HOST:PORT of the admin endpoint; empty if there is none.
  const std::string& admin_address() const { return admin_address_; }
  // Path of the admin socket; empty if there is none.
  std::string admin_socket() const;

  bool ready() const { return ready_.load(std::memory_order_acquire); }
  // Calls being answered, streams included.
  int calls() const;

  // Purges, or reports the tiers' entries of a key (purge.h). Do not call these
  // before Start has returned.
  absl::StatusOr<PurgeResult> Purge(const PurgeOrder& order);
  absl::StatusOr<cache::key::Key> KeyOf(const LookUpOrder& order) const;
  absl::StatusOr<std::vector<EntryReport>> LookUp(
      const LookUpOrder& order) const;

  // The findings of functions under `mode: shadow` so far, in their order.
  std::vector<telemetry::ShadowReport> Shadow() const;

  // The tuning of each function so far, in their order.
  std::vector<telemetry::TuneReport> Tune() const;

  // Reads the settings again and puts them in force, or changes nothing
  // (reload.h). FailedPrecondition: they cannot be read again, or draining has
  // started.
  absl::StatusOr<ReloadResult> Reload();
  // The same soon, on another thread; the log has the result.
  void RequestReload();
  // The settings in force.
  std::vector<telemetry::ListedSetting> Settings() const;

  // Override the log level or the trace of the settings for `during`
  // (infinite: until another order). See live_settings.h.
  void SetLogLevel(LogLevel level, absl::Duration during);
  absl::Status StartTrace(const TraceOrder& order, absl::Duration during);
  EndedTrace StopTrace(absl::Duration during);

  // The files of logs were moved away: new files replace them. Any thread.
  void ReopenLogs();

  // Stops gracefully, and blocks until that is complete. Call it once. Peers
  // that do not read can delay the stop for ever. Then `overdue`, which may be
  // null, is called on another thread; the write-behind queue has been flushed
  // by then.
  void Drain(std::function<void()> overdue = nullptr);

 private:
  class Impl;
  explicit Daemon(settings::DaemonOptions options);
  // Every worker has run a task within 10 s.
  bool Alive() const;
  // Alive, and every listener can accept connections.
  bool Accepting() const;
  // The facts for the status page, by function.
  std::vector<telemetry::FunctionFacts> Facts() const;
  absl::Status Open(Extras extras);
  absl::Status OpenTrace(const std::vector<telemetry::ListedSetting>& settings);
  void OpenReload(Extras* extras);
  void OpenLiveSettings(Clock* clock,
                        const std::vector<telemetry::ListedSetting>& settings);
  absl::Status OpenAccessLog();
  void OpenExplain(Clock* clock);
  absl::Status OpenListeners(Clock* clock, absl::Duration connect_limit);
  void OpenPurger(Clock* clock);
  absl::Status OpenAdmin(Clock* clock);
  absl::Status OpenAdminSocket(Clock* clock);

  // The options of the start.
  const settings::DaemonOptions options_;
  std::atomic<bool> ready_{false};
  std::atomic<bool> draining_{false};
  std::atomic<bool> started_{false};
  std::vector<std::string> addresses_;
  std::string admin_address_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fncache::proxy

#endif  // FNCACHE_PROXY_DAEMON_H_
