// SPDX-License-Identifier: Apache-2.0
#include "cache/store/function_table.h"

#include <algorithm>

namespace fncache::cache::store {

std::shared_ptr<const FunctionTable> FunctionTable::Make(
    const std::vector<StoredFunction>& functions, const FunctionTable* before) {
  auto table = std::make_shared<FunctionTable>();
  table->functions_ = functions;
  table->earlier_.resize(functions.size());
  for (size_t i = 0; i < functions.size(); ++i) {
    std::vector<std::string>& earlier = table->earlier_[i];
    if (before != nullptr) {
      earlier = before->earlier_[i];
      earlier.push_back(before->functions_[i].generation);
    }
    const std::string& now = functions[i].generation;
    earlier.erase(std::remove(earlier.begin(), earlier.end(), now),
                  earlier.end());
    if (earlier.size() > kMostEarlier) earlier.erase(earlier.begin());
    table->ids_.emplace(functions[i].name, static_cast<FunctionId>(i));
  }
  return table;
}

FunctionId FunctionTable::IdOf(absl::string_view name) const {
  const auto found = ids_.find(name);
  return found == ids_.end() ? kNoFunction : found->second;
}

absl::optional<StoredScope> FunctionTable::ScopeOf(
    absl::string_view name) const {
  const FunctionId id = IdOf(name);
  if (id == kNoFunction) return absl::nullopt;
  return StoredScope{id, functions_[id].generation, earlier_[id]};
}

bool FunctionTable::MayKeep(const Entry& entry) const {
  if (!entry.secrets()) return true;
  const StoredFunction* const function = Find(entry.function());
  return function != nullptr && function->stores_secrets;
}

}  // namespace fncache::cache::store
