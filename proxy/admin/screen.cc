// SPDX-License-Identifier: Apache-2.0
#include "proxy/admin/screen.h"

#include <poll.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "common/file.h"
#include "common/utf8.h"

namespace fncache::proxy::admin {
namespace {

constexpr int kSignals[] = {SIGINT,  SIGTERM,  SIGHUP, SIGQUIT,
                            SIGTSTP, SIGWINCH, SIGCONT};

// Control sequences of ECMA-48 and xterm. tmux, screen and all terminals of
// today know them.
constexpr char kEnter[] = "\033[?1049h\033[?25l\033[H\033[2J";
constexpr char kLeave[] = "\033[?25h\033[?1049l";
constexpr char kHome[] = "\033[H";
constexpr char kRestOfLine[] = "\033[K";
constexpr char kRestOfScreen[] = "\033[J";
constexpr char kBold[] = "\033[1m";
constexpr char kRed[] = "\033[31m";
constexpr char kPlain[] = "\033[0m";

bool IsEmpty(const char* text) { return text == nullptr || *text == '\0'; }

// At most `columns` characters of a line.
absl::string_view Cut(absl::string_view line, size_t columns) {
  size_t end = 0;
  for (size_t i = 0; i < columns && end < line.size(); ++i) {
    end += std::max<size_t>(1, Utf8CharacterBytes(line.substr(end)));
  }
  return line.substr(0, end);
}

}  // namespace

std::unique_ptr<Screen> Screen::Open() {
  const char* const term = std::getenv("TERM");
  const std::string kind = term == nullptr ? "" : term;
  if (isatty(STDIN_FILENO) == 0 || isatty(STDOUT_FILENO) == 0 || kind.empty() ||
      kind == "dumb") {
    return nullptr;
  }
  termios before = {};
  if (tcgetattr(STDIN_FILENO, &before) != 0) return nullptr;
  sigset_t set;
  sigset_t mask;
  sigemptyset(&set);
  for (const int signal : kSignals) sigaddset(&set, signal);
  if (pthread_sigmask(SIG_BLOCK, &set, &mask) != 0) return nullptr;
  const int signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals < 0) {
    pthread_sigmask(SIG_SETMASK, &mask, nullptr);
    return nullptr;
  }
  return std::unique_ptr<Screen>(new Screen(signals, before, mask));
}

Screen::Screen(int signals, const termios& before, const sigset_t& mask)
    : signals_(signals),
      before_(before),
      mask_(mask),
      color_(IsEmpty(std::getenv("NO_COLOR"))) {
  Enter();
}

Screen::~Screen() {
  Leave();
  close(signals_);
  pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
}

void Screen::Enter() {
  termios quiet = before_;
  // Keys arrive one by one and are not echoed; Ctrl-C stays a signal.
  quiet.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  quiet.c_cc[VMIN] = 0;
  quiet.c_cc[VTIME] = 0;
  tcsetattr(STDIN_FILENO, TCSANOW, &quiet);
  WriteAll(STDOUT_FILENO, kEnter);
}

void Screen::Leave() {
  WriteAll(STDOUT_FILENO, kLeave);
  tcsetattr(STDIN_FILENO, TCSANOW, &before_);
}

void Screen::Suspend() {
  Leave();
  raise(SIGSTOP);
  Enter();
}

Screen::Size Screen::size() const {
  winsize size = {};
  Size known;
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 &&
      size.ws_row > 0) {
    known = {size.ws_col, size.ws_row};
  }
  return known;
}

void Screen::Show(absl::string_view text) {
  const Size now = size();
  const std::vector<absl::string_view> lines =
      absl::StrSplit(absl::StripSuffix(text, "\n"), '\n');
  std::string picture = kHome;
  for (size_t i = 0; i < lines.size() && i < now.rows; ++i) {
    const bool alarm = color_ && absl::StartsWith(lines[i], "! ");
    const bool first = color_ && i == 0;
    // The last line has no newline: the terminal would scroll.
    absl::StrAppend(&picture, i == 0 ? "" : "\r\n",
                    alarm   ? kRed
                    : first ? kBold
                            : "",
                    Cut(lines[i], now.columns), alarm || first ? kPlain : "",
                    lines[i].size() < now.columns ? kRestOfLine : "");
  }
  if (lines.size() < now.rows) absl::StrAppend(&picture, kRestOfScreen);
  WriteAll(STDOUT_FILENO, picture);
}

Screen::Event Screen::Wait(absl::Duration time, int waker) {
  const absl::Time until = absl::Now() + time;
  for (;;) {
    const absl::Duration left = until - absl::Now();
    if (left <= absl::ZeroDuration()) return Event::kTime;
    // poll ignores a negative descriptor.
    pollfd ready[3] = {
        {signals_, POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}, {waker, POLLIN, 0}};
    const int milliseconds = static_cast<int>(absl::ToInt64Milliseconds(
                                 std::min(left, absl::Hours(1)))) +
                             1;
    if (poll(ready, 3, milliseconds) < 0) {
      if (errno == EINTR) continue;
      return Event::kQuit;
    }
    if ((ready[0].revents & POLLIN) != 0) {
      signalfd_siginfo info = {};
      if (read(signals_, &info, sizeof info) != sizeof info) continue;
      switch (static_cast<int>(info.ssi_signo)) {
        case SIGWINCH:
        case SIGCONT:
          return Event::kResize;
        case SIGTSTP:
          Suspend();
          return Event::kResize;
        default:
          signal_ = static_cast<int>(info.ssi_signo);
          return Event::kQuit;
      }
    }
    if (ready[1].revents != 0) {
      char key = 0;
      const ssize_t n = read(STDIN_FILENO, &key, 1);
      // The descriptor is ready but has no byte: the terminal is closed.
      if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN)) {
        return Event::kQuit;
      }
      if (n == 1 && (key == 'q' || key == 'Q')) return Event::kQuit;
    }
    if (ready[2].revents != 0) return Event::kWoken;
  }
}

}  // namespace fncache::proxy::admin
