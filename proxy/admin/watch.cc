// SPDX-License-Identifier: Apache-2.0
#include "proxy/admin/watch.h"

#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/standard_streams.h"
#include "common/threads.h"
#include "proxy/admin/change.h"
#include "proxy/admin/client.h"
#include "proxy/admin/screen.h"
#include "proxy/admin/stats_text.h"

namespace fncache::proxy::admin {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(10);

// Reads a daemon's counts repeatedly, over one connection while that lasts.
class Looks {
 public:
  explicit Looks(std::string socket) : socket_(std::move(socket)) {}

  // Calls the daemon, and waits for the answer or the cancellation of
  // `context`.
  absl::StatusOr<v1::StatsResponse> Ask(grpc::ClientContext* context) {
    if (client_ == nullptr) {
      auto client = Client::Connect(socket_);
      if (!client.ok()) return client.status();
      client_ = *std::move(client);
    }
    auto stats = client_->Call(&v1::Admin::Stub::Stats, v1::StatsRequest(),
                               kPatience, context);
    if (!stats.ok()) client_ = nullptr;
    return stats;
  }
  // Stores an answer. May be called during the next Ask.
  void Take(v1::StatsResponse stats) {
    change_ = ChangeBetween(now_, stats);
    now_ = std::move(stats);
  }

  bool any() const { return now_.has_value(); }
  std::string Table(const Extent& extent) const {
    return StatsTable(*now_, change_, extent);
  }
  std::string Json() const { return StatsJson(*now_, change_); }

 private:
  const std::string socket_;
  std::unique_ptr<Client> client_;  // used by Ask only
  absl::optional<v1::StatsResponse> now_;
  Change change_;
};

// Wakes a wait on another thread.
class Waker {
 public:
  Waker() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  ~Waker() {
    if (fd_ >= 0) close(fd_);
  }
  Waker(const Waker&) = delete;
  Waker& operator=(const Waker&) = delete;

  // The descriptor to wait for; negative if there is none.
  int fd() const { return fd_; }
  void Wake() const { eventfd_write(fd_, 1); }
  void Reset() const {
    eventfd_t count = 0;
    eventfd_read(fd_, &count);
  }

 private:
  const int fd_;
};

// A reading in the background, while the screen handles keys and signals. Its
// destructor cancels it if there is no answer yet.
class BackgroundLook {
 public:
  // Wakes `waker` when there is an answer. Both outlive this object.
  BackgroundLook(Looks* looks, const Waker* waker)
      : thread_([this, looks, waker] {
          answer_ = looks->Ask(&context_);
          waker->Wake();
        }) {}
  ~BackgroundLook() {
    if (!thread_.joinable()) return;
    context_.TryCancel();
    thread_.join();
  }
  BackgroundLook(const BackgroundLook&) = delete;
  BackgroundLook& operator=(const BackgroundLook&) = delete;

  // Call it once, after `waker` was woken.
  absl::StatusOr<v1::StatsResponse> Answer() {
    thread_.join();
    return std::move(answer_);
  }

 private:
  grpc::ClientContext context_;
  absl::StatusOr<v1::StatsResponse> answer_;
  std::thread thread_;
};

Extent PlainExtent() {
  Extent extent;
  winsize size = {};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    extent.columns = size.ws_col;
  }
  return extent;
}

absl::StatusOr<int> Plainly(const WatchOptions& options) {
  Looks looks(options.socket);
  absl::Time next = absl::Now();
  for (bool first = true;; first = false) {
    grpc::ClientContext context;
    auto stats = looks.Ask(&context);
    if (!stats.ok()) return stats.status();
    looks.Take(*std::move(stats));
    std::string text = options.json ? looks.Json() : looks.Table(PlainExtent());
    if (!first && !options.json) text.insert(0, "\n");
    const absl::Status status = WriteStdout(text);
    if (!status.ok()) {
      return absl::UnavailableError(
          absl::StrCat("cannot write to standard output: ", status.message()));
    }
    if (!options.every.has_value()) return 0;
    // A late reading does not delay the next ones.
    next = std::max(next + *options.every, absl::Now());
    absl::SleepFor(next - absl::Now());
  }
}

std::string Picture(const Looks& looks, const absl::Status& status,
                    const Screen::Size& size) {
  std::string text = status.ok()
                         ? ""
                         // These words come first: a narrow screen cuts the
                         // line's end.
                         : absl::StrCat("! retrying: ", status.message(), "\n");
  if (looks.any()) {
    const size_t left = size.rows > 1 ? size.rows : 2;
    absl::StrAppend(&text, looks.Table({size.columns, left}));
  }
  return text;
}

absl::StatusOr<int> OnScreen(const WatchOptions& options, Screen* screen) {
  const Waker waker;
  if (waker.fd() < 0) return absl::UnavailableError(std::strerror(errno));
  Looks looks(options.socket);
  absl::Status status;
  std::unique_ptr<BackgroundLook> look;
  absl::Time next = absl::Now();
  for (;;) {
    if (look == nullptr && absl::Now() >= next) {
      const absl::Status thread = CheckThreads(1);
      if (thread.ok()) {
        look = std::make_unique<BackgroundLook>(&looks, &waker);
      } else {
        status = thread;
        next = absl::Now() + *options.every;
        screen->Show(Picture(looks, status, screen->size()));
      }
    }
    const absl::Duration time =
        look == nullptr ? next - absl::Now() : absl::InfiniteDuration();
    switch (screen->Wait(time, waker.fd())) {
      case Screen::Event::kQuit: {
        const int signal = screen->signal();
        return signal == 0 || signal == SIGINT ? 0 : 128 + signal;
      }
      case Screen::Event::kWoken: {
        waker.Reset();
        auto stats = look->Answer();
        look = nullptr;
        status = stats.status();
        if (stats.ok()) looks.Take(*std::move(stats));
        next = absl::Now() + *options.every;
        break;
      }
      case Screen::Event::kTime:
        continue;
      case Screen::Event::kResize:
        break;
    }
    screen->Show(Picture(looks, status, screen->size()));
  }
}

}  // namespace

absl::StatusOr<int> WatchStats(const WatchOptions& options) {
  if (!options.every.has_value() || options.json) return Plainly(options);
  // An error at the start is printed before the screen is opened, so that it
  // stays on the terminal.
  const absl::Status reachable = CheckSocket(options.socket);
  if (!reachable.ok()) return reachable;
  const std::unique_ptr<Screen> screen = Screen::Open();
  return screen == nullptr ? Plainly(options) : OnScreen(options, screen.get());
}

}  // namespace fncache::proxy::admin
