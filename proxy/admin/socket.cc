// SPDX-License-Identifier: Apache-2.0
#include "proxy/admin/socket.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proxy/settings/address.h"

namespace fncache::proxy::admin {

absl::Status CheckSocketPath(const std::string& path) {
  if (path.size() <= settings::kMaxSocketPath) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(path, " has ", path.size(),
                   " bytes; the path of a unix socket has at most ",
                   settings::kMaxSocketPath));
}

std::string SocketBeside(const std::string& cache_dir) {
  return absl::StrCat(cache_dir, "/admin.sock");
}

std::vector<std::string> DefaultSockets(
    const absl::optional<std::string>& cache_dir,
    const Environment& environment) {
  std::vector<std::string> places;
  if (cache_dir.has_value() && !cache_dir->empty()) {
    places.push_back(SocketBeside(*cache_dir));
  }
  const std::string runtime = environment("XDG_RUNTIME_DIR").value_or("");
  // Its specification wants it absolute, and ignored where it is not.
  if (absl::StartsWith(runtime, "/")) {
    places.push_back(absl::StrCat(runtime, "/fncache/admin.sock"));
  }
  places.emplace_back("/run/fncache/admin.sock");
  return places;
}

}  // namespace fncache::proxy::admin
