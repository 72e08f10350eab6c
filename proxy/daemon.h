// SPDX-License-Identifier: Apache-2.0
// Daemon: the life of `fncache serve`. It makes the store, listeners, upstreams
// and the admin endpoint, in the order in which they must come up, and ends
// them in the order in which they must go down.
//
// Start returns once every listener is bound, the store is open (a disk tier
// that there is no space for aside) and calls are accepted. Drain stops
// gracefully: the daemon is not ready at once, goes on accepting for
// `drain_delay`, then takes no new calls; unary calls may finish until `drain`
// is over, streams are cancelled once no unary call is left, and whatever is
// still there when `drain` is over is cancelled too. At last the write-behind
// queue is flushed.
//
// While it runs, settings can be read again (Reload): reload.h says what that
// is, live_settings.h where they go.
//
// Thread-safety: Start, Drain and destruction are called from one thread, the
// rest from any. It touches no signals, so that tests can have daemons in their
// own process.
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

namespace fncache::proxy {

class Daemon {
 public:
  struct Extras {
    // The clock that the cache lives by; null = the system's. Outlives the
    // daemon.
    Clock* clock = nullptr;
    // The settings in force, for /statusz; where `start` does not say.
    std::vector<telemetry::ListedSetting> settings;
    // Where the options are from, so that they can be read again.
    absl::optional<StartSettings> start;
    // How often the settings file is looked at.
    absl::Duration config_interval = absl::Seconds(10);
    // Polled while Start waits for the cache directory's lock; true ends the
    // wait, and Start returns Cancelled.
    std::function<bool()> cancelled;
    // How long a call without a deadline waits for a connection.
    absl::Duration connect_limit = absl::Seconds(60);
    // How often certificate files are looked at.
    absl::Duration tls_interval = absl::Seconds(2);
    // How often a disk tier that there was no space for is tried again.
    absl::Duration disk_retry = absl::Seconds(30);
  };

  // Fails where a port is taken, a directory locked, certificates missing and
  // the like, with a message that names the thing. Logs `listening on
  // ADDRESS` for each listener and for the admin endpoint.
  static absl::StatusOr<std::unique_ptr<Daemon>> Start(
      settings::DaemonOptions options, Extras extras);
  // Cancels the calls that are left, if it was not drained.
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  // The address of each function's listener as asked for, with the real port;
  // in the order of the functions.
  const std::vector<std::string>& addresses() const { return addresses_; }
  // HOST:PORT of the admin endpoint; empty if there is none.
  const std::string& admin_address() const { return admin_address_; }
  // Path of the admin socket; empty if there is none.
  std::string admin_socket() const;

  bool ready() const { return ready_.load(std::memory_order_acquire); }
  // Calls being answered, streams included.
  int calls() const;

  // Purges, or tells what the tiers have under a key (purge.h). Not before
  // Start has returned.
  absl::StatusOr<PurgeResult> Purge(const PurgeOrder& order);
  absl::StatusOr<cache::key::Key> KeyOf(const LookUpOrder& order) const;
  absl::StatusOr<std::vector<EntryReport>> LookUp(
      const LookUpOrder& order) const;

  // What the functions under `mode: shadow` found so far, in their order.
  std::vector<telemetry::ShadowReport> Shadow() const;

  // Reads the settings again and puts them in force, or leaves all as it was
  // (reload.h). FailedPrecondition where they cannot be read again, or when
  // draining has started.
  absl::StatusOr<ReloadResult> Reload();
  // The same soon, on another thread; the log says what became of it.
  void RequestReload();
  // The settings in force.
  std::vector<telemetry::ListedSetting> Settings() const;

  // For a while (infinite: until another word), these differ from the settings:
  // what is logged, and what is traced. See live_settings.h.
  void SetLogLevel(LogLevel level, absl::Duration during);
  absl::Status StartTrace(const TraceOrder& order, absl::Duration during);
  EndedTrace StopTrace(absl::Duration during);

  // Files that logs go to were moved away: new ones take their place. Any
  // thread.
  void ReopenLogs();

  // Stops gracefully, and blocks until that is complete. Call it once.
  // `overdue`, which may be null, is called on another thread if peers that do
  // not read what they are sent hold up the stop, which they can for ever; the
  // write-behind queue has been flushed by then.
  void Drain(std::function<void()> overdue = nullptr);

 private:
  class Impl;
  explicit Daemon(settings::DaemonOptions options);
  // Every worker has run a task within 10 s.
  bool Alive() const;
  // And connections can be accepted.
  bool Accepting() const;
  // For the status page, by function.
  std::vector<telemetry::FunctionFacts> Facts() const;
  absl::Status Open(Extras extras);
  absl::Status OpenStore(Clock* clock, const Extras& extras);
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

  // As it was started.
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
