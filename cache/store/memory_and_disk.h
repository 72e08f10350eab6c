// SPDX-License-Identifier: Apache-2.0
// The TieredStore of a daemon with a disk tier: memory, and a DiskStore below.
//
// Look-ups on disk run on a few threads of its own, and writes to disk behind
// the answer on another one. tiered_store.h says what the tiers owe each other.
#ifndef FNCACHE_CACHE_STORE_MEMORY_AND_DISK_H_
#define FNCACHE_CACHE_STORE_MEMORY_AND_DISK_H_

#include <memory>

#include "cache/observer.h"
#include "cache/store/disk_store.h"
#include "cache/store/tiered_store.h"
#include "common/clock.h"

namespace fncache::cache::store {

// `disk` is open. `clock` and `observer` (null = none) outlive the store.
std::unique_ptr<TieredStore> MakeMemoryAndDisk(const TieredOptions& options,
                                               std::unique_ptr<DiskStore> disk,
                                               Clock* clock,
                                               Observer* observer);

}  // namespace fncache::cache::store

#endif  // FNCACHE_CACHE_STORE_MEMORY_AND_DISK_H_
