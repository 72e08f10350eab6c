// SPDX-License-Identifier: Apache-2.0
// OpenTiers: makes the store that the settings ask for. It is memory, and below
// it the disk tier, the shared tier, or none.
//
// Thread-safe.
#ifndef FNCACHE_CACHE_STORE_OPEN_TIERS_H_
#define FNCACHE_CACHE_STORE_OPEN_TIERS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "cache/observer.h"
#include "cache/store/disk_store.h"
#include "cache/store/memory_and_lower.h"
#include "cache/store/tiered_store.h"
#include "common/clock.h"

namespace fncache::cache::store {

absl::StatusOr<std::unique_ptr<LowerStore>> OpenLower(
    const TieredOptions& options, Clock* clock, Observer* observer);

// Opens the tiers. `clock` and `observer` (null = none) outlive the store.
// Fails with DeadlineExceeded where the directory stays locked, Cancelled where
// `cancelled` said so, FailedPrecondition or InvalidArgument where it cannot be
// used at all; each names the directory. Two failures only log an error. A
// damaged database is set aside. If the disk tier has no space, or its file
// system is read-only, the store runs on memory and retries every `disk_retry`.
// It logs the reason once, again if the reason changes, and one line when the
// tier is open. Tests pass another `open`.
absl::StatusOr<std::unique_ptr<TieredStore>> OpenTiers(
    TieredOptions options, Clock* clock, Observer* observer,
    LowerOpener open = OpenLower);

}  // namespace fncache::cache::store

#endif  // FNCACHE_CACHE_STORE_OPEN_TIERS_H_
