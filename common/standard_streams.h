// The standard streams of a command: descriptors 0 to 2.
#ifndef FNCACHE_COMMON_STANDARD_STREAMS_H_
#define FNCACHE_COMMON_STANDARD_STREAMS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace fncache {

// Opens /dev/null as each of the descriptors 0 to 2 that is closed, so that no
// file or socket is opened as one of them later: a database would be written
// what is meant for stderr. Main calls it before anything else, and once. False
// if /dev/null cannot be opened.
bool FillStandardStreams();

// Whether the process was started with this descriptor open. Thread-safe.
bool HadStandardStream(int fd);

// Writes all of `text` to standard output. The error is the reason alone, such
// as "No space left on device".
absl::Status WriteStdout(absl::string_view text);

// What a command does whose whole result is `text`, such as its help: writes it
// to standard output. Returns the exit code: 0, or 1 with a line of reason on
// standard error that begins with `command`.
int PrintResult(absl::string_view command, absl::string_view text);

}  // namespace fncache

#endif  // FNCACHE_COMMON_STANDARD_STREAMS_H_
