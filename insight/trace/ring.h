// SPDX-License-Identifier: Apache-2.0
// TraceRing: the files of a trace in one directory, fncache-000001.trace and so
// on. The oldest are removed when there are too many.
//
// Belongs to one thread.
#ifndef FNCACHE_INSIGHT_TRACE_RING_H_
#define FNCACHE_INSIGHT_TRACE_RING_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace fncache::insight::trace {

// The files of a trace, oldest first, as paths: those of the directory `path`,
// or `path` itself if it is a file. NotFound or InvalidArgument says why there
// are none.
absl::StatusOr<std::vector<std::string>> TraceFiles(const std::string& path);

class TraceRing {
 public:
  // Makes the directory `dir` if it does not exist, and locks it. Files of
  // earlier writers stay until the ring removes them.
  static absl::StatusOr<std::unique_ptr<TraceRing>> Open(const std::string& dir,
                                                         int files);
  ~TraceRing();

  // Begins the next file, with the format's first bytes. Before that it removes
  // the oldest, so that there are at most `files` of them.
  absl::Status Next();
  // Appends `bytes` to it. If that fails, the written bytes are cut off and the
  // file is finished: call Next. An empty file is then removed, so that a full
  // disk costs the trace one old file at most.
  absl::Status Append(absl::string_view bytes);
  bool has_file() const { return fd_ >= 0; }
  // Bytes of the file so far.
  uint64_t size() const { return size_; }

 private:
  TraceRing(std::string dir, int files, int lock_fd)
      : dir_(std::move(dir)), files_(files), lock_fd_(lock_fd) {}
  void Close();

  const std::string dir_;
  const int files_;
  const int lock_fd_;
  std::string path_;  // of the file
  int fd_ = -1;
  uint64_t size_ = 0;
};

}  // namespace fncache::insight::trace

#endif  // FNCACHE_INSIGHT_TRACE_RING_H_
