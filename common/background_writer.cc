// SPDX-License-Identifier: Apache-2.0
#include "common/background_writer.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <thread>
#include <utility>

#include "absl/time/clock.h"

namespace fncache {
namespace {

// Whole lines, up to what a pipe takes in one piece where they are no longer,
// so that lines of other writers do not get in between.
void WriteLines(int fd, absl::string_view lines) {
  while (!lines.empty()) {
    absl::string_view piece = lines.substr(0, PIPE_BUF);
    const size_t end = piece.rfind('\n');
    if (end != absl::string_view::npos) piece = piece.substr(0, end + 1);
    const ssize_t n = write(fd, piece.data(), piece.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;  // there is nowhere to say it
    lines.remove_prefix(static_cast<size_t>(n));
  }
}

}  // namespace

BackgroundWriter::BackgroundWriter(int fd,
                                   std::function<std::string(uint64_t)> dropped)
    : fd_(fd), dropped_line_(std::move(dropped)) {
  std::thread([this] { Run(); }).detach();
}

void BackgroundWriter::Write(absl::string_view line) {
  MutexLock lock(&mutex_);
  if (waiting_.size() + line.size() > kMostBytes) {
    ++dropped_;
    return;
  }
  waiting_.append(line.data(), line.size());
  changed_.SignalAll();
}

void BackgroundWriter::Flush(absl::Duration patience) {
  const absl::Time until = absl::Now() + patience;
  MutexLock lock(&mutex_);
  while (writing_ || !waiting_.empty()) {
    const absl::Duration left = until - absl::Now();
    if (left <= absl::ZeroDuration()) return;
    changed_.WaitWithTimeout(&mutex_, left);
  }
}

void BackgroundWriter::Run() {
  std::string lines;
  for (;;) {
    lines.clear();
    {
      MutexLock lock(&mutex_);
      writing_ = false;
      changed_.SignalAll();
      while (waiting_.empty()) changed_.Wait(&mutex_);
      lines.swap(waiting_);
      writing_ = true;
      // The dropped lines came after these.
      if (dropped_ > 0) lines += dropped_line_(std::exchange(dropped_, 0));
    }
    WriteLines(fd_, lines);
  }
}

}  // namespace fncache
