// SPDX-License-Identifier: Apache-2.0
// The standard streams of a command: descriptors 0 to 2.
#ifndef FNCACHE_COMMON_STANDARD_STREAMS_H_
#define FNCACHE_COMMON_STANDARD_STREAMS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace fncache {

// Opens /dev/null as each of the descriptors 0 to 2 that is closed, so that no
// file or socket is opened as one of them later: a database would be written
// what is meant for stderr. It has run once before the libraries that the
// binary is linked with were initialised, since some of those open descriptors;
// main calls it again to learn whether it worked. False if /dev/null cannot be
// opened.
bool FillStandardStreams();

// Whether the process was started with this descriptor open. Thread-safe.
bool HadStandardStream(int fd);

// Writes all of `text` to standard output. The error is the reason alone, such
// as "No space left on device".
absl::Status WriteStdout(absl::string_view text);

// Ends a command whose whole result is `text`, such as its help: writes that to
// standard output. Returns the exit code: 0, or 1 with a line of reason on
// standard error that begins with `command`.
int PrintResult(absl::string_view command, absl::string_view text);

}  // namespace fncache

#endif  // FNCACHE_COMMON_STANDARD_STREAMS_H_
