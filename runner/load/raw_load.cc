// SPDX-License-Identifier: Apache-2.0
#include "runner/load/raw_load.h"

#include <sys/prctl.h>
#include <sys/resource.h>

#include <algorithm>
#include <deque>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "common/method.h"
#include "common/openssl_owned.h"
#include "common/tls_context.h"
#include "common/tls_files.h"
#include "http2/connection.h"
#include "http2/loop.h"
#include "http2/slice.h"
#include "runner/load/unary/connection.h"

namespace fncache::runner::load {
namespace {

constexpr int64_t kWake = 100'000'000;
constexpr int64_t kReconnectEvery = 100'000'000;
constexpr size_t kReadBuffer = 256 << 10;

class Runner {
 public:
  Runner(const RawOptions& options, Measure* measure)
      : options_(options),
        measure_(measure),
        series_(measure->SeriesOf("request", options.target)) {
    for (const std::string& message : options.messages) {
      const auto size = static_cast<uint32_t>(message.size());
      std::string frame(1, '\0');
      for (int shift = 24; shift >= 0; shift -= 8) {
        frame += static_cast<char>(size >> shift & 0xff);
      }
      framed_.push_back(frame + message);
    }
  }

  absl::Status Run();

 private:
  struct Link final : unary::Connection::User {
    explicit Link(Runner* runner)
        : runner(runner), connection(&runner->loop_, &*runner->server_, this) {}
    void OnRoom(unary::Connection& /*connection*/) override { served = true; }
    void OnLost(unary::Connection& /*connection*/, http2::ConnectionEnd end,
                const std::string& words) override {
      runner->OnLost(this, end, words);
    }

    Runner* const runner;
    int64_t retry_at = 0;  // while there is no connection
    bool served = false;   // the server's settings have come
    unary::Connection connection;
  };

  struct Call final : unary::Call {
    explicit Call(Runner* runner) : runner(runner) {}
    void OnField(absl::string_view name, absl::string_view value) override;
    void OnBody(absl::string_view /*bytes*/) override {}
    void OnEnd(const unary::End& end) override { runner->OnEnd(this, end); }

    Runner* const runner;
    Link* link = nullptr;
    bool active = false;
    int64_t due = 0;
    int64_t began = 0;
    int status = -1;  // grpc-status; -1 = none was said
    bool http_ok = false;
    CacheOutcome outcome = CacheOutcome::kNone;
    std::string message;
    std::string http_status;
  };

  bool open_loop() const { return options_.schedule != nullptr; }
  void OnLost(Link* link, http2::ConnectionEnd end, const std::string& words);
  void OnEnd(Call* call, const unary::End& end);
  absl::Status SetUp();
  absl::Status Open(Link* link);
  absl::Status NotServed(http2::ConnectionEnd end,
                         const std::string& words) const;
  void Begin(Link* link, int64_t due, int64_t now);
  void Refill(int64_t now);
  void StartDue(int64_t now);
  Link* FreeLink();
  void Finish(Call* call, absl::string_view error, bool reached = true);
  int64_t WakeAt(int64_t now);
  void LookAfterLinks(int64_t now);

  const RawOptions& options_;
  Measure* const measure_;
  Measure::Series* const series_;
  std::vector<std::string> framed_;
  size_t next_message_ = 0;

  std::deque<Call> calls_;
  std::vector<Call*> free_;
  uint64_t outstanding_ = 0;

  int64_t began_ = 0;
  int64_t measure_from_ = 0;
  int64_t measure_until_ = INT64_MAX;
  bool measuring_ = false;
  bool over_ = false;        // no more starts
  uint64_t started_ = 0;     // of the schedule
  uint64_t to_measure_ = 0;  // that were started to be measured

