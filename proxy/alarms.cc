// SPDX-License-Identifier: Apache-2.0
#include "proxy/alarms.h"

#include <algorithm>
#include <utility>

namespace fncache::proxy {

Alarms::Alarms() : thread_([this] { Run(); }) {}

Alarms::~Alarms() { Stop(); }

void Alarms::Set(const std::string& name, absl::Duration after,
                 std::function<void()> work) {
  if (after == absl::InfiniteDuration()) return Cancel(name);
  const Clock::time_point at =
      Clock::now() + absl::ToChronoNanoseconds(std::clamp(
                         after, absl::ZeroDuration(), absl::Hours(24 * 3650)));
  MutexLock lock(&mutex_);
  alarms_[name] = {at, std::move(work)};
  changed_.SignalAll();
}

void Alarms::Cancel(const std::string& name) {
  MutexLock lock(&mutex_);
  alarms_.erase(name);
}

void Alarms::Stop() {
  {
    MutexLock lock(&mutex_);
    stop_ = true;
    changed_.SignalAll();
  }
  if (thread_.joinable()) thread_.join();
}

void Alarms::Run() {
  for (;;) {
    std::function<void()> work;
    {
      MutexLock lock(&mutex_);
      while (!stop_ && work == nullptr) {
        const auto next = std::min_element(alarms_.begin(), alarms_.end(),
                                           [](const auto& a, const auto& b) {
                                             return a.second.at < b.second.at;
                                           });
        if (next == alarms_.end()) {
          changed_.Wait(&mutex_);
          continue;
        }
        const auto left = next->second.at - Clock::now();
        if (left > Clock::duration::zero()) {
          changed_.WaitWithTimeout(&mutex_, absl::FromChrono(left));
          continue;
        }
        work = std::move(next->second.work);
        alarms_.erase(next);
      }
      if (stop_) return;
    }
    work();
  }
}

}  // namespace fncache::proxy
