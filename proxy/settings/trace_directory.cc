// SPDX-License-Identifier: Apache-2.0
#include "proxy/settings/trace_directory.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "common/file.h"

namespace fncache::proxy::settings {
namespace {

namespace fs = std::filesystem;

bool IsWithin(const fs::path& path, const fs::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end())
             .first == folder.end();
}

}  // namespace

bool IsOfTheCache(const std::string& trace, const std::string& cache) {
  const fs::path place = FollowedPath(trace);
  const fs::path dir = FollowedPath(cache);
  return place == dir || IsWithin(place, dir / "db") ||
         IsWithin(place, dir / "damaged");
}

std::string OfTheCacheText(const std::string& trace, const std::string& cache) {
  return absl::StrCat("\"", trace, "\" is the disk cache's own (cache.dir ",
                      cache,
                      "), which may remove what is there; accepted: a "
                      "directory of its own, such as ",
                      (fs::path(cache) / "trace").string());
}

}  // namespace fncache::proxy::settings
