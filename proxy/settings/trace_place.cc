// SPDX-License-Identifier: Apache-2.0
#include "proxy/settings/trace_place.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace fncache::proxy::settings {
namespace {

namespace fs = std::filesystem;

// Absolute, with links followed as far as it is there, and without a slash at
// its end, which would be a last part without a name.
fs::path Followed(const std::string& path) {
  std::error_code error;
  fs::path whole = fs::absolute(path, error);
  if (error) whole = path;
  fs::path followed = fs::weakly_canonical(whole, error);
  if (error) followed = whole.lexically_normal();
  return followed.has_filename() ? followed : followed.parent_path();
}

bool IsWithin(const fs::path& path, const fs::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end())
             .first == folder.end();
}

}  // namespace

bool IsOfTheCache(const std::string& trace, const std::string& cache) {
  const fs::path place = Followed(trace);
  const fs::path dir = Followed(cache);
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
