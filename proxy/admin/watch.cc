// SPDX-License-Identifier: Apache-2.0
#include "proxy/admin/watch.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/standard_streams.h"
#include "proxy/admin/change.h"
#include "proxy/admin/client.h"
#include "proxy/admin/screen.h"
#include "proxy/admin/stats_text.h"

namespace fncache::proxy::admin {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(10);

// Looks at a daemon again and again, over one connection as long as that lasts.
class Looks {
 public:
  explicit Looks(std::string socket) : socket_(std::move(socket)) {}

  absl::Status Look() {
    if (client_ == nullptr) {
      auto client = Client::Connect(socket_);
      if (!client.ok()) return client.status();
      client_ = *std::move(client);
    }
    auto stats =
        client_->Call(&v1::Admin::Stub::Stats, v1::StatsRequest(), kPatience);
    if (!stats.ok()) {
      client_ = nullptr;
      return stats.status();
    }
    change_ = ChangeBetween(now_, *stats);
    now_ = *std::move(stats);
    return absl::OkStatus();
  }

  bool any() const { return now_.has_value(); }
  std::string Table(const Extent& extent) const {
    return StatsTable(*now_, change_, extent);
  }
  std::string Json() const { return StatsJson(*now_, change_); }

 private:
  const std::string socket_;
  std::unique_ptr<Client> client_;
  absl::optional<v1::StatsResponse> now_;
  Change change_;
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
    absl::Status status = looks.Look();
    if (!status.ok()) return status;
    std::string text = options.json ? looks.Json() : looks.Table(PlainExtent());
    if (!first && !options.json) text.insert(0, "\n");
    status = WriteStdout(text);
    if (!status.ok()) return status;
    if (!options.every.has_value()) return 0;
    // Late looks do not make the next ones late.
    next = std::max(next + *options.every, absl::Now());
    absl::SleepFor(next - absl::Now());
  }
}

int OnScreen(const WatchOptions& options, Screen* screen) {
  Looks looks(options.socket);
  absl::Status status;
  absl::Time next = absl::Now();
  for (;;) {
    if (absl::Now() >= next) {
      status = looks.Look();
      next = absl::Now() + *options.every;
    }
    const Screen::Size size = screen->size();
    std::string text =
        status.ok() ? ""
                    : absl::StrCat("! ", status.message(), "; trying again\n");
    if (looks.any()) {
      const size_t left = size.rows > 1 ? size.rows : 2;
      absl::StrAppend(&text, looks.Table({size.columns, left}));
    }
    screen->Show(text);
    if (screen->Wait(next - absl::Now()) != Screen::Event::kQuit) continue;
    const int signal = screen->signal();
    return signal == 0 || signal == SIGINT ? 0 : 128 + signal;
  }
}

}  // namespace

absl::StatusOr<int> WatchStats(const WatchOptions& options) {
  if (!options.every.has_value() || options.json) return Plainly(options);
  // What is wrong from the start is said where it stays to be read.
  const absl::Status reachable = CheckSocket(options.socket);
  if (!reachable.ok()) return reachable;
  const std::unique_ptr<Screen> screen = Screen::Open();
  return screen == nullptr ? Plainly(options) : OnScreen(options, screen.get());
}

}  // namespace fncache::proxy::admin
