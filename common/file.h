// SPDX-License-Identifier: Apache-2.0
// Reading a small file whole, without being hurt by what is in its place, and
// writing all of a text.
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

// Writes all of `text` to the descriptor, however often the system takes a part
// of it only. False, with errno set, if it takes no more. Thread-safe.
bool WriteAll(int fd, absl::string_view text);

// Writes a file of its own name, in the place of what was there. Unknown,
// `cannot write PATH: why`, if it cannot be written.
absl::Status WriteTextFile(const std::string& path, absl::string_view text);
// Whether that could be done now, without doing it: for who asks before long
// work whose result is to be written.
absl::Status CheckWritable(const std::string& path);

// The path made absolute, with links followed as far as it is there, so that
// what is equal is one file; without a slash at its end. Thread-safe.
std::string FollowedPath(const std::string& path);

}  // namespace fncache

#endif  // FNCACHE_COMMON_FILE_H_
