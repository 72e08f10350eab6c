// SPDX-License-Identifier: Apache-2.0
#include "sdk/schema/keywords.h"

#include <algorithm>
#include <cmath>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/mutex.h"
#include "common/utf8.h"

namespace fncache::sdk::schema {
namespace {

// Patterns that are kept compiled; the next one drops them all.
constexpr size_t kMaxPatterns = 256;
// Bytes that one pattern may take.
constexpr int64_t kPatternBytes = 1 << 20;
// Whole numbers up to here are exact in a double.
constexpr double kMaxExact = 9007199254740992;

}  // namespace

const Node* Keyword(const Node* schema, absl::string_view keyword) {
  if (schema == nullptr || schema->kind != Kind::kObject) return nullptr;
  const auto found =
      std::lower_bound(schema->children.begin(), schema->children.end(),
                       keyword, [](const Node* child, absl::string_view key) {
                         return child->key < key;
                       });
  if (found == schema->children.end() || (*found)->key != keyword ||
      (*found)->kind == Kind::kUnset) {
    return nullptr;
  }
  return *found;
}

const Node* Keyword(const Node* schema, absl::string_view keyword, Kind kind) {
  const Node* const value = Keyword(schema, keyword);
  return value != nullptr && value->kind == kind ? value : nullptr;
}

bool IsSet(const Node* schema, absl::string_view keyword) {
  const Node* const value = Keyword(schema, keyword, Kind::kBool);
  return value != nullptr && value->boolean;
}

std::string Spelled(const Node* value) {
  switch (value->kind) {
    case Kind::kBool:
      return value->boolean ? "true" : "false";
    case Kind::kNumber:
      if (value->number == std::floor(value->number) &&
          std::abs(value->number) <= kMaxExact) {
        return absl::StrCat(static_cast<int64_t>(value->number));
      }
      return absl::StrFormat("%.15g", value->number);
    case Kind::kText:
      return absl::StrCat("\"", PrintableStart(value->text), "\"");
    case Kind::kObject:
      return "an object";
    case Kind::kList:
      return "a list";
    default:
      return "null";
  }
}

std::shared_ptr<const re2::RE2> CompiledPattern(absl::string_view pattern) {
  using Patterns =
      absl::flat_hash_map<std::string, std::shared_ptr<const re2::RE2>>;
  static Mutex* const mutex = new Mutex;
  static Patterns* const patterns = new Patterns;
  MutexLock lock(mutex);
  const auto found = patterns->find(pattern);
  if (found != patterns->end()) return found->second;
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(kPatternBytes);
  auto compiled = std::make_shared<const re2::RE2>(
      re2::StringPiece(pattern.data(), pattern.size()), options);
  if (!compiled->ok()) compiled = nullptr;
  if (patterns->size() >= kMaxPatterns) patterns->clear();
  patterns->emplace(pattern, compiled);
  return compiled;
}

}  // namespace fncache::sdk::schema
