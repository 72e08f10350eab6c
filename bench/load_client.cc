// SPDX-License-Identifier: Apache-2.0
#include "bench/load_client.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <memory>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "bench/call_schedule.h"
#include "bench/process_cpu.h"
#include "bench/random.h"
#include "common/clock.h"
#include "runner/load/wire/http2_connection.h"

namespace fncache::bench {
namespace {

using runner::load::wire::Http2Connection;
using runner::load::wire::Http2Handler;
using runner::load::wire::Http2Stream;
using runner::load::wire::StreamEnd;

constexpr size_t kReadBuffer = 256 << 10;
constexpr uint64_t kFirstChecked = 64;

int64_t Now() { return ReadClock(CLOCK_MONOTONIC); }

struct Call : Http2Stream {
  int64_t intended = 0;
  uint64_t key = 0;
  std::array<char, kSlotDigits> digits;
  AnswerReader answer;
};

// A connected socket that does not block.
absl::StatusOr<int> Connect(const std::string& target) {
  const size_t colon = target.rfind(':');
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  std::string host = target.substr(0, colon);
  if (host.size() > 2 && host.front() == '[') {
    host = host.substr(1, host.size() - 2);
  }
  const int error = getaddrinfo(host.c_str(), target.substr(colon + 1).c_str(),
                                &hints, &found);
  if (error != 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot connect to ", target, ": ", gai_strerror(error)));
  }
  const absl::Cleanup free_found = [&] { freeaddrinfo(found); };
  const int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) {
    return absl::ErrnoToStatus(errno,
                               absl::StrCat("cannot connect to ", target));
  }
  if (connect(fd, found->ai_addr, found->ai_addrlen) != 0) {
    absl::Status status =
        absl::ErrnoToStatus(errno, absl::StrCat("cannot connect to ", target));
    close(fd);
    return status;
  }
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  // Only now: connecting is waited for. A server that does not read must not
  // keep us from reading, nor from giving up.
  if (fcntl(fd, F_SETFL, O_NONBLOCK) != 0) {
    absl::Status status = absl::ErrnoToStatus(errno, "fcntl");
    close(fd);
    return status;
  }
  return fd;
}

// As many files as connections need, if the hard limit allows it.
void RaiseFileLimit(size_t files) {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= files) return;
  limit.rlim_cur = std::min<rlim_t>(files, limit.rlim_max);
  setrlimit(RLIMIT_NOFILE, &limit);
}

class Runner : public Http2Handler {
 public:
  Runner(const LoadOptions& options, const Workload& workload)
      : options_(options),
        workload_(workload),
        random_(options.seed),
        keys_(options.first_key, options.keys, options.random_keys),
        buffer_(kReadBuffer) {}
  ~Runner() override {
    links_.clear();
    if (epoll_ >= 0) close(epoll_);
  }

  absl::StatusOr<LoadResult> Run();

  void OnHeader(Http2Stream* stream, absl::string_view name,
                absl::string_view value) override {
    static_cast<Call*>(stream)->answer.OnHeader(name, value);
  }
  void OnData(Http2Stream* stream, absl::string_view data) override {
    static_cast<Call*>(stream)->answer.OnData(data);
  }
  void OnEnd(Http2Stream* stream, StreamEnd end, uint32_t code) override;

 private:
  enum class Phase { kConnecting, kWarmup, kWindow, kDrain, kOver };

  struct Link {
    std::unique_ptr<Http2Connection> connection;
    std::string target;
    bool waits_for_write = false;
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

  absl::Status Start();
  absl::Status Open(Link* link);
  absl::Status Loop();
  absl::Status Event(const epoll_event& event);
  absl::Status Advance(int64_t now);
  absl::Status Serve(Link* link);
  absl::Status FlushOpenLoop();
  void Refill(Link* link);
  Link* FreeLink();
  bool MayBegin() const;
  void Begin(Link* link, int64_t intended);
  void Send(Link* link, Call* call);
  void Settle(Call* call);
  void Fail(absl::string_view message);
  std::string GaveUp() const;
  absl::StatusOr<Mark> TakeMark() const;
  int64_t WakeAt(int64_t now) const;
  void Wait(int64_t now, std::array<epoll_event, 64>* events, int* count);

  const LoadOptions& options_;
  const Workload& workload_;
  Random random_;
  KeyPicker keys_;
  std::vector<char> buffer_;

  int epoll_ = -1;
  std::vector<Link> links_;
  size_t next_link_ = 0;  // open loop: whose turn it is

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
  // Of connections that are gone.
  uint64_t past_read_ = 0;
  uint64_t past_written_ = 0;
  Mark first_;
  LoadResult result_;
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
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  if (epoll_ < 0) return absl::ErrnoToStatus(errno, "epoll_create1");
  links_.resize(options_.connections);
  for (size_t i = 0; i < links_.size(); ++i) {
    links_[i].target = options_.targets[i % options_.targets.size()];
    absl::Status status = Open(&links_[i]);
    if (!status.ok()) return status;
  }
  last_progress_ = Now();
  return absl::OkStatus();
}

absl::Status Runner::Open(Link* link) {
  const auto fd = Connect(link->target);
  if (!fd.ok()) return fd.status();
  Http2Connection::Headers headers = {
      {":method", "POST"},
      {":scheme", "http"},
      {":path", options_.path},
      {":authority", link->target},
      {"content-type", "application/grpc"},
      {"user-agent", "fncache-load"},
      {"te", "trailers"},
  };
  headers.insert(headers.end(), options_.headers.begin(),
                 options_.headers.end());
  if (link->connection != nullptr) {
    past_read_ += link->connection->bytes_read();
    past_written_ += link->connection->bytes_written();
  }
  link->connection =
      std::make_unique<Http2Connection>(*fd, std::move(headers), this);
  link->waits_for_write = false;
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.ptr = link;
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, *fd, &event) != 0) {
    return absl::ErrnoToStatus(errno, "epoll_ctl");
  }
  return Serve(link);
}

