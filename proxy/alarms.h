// SPDX-License-Identifier: Apache-2.0
// Alarms: a thread that does work later, for periodic jobs and for orders that
// end.
//
// Each name has one alarm: setting it again replaces it. The time is that of a
// monotonic clock.
//
// Thread-safe. Jobs run one after the other, while no mutex is locked, and may
// set alarms themselves.
#ifndef FNCACHE_PROXY_ALARMS_H_
#define FNCACHE_PROXY_ALARMS_H_

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include "absl/time/time.h"
#include "common/mutex.h"

namespace fncache::proxy {

class Alarms {
 public:
  Alarms();
  // Waits for work that has begun.
  ~Alarms();
  Alarms(const Alarms&) = delete;
  Alarms& operator=(const Alarms&) = delete;

  // Runs `work` once, `after` from now; never if that is infinite.
  void Set(const std::string& name, absl::Duration after,
           std::function<void()> work);
  void Cancel(const std::string& name);
  // Starts no more work, and waits for work that has begun. Do not call it from
  // within work.
  void Stop();

 private:
  using Clock = std::chrono::steady_clock;
  struct Alarm {
    Clock::time_point at;
    std::function<void()> work;
  };

  void Run();

  Mutex mutex_;
  CondVar changed_;
  std::map<std::string, Alarm> alarms_ ABSL_GUARDED_BY(mutex_);
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace fncache::proxy

#endif  // FNCACHE_PROXY_ALARMS_H_
