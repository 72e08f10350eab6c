// SPDX-License-Identifier: Apache-2.0
// BackgroundWriter: writes lines to a descriptor that may block for a while (a
// pipe whose reader stalls). No caller that logs a line waits for it.
//
// Thread-safe. There is no destructor: the thread may block in write(2) when
// the process ends.
#ifndef FNCACHE_COMMON_BACKGROUND_WRITER_H_
#define FNCACHE_COMMON_BACKGROUND_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/mutex.h"

namespace fncache {

class BackgroundWriter {
 public:
  // Limit, in bytes, of the lines that wait. Beyond it, new lines are dropped.
  static constexpr size_t kMostBytes = 1 << 20;

  // Starts the thread. When lines can be written again, `dropped` gets the
  // number of dropped lines and returns the line that reports them.
  BackgroundWriter(int fd, std::function<std::string(uint64_t)> dropped);

  // A line, with its end. Never blocks.
  void Write(absl::string_view line);

  // Returns once all lines are written, or after `patience`.
  void Flush(absl::Duration patience);

 private:
  ~BackgroundWriter() = delete;
  void Run();

  const int fd_;
  const std::function<std::string(uint64_t)> dropped_line_;
  Mutex mutex_;
  CondVar changed_;
  std::string waiting_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t dropped_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace fncache

#endif  // FNCACHE_COMMON_BACKGROUND_WRITER_H_
