// SPDX-License-Identifier: Apache-2.0
#include "bench/load_client.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "bench/call_schedule.h"
#include "bench/process_cpu.h"
#include "bench/random.h"
#include "common/clock.h"
#include "http2/connection.h"
#include "http2/loop.h"
#include "http2/slice.h"
#include "runner/load/unary/connection.h"

namespace fncache::bench {
namespace {

namespace unary = runner::load::unary;

constexpr size_t kReadBuffer = 256 << 10;
constexpr uint64_t kFirstChecked = 64;

int64_t Now() { return ReadClock(CLOCK_MONOTONIC); }

// As many files as connections need, if the hard limit allows it.
void RaiseFileLimit(size_t files) {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= files) return;
  limit.rlim_cur = std::min<rlim_t>(files, limit.rlim_max);
  setrlimit(RLIMIT_NOFILE, &limit);
}

class Runner final : public unary::Connection::User {
 public:
  Runner(const LoadOptions& options, const Workload& workload)
      : options_(options),
        workload_(workload),
        random_(options.seed),
        keys_(options.first_key, options.keys, options.random_keys) {}

  absl::StatusOr<LoadResult> Run();

 private:
  enum class Phase { kConnecting, kWarmup, kWindow, kDrain, kOver };

  struct Call final : unary::Call {
    explicit Call(Runner* runner) : runner(runner) {}
    void OnField(absl::string_view name, absl::string_view value) override {
      answer.OnHeader(name, value);
    }
    void OnBody(absl::string_view bytes) override { answer.OnData(bytes); }
    void OnEnd(const unary::End& end) override { runner->OnEnd(this, end); }

    Runner* const runner;
    int64_t intended = 0;
    uint64_t key = 0;
    AnswerReader answer;
  };

  // Read at either end of the window.
  struct Mark {
    int64_t time = 0;
    int64_t client_cpu = 0;
    std::vector<int64_t> server_cpu;
    uint64_t bytes_read = 0;
    uint64_t bytes_written = 0;
  };

  bool open_loop() const { return options_.rate > 0; }

  void OnRoom(unary::Connection& connection) override;
  void OnLost(unary::Connection& connection, http2::ConnectionEnd end,
              const std::string& words) override;
  void OnEnd(Call* call, const unary::End& end);

  absl::Status Start();
  absl::Status Loop();
  absl::Status Reopen();
  absl::Status Advance(int64_t now);
  void BeginDue();
  void Refill(unary::Connection* connection);
  unary::Connection* FreeConnection();
  bool MayBegin() const;
  void Begin(unary::Connection* connection, int64_t intended);
  void Send(unary::Connection* connection, Call* call);
  void Settle(Call* call);
  void Fail(absl::string_view message);
  std::string GaveUp() const;
  absl::StatusOr<Mark> TakeMark() const;
  int64_t WakeAt(int64_t now) const;

  const LoadOptions& options_;
  const Workload& workload_;
  Random random_;
  KeyPicker keys_;

  std::deque<Call> calls_;  // all there are
  std::vector<Call*> free_;
  std::vector<Call*> refused_;  // to be sent again
  size_t outstanding_ = 0;

  Phase phase_ = Phase::kConnecting;
  int64_t warm_until_ = 0;
  int64_t window_until_ = 0;
  int64_t last_progress_ = 0;
  absl::optional<CallSchedule> schedule_;
  // Calls are due but may not begin before another ends.
  bool held_back_ = false;
  uint64_t ended_ = 0;        // of all calls
  uint64_t begin_limit_ = 0;  // closed loop by number: begin no more than this
  uint64_t end_limit_ = 0;    // and the window ends with this one
  Mark first_;
  LoadResult result_;