absl::Status Runner::Loop() {
  std::array<epoll_event, 64> events;
  while (phase_ != Phase::kOver) {
    int64_t now = Now();
    int count = 0;
    Wait(now, &events, &count);
    for (int i = 0; i < count; ++i) {
      absl::Status status = Event(events[i]);
      if (!status.ok()) return status;
    }
    absl::Status status = Advance(Now());
    if (!status.ok()) return status;
    if (open_loop() && phase_ != Phase::kConnecting) {
      status = FlushOpenLoop();
      if (!status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

void Runner::Wait(int64_t now, std::array<epoll_event, 64>* events,
                  int* count) {
  const int64_t sleep = std::max<int64_t>(WakeAt(now) - now, 0);
  timespec timeout;
  timeout.tv_sec = sleep / 1'000'000'000;
  timeout.tv_nsec = sleep % 1'000'000'000;
  *count =
      epoll_pwait2(epoll_, events->data(), events->size(), &timeout, nullptr);
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

absl::Status Runner::Event(const epoll_event& event) {
  Link* const link = static_cast<Link*>(event.data.ptr);
  if ((event.events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) {
    absl::Status status = link->connection->Read(&buffer_);
    if (!status.ok()) {
      if (!link->connection->going_away() ||
          link->connection->open_streams() > 0) {
        return absl::Status(status.code(),
                            absl::StrCat(link->target, ": ", status.message()));
      }
      ++result_.reconnects;
      return Open(link);
    }
  }
  return Serve(link);
}

// Begins what may begin on this connection and writes.
absl::Status Runner::Serve(Link* link) {
  if (link->connection->going_away() && link->connection->open_streams() == 0) {
    ++result_.reconnects;
    return Open(link);
  }
  if (!open_loop()) Refill(link);
  absl::Status status = link->connection->Flush();
  if (!status.ok()) {
    return absl::Status(status.code(),
                        absl::StrCat(link->target, ": ", status.message()));
  }
  if (link->connection->wants_write() != link->waits_for_write) {
    link->waits_for_write = !link->waits_for_write;
    epoll_event event = {};
    event.events = EPOLLIN;
    if (link->waits_for_write) event.events |= EPOLLOUT;
    event.data.ptr = link;
    epoll_ctl(epoll_, EPOLL_CTL_MOD, link->connection->fd(), &event);
  }
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
    for (const Link& link : links_) {
      if (!link.connection->ready()) return absl::OkStatus();
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
    for (Link& link : links_) {
      absl::Status status = Serve(&link);
      if (!status.ok()) return status;
    }
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
  mark.bytes_read = past_read_;
  mark.bytes_written = past_written_;
  for (const Link& link : links_) {
    mark.bytes_read += link.connection->bytes_read();
    mark.bytes_written += link.connection->bytes_written();
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
void Runner::Refill(Link* link) {
  Http2Connection* const connection = link->connection.get();
  while (connection->CanOpen() &&
         connection->open_streams() < options_.streams) {
    if (!refused_.empty()) {
      Call* const call = refused_.back();
      refused_.pop_back();
      Send(link, call);
    } else if (MayBegin()) {
      Begin(link, Now());
    } else {
      return;
    }
  }
}

// Open loop: all calls that are due, on connections in turn.
absl::Status Runner::FlushOpenLoop() {
  const int64_t now = Now();
  held_back_ = false;
  while (!refused_.empty() || schedule_->due(now)) {
    Link* const link =
        outstanding_ < options_.max_outstanding ? FreeLink() : nullptr;
    if (link == nullptr) {
      held_back_ = true;
      break;
    }
    if (!refused_.empty()) {
      Call* const call = refused_.back();
      refused_.pop_back();
      Send(link, call);
    } else {
      const int64_t intended = schedule_->Begin();
      result_.latest_begin =
          std::max(result_.latest_begin, absl::Nanoseconds(now - intended));
      Begin(link, intended);
    }
    absl::Status status = Serve(link);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

Runner::Link* Runner::FreeLink() {
  for (size_t i = 0; i < links_.size(); ++i) {
    Link* const link = &links_[next_link_];
    next_link_ = next_link_ + 1 < links_.size() ? next_link_ + 1 : 0;
    if (link->connection->CanOpen()) return link;
  }
  return nullptr;
}

void Runner::Begin(Link* link, int64_t intended) {
  if (free_.empty()) {
    calls_.emplace_back();
    free_.push_back(&calls_.back());
  }
  Call* const call = free_.back();
  free_.pop_back();
  call->intended = intended;
  call->key = keys_.Next(&random_);
  ++result_.begun;
  Send(link, call);
}

void Runner::Send(Link* link, Call* call) {
  call->body = workload_.Parts(call->key, &random_, &call->digits);
  call->answer.Reset(result_.begun <= kFirstChecked ||
                     result_.begun % options_.check_every == 0);
  ++outstanding_;
  result_.most_outstanding = std::max(result_.most_outstanding, outstanding_);
  link->connection->Open(call);
}

void Runner::OnEnd(Http2Stream* stream, StreamEnd end, uint32_t code) {
  Call* const call = static_cast<Call*>(stream);
  --outstanding_;
  if (end == StreamEnd::kRefused) {
    refused_.push_back(call);
    return;
  }
  if (end == StreamEnd::kReset) {
    Fail(absl::StrCat("the server reset the call with HTTP/2 error ", code));
    ++ended_;
  } else {
    Settle(call);
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
