// SPDX-License-Identifier: Apache-2.0
#include "sdk/compose/hint.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace fncache::sdk {
namespace {

using Path = std::vector<std::string>;  // names as they are spelled

Path Split(const std::string& text) {
  Path path(1);
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '.' && !quoted) {
      path.emplace_back();
      continue;
    }
    if (c == '"') quoted = !quoted;
    path.back() += c;
    if (c == '\\' && quoted && i + 1 < text.size()) path.back() += text[++i];
  }
  return path;
}

// Whether a string of RFC 9651 can hold the name.
bool IsPrintable(const std::string& name) {
  return std::all_of(name.begin(), name.end(),
                     [](char c) { return c >= 0x20 && c <= 0x7e; });
}

// The name of a resource in `observed.resources.NAME`; null where there is
// none, or it is `*` already.
std::string* ResourceName(Path* path) {
  if (path->size() < 3 || (*path)[0] != "observed" ||
      (*path)[1] != "resources" || (*path)[2] == "*") {
    return nullptr;
  }
  return &(*path)[2];
}

std::string Write(const std::set<std::string>& paths, bool pure) {
  std::string hint = "reads=(";
  for (const std::string& path : paths) {
    hint += hint.back() == '(' ? "\"" : " \"";
    for (const char c : path) {
      if (c == '"' || c == '\\') hint += '\\';
      hint += c;
    }
    hint += '"';
  }
  hint += pure ? "), pure" : ")";
  return hint;
}

// The deepest paths: names of resources become `*`, else the last name goes.
// In the end there are the few sections of a request.
std::set<Path> Widen(const std::set<Path>& paths) {
  size_t depth = 0;
  for (const Path& path : paths) depth = std::max(depth, path.size());
  bool names = false;
  for (Path path : paths) {
    names = names || (path.size() == depth && ResourceName(&path) != nullptr);
  }
  std::set<Path> wider;
  for (Path path : paths) {
    if (path.size() == depth) {
      std::string* const name = ResourceName(&path);
      if (name != nullptr) {
        *name = "*";
      } else if (!names && depth > 1) {
        path.pop_back();
      }
    }
    wider.insert(std::move(path));
  }
  return wider;
}

// Without paths below others, which follow them directly.
std::set<std::string> Join(const std::set<Path>& paths) {
  std::set<std::string> texts;
  const Path* above = nullptr;
  for (const Path& path : paths) {
    if (above != nullptr && above->size() <= path.size() &&
        std::equal(above->begin(), above->end(), path.begin())) {
      continue;
    }
    above = &path;
    texts.insert(absl::StrJoin(path, "."));
  }
  return texts;
}

}  // namespace

std::string Hint(const std::set<std::string>& reads, bool pure) {
  std::string hint = Write(reads, pure);
  if (hint.size() <= kMaxHintBytes &&
      std::all_of(reads.begin(), reads.end(), IsPrintable)) {
    return hint;
  }
  std::set<Path> paths;
  for (const std::string& read : reads) {
    Path path = Split(read);
    path.erase(std::find_if_not(path.begin(), path.end(), IsPrintable),
               path.end());
    paths.insert(std::move(path));
  }
  for (hint = Write(Join(paths), pure); hint.size() > kMaxHintBytes;
       hint = Write(Join(paths), pure)) {
    paths = Widen(paths);
  }
  return hint;
}

}  // namespace fncache::sdk
