// Daemon: the life of `fncache serve`: store, listeners, upstreams and admin
// endpoint, in the order in which they must come up and go down.
//
// Start returns once every listener is bound, the store is open and calls are
// accepted. Drain stops gracefully: not ready at once, still accepting for
// `drain_delay`, then no new calls; unary calls may finish until `drain` is
// over, streams are cancelled once no unary call is left, and what then is
// still there is cancelled too. The write-behind queue is flushed.
//
// Thread-safety: Start, Drain and destruction from one thread; the rest from
// any. In-process use (tests) is fine: it touches no signals.
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
#include "common/clock.h"
#include "proxy/settings/options.h"

namespace fncache::proxy {

class Daemon {
 public:
  struct Extras {
    // Null = the system's. Outlives the daemon.
    Clock* clock = nullptr;
    // The effective settings as people read them, for /statusz.
    std::string settings;
    // Polled while Start waits for the cache directory's lock; true ends the
    // wait, and Start returns Cancelled.
    std::function<bool()> cancelled;
    // How long a call without a deadline waits for a connection.
    absl::Duration connect_limit = absl::Seconds(60);
    // How often certificate files are looked at.
    absl::Duration tls_interval = absl::Seconds(2);
  };

  // Fails for the world's reasons (port taken, directory locked, certificates
  // missing) with a message that names the thing. Logs `listening on HOST:PORT`
  // for each listener and for the admin endpoint.
  static absl::StatusOr<std::unique_ptr<Daemon>> Start(
      settings::DaemonOptions options, Extras extras);
  static absl::StatusOr<std::unique_ptr<Daemon>> Start(
      settings::DaemonOptions options);
  // Cancels what is left.
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  // HOST:PORT of each function's listener, with the real ports, in order.
  const std::vector<std::string>& addresses() const { return addresses_; }
  // The admin endpoint's, empty if there is none.
  const std::string& admin_address() const { return admin_address_; }

  bool ready() const { return ready_.load(std::memory_order_acquire); }
  // Calls being answered, streams included.
  int calls() const;

  // Blocks until the stop is complete. Once. `overdue`, which may be null, is
  // called on another thread if peers that do not read what they are sent hold
  // up the stop, which they can for ever; the queue has been flushed by then.
  void Drain(std::function<void()> overdue = nullptr);

 private:
  class Impl;
  explicit Daemon(settings::DaemonOptions options);
  absl::Status Open(Extras extras);
  absl::Status OpenTls(absl::Duration interval);
  absl::Status OpenStore(Clock* clock, std::function<bool()> cancelled);
  absl::Status OpenListeners(Clock* clock, absl::Duration connect_limit);
  absl::Status OpenAdmin(const std::string& settings);

  const settings::DaemonOptions options_;
  std::atomic<bool> ready_{false};
  std::atomic<bool> draining_{false};
  std::vector<std::string> addresses_;
  std::string admin_address_;
  std::unique_ptr<Impl> impl_;
};

// What `fncache serve` does once its settings are read: start, serve until
// SIGTERM or SIGINT, drain; a second signal exits at once. Ok after a graceful
// stop (also one that came during the start), else why it did not start. Call
// it before the process has other threads: it blocks those signals.
absl::Status Serve(settings::DaemonOptions options, std::string settings);

}  // namespace fncache::proxy

#endif  // FNCACHE_PROXY_DAEMON_H_