  Owned<SSL_CTX> tls_;  // null = plaintext
  absl::optional<unary::Server> server_;
  http2::Loop loop_{kReadBuffer};
  std::deque<Link> links_;
  size_t next_link_ = 0;
  bool ready_ = false;      // all links were served at once
  absl::Status not_begun_;  // why that did not come
};

void Runner::Call::OnField(absl::string_view name, absl::string_view value) {
  if (name == ":status") {
    http_ok = value == "200";
    if (!http_ok) http_status = std::string(value);
  } else if (name == "grpc-status") {
    if (!absl::SimpleAtoi(value, &status)) status = 2;
  } else if (name == "cache-status") {
    outcome = CacheOutcomeOf(value);
  } else if (name == "grpc-message") {
    message = std::string(value);
  }
}

absl::Status Runner::Open(Link* link) {
  link->served = false;
  return link->connection.Open();
}

// Of a connection that has gone before calls were made.
absl::Status Runner::NotServed(http2::ConnectionEnd end,
                               const std::string& words) const {
  if (tls_ == nullptr) return absl::UnavailableError(words);
  switch (end) {
    case http2::ConnectionEnd::kHandshake:
      return absl::UnavailableError(
          absl::StrCat(options_.target, ": TLS handshake failed: ", words));
    case http2::ConnectionEnd::kTimeout:
      return absl::UnavailableError(absl::StrCat(options_.target, ": ", words));
    default:
      // In TLS 1.3 a server looks at its caller's certificate after the
      // caller's handshake is over.
      return absl::UnavailableError(
          absl::StrCat(options_.target, ": ", words,
                       "; does the server take our certificate, tls.crt?"));
  }
}

// The connection is gone; so are its calls.
void Runner::OnLost(Link* link, http2::ConnectionEnd end,
                    const std::string& words) {
  link->retry_at = MonotonicNanos() + kReconnectEvery;
  if (!ready_) {
    not_begun_.Update(NotServed(end, words));
  } else if (!link->served) {
    measure_->AddError(NotServed(end, words).message(),
                       [] { return "a connection"; });
  }
}

Runner::Link* Runner::FreeLink() {
  for (size_t i = 0; i < links_.size(); ++i) {
    Link* const link = &links_[next_link_];
    next_link_ = next_link_ + 1 < links_.size() ? next_link_ + 1 : 0;
    if (link->connection.CanBegin()) return link;
  }
  return nullptr;
}

void Runner::Begin(Link* link, int64_t due, int64_t now) {
  if (free_.empty()) {
    calls_.emplace_back(this);
    free_.push_back(&calls_.back());
  }
  Call* const call = free_.back();
  free_.pop_back();
  call->link = link;
  call->active = true;
  call->due = due;
  call->began = now;
  call->status = -1;
  call->http_ok = false;
  call->outcome = CacheOutcome::kNone;
  call->message.clear();
  call->http_status.clear();
  auto body = http2::Slice::Static(framed_[next_message_]);
  next_message_ = next_message_ + 1 < framed_.size() ? next_message_ + 1 : 0;
  ++outstanding_;
  link->connection.Begin(call, absl::MakeSpan(&body, 1));
}

void Runner::OnEnd(Call* call, const unary::End& end) {
  switch (end.kind) {
    case unary::End::Kind::kComplete:
      break;
    case unary::End::Kind::kReset:
      return Finish(call,
                    absl::StrCat("the server reset the call with HTTP/2 error ",
                                 end.code));
    case unary::End::Kind::kRefused:
      return Finish(call, "the server refused the stream", /*reached=*/false);
    case unary::End::Kind::kLost:
      return Finish(call, absl::StrCat("connection lost: ", end.why));
  }
  if (!call->http_ok) {
    return Finish(call, absl::StrCat("HTTP status ", call->http_status));
  }
  if (call->status != 0) {
    return Finish(
        call, absl::StrCat("gRPC status ", call->status, ": ", call->message));
  }
  Finish(call, "");
}

void Runner::Finish(Call* call, absl::string_view error, bool reached) {
  const int64_t now = MonotonicNanos();
  call->active = false;
  --outstanding_;
  free_.push_back(call);
  // Of an open loop what was due in the time counts, of a closed one what
  // ended in it.
  const bool counts =
      open_loop() ? call->due >= measure_from_ && call->due < measure_until_
                  : call->began >= measure_from_;
  if (!measuring_ || !counts) return;
  const bool ok = error.empty();
  measure_->AddCall(series_, call->outcome, now - call->began,
                    ok        ? CallEnd::kOk
                    : reached ? CallEnd::kFailed
                              : CallEnd::kNotReached);
  measure_->AddPipeline(now - call->due, now - call->began, ok);
  if (ok) return;
  measure_->AddError(error, [&] {
    return absl::StrCat(
        "a call ",
        absl::ToDoubleSeconds(absl::Nanoseconds(now - measure_from_)),
        " s after the beginning");
  });
}

// Closed loop: as many at once as there should be.
void Runner::Refill(int64_t now) {
  while (!over_ && outstanding_ < static_cast<uint64_t>(options_.concurrency)) {
    if (measuring_ && options_.total > 0 && to_measure_ >= options_.total) {
      over_ = true;
      return;
    }
    Link* const link = FreeLink();
    if (link == nullptr) return;
    if (measuring_) ++to_measure_;
    Begin(link, now, now);
  }
}

// Open loop: all that are due.
void Runner::StartDue(int64_t now) {
  while (!over_) {
    const int64_t at = options_.schedule->At(started_);
    if (at < 0) {
      over_ = true;
      return;
    }
    const int64_t due = began_ + at;
    if (due > now) return;
    if (due >= measure_until_ ||
        (options_.total > 0 && to_measure_ >= options_.total)) {
      over_ = true;
      return;
    }
    ++started_;
    if (due >= measure_from_) ++to_measure_;
    Link* const link =
        outstanding_ < options_.max_in_flight ? FreeLink() : nullptr;
    const bool counts = due >= measure_from_;
    if (link == nullptr) {
      if (counts) measure_->AddDropped();
      continue;
    }
    if (counts) measure_->AddLag(now - due);
    Begin(link, due, now);
  }
}

int64_t Runner::WakeAt(int64_t now) {
  int64_t wake = now + kWake;
  if (!measuring_) wake = std::min(wake, measure_from_);
  wake = std::min(wake, std::max(measure_until_, now));
  if (over_) wake = now + kWake;
  if (open_loop() && !over_) {
    const int64_t at = options_.schedule->At(started_);
    if (at >= 0) wake = std::min(wake, began_ + at);
  }
  return wake;
}

void Runner::LookAfterLinks(int64_t now) {
  const int64_t timeout = absl::ToInt64Nanoseconds(options_.timeout);
  for (const Call& call : calls_) {
    if (call.active && now - call.began > timeout) {
      call.link->connection.Close("no answer in time");
    }
  }
  for (Link& link : links_) {
    if (link.connection.open() || now < link.retry_at) continue;
    const absl::Status status = Open(&link);
    if (!status.ok()) {
      link.retry_at = now + kReconnectEvery;
      measure_->AddError(status.message(), [] { return "a connection"; });
    }
  }
}

absl::Status Runner::SetUp() {
  // Sleeps end when they should, not up to 50 us later.
  prctl(PR_SET_TIMERSLACK, 1UL);
  rlimit limit;
  const auto files = static_cast<rlim_t>(options_.connections) + 64;
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < files) {
    limit.rlim_cur = std::min(files, limit.rlim_max);
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  if (!options_.tls_dir.empty()) {
    const auto files =
        ReadTlsFiles(options_.tls_dir, TlsSide::kClient, absl::Now());
    if (!files.ok()) return files.status();
    auto context = MakeTlsContext(*files, TlsSide::kClient);
    if (!context.ok()) return context.status();
    tls_ = *std::move(context);
  }
  server_.emplace(options_.target, kRunFunctionV1, options_.metadata,
                  tls_.get());
  for (int i = 0; i < options_.connections; ++i) {
    links_.emplace_back(this);
    const absl::Status status = Open(&links_.back());
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Runner::Run() {
  const absl::Status set_up = SetUp();
  if (!set_up.ok()) return set_up;
  began_ = MonotonicNanos();
  int64_t ready_by = began_ + 10'000'000'000;
  measure_from_ = INT64_MAX;
  int64_t looked = began_;
  int64_t drain_until = INT64_MAX;
  for (;;) {
    int64_t now = MonotonicNanos();
    loop_.RunOnce(WakeAt(now));
    if (!not_begun_.ok()) return not_begun_;
    now = MonotonicNanos();
    if (!ready_) {
      ready_ = std::all_of(links_.begin(), links_.end(), [](const Link& link) {
        return link.connection.ready();
      });
      if (ready_) {
        began_ = now;
        measure_from_ = now + absl::ToInt64Nanoseconds(options_.warmup);
      } else if (now > ready_by) {
        return absl::UnavailableError(
            absl::StrCat(options_.target,
                         ": no HTTP/2 settings within 10 s; is it a gRPC "
                         "server in plaintext?"));
      }
    }
    if (ready_ && !measuring_ && now >= measure_from_) {
      if (options_.on_start != nullptr) options_.on_start();
      // Of a schedule the time follows from its beginning.
      if (!open_loop()) measure_from_ = now = MonotonicNanos();
      measuring_ = true;
      measure_->Start(measure_from_);
      measure_until_ =
          options_.duration == absl::InfiniteDuration()
              ? INT64_MAX
              : measure_from_ + absl::ToInt64Nanoseconds(options_.duration);
    }
    if (now - looked >= kWake) {
      looked = now;
      LookAfterLinks(now);
      measure_->SetState(0, static_cast<double>(outstanding_));
      measure_->Tick(now);
      if (options_.stop()) over_ = true;
    }
    if (measuring_ && now >= measure_until_ && !open_loop()) over_ = true;
    if (ready_) {
      open_loop() ? StartDue(now) : Refill(now);
      if (measuring_ && now >= measure_until_) over_ = true;
    }
    if (!over_) continue;
    // A closed loop by time ends here; what was begun otherwise is waited for.
    if (drain_until == INT64_MAX) {
      measure_->EndDuration(std::min(now, measure_until_));
      drain_until = now + absl::ToInt64Nanoseconds(options_.timeout);
    }
    const bool by_time = !open_loop() && options_.total == 0;
    if (outstanding_ == 0 || by_time || options_.stop() || now >= drain_until) {
      break;
    }
  }
  measure_->Stop(MonotonicNanos());
  measuring_ = false;  // calls that are broken off do not count
  return absl::OkStatus();
}

}  // namespace

absl::Status RunRawLoad(const RawOptions& options, Measure* measure) {
  return Runner(options, measure).Run();
}

}  // namespace fncache::runner::load
