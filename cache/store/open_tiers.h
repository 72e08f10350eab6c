// SPDX-License-Identifier: Apache-2.0
// OpenTiers: makes the store that the settings ask for.
//
// Thread-safe.
#ifndef FNCACHE_CACHE_STORE_OPEN_TIERS_H_
#define FNCACHE_CACHE_STORE_OPEN_TIERS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "cache/observer.h"
#include "cache/store/tiered_store.h"
#include "common/clock.h"

namespace fncache::cache::store {

// Opens the tiers. `clock` and `observer` (null = none) outlive the store.
// Fails with DeadlineExceeded where the directory stays locked, Cancelled where
// `cancelled` said so, FailedPrecondition or InvalidArgument where it cannot be
// used at all; each names the directory. Two things are no failures, but errors
// in the log: a damaged database is set aside, and where there is no space for
// the disk tier, or its file system is read-only, the store is memory alone and
// has a successor later.
absl::StatusOr<std::unique_ptr<TieredStore>> OpenTiers(TieredOptions options,
                                                       Clock* clock,
                                                       Observer* observer);

}  // namespace fncache::cache::store

#endif  // FNCACHE_CACHE_STORE_OPEN_TIERS_H_
