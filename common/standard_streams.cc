// SPDX-License-Identifier: Apache-2.0
#include "common/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "common/file.h"

namespace fncache {
namespace {

constexpr int kStreams = 3;

// Written before the process has a second thread.
bool was_closed[kStreams] = {};

// Sanitizers are not ready so early.
#if !defined(FNCACHE_ASAN) && !defined(FNCACHE_TSAN)
// The loader runs what stands in this section before any initialiser of a
// shared library.
[[gnu::section(".preinit_array"), gnu::used]] void (*const fill_first)() = [] {
  FillStandardStreams();
};
#endif

}  // namespace

bool FillStandardStreams() {
  for (int fd = 0; fd < kStreams; ++fd) {
    if (fcntl(fd, F_GETFD) != -1 || errno != EBADF) continue;
    was_closed[fd] = true;
    // The lowest descriptor that is free, and so `fd`: those below are open.
    if (open("/dev/null", O_RDWR) != fd) return false;
  }
  return true;
}

bool HadStandardStream(int fd) { return !was_closed[fd]; }

absl::Status WriteStdout(absl::string_view text) {
  if (!HadStandardStream(STDOUT_FILENO)) {
    return absl::UnavailableError("it is closed");
  }
  if (WriteAll(STDOUT_FILENO, text)) return absl::OkStatus();
  return absl::UnavailableError(std::strerror(errno));
}

int PrintResult(absl::string_view command, absl::string_view text) {
  const absl::Status written = WriteStdout(text);
  if (written.ok()) return 0;
  std::fprintf(stderr, "%s: cannot write to standard output: %s\n",
               std::string(command).c_str(),
               std::string(written.message()).c_str());
  return 1;
}

}  // namespace fncache
