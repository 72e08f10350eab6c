// SPDX-License-Identifier: Apache-2.0
// YAML text as a tree that knows where everything stood, for files that people
// write: whatever is wrong with them can be said with file and line.
//
// Stricter than YAML where leniency hides mistakes: duplicate keys, keys that
// are not plain text, anchors and aliases, a second document, and text that is
// not UTF-8 are refused. Bounds on size and nesting keep any input from hurting
// the process.
//
// Values own their content; the functions are pure and thread-safe.
#ifndef FNCACHE_COMMON_YAML_H_
#define FNCACHE_COMMON_YAML_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace fncache {

struct YamlEntry;

struct YamlNode {
  enum class Kind { kNull, kScalar, kList, kMap };

  Kind kind = Kind::kNull;
  // kScalar: the text, unescaped, and whether quotes made it text for certain
  // ("5" is never a number).
  std::string scalar;
  bool quoted = false;
  std::vector<YamlNode> items;     // kList
  std::vector<YamlEntry> entries;  // kMap, in the order written
  // Where it starts, counted from 1.
  int line = 1;
  int column = 1;

  // The value under `key`, or null. kMap only finds anything.
  const YamlNode* Find(absl::string_view key) const;
};

struct YamlEntry {
  std::string key;
  // Where the key starts, counted from 1.
  int line = 1;
  int column = 1;
  YamlNode value;
};

constexpr size_t kMaxYamlBytes = 1 << 20;
constexpr int kMaxYamlDepth = 100;

// Parses one document; an empty one is kNull. InvalidArgument says
// `NAME:LINE: why`.
absl::StatusOr<YamlNode> ParseYaml(absl::string_view text,
                                   absl::string_view name);

// Reads and parses a file. NotFound or PermissionDenied naming the file where
// it cannot be read, else as ParseYaml.
absl::StatusOr<YamlNode> ReadYamlFile(const std::string& path);

// `text` as a YAML scalar that ParseYaml reads back as the same text: plain
// where that is safe, else in double quotes. `text` is UTF-8.
std::string YamlScalar(absl::string_view text);

}  // namespace fncache

#endif  // FNCACHE_COMMON_YAML_H_
