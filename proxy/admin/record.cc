// SPDX-License-Identifier: Apache-2.0
#include "proxy/admin/record.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/utf8.h"
#include "proto/admin.pb.h"
#include "proxy/admin/client.h"
#include "proxy/admin/units.h"

namespace fncache::proxy::admin {
namespace {

constexpr absl::Duration kSoon = absl::Minutes(1);
// By then the daemon has written its queued lines, or is too busy to wait for.
constexpr absl::Duration kMostWaited = absl::Seconds(30);
constexpr absl::Duration kPolled = absl::Milliseconds(50);

// Waits until no writer has the trace's folder locked (insight/trace/ring.h).
absl::Status WaitForItsEnd(const std::string& dir) {
  const std::string lock = absl::StrCat(dir, "/lock");
  const absl::Time end = absl::Now() + kMostWaited;
  while (absl::Now() < end) {
    const int fd = open(lock.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
      return absl::FailedPreconditionError(
          absl::StrCat(dir, ": the daemon's trace cannot be read from here: ",
                       std::strerror(errno)));
    }
    const bool free = flock(fd, LOCK_SH | LOCK_NB) == 0;
    close(fd);
    if (free) return absl::OkStatus();
    absl::SleepFor(kPolled);
  }
  return absl::DeadlineExceededError(
      absl::StrCat(dir, ": the daemon does not end its trace"));
}

}  // namespace

absl::StatusOr<std::map<std::string, std::string>> RecordTrace(
    const RecordOptions& options) {
  if (options.dir.empty() || options.dir[0] != '/') {
    return absl::InvalidArgumentError(
        absl::StrCat("--dir: \"", PrintableStart(options.dir),
                     "\" is not accepted; accepted: an absolute path"));
  }
  SocketSearch search;
  search.flag = options.socket;
  search.cache_dir = options.cache_dir;
  search.environment =
      [](const std::string& name) -> absl::optional<std::string> {
    const char* const value = std::getenv(name.c_str());
    if (value == nullptr) return absl::nullopt;
    return std::string(value);
  };
  const auto socket = FindSocket(search);
  if (!socket.ok()) return socket.status();
  const auto client = Client::Connect(*socket);
  if (!client.ok()) return client.status();
  const auto stats =
      (*client)->Call(&v1::Admin::Stub::Stats, v1::StatsRequest(), kSoon);
  if (!stats.ok()) return stats.status();
  v1::StartTraceRequest start;
  start.set_dir(options.dir);
  start.set_level("full");
  *start.mutable_for_time() = ToProto(options.for_time);
  const auto started =
      (*client)->Call(&v1::Admin::Stub::StartTrace, start, kSoon);
  if (!started.ok()) return started.status();
  // The trace ends automatically; then the daemon's settings apply again.
  absl::SleepFor(options.for_time);
  const absl::Status ended = WaitForItsEnd(options.dir);
  if (!ended.ok()) return ended;
  std::map<std::string, std::string> targets;
  for (const auto& function : stats->functions()) {
    targets[function.name()] = function.upstream();
  }
  return targets;
}

}  // namespace fncache::proxy::admin
