// SPDX-License-Identifier: Apache-2.0
// FunctionTable: the functions as a lower tier knows them, by name, with their
// present and earlier generations.
//
// Immutable; thread-safe.
#ifndef FNCACHE_CACHE_STORE_FUNCTION_TABLE_H_
#define FNCACHE_CACHE_STORE_FUNCTION_TABLE_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "cache/observer.h"
#include "cache/store/entry.h"
#include "cache/store/stored_entry.h"

namespace fncache::cache::store {

class FunctionTable {
 public:
  // Limit of earlier generations of a function. Beyond it the oldest is
  // forgotten.
  static constexpr size_t kMostEarlier = 16;

  // `before` (may be null) is the table until now; its generations become
  // earlier ones.
  static std::shared_ptr<const FunctionTable> Make(
      const std::vector<StoredFunction>& functions,
      const FunctionTable* before);

  const StoredFunction* Find(FunctionId id) const {
    return id < functions_.size() ? &functions_[id] : nullptr;
  }
  FunctionId IdOf(absl::string_view name) const;
  absl::optional<StoredScope> ScopeOf(absl::string_view name) const;
  // Whether the entry may be in a tier that outlives the process, as far as
  // connection details go.
  bool MayKeep(const Entry& entry) const;

 private:
  std::vector<StoredFunction> functions_;
  std::vector<std::vector<std::string>> earlier_;
  absl::flat_hash_map<std::string, FunctionId> ids_;
};

}  // namespace fncache::cache::store

#endif  // FNCACHE_CACHE_STORE_FUNCTION_TABLE_H_
