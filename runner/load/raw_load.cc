// SPDX-License-Identifier: Apache-2.0
#include "runner/load/raw_load.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <deque>
#include <memory>

#include "absl/cleanup/cleanup.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/method.h"
#include "common/openssl_owned.h"
#include "common/tls_files.h"
#include "runner/load/wire/http2_connection.h"
#include "runner/load/wire/tls_stream.h"

namespace fncache::runner::load {
namespace {

using wire::Http2Connection;
using wire::Http2Handler;
using wire::Http2Stream;
using wire::StreamEnd;

constexpr int64_t kWake = 100'000'000;
constexpr int64_t kReconnectEvery = 100'000'000;
constexpr absl::Duration kHandshakePatience = absl::Seconds(5);

std::string HostOf(const std::string& target) {
  std::string host = target.substr(0, target.rfind(':'));
  if (host.size() > 2 && host.front() == '[') {
    host = host.substr(1, host.size() - 2);
  }
  return host;
}

absl::StatusOr<int> Connect(const std::string& target) {
  const size_t colon = target.rfind(':');
  const std::string host = HostOf(target);
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), target.substr(colon + 1).c_str(),
                                &hints, &found);
  if (error != 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot connect to ", target, ": ", gai_strerror(error)));
  }
  const absl::Cleanup free_found = [&] { freeaddrinfo(found); };
  int failed = 0;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    const int fd = socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
      failed = errno;
      continue;
    }
    const int on = 1;
    if (connect(fd, one->ai_addr, one->ai_addrlen) == 0 &&
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == 0 &&
        fcntl(fd, F_SETFL, O_NONBLOCK) == 0) {
      return fd;
    }
    failed = errno;
    close(fd);
  }
  return absl::ErrnoToStatus(failed,
                             absl::StrCat("cannot connect to ", target));
}

struct Link {
  std::unique_ptr<Http2Connection> connection;  // null while there is none
  int64_t retry_at = 0;
  bool waits_for_write = false;
};

struct Call : Http2Stream {
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

class Runner : public Http2Handler {
 public:
  Runner(const RawOptions& options, Measure* measure)
      : options_(options),
        measure_(measure),
        series_(measure->SeriesOf("request", options.target)),
        buffer_(256 << 10) {
    for (const std::string& message : options.messages) {
      const auto size = static_cast<uint32_t>(message.size());
      std::string frame(1, '\0');
      for (int shift = 24; shift >= 0; shift -= 8) {
        frame += static_cast<char>(size >> shift & 0xff);
      }
      framed_.push_back(frame + message);
    }
  }
  ~Runner() override {
    links_.clear();
    if (epoll_ >= 0) close(epoll_);
  }

  absl::Status Run();

  void OnHeader(Http2Stream* stream, absl::string_view name,
                absl::string_view value) override {
    Call* const call = static_cast<Call*>(stream);
    if (name == ":status") {
      call->http_ok = value == "200";
      if (!call->http_ok) call->http_status = std::string(value);
    } else if (name == "grpc-status") {
      if (!absl::SimpleAtoi(value, &call->status)) call->status = 2;
    } else if (name == "cache-status") {
      call->outcome = CacheOutcomeOf(value);
    } else if (name == "grpc-message") {
      call->message = std::string(value);
    }
  }
  void OnData(Http2Stream* /*stream*/, absl::string_view /*data*/) override {}
  void OnEnd(Http2Stream* stream, StreamEnd end, uint32_t code) override;

 private:
  bool open_loop() const { return options_.schedule != nullptr; }
  absl::Status Open(Link* link);
  void Lost(Link* link, absl::string_view why);
  absl::Status NotBegun(const absl::Status& status) const;
  void Serve(Link* link);
  void Begin(Link* link, int64_t due, int64_t now);
  void Refill(int64_t now);
  void StartDue(int64_t now);
  Link* FreeLink();
  void Finish(Call* call, absl::string_view error);
  int64_t WakeAt(int64_t now);
  void LookAfterLinks(int64_t now);

  const RawOptions& options_;
  Owned<SSL_CTX> tls_;  // null = plaintext
  Measure* const measure_;
  Measure::Series* const series_;
  std::vector<char> buffer_;
  std::vector<std::string> framed_;
  size_t next_message_ = 0;

  int epoll_ = -1;
  std::deque<Link> links_;
  size_t next_link_ = 0;
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
};

absl::Status Runner::Open(Link* link) {
  const auto fd = Connect(options_.target);
  if (!fd.ok()) return fd.status();
  std::unique_ptr<wire::TlsStream> secure;
  if (tls_ != nullptr) {
    auto made = wire::TlsStream::Connect(
        tls_.get(), *fd, HostOf(options_.target), kHandshakePatience);
    if (!made.ok()) {
      close(*fd);
      return absl::Status(
          made.status().code(),
          absl::StrCat(options_.target, ": ", made.status().message()));
    }
    secure = *std::move(made);
  }
  Http2Connection::Headers headers = {
      {":method", "POST"},
      {":scheme", tls_ != nullptr ? "https" : "http"},
      {":path", kRunFunctionV1},
      {":authority", options_.target},
      {"content-type", "application/grpc"},
      {"user-agent", "fncache-load"},
      {"te", "trailers"},
  };
  headers.insert(headers.end(), options_.metadata.begin(),
                 options_.metadata.end());
  link->connection = std::make_unique<Http2Connection>(*fd, std::move(headers),
                                                       this, std::move(secure));
  link->waits_for_write = false;
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.ptr = link;
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, *fd, &event) != 0) {
    return absl::ErrnoToStatus(errno, "epoll_ctl");
  }
  Serve(link);
  return absl::OkStatus();
}

