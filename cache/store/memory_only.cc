// SPDX-License-Identifier: Apache-2.0
#include "cache/store/memory_only.h"

#include "cache/store/disk_directory.h"

namespace fncache::cache::store {

MemoryOnly::MemoryOnly(const TieredOptions& options, Observer* observer)
    : TieredStore(options.bans),
      memory_({options.memory_bytes, options.max_entry_bytes}, observer),
      seed_(RandomSeed()) {}

StoreStats MemoryOnly::LowerStats() const {
  StoreStats none;
  none.up = false;
  return none;
}

absl::Status MemoryOnly::Change(const TieredChange& change, absl::Time now) {
  memory_.SetCapacity(change.memory_bytes, now);
  return absl::OkStatus();
}

}  // namespace fncache::cache::store
