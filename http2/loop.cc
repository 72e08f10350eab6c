// SPDX-License-Identifier: Apache-2.0
#include "http2/loop.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <limits>

#include "http2/prefetch.h"

namespace fncache::http2 {
namespace {

// Limit of events in one iteration. Connections are written to when it ends,
// and with few of them their memory is still in the CPU caches then.
constexpr int kEventsPerIteration = 16;
// The bytes of a watcher to prefetch: the size of a connection.
constexpr size_t kWatcher = 704;

int64_t MonotonicNanos() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

Loop::Loop(size_t buffer_size)
    : epoll_(epoll_create1(EPOLL_CLOEXEC)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      now_(MonotonicNanos()),
      buffer_size_(buffer_size),
      buffer_(new char[buffer_size]),
      last_iteration_(now_) {
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.ptr = nullptr;
  // Without these the loop serves nothing, and no caller works without a loop.
  if (epoll_ < 0 || wake_ < 0 ||
      epoll_ctl(epoll_, EPOLL_CTL_ADD, wake_, &event) != 0) {
    std::abort();
  }
}

Loop::~Loop() {
  // Connections that have ended go then.
  EndIteration();
  close(wake_);
  close(epoll_);
}

void Loop::Post(absl::AnyInvocable<void()> task) {
  bool wake = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    posted_.push_back(std::move(task));
    wake = !woken_;
    woken_ = true;
  }
  if (wake) Wake();
}

void Loop::Wake() {
  const uint64_t one = 1;
  // Only a full counter can refuse it, which wakes as well.
  (void)!write(wake_, &one, sizeof one);
}

TimerId Loop::After(absl::Duration delay, absl::AnyInvocable<void()> task) {
  const int64_t now = MonotonicNanos();
  // Callers may give times beyond the clock's range.
  const int64_t longest = std::numeric_limits<int64_t>::max() - now;
  const TimerId id(
      now + std::clamp<int64_t>(absl::ToInt64Nanoseconds(delay), 0, longest),
      next_timer_++);
  timers_.emplace(id, std::move(task));
  return id;
}

bool Loop::Watch(int fd, uint32_t events, Watcher* watcher) {
  epoll_event event = {};
  event.events = events;
  event.data.ptr = watcher;
  return epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) == 0;
}

void Loop::Rewatch(int fd, uint32_t events, Watcher* watcher) {
  epoll_event event = {};
  event.events = events;
  event.data.ptr = watcher;
  epoll_ctl(epoll_, EPOLL_CTL_MOD, fd, &event);
}

void Loop::Unwatch(int fd, Watcher* watcher) {
  epoll_ctl(epoll_, EPOLL_CTL_DEL, fd, nullptr);
  if (serving_) removed_.push_back(watcher);
}

void Loop::AtIterationEnd(Ender* ender) {
  if (ender->asked_) return;
  ender->asked_ = true;
  ender->position_ = enders_.size();
  enders_.push_back(ender);
}

void Loop::Forget(Ender* ender) {
  if (!ender->asked_) return;
  ender->asked_ = false;
  enders_[ender->position_] = nullptr;
}

void Loop::EndIteration() {
  // Enders that are added meanwhile are called, too.
  for (size_t i = 0; i < enders_.size(); ++i) {
    Ender* const ender = enders_[i];
    if (ender == nullptr) continue;
    enders_[i] = nullptr;
    ender->asked_ = false;
    ender->OnIterationEnd();
  }
  enders_.clear();
}

void Loop::Queue(LongWorker* worker) {
  if (worker->queued_) return;
  worker->queued_ = true;
  worker->position_ = queue_.insert(queue_.end(), worker);
}

void Loop::Unqueue(LongWorker* worker) {
  if (!worker->queued_) return;
  worker->queued_ = false;
  queue_.erase(worker->position_);
}

void Loop::RunLongWork() {
  for (int i = 0; i < kLongWork && !queue_.empty(); ++i) {
    LongWorker* const worker = queue_.front();
    Unqueue(worker);
    worker->OnLongWork();
  }
}

bool Loop::RunPosted() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (posted_.empty()) return false;
    running_.swap(posted_);
    woken_ = false;
  }
  for (absl::AnyInvocable<void()>& task : running_) task();
  running_.clear();
  return true;
}

