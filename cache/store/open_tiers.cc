// SPDX-License-Identifier: Apache-2.0
#include "cache/store/open_tiers.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "cache/store/disk_store.h"
#include "cache/store/interim_store.h"
#include "cache/store/memory_and_disk.h"
#include "cache/store/memory_only.h"

namespace fncache::cache::store {

absl::StatusOr<std::unique_ptr<TieredStore>> OpenTiers(TieredOptions options,
                                                       Clock* clock,
                                                       Observer* observer) {
  if (options.bans == nullptr) options.bans = std::make_shared<Bans>();
  if (!options.disk_dir.has_value()) {
    return std::make_unique<MemoryOnly>(options, observer);
  }
  const auto open = [clock, observer](const TieredOptions& options,
                                      absl::Duration lock_wait,
                                      const std::function<bool()>& cancelled)
      -> absl::StatusOr<std::unique_ptr<TieredStore>> {
    DiskStoreOptions below;
    below.dir = *options.disk_dir;
    below.capacity = options.disk_bytes;
    below.functions = options.functions;
    below.lock_wait = lock_wait;
    below.cancelled = cancelled;
    below.env = options.env;
    below.bans = options.bans.get();
    auto disk = DiskStore::Open(std::move(below), clock, observer);
    if (!disk.ok()) return disk.status();
    // Before anything is served.
    const DiskDirectory* const directory = &(*disk)->directory();
    options.bans->Attach(
        directory->ReadBans(),
        [directory](absl::string_view content) {
          return directory->WriteBans(content);
        },
        std::max(clock->Now(), (*disk)->LatestTime()));
    return MakeMemoryAndDisk(options, *std::move(disk), clock, observer);
  };
  auto store = open(options, options.lock_wait, options.cancelled);
  if (!absl::IsUnavailable(store.status())) return store;
  options.bans->Await();
  // A start may wait for a predecessor to leave the directory; later attempts
  // come again anyway.
  return std::make_unique<InterimStore>(
      options, store.status(),
      [open](const TieredOptions& now) {
        return open(now, absl::ZeroDuration(), nullptr);
      },
      observer);
}

}  // namespace fncache::cache::store
