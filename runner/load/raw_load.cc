// SPDX-License-Identifier: Apache-2.0
#include "runner/load/raw_load.h"

#include <sys/prctl.h>
#include <sys/resource.h>

#include <algorithm>
#include <deque>

#include "absl/strings/match.h"
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

// Messages round robin.
class Messages {
 public:
  explicit Messages(const std::vector<std::string>& messages) {
    for (const std::string& message : messages) {
      const auto size = static_cast<uint32_t>(message.size());
      std::string frame(1, '\0');
      for (int shift = 24; shift >= 0; shift -= 8) {
        frame += static_cast<char>(size >> shift & 0xff);
      }
      framed_.push_back(frame + message);
    }
  }

  const std::string& Next() { return framed_[next_++ % framed_.size()]; }

 private:
  std::vector<std::string> framed_;
  size_t next_ = 0;
};

class NextMessage final : public RawCall {
 public:
  explicit NextMessage(Messages* messages) : messages_(messages) {}
  absl::Span<http2::Slice> Begin() override {
    body_ = http2::Slice::Static(messages_->Next());
    return absl::MakeSpan(&body_, 1);
  }

 private:
  Messages* const messages_;
  http2::Slice body_;
};

class Runner {
 public:
  Runner(const RawOptions& options, Measure* measure)
      : options_(options),
        measure_(measure),
        series_(measure->SeriesOf("request", options.targets.front())),
        messages_(options.messages) {}

  absl::Status Run();

 private:
  struct Link final : unary::Connection::User {
    Link(Runner* runner, const unary::Server* server)
        : runner(runner), connection(&runner->loop_, server, this) {}
    void OnCapacity(unary::Connection& /*connection*/) override {
      served = true;
      runner->Refill(this);
    }
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
    explicit Call(Runner* runner)
        : runner(runner), content(runner->MakeContent()) {}
    void OnField(absl::string_view name, absl::string_view value) override;
    void OnBody(absl::string_view bytes) override { content->OnBody(bytes); }
    void OnEnd(const unary::End& end) override { runner->OnEnd(this, end); }

    Runner* const runner;
    const std::unique_ptr<RawCall> content;
    Link* link = nullptr;
    bool active = false;
    int64_t due = 0;
    int64_t began = 0;
    int status = -1;  // grpc-status; -1 = none was said
    bool http_ok = false;
    Outcome outcome = Outcome::kNone;
    std::string message;
    std::string http_status;
  };

  bool open_loop() const { return options_.schedule != nullptr; }
  bool by_time() const { return !open_loop() && options_.total == 0; }
  bool steady() const { return by_time() && options_.steady; }
  std::unique_ptr<RawCall> MakeContent() {
    if (options_.make_call != nullptr) return options_.make_call();
    return std::make_unique<NextMessage>(&messages_);
  }
  void OnLost(Link* link, http2::ConnectionEnd end, const std::string& words);
  void OnEnd(Call* call, const unary::End& end);
  absl::Status SetUp();
  absl::Status Open(Link* link);
  absl::Status NotServed(const Link& link, http2::ConnectionEnd end,
                         const std::string& words) const;
  void Begin(Link* link, int64_t due, int64_t now);
  void Refill(Link* link);
  void StartDue(int64_t now);
  Link* FreeLink();
  void Finish(Call* call, std::string error, bool reached = true);
  int64_t WakeAt(int64_t now);
  void LookAfterLinks(int64_t now);

  const RawOptions& options_;
  Measure* const measure_;
  Measure::Series* const series_;
  Messages messages_;

  std::deque<Call> calls_;
  std::vector<Call*> free_;
  uint64_t outstanding_ = 0;

  int64_t began_ = 0;
  int64_t measure_from_ = 0;
  int64_t measure_until_ = INT64_MAX;
  bool measuring_ = false;
  bool over_ = false;        // no more starts
  bool full_ = false;        // calls that are due wait
  bool ended_ = false;       // the duration is over
  uint64_t started_ = 0;     // of the schedule
  uint64_t to_measure_ = 0;  // that were started to be measured

  Owned<SSL_CTX> tls_;  // null = plaintext
  std::deque<unary::Server> servers_;
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
    outcome = OutcomeOf(value);
  } else if (name == "grpc-message") {
    message = std::string(value);
  }
}

absl::Status Runner::Open(Link* link) {
  link->served = false;
  return link->connection.Open();
}

