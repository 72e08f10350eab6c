// SPDX-License-Identifier: Apache-2.0
#include "proxy/serve.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <functional>
#include <thread>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/time/clock.h"
#include "common/file_limit.h"
#include "common/log.h"
#include "common/mutex.h"
#include "proxy/daemon.h"
#include "proxy/service_notify.h"

namespace fncache::proxy {
namespace {

// This signal has no meaning here, and must not end the process.
constexpr int kIgnored[] = {SIGUSR2};

// A second signal within this time counts as the first one, sent twice: for
// example by a shell to its process group, and by the parent process.
constexpr absl::Duration kSameSignal = absl::Milliseconds(200);
// The longest time that the end of the process waits for a reader of its last
// lines.
constexpr absl::Duration kLastLines = absl::Seconds(1);

// Receives SIGTERM, SIGINT, SIGHUP, SIGUSR1 and kIgnored on its own thread,
// which may call any function. All other threads block these signals.
class Signals {
 public:
  Signals() {
    sigemptyset(&set_);
    sigaddset(&set_, SIGTERM);
    sigaddset(&set_, SIGINT);
    sigaddset(&set_, SIGHUP);
    sigaddset(&set_, SIGUSR1);
    for (const int ignored : kIgnored) sigaddset(&set_, ignored);
    pthread_sigmask(SIG_BLOCK, &set_, nullptr);
    thread_ = std::thread([this] { Run(); });
  }
  ~Signals() {
    {
      MutexLock lock(&mutex_);
      over_ = true;
    }
    // Wakes the thread: its sigwait takes the signal, so nothing is terminated.
    // The signals stay blocked. A signal between a complete stop and the exit
    // must not change the exit code.
    // NOLINTNEXTLINE(bugprone-bad-signal-to-kill-thread)
    pthread_kill(thread_.native_handle(), SIGTERM);
    thread_.join();
  }

  // From now on `reopen` is called on SIGUSR1. Without it the signal is
  // ignored.
  void OnReopen(std::function<void()> reopen) {
    MutexLock lock(&mutex_);
    reopen_ = std::move(reopen);
  }

  bool received() const {
    MutexLock lock(&mutex_);
    return received_;
  }
  void Wait() {
    MutexLock lock(&mutex_);
    while (!received_) changed_.Wait(&mutex_);
  }
  // From now on `reload` is called for each SIGHUP, also for one that came
  // before; it must be quick. Null: no call any more.
  void OnHangUp(std::function<void()> reload) {
    MutexLock lock(&mutex_);
    reload_ = std::move(reload);
    if (reload_ != nullptr && std::exchange(hung_up_, false)) reload_();
  }

 private:
  void Run() {
    for (;;) {
      int signal = 0;
      if (sigwait(&set_, &signal) != 0) continue;
      {
        MutexLock lock(&mutex_);
        if (over_) return;
        if (signal == SIGHUP) {
          if (reload_ != nullptr) {
            reload_();
          } else {
            hung_up_ = true;
          }
          continue;
        }
        if (signal == SIGUSR1 && reopen_ != nullptr) {
          reopen_();
          continue;
        }
        if (signal != SIGTERM && signal != SIGINT) {
          Log(LogLevel::kInfo, "ignored a signal",
              {{"signal", strsignal(signal)}});
          continue;
        }
        const absl::Time now = absl::Now();
        if (received_ && now - received_at_ < kSameSignal) continue;
        if (!received_) {
          received_ = true;
          received_at_ = now;
          changed_.SignalAll();
          continue;
        }
      }
      Log(LogLevel::kWarning, "second signal, exiting at once");
      FlushLog(kLastLines);
      _exit(128 + signal);
    }
  }

  sigset_t set_;
  mutable Mutex mutex_;
  CondVar changed_;
  bool received_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Time received_at_ ABSL_GUARDED_BY(mutex_);
  bool over_ ABSL_GUARDED_BY(mutex_) = false;
  std::function<void()> reload_ ABSL_GUARDED_BY(mutex_);
  bool hung_up_ ABSL_GUARDED_BY(mutex_) = false;
  std::function<void()> reopen_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace

absl::Status Serve(settings::DaemonOptions options, StartSettings start) {
  // A peer that has left is an error of that write, not of the process. So is a
  // limit of file sizes (ulimit -f) that the trace or the disk tier meets.
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
  RaiseFileLimit();
  const auto flush = absl::MakeCleanup([] { FlushLog(kLastLines); });
  Signals signals;
  Daemon::Extras extras;
  extras.start = std::move(start);
  extras.cancelled = [&signals] { return signals.received(); };
  auto daemon = Daemon::Start(std::move(options), std::move(extras));
  if (!daemon.ok()) {
    // A stop during the start counts as any other stop.
    if (signals.received() && absl::IsCancelled(daemon.status())) {
      return absl::OkStatus();
    }
    return daemon.status();
  }
  signals.OnHangUp([&daemon] { (*daemon)->RequestReload(); });
  // Up to here log lines are written directly: the process that starts the
  // daemon waits for them.
  LogInBackground();
  NotifyService("READY=1");
  signals.OnReopen([&daemon] { (*daemon)->ReopenLogs(); });
  signals.Wait();
  signals.OnHangUp(nullptr);
  NotifyService("STOPPING=1");
  (*daemon)->Drain(/*overdue=*/[] {
    FlushLog(kLastLines);
    _exit(0);
  });
  signals.OnReopen(nullptr);
  return absl::OkStatus();
}

}  // namespace fncache::proxy