// The connection is gone; so are its calls.
void Runner::Lost(Link* link, absl::string_view why) {
  link->connection.reset();
  link->retry_at = MonotonicNanos() + kReconnectEvery;
  const std::string error = absl::StrCat("connection lost: ", why);
  for (Call& call : calls_) {
    if (call.active && call.link == link) Finish(&call, error);
  }
}

void Runner::Serve(Link* link) {
  if (link->connection == nullptr) return;
  if (link->connection->going_away() && link->connection->open_streams() == 0) {
    return Lost(link, "the server goes away");
  }
  const absl::Status status = link->connection->Flush();
  if (!status.ok()) return Lost(link, status.message());
  if (link->connection->wants_write() != link->waits_for_write) {
    link->waits_for_write = !link->waits_for_write;
    epoll_event event = {};
    event.events = EPOLLIN;
    if (link->waits_for_write) event.events |= EPOLLOUT;
    event.data.ptr = link;
    epoll_ctl(epoll_, EPOLL_CTL_MOD, link->connection->fd(), &event);
  }
}

Link* Runner::FreeLink() {
  for (size_t i = 0; i < links_.size(); ++i) {
    Link* const link = &links_[next_link_];
    next_link_ = next_link_ + 1 < links_.size() ? next_link_ + 1 : 0;
    if (link->connection != nullptr && link->connection->CanOpen()) return link;
  }
  return nullptr;
}

void Runner::Begin(Link* link, int64_t due, int64_t now) {
  if (free_.empty()) {
    calls_.emplace_back();
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
  call->body = {framed_[next_message_]};
  next_message_ = next_message_ + 1 < framed_.size() ? next_message_ + 1 : 0;
  ++outstanding_;
  link->connection->Open(call);
}

void Runner::OnEnd(Http2Stream* stream, StreamEnd end, uint32_t code) {
  Call* const call = static_cast<Call*>(stream);
  if (end == StreamEnd::kReset) {
    return Finish(
        call,
        absl::StrCat("the server reset the call with HTTP/2 error ", code));
  }
  if (end == StreamEnd::kRefused) {
    return Finish(call, "the server refused the stream");
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

void Runner::Finish(Call* call, absl::string_view error) {
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
  measure_->AddCall(series_, call->outcome, now - call->began, ok);
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
  for (Call& call : calls_) {
    if (call.active && now - call.began > timeout &&
        call.link->connection != nullptr) {
      Lost(call.link, "no answer in time");
    }
  }
  for (Link& link : links_) {
    if (link.connection != nullptr || now < link.retry_at) continue;
    const absl::Status status = Open(&link);
    if (!status.ok()) {
      link.connection.reset();
      link.retry_at = now + kReconnectEvery;
      measure_->AddError(status.message(), [] { return "a connection"; });
    }
  }
}

// Of the first answer. In TLS 1.3 a server looks at its caller's certificate
// after the caller's handshake is over.
absl::Status Runner::NotBegun(const absl::Status& status) const {
  if (tls_ == nullptr) return status;
  return absl::UnavailableError(
      absl::StrCat(options_.target, ": ", status.message(),
                   "; does the server take our certificate, tls.crt?"));
}

absl::Status Runner::Run() {
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
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  if (epoll_ < 0) return absl::ErrnoToStatus(errno, "epoll_create1");
  links_.resize(static_cast<size_t>(options_.connections));
  for (Link& link : links_) {
    const absl::Status status = Open(&link);
    if (!status.ok()) return status;
  }
  began_ = MonotonicNanos();
  int64_t ready_by = began_ + 10'000'000'000;
  bool ready = false;
  measure_from_ = INT64_MAX;
  int64_t looked = began_;
  int64_t drain_until = INT64_MAX;
  std::array<epoll_event, 64> events;
  for (;;) {
    int64_t now = MonotonicNanos();
    const int64_t sleep = std::max<int64_t>(WakeAt(now) - now, 0);
    timespec timeout;
    timeout.tv_sec = sleep / 1'000'000'000;
    timeout.tv_nsec = sleep % 1'000'000'000;
    const int count =
        epoll_pwait2(epoll_, events.data(), events.size(), &timeout, nullptr);
    for (int i = 0; i < count; ++i) {
      Link* const link = static_cast<Link*>(events[i].data.ptr);
      if (link->connection == nullptr) continue;
      const absl::Status status = link->connection->Read(&buffer_);
      if (!status.ok()) {
        if (!ready) return NotBegun(status);
        Lost(link, status.message());
      }
    }
    now = MonotonicNanos();
    if (!ready) {
      ready = std::all_of(links_.begin(), links_.end(), [](const Link& link) {
        return link.connection != nullptr && link.connection->ready();
      });
      if (ready) {
        began_ = now;
        measure_from_ = now + absl::ToInt64Nanoseconds(options_.warmup);
      } else if (now > ready_by) {
        return absl::UnavailableError(
            absl::StrCat(options_.target,
                         ": no HTTP/2 settings within 10 s; is it a gRPC "
                         "server in plaintext?"));
      }
    }
    if (ready && !measuring_ && now >= measure_from_) {
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
    if (ready) {
      open_loop() ? StartDue(now) : Refill(now);
      if (measuring_ && now >= measure_until_) over_ = true;
      for (Link& link : links_) Serve(&link);
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
  return absl::OkStatus();
}

}  // namespace

absl::Status RunRawLoad(const RawOptions& options, Measure* measure) {
  return Runner(options, measure).Run();
}

}  // namespace fncache::runner::load