// Describes a connection that is lost before calls were made.
absl::Status Runner::NotServed(const Link& link, http2::ConnectionEnd end,
                               const std::string& words) const {
  const std::string& target = link.connection.server().target();
  if (tls_ == nullptr) {
    return absl::UnavailableError(absl::StrContains(words, target)
                                      ? words
                                      : absl::StrCat(target, ": ", words));
  }
  switch (end) {
    case http2::ConnectionEnd::kHandshake:
      return absl::UnavailableError(
          absl::StrCat(target, ": TLS handshake failed: ", words));
    case http2::ConnectionEnd::kTimeout:
      return absl::UnavailableError(absl::StrCat(target, ": ", words));
    default:
      // In TLS 1.3 a server looks at its caller's certificate after the
      // caller's handshake is over.
      return absl::UnavailableError(
          absl::StrCat(target, ": ", words,
                       "; does the server take our certificate, tls.crt?"));
  }
}

// The connection is gone; so are its calls.
void Runner::OnLost(Link* link, http2::ConnectionEnd end,
                    const std::string& words) {
  link->retry_at = MonotonicNanos() + kReconnectEvery;
  if (!ready_) {
    not_begun_.Update(NotServed(*link, end, words));
  } else if (!link->served) {
    measure_->AddError(NotServed(*link, end, words).message(),
                       [] { return "a connection"; });
  } else if (options_.on_lost != nullptr &&
             end != http2::ConnectionEnd::kDone) {
    options_.on_lost(words);
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
  call->outcome = Outcome::kNone;
  call->message.clear();
  call->http_status.clear();
  ++outstanding_;
  link->connection.Begin(call, call->content->Begin());
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

void Runner::Finish(Call* call, std::string error, bool reached) {
  const int64_t now = MonotonicNanos();
  call->active = false;
  --outstanding_;
  free_.push_back(call);
  error = call->content->End(std::move(error), call->outcome);
  const bool counts =
      open_loop() ? call->due >= measure_from_ && call->due < measure_until_
      : steady()  ? !over_
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

// Closed loop: begins as many calls on the connection as it should have.
void Runner::Refill(Link* link) {
  if (!ready_ || open_loop()) return;
  const auto wanted = static_cast<uint64_t>(options_.concurrency);
  const size_t each = (wanted + links_.size() - 1) / links_.size();
  while (!over_ && outstanding_ < wanted && link->connection.CanBegin() &&
         link->connection.calls() < each) {
    if (measuring_ && options_.total > 0 && to_measure_ >= options_.total) {
      over_ = true;
      return;
    }
    if (measuring_) ++to_measure_;
    const int64_t now = MonotonicNanos();
    Begin(link, now, now);
  }
}

// Open loop: all that are due.
void Runner::StartDue(int64_t now) {
  full_ = false;
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
    Link* const link =
        outstanding_ < options_.max_in_flight ? FreeLink() : nullptr;
    full_ = link == nullptr && options_.wait_when_full;
    if (full_) return;
    ++started_;
    if (due >= measure_from_) ++to_measure_;
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
  if (!ended_) wake = std::min(wake, std::max(measure_until_, now));
  if (over_) wake = now + kWake;
  if (open_loop() && !over_ && !full_) {
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
  for (const std::string& target : options_.targets) {
    servers_.emplace_back(target, kRunFunctionV1, options_.metadata,
                          tls_.get());
  }
  for (int i = 0; i < options_.connections; ++i) {
    links_.emplace_back(this, &servers_[i % servers_.size()]);
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
  bool began = false;
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
            absl::StrCat(options_.targets.front(),
                         ": no HTTP/2 settings within 10 s; is it a gRPC "
                         "server in plaintext?"));
      }
    }
    if (ready_ && !measuring_ && now >= measure_from_) {
      if (options_.on_start != nullptr) options_.on_start();
      // A schedule fixes the time from its beginning.
      if (!open_loop()) measure_from_ = now = MonotonicNanos();
      measuring_ = true;
      measure_->Start(measure_from_);
      measure_until_ =
          options_.duration == absl::InfiniteDuration()
              ? INT64_MAX
              : measure_from_ + absl::ToInt64Nanoseconds(options_.duration);
    }
    if (ready_ && !began) {
      began = true;
      for (Link& link : links_) Refill(&link);
    }
    if (now - looked >= kWake) {
      looked = now;
      LookAfterLinks(now);
      measure_->SetState(0, static_cast<double>(outstanding_));
      measure_->Tick(now);
      if (options_.stop()) over_ = true;
    }
    if (ready_ && open_loop()) StartDue(now);
    if (now >= measure_until_ && !full_) over_ = true;
    if (!ended_ && (over_ || now >= measure_until_)) {
      ended_ = true;
      measure_->EndDuration(steady() ? now : std::min(now, measure_until_));
      if (options_.on_end != nullptr) options_.on_end();
      drain_until = now + absl::ToInt64Nanoseconds(options_.timeout);
    }
    if (!over_ && now < drain_until) continue;
    // A closed loop by time ends here; what was begun otherwise is waited for.
    if (outstanding_ == 0 || (by_time() && !steady()) || options_.stop() ||
        now >= drain_until) {
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
