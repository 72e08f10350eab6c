// SPDX-License-Identifier: Apache-2.0
// A terminal for a child process, and what can be seen on it.
//
// Not thread-safe.
#ifndef FNCACHE_TESTS_INTEGRATION_TERMINAL_H_
#define FNCACHE_TESTS_INTEGRATION_TERMINAL_H_

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"

namespace fncache::testing {

class Terminal {
 public:
  Terminal() : master_(posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK)) {
    EXPECT_EQ(grantpt(master_), 0);
    EXPECT_EQ(unlockpt(master_), 0);
    name_ = ptsname(master_);
    // Held open, so that nothing is lost when the child closes it.
    slave_ = open(name_.c_str(), O_RDWR | O_NOCTTY);
    EXPECT_GE(slave_, 0);
  }
  ~Terminal() {
    close(slave_);
    close(master_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  // The path that a child opens.
  const std::string& name() const { return name_; }

  // Returns what came since the last time; a terminal's line ends are \r\n.
  std::string Read() {
    std::string text;
    char buffer[4096];
    ssize_t got = 0;
    while ((got = read(master_, buffer, sizeof buffer)) > 0) {
      text.append(buffer, static_cast<size_t>(got));
    }
    return text;
  }

  void Type(absl::string_view keys) {
    EXPECT_EQ(write(master_, keys.data(), keys.size()),
              static_cast<ssize_t>(keys.size()));
  }

  void Resize(unsigned columns, unsigned rows) {
    winsize size = {};
    size.ws_col = static_cast<unsigned short>(columns);  // NOLINT
    size.ws_row = static_cast<unsigned short>(rows);     // NOLINT
    EXPECT_EQ(ioctl(slave_, TIOCSWINSZ, &size), 0);
  }

  termios settings() const {
    termios now = {};
    EXPECT_EQ(tcgetattr(slave_, &now), 0);
    return now;
  }

 private:
  const int master_;
  int slave_ = -1;
  std::string name_;
};

// The picture of a terminal of a size after these bytes. It knows the few
// sequences that programs here use, and text of one byte a character. Others
// fail the test.
class Seen {
 public:
  Seen(size_t columns, size_t rows) : lines_(rows, std::string(columns, ' ')) {}

  void Take(absl::string_view bytes) {
    for (size_t i = 0; i < bytes.size();) {
      if (bytes[i] == '\033') {
        i += Obey(bytes.substr(i));
        continue;
      }
      const char c = bytes[i++];
      if (c == '\r') {
        column_ = 0;
      } else if (c == '\n') {
        if (row_ + 1 == lines_.size()) {
          ++scrolled_;
        } else {
          ++row_;
        }
      } else if (column_ < lines_[row_].size()) {
        lines_[row_][column_++] = c;
      } else {
        ADD_FAILURE() << "a line is longer than the terminal is wide";
      }
    }
  }

  // Lines without the blanks at their ends.
  std::vector<std::string> lines() const {
    std::vector<std::string> lines = lines_;
    for (std::string& line : lines) absl::StripTrailingAsciiWhitespace(&line);
    return lines;
  }
  int scrolled() const { return scrolled_; }
  bool alternate() const { return alternate_; }
  bool cursor() const { return cursor_; }

 private:
  // Returns how many bytes the sequence has.
  size_t Obey(absl::string_view text) {
    size_t end = 2;
    while (end < text.size() && !absl::ascii_isalpha(text[end])) ++end;
    const absl::string_view sequence = text.substr(1, end);
    const size_t columns = lines_[0].size();
    if (sequence == "[H") {
      row_ = column_ = 0;
    } else if (sequence == "[K") {
      lines_[row_].replace(column_, columns,
                           std::string(columns - column_, ' '));
    } else if (sequence == "[J" || sequence == "[2J") {
      const bool all = sequence == "[2J";
      if (!all) {
        lines_[row_].replace(column_, columns,
                             std::string(columns - column_, ' '));
      }
      for (size_t i = all ? 0 : row_ + 1; i < lines_.size(); ++i) {
        lines_[i].assign(columns, ' ');
      }
    } else if (sequence == "[?1049h" || sequence == "[?1049l") {
      alternate_ = sequence.back() == 'h';
    } else if (sequence == "[?25h" || sequence == "[?25l") {
      cursor_ = sequence.back() == 'h';
    } else if (sequence.back() != 'm') {
      ADD_FAILURE() << "unknown sequence ESC" << sequence;
    }
    return end + 1;
  }

  std::vector<std::string> lines_;
  size_t row_ = 0;
  size_t column_ = 0;
  int scrolled_ = 0;
  bool alternate_ = false;
  bool cursor_ = true;
};

}  // namespace fncache::testing

#endif  // FNCACHE_TESTS_INTEGRATION_TERMINAL_H_
