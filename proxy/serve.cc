// SPDX-License-Identifier: Apache-2.0
#include "proxy/serve.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <thread>
#include <utility>

#include "common/log.h"
#include "common/mutex.h"
#include "proxy/daemon.h"

namespace fncache::proxy {
namespace {

// Receives SIGTERM and SIGINT on a thread of its own, where anything may be
// done, with the signals blocked everywhere else.
class StopSignals {
 public:
  StopSignals() {
    sigemptyset(&set_);
    sigaddset(&set_, SIGTERM);
    sigaddset(&set_, SIGINT);
    pthread_sigmask(SIG_BLOCK, &set_, nullptr);
    thread_ = std::thread([this] { Run(); });
  }
  ~StopSignals() {
    {
      MutexLock lock(&mutex_);
      over_ = true;
    }
    // Wakes the thread: its sigwait takes the signal, so nothing is terminated.
    // The signals stay blocked: one that comes now, between a complete stop and
    // the exit, must not change the exit code.
    // NOLINTNEXTLINE(bugprone-bad-signal-to-kill-thread)
    pthread_kill(thread_.native_handle(), SIGTERM);
    thread_.join();
  }

  bool received() const {
    MutexLock lock(&mutex_);
    return received_;
  }
  void Wait() {
    MutexLock lock(&mutex_);
    while (!received_) changed_.Wait(&mutex_);
  }

 private:
  void Run() {
    for (;;) {
      int signal = 0;
      if (sigwait(&set_, &signal) != 0) continue;
      {
        MutexLock lock(&mutex_);
        if (over_) return;
        if (!received_) {
          received_ = true;
          changed_.SignalAll();
          continue;
        }
      }
      Log(LogLevel::kWarning, "second signal, exiting at once");
      _exit(128 + signal);
    }
  }

  sigset_t set_;
  mutable Mutex mutex_;
  CondVar changed_;
  bool received_ ABSL_GUARDED_BY(mutex_) = false;
  bool over_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace

absl::Status Serve(settings::DaemonOptions options,
                   std::vector<ListedSetting> settings) {
  // A peer that went away is an error of that write, not of the process; so is
  // a limit of file sizes (ulimit -f) that the trace or the disk tier meets.
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
  StopSignals signals;
  Daemon::Extras extras;
  extras.settings = std::move(settings);
  extras.cancelled = [&signals] { return signals.received(); };
  auto daemon = Daemon::Start(std::move(options), std::move(extras));
  if (!daemon.ok()) {
    // A stop that comes while the start waits is a stop like any other.
    if (signals.received() && absl::IsCancelled(daemon.status())) {
      return absl::OkStatus();
    }
    return daemon.status();
  }
  signals.Wait();
  (*daemon)->Drain(/*overdue=*/[] { _exit(0); });
  return absl::OkStatus();
}

}  // namespace fncache::proxy
