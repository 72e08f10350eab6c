// SPDX-License-Identifier: Apache-2.0
#include "runner/function/costly_calls.h"

#include <algorithm>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/method.h"
#include "grpcpp/alarm.h"

namespace fncache::runner::function {

using ::fncache::function::CallEnd;
using ::fncache::function::Continuation;
using ::fncache::function::Metadata;

// One call. Its Continuation's callback and what it waits for share it.
class CostlyCalls::Call : public std::enable_shared_from_this<Call> {
 public:
  Call(CostlyCalls* calls, std::string_view method, Continuation next)
      : calls_(calls),
        number_(++calls->calls_),
        method_(MethodOf({method.data(), method.size()})),
        next_(std::move(next)) {
    const MutexLock lock(&calls_->mutex_);
    ++calls_->inside_;
    if (calls_->workers_ == nullptr &&
        calls_->options_.cost.cpu > absl::ZeroDuration()) {
      calls_->workers_ = std::make_unique<ThreadPool>(
          std::max(2u, std::thread::hardware_concurrency()));
    }
    workers_ = calls_->workers_.get();
  }
  ~Call() {
    const MutexLock lock(&calls_->mutex_);
    if (--calls_->inside_ == 0) calls_->gone_.SignalAll();
  }

  void Start() {
    next_.OnEnd(
        [self = shared_from_this()](const CallEnd& end) { self->Ended(end); });
    const absl::Duration sleep = calls_->options_.cost.sleep;
    if (sleep <= absl::ZeroDuration()) return Slept();
    const MutexLock lock(&mutex_);
    if (ended_) return;
    self_ = shared_from_this();
    ReleaseTo(this);
    alarm_.Set(absl::ToChronoTime(absl::Now() + sleep), [this](bool) {
      AcquireFrom(this);
      std::shared_ptr<Call> self;
      {
        const MutexLock lock(&mutex_);
        self = std::move(self_);
      }
      Slept();
    });
  }

 private:
  bool ended() {
    const MutexLock lock(&mutex_);
    return ended_;
  }

  void Slept() {
    if (workers_ == nullptr) return Decide();
    ThreadPool::Work work = [self = shared_from_this()](bool /*run*/) {
      self->Burn();
      self->Decide();
    };
    workers_->Submit(&work);
  }

  // Uses this thread's CPU time, or less if the call ends before.
  void Burn() {
    const auto spent = [] {
      return absl::Nanoseconds(ReadClock(CLOCK_THREAD_CPUTIME_ID));
    };
    const absl::Duration end = spent() + calls_->options_.cost.cpu;
    while (spent() < end && !ended()) {
      // About a millisecond of work that no compiler removes.
      volatile uint64_t sink = 0;
      for (int i = 0; i < 500000; ++i) sink = sink + i;
    }
  }

  void Decide() {
    const CostOptions& options = calls_->options_;
    if (CallFails(options.fail_rate, options.seed, number_)) {
      next_.Finish(
          absl::UnavailableError("this call fails, as --fail-rate asks"));
    } else {
      next_.Continue();
    }
  }

  void Ended(const CallEnd& end) {
    {
      const MutexLock lock(&mutex_);
      ended_ = true;
      if (self_ != nullptr) alarm_.Cancel();
    }
    switch (end.code) {
      case absl::StatusCode::kOk:
        ++calls_->answered_;
        break;
      case absl::StatusCode::kCancelled:
      case absl::StatusCode::kDeadlineExceeded:
        ++calls_->cancelled_;
        break;
      default:
        ++calls_->failed_;
    }
    if (calls_->options_.log_calls) {
      Log(LogLevel::kInfo, "call",
          {{"run", number_},
           {"method", MethodName(method_)},
           {"code", static_cast<int>(end.code)},
           {"ms", absl::ToInt64Milliseconds(end.duration)},
           {"tag", end.tag}});
    }
  }

  CostlyCalls* const calls_;
  const uint64_t number_;
  const Method method_;
  const Continuation next_;
  ThreadPool* workers_;
  Mutex mutex_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  // While the alarm is set.
  std::shared_ptr<Call> self_ ABSL_GUARDED_BY(mutex_);
  grpc::Alarm alarm_;
};

CostlyCalls::~CostlyCalls() {
  const MutexLock lock(&mutex_);
  while (inside_ > 0) gone_.Wait(&mutex_);
}

::fncache::function::Interceptor CostlyCalls::Interceptor() {
  return [this](std::string_view method, const Metadata& /*metadata*/,
                Continuation next) {
    std::make_shared<Call>(this, method, std::move(next))->Start();
  };
}

CallCounts CostlyCalls::counts() const {
  CallCounts counts;
  counts.calls = calls_;
  counts.answered = answered_;
  counts.failed = failed_;
  counts.cancelled = cancelled_;
  return counts;
}

}  // namespace fncache::runner::function