  std::deque<unary::Server> servers_;
  http2::Loop loop_{kReadBuffer};
  std::deque<unary::Connection> connections_;
  size_t next_connection_ = 0;            // open loop: whose turn it is
  std::vector<unary::Connection*> gone_;  // to be made anew
  absl::Status lost_;  // a connection that should not have gone
};

absl::StatusOr<LoadResult> Runner::Run() {
  absl::Status status = Start();
  if (status.ok()) status = Loop();
  if (!status.ok()) return status;
  return std::move(result_);
}

absl::Status Runner::Start() {
  // Sleeps end when they should, not up to 50 us later.
  prctl(PR_SET_TIMERSLACK, 1UL);
  RaiseFileLimit(options_.connections + 64);
  for (const pid_t pid : options_.server_pids) {
    const auto cpu = ProcessCpu(pid);
    if (!cpu.ok()) return cpu.status();
  }
  for (const std::string& target : options_.targets) {
    servers_.emplace_back(target, options_.path, options_.headers);
  }
  for (size_t i = 0; i < options_.connections; ++i) {
    connections_.emplace_back(&loop_, &servers_[i % servers_.size()], this);
    absl::Status status = connections_.back().Open();
    if (!status.ok()) return status;
  }
  last_progress_ = Now();
  return absl::OkStatus();
}

absl::Status Runner::Loop() {
  while (phase_ != Phase::kOver) {
    loop_.RunOnce(WakeAt(Now()));
    absl::Status status = Reopen();
    if (!status.ok()) return status;
    status = Advance(Now());
    if (!status.ok()) return status;
    if (open_loop() && phase_ != Phase::kConnecting) BeginDue();
  }
  return absl::OkStatus();
}

// When there is something to do though nothing arrives.
int64_t Runner::WakeAt(int64_t now) const {
  int64_t wake = now + 100'000'000;
  if (phase_ == Phase::kWarmup) wake = std::min(wake, warm_until_);
  if (phase_ == Phase::kWindow && window_until_ > 0) {
    wake = std::min(wake, window_until_);
  }
  if (schedule_.has_value() && !schedule_->done() && !held_back_) {
    wake = std::min(wake, schedule_->next());
  }
  return wake;
}

void Runner::OnRoom(unary::Connection& connection) {
  if (!open_loop()) Refill(&connection);
}

void Runner::OnLost(unary::Connection& connection, http2::ConnectionEnd end,
                    const std::string& words) {
  if (end == http2::ConnectionEnd::kDone) {
    gone_.push_back(&connection);
  } else {
    lost_.Update(absl::UnavailableError(
        absl::StrCat(connection.server().target(), ": ", words)));
  }
}

// Makes connections anew that the server told to go.
absl::Status Runner::Reopen() {
  if (!lost_.ok()) return lost_;
  for (unary::Connection* const connection : gone_) {
    ++result_.reconnects;
    absl::Status status = connection->Open();
    if (!status.ok()) return status;
  }
  gone_.clear();
  return absl::OkStatus();
}

// From phase to phase.
absl::Status Runner::Advance(int64_t now) {
  const int64_t patience = absl::ToInt64Nanoseconds(options_.patience);
  if (now - last_progress_ > patience &&
      (outstanding_ > 0 || phase_ == Phase::kConnecting)) {
    return absl::DeadlineExceededError(GaveUp());
  }
  if (result_.errors >= kTooManyErrors) phase_ = Phase::kOver;
  const Phase before = phase_;
  if (phase_ == Phase::kConnecting) {
    for (const unary::Connection& connection : connections_) {
      if (!connection.ready()) return absl::OkStatus();
    }
    phase_ = Phase::kWarmup;
    warm_until_ = now + absl::ToInt64Nanoseconds(options_.warmup);
    if (open_loop()) {
      const double warmup = absl::ToDoubleSeconds(options_.warmup);
      const double window =
          options_.calls > 0
              ? static_cast<double>(options_.calls) / options_.rate
              : absl::ToDoubleSeconds(options_.duration);
      schedule_.emplace(
          now, options_.rate,
          static_cast<uint64_t>(std::ceil((warmup + window) * options_.rate)));
      window_until_ = warm_until_ + static_cast<int64_t>(window * 1e9);
    }
  }
  if (phase_ == Phase::kWarmup && now >= warm_until_) {
    auto mark = TakeMark();
    if (!mark.ok()) return mark.status();
    first_ = *std::move(mark);
    phase_ = Phase::kWindow;
    if (!open_loop()) {
      if (options_.calls > 0) {
        begin_limit_ = end_limit_ = ended_ + options_.calls;
      } else {
        window_until_ =
            first_.time + absl::ToInt64Nanoseconds(options_.duration);
      }
    }
  }
  if (phase_ != before && !open_loop()) {
    // Now calls may begin.
    for (unary::Connection& connection : connections_) Refill(&connection);
  }
  const bool window_over =
      end_limit_ > 0 ? ended_ >= end_limit_ : now >= window_until_;
  if (phase_ == Phase::kWindow && window_over) {
    const auto last = TakeMark();
    if (!last.ok()) return last.status();
    phase_ = Phase::kDrain;
    result_.window = absl::Nanoseconds(last->time - first_.time);
    result_.client_cpu_ns = last->client_cpu - first_.client_cpu;
    for (size_t i = 0; i < last->server_cpu.size(); ++i) {
      result_.server_cpu_ns.push_back(last->server_cpu[i] -
                                      first_.server_cpu[i]);
    }
    result_.bytes_received = last->bytes_read - first_.bytes_read;
    result_.bytes_sent = last->bytes_written - first_.bytes_written;
  }
  if (phase_ == Phase::kDrain && outstanding_ == 0 && refused_.empty() &&
      (!schedule_.has_value() || schedule_->done())) {
    phase_ = Phase::kOver;
  }
  return absl::OkStatus();
}

// The failures before it say why: a proxy whose server is gone fails the calls
// that it had and lets the next ones wait.
std::string Runner::GaveUp() const {
  std::string text = absl::StrCat("nothing arrived for ",
                                  absl::FormatDuration(options_.patience),
                                  " with ", outstanding_, " calls outstanding");
  for (const auto& [message, count] : result_.messages) {
    absl::StrAppend(&text, "; before, ", count, " calls: ", message);
  }
  return text;
}

absl::StatusOr<Runner::Mark> Runner::TakeMark() const {
  Mark mark;
  for (const pid_t pid : options_.server_pids) {
    const auto cpu = ProcessCpu(pid);
    if (!cpu.ok()) return cpu.status();
    mark.server_cpu.push_back(*cpu);
  }
  mark.time = Now();
  mark.client_cpu = ReadClock(CLOCK_PROCESS_CPUTIME_ID);
  for (const unary::Connection& connection : connections_) {
    mark.bytes_read += connection.bytes_read();
    mark.bytes_written += connection.bytes_written();
  }
  return mark;
}

bool Runner::MayBegin() const {
  if (begin_limit_ > 0) return result_.begun < begin_limit_;
  if (phase_ == Phase::kWarmup)
    return absl::ToInt64Nanoseconds(options_.warmup) > 0;
  return phase_ == Phase::kWindow;
}

// Closed loop: as many calls at once as there should be.
void Runner::Refill(unary::Connection* connection) {
  while (connection->calls() < options_.streams && connection->CanBegin()) {
    if (!refused_.empty()) {
      Call* const call = refused_.back();
      refused_.pop_back();
      Send(connection, call);
    } else if (MayBegin()) {
      Begin(connection, Now());
    } else {
      return;
    }
  }
}

// Open loop: all calls that are due, on connections in turn.
void Runner::BeginDue() {
  const int64_t now = Now();
  held_back_ = false;
  while (!refused_.empty() || schedule_->due(now)) {
    unary::Connection* const connection =
        outstanding_ < options_.max_outstanding ? FreeConnection() : nullptr;
    if (connection == nullptr) {
      held_back_ = true;
      return;
    }
    if (!refused_.empty()) {
      Call* const call = refused_.back();
      refused_.pop_back();
      Send(connection, call);
    } else {
      const int64_t intended = schedule_->Begin();
      result_.latest_begin =
          std::max(result_.latest_begin, absl::Nanoseconds(now - intended));
      Begin(connection, intended);
    }
  }
}

unary::Connection* Runner::FreeConnection() {
  for (size_t i = 0; i < connections_.size(); ++i) {
    unary::Connection* const connection = &connections_[next_connection_];
    next_connection_ =
        next_connection_ + 1 < connections_.size() ? next_connection_ + 1 : 0;
    if (connection->CanBegin()) return connection;
  }
  return nullptr;
}

void Runner::Begin(unary::Connection* connection, int64_t intended) {
  if (free_.empty()) {
    calls_.emplace_back(this);
    free_.push_back(&calls_.back());
  }
  Call* const call = free_.back();
  free_.pop_back();
  call->intended = intended;
  call->key = keys_.Next(&random_);
  ++result_.begun;
  Send(connection, call);
}

void Runner::Send(unary::Connection* connection, Call* call) {
  std::array<char, kSlotDigits> digits;
  const auto parts = workload_.Parts(call->key, &random_, &digits);
  std::array<http2::Slice, std::tuple_size<decltype(parts)>::value> body;
  for (size_t i = 0; i < parts.size(); ++i) {
    // All but the digits lives as long as the workload.
    body[i] = parts[i].data() == digits.data() ? http2::Slice::Copy(parts[i])
                                               : http2::Slice::Static(parts[i]);
  }
  call->answer.Reset(result_.begun <= kFirstChecked ||
                     result_.begun % options_.check_every == 0);
  ++outstanding_;
  result_.most_outstanding = std::max(result_.most_outstanding, outstanding_);
  connection->Begin(call, absl::MakeSpan(body));
}

void Runner::OnEnd(Call* call, const unary::End& end) {
  if (phase_ == Phase::kOver) return;  // broken off
  --outstanding_;
  switch (end.kind) {
    case unary::End::Kind::kComplete:
      Settle(call);
      break;
    case unary::End::Kind::kReset:
      Fail(absl::StrCat("the server reset the call with HTTP/2 error ",
                        end.code));
      ++ended_;
      break;
    case unary::End::Kind::kRefused:
      refused_.push_back(call);
      return;
    case unary::End::Kind::kLost:
      return;  // so is the run
  }
  free_.push_back(call);
}

// A call has ended with an answer, whatever that says.
void Runner::Settle(Call* call) {
  const int64_t now = Now();
  last_progress_ = now;
  const absl::Status status = call->answer.Check(
      options_.expected, [&] { return workload_.TagOf(call->key); });
  const bool counts = open_loop() ? call->intended >= warm_until_ &&
                                        call->intended < window_until_
                                  : phase_ == Phase::kWindow;
  ++ended_;
  if (!status.ok()) {
    Fail(status.message());
    return;
  }
  if (!counts || (end_limit_ > 0 && ended_ > end_limit_)) return;
  ++result_.calls;
  result_.latency.Add(now - call->intended);
  ++result_.cache_statuses[static_cast<size_t>(call->answer.cache_status())];
  if (call->answer.stored()) ++result_.stored;
  if (call->answer.collapsed()) ++result_.collapsed;
}

void Runner::Fail(absl::string_view message) {
  ++result_.errors;
  if (result_.messages.size() < kTooManyErrors) {
    ++result_.messages[std::string(message)];
  }
}

}  // namespace

absl::StatusOr<LoadResult> RunLoad(const LoadOptions& options,
                                   const Workload& workload) {
  Runner runner(options, workload);
  return runner.Run();
}

}  // namespace fncache::bench
