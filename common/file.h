// SPDX-License-Identifier: Apache-2.0
// Reads a small file whole, safely whatever kind of file the path names, and
// writes all of a text.
#ifndef FNCACHE_COMMON_FILE_H_
#define FNCACHE_COMMON_FILE_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace fncache {

// The content of a regular file of at most `max_bytes`. A named pipe or a
// device does not hang it. NotFound, PermissionDenied (or whatever else keeps
// it from being read) or FailedPrecondition (not a regular file, too large),
// the message naming the path. Thread-safe.
absl::StatusOr<std::string> ReadSmallFile(const std::string& path,
                                          size_t max_bytes);

// Writes all of `text` to the descriptor, also if one write takes only some of
// it. False, with errno set, if the system takes no more. Thread-safe.
bool WriteAll(int fd, absl::string_view text);

// Writes a file under its own name and replaces an older one. Unknown,
// `cannot write PATH: why`, if it cannot be written.
absl::Status WriteTextFile(const std::string& path, absl::string_view text);
// Checks that WriteTextFile could write it now, without writing. For callers
// that check before long work whose result they write.
absl::Status CheckWritable(const std::string& path);

// The path made absolute, with links followed as far as it is there, so that
// what is equal is one file; without a slash at its end. Thread-safe.
std::string FollowedPath(const std::string& path);

}  // namespace fncache

#endif  // FNCACHE_COMMON_FILE_H_