void Loop::RunTimers() {
  while (!timers_.empty() && timers_.begin()->first.first <= now_) {
    absl::AnyInvocable<void()> task = std::move(timers_.begin()->second);
    timers_.erase(timers_.begin());
    task();
  }
}

int Loop::WaitFor() const {
  if (!queue_.empty()) return 0;
  if (timers_.empty()) return -1;
  const int64_t wait = timers_.begin()->first.first - MonotonicNanos();
  if (wait <= 0) return 0;
  // Rounded up: a timer must not find that it is not due.
  return static_cast<int>(std::min<int64_t>(wait / 1'000'000 + 1, 60'000));
}

// OpenSSL writes to sockets without MSG_NOSIGNAL.
void Loop::BlockSigpipe() {
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
  sigpipe_blocked_ = true;
}

void Loop::Run() {
  quit_ = false;
  BlockSigpipe();
  std::array<epoll_event, kEventsPerIteration> events;
  bool look = true;  // for events, without waiting for them
  while (!quit_) {
    const int count =
        epoll_wait(epoll_, events.data(), events.size(), look ? 0 : WaitFor());
    Serve(count, events.data());
    // Tasks that came meanwhile have set the eventfd.
    look = idle_ != nullptr && idle_();
    if (look) EndIteration();
  }
}

void Loop::RunOnce(int64_t until) {
  if (!sigpipe_blocked_) BlockSigpipe();
  if (!enders_.empty()) EndIteration();
  std::array<epoll_event, kEventsPerIteration> events;
  if (!timers_.empty()) until = std::min(until, timers_.begin()->first.first);
  if (!queue_.empty()) until = 0;
  const int64_t wait = std::max<int64_t>(until - MonotonicNanos(), 0);
  timespec timeout;
  timeout.tv_sec = wait / 1'000'000'000;
  timeout.tv_nsec = wait % 1'000'000'000;
  int count =
      epoll_pwait2(epoll_, events.data(), events.size(), &timeout, nullptr);
  if (count < 0 && errno == ENOSYS) {  // before Linux 5.11
    count = epoll_wait(epoll_, events.data(), events.size(),
                       static_cast<int>(std::min<int64_t>(
                           (wait + 999'999) / 1'000'000, 60'000)));
  }
  Serve(count, events.data());
}

Loop::Watcher* Loop::WatcherOf(const epoll_event& event) const {
  auto* const watcher = static_cast<Watcher*>(event.data.ptr);
  const bool removed =
      std::find(removed_.begin(), removed_.end(), watcher) != removed_.end();
  return removed ? nullptr : watcher;
}

void Loop::Serve(int count, const epoll_event* events) {
  now_ = MonotonicNanos();
  last_iteration_.store(now_, std::memory_order_relaxed);
  serving_ = true;
  // The memory of many sockets is in no CPU cache. So the next watcher is
  // prefetched while one is served.
  for (int i = 1; i < count; ++i) Prefetch(events[i].data.ptr, kWatcher);
  for (int i = 0; i < count; ++i) {
    const Watcher* const next =
        i + 1 < count ? WatcherOf(events[i + 1]) : nullptr;
    if (next != nullptr) next->Prefetch();
    if (events[i].data.ptr == nullptr) {
      uint64_t ignored;
      (void)!read(wake_, &ignored, sizeof ignored);
      continue;
    }
    Watcher* const watcher = WatcherOf(events[i]);
    if (watcher != nullptr) watcher->OnReady(events[i].events);
  }
  serving_ = false;
  removed_.clear();
  RunPosted();
  RunTimers();
  RunLongWork();
  EndIteration();
}

}  // namespace fncache::http2
