// SPDX-License-Identifier: Apache-2.0
#include "cache/store/open_tiers.h"

#include <utility>

namespace fncache::cache::store {

absl::StatusOr<std::unique_ptr<LowerStore>> OpenLower(
    const TieredOptions& options, Clock* clock, Observer* observer) {
  if (options.open_shared != nullptr) {
    return options.open_shared(options.bans.get(), clock, observer);
  }
  DiskStoreOptions below;
  below.dir = *options.disk_dir;
  below.capacity = options.disk_bytes;
  below.functions = options.functions;
  below.lock_wait = options.lock_wait;
  below.cancelled = options.cancelled;
  below.env = options.env;
  below.bans = options.bans.get();
  auto disk = DiskStore::Open(std::move(below), clock, observer);
  if (!disk.ok()) return disk.status();
  return *std::move(disk);
}

absl::StatusOr<std::unique_ptr<TieredStore>> OpenTiers(TieredOptions options,
                                                       Clock* clock,
                                                       Observer* observer,
                                                       LowerOpener open) {
  if (options.bans == nullptr) options.bans = std::make_shared<Bans>();
  const bool has_lower =
      options.disk_dir.has_value() || options.open_shared != nullptr;
  auto tiers = std::make_unique<MemoryAndLower>(
      std::move(options), std::move(open), clock, observer);
  if (has_lower) {
    const absl::Status opened = tiers->Open();
    if (absl::IsUnavailable(opened)) {
      tiers->OpenLater(opened);
    } else if (!opened.ok()) {
      return opened;
    }
  }
  return tiers;
}

}  // namespace fncache::cache::store
