// SPDX-License-Identifier: Apache-2.0
// Alarms: a thread that does things later: what is to be done again and again,
// and what is to end after a while.
//
// One alarm a name: setting it again replaces it. Time is that of a clock that
// nobody sets.
//
// Thread-safe. Work is done one after the other, under no lock, and may set
// alarms itself.
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

  // Has `work` done once, `after` from now; never, if that is infinite.
  void Set(const std::string& name, absl::Duration after,
           std::function<void()> work);
  void Cancel(const std::string& name);
  // No work begins any more, and what had begun is over. Not from within work.
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
