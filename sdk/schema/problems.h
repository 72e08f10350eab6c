// SPDX-License-Identifier: Apache-2.0
// Problems: collects what one validation finds, and counts its steps.
//
// Not thread-safe. Lives as long as the validation.
#ifndef FNCACHE_SDK_SCHEMA_PROBLEMS_H_
#define FNCACHE_SDK_SCHEMA_PROBLEMS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "fncache/function/context.h"
#include "sdk/model/node.h"

namespace fncache::sdk::schema {

// Problems that are reported; the validation ends with the last of them.
inline constexpr size_t kMaxProblems = 100;
// Values, keywords and constants that one validation compares. Beyond it,
// everything counts as right: a schema and an object that multiply would take
// minutes otherwise.
inline constexpr int64_t kMaxSteps = 5000000;

class Problems {
 public:
  // Paths are below `root`.
  explicit Problems(const Node* root)
      : root_(root), root_path_(PathInDocument(root)) {}

  const Node* root() const { return root_; }
  // Adds a problem of the node or, with a key, of the field below it; each
  // once.
  void Add(const Node* node, absl::optional<absl::string_view> key,
           std::string text);
  bool full() const { return problems_.size() >= kMaxProblems; }
  // Counts a step. False if there may be no more.
  bool Step() { return ++steps_ <= kMaxSteps; }
  // Sorted by path.
  std::vector<function::Problem> Take();

 private:
  const Node* const root_;
  const std::string root_path_;
  std::vector<function::Problem> problems_;
  int64_t steps_ = 0;
};

}  // namespace fncache::sdk::schema

#endif  // FNCACHE_SDK_SCHEMA_PROBLEMS_H_
