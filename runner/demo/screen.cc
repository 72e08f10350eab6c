// SPDX-License-Identifier: Apache-2.0
#include "runner/demo/screen.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace fncache::runner::demo {
namespace {

constexpr int kLabelWidth = 36;
constexpr int kValueWidth = 18;

bool WantsColour(bool terminal) {
  const char* no_colour = std::getenv("NO_COLOR");
  return terminal && (no_colour == nullptr || *no_colour == '\0');
}

}  // namespace

DemoScreen::DemoScreen()
    : terminal_(isatty(STDOUT_FILENO) != 0), colour_(WantsColour(terminal_)) {}

void DemoScreen::Title(absl::string_view text) {
  ClearProgress();
  std::printf("\n%s%s%s\n", colour_ ? "\033[1;36m" : "",
              std::string(text).c_str(), colour_ ? "\033[0m" : "");
  std::fflush(stdout);
}

void DemoScreen::Line(absl::string_view text) {
  ClearProgress();
  std::printf("   %s\n", std::string(text).c_str());
  std::fflush(stdout);
}

void DemoScreen::Command(absl::string_view text) {
  ClearProgress();
  std::printf("   %s$ %s%s\n", colour_ ? "\033[2m" : "",
              std::string(text).c_str(), colour_ ? "\033[0m" : "");
  std::fflush(stdout);
}

void DemoScreen::Failure(absl::string_view text) {
  ClearProgress();
  std::fflush(stdout);
  std::fprintf(stderr, "fncache demo: did not hold: %s\n",
               std::string(text).c_str());
}

void DemoScreen::Verbatim(absl::string_view text) {
  ClearProgress();
  std::printf("%s", std::string(text).c_str());
  std::fflush(stdout);
}

void DemoScreen::Progress(absl::string_view what, absl::Duration since) {
  if (!terminal_) return;
  std::printf("\r\033[K   %s... %.0f s", std::string(what).c_str(),
              absl::ToDoubleSeconds(since));
  std::fflush(stdout);
  progress_shown_ = true;
}

void DemoScreen::Table(const std::vector<std::vector<std::string>>& rows) {
  ClearProgress();
  std::printf("\n");
  bool head = true;
  for (const std::vector<std::string>& row : rows) {
    std::printf("%s   %-*s%*s%*s%s\n", head && colour_ ? "\033[1m" : "",
                kLabelWidth, row[0].c_str(), kValueWidth, row[1].c_str(),
                kValueWidth, row[2].c_str(), head && colour_ ? "\033[0m" : "");
    if (head) {
      std::printf("   %s\n",
                  std::string(kLabelWidth + 2 * kValueWidth, '-').c_str());
    }
    head = false;
  }
  std::fflush(stdout);
}

void DemoScreen::Interrupted() const {
  // Other threads may print at the same time, so this takes no lock and writes
  // directly.
  const char end[] = "\r\033[K\033[0m";
  if (terminal_ && write(STDOUT_FILENO, end, sizeof end - 1) < 0) return;
}

void DemoScreen::ClearProgress() {
  if (progress_shown_) std::printf("\r\033[K");
  progress_shown_ = false;
}

}  // namespace fncache::runner::demo
