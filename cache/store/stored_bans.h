// SPDX-License-Identifier: Apache-2.0
// The stored form of bans: the bytes of the file that keeps them beside the
// disk tier.
//
// docs/storage-format.md describes it byte by byte. An incomplete file must
// never lift a ban. So the caller must treat a file that does not decode as a
// ban of everything (bans.h does).
//
// Pure functions; thread-safe.
#ifndef FNCACHE_CACHE_STORE_STORED_BANS_H_
#define FNCACHE_CACHE_STORE_STORED_BANS_H_

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cache/key/key.h"

namespace fncache::cache::store {

// Before every entry, in nanoseconds since the Unix epoch.
inline constexpr int64_t kNeverBanned = std::numeric_limits<int64_t>::min();

// Until when entries are banned, in nanoseconds since the Unix epoch: one that
// started at or before `purged` is neither served nor stored, one that started
// at or before `stale` is not fresh.
struct BanTimes {
  int64_t purged = kNeverBanned;
  int64_t stale = kNeverBanned;

  bool empty() const { return purged == kNeverBanned && stale == kNeverBanned; }
  // Adds the bans of `other`. Returns whether more is banned than before.
  bool Add(const BanTimes& other);
  // Whether `outer` bans as much.
  bool IsWithin(const BanTimes& outer) const {
    return purged <= outer.purged && stale <= outer.stale;
  }
  // Forgets what `wider` bans, too. So equal bans have one form.
  void Reduce(const BanTimes& wider) {
    if (purged <= wider.purged) purged = kNeverBanned;
    if (stale <= wider.stale) stale = kNeverBanned;
  }
  friend bool operator==(const BanTimes& a, const BanTimes& b) {
    return a.purged == b.purged && a.stale == b.stale;
  }
};

struct StoredKeyBan {
  BanTimes times;
  // From this time on, no entry that they cover can exist, and they end.
  // (Beside a disk, `purged` ends once the disk's entry is deleted, if that is
  // later.)
  int64_t until = 0;

  friend bool operator==(const StoredKeyBan& a, const StoredKeyBan& b) {
    return a.times == b.times && a.until == b.until;
  }
};

struct StoredBans {
  BanTimes all;
  std::map<std::string, BanTimes> functions;
  // The bans of generations, by function and generation.
  std::map<std::pair<std::string, std::string>, BanTimes> generations;
  absl::flat_hash_map<key::Key, StoredKeyBan> keys;

  friend bool operator==(const StoredBans& a, const StoredBans& b) {
    return a.all == b.all && a.functions == b.functions &&
           a.generations == b.generations && a.keys == b.keys;
  }
};

// Limits all times to `latest`: a ban of a later time would only keep new
// answers out. Returns whether there was one.
bool Clamp(int64_t latest, StoredBans* bans);

// Times are positive, or kNeverBanned; bans without any are left out.
std::string EncodeBans(const StoredBans& bans);

// DataLoss with the reason where the bytes are anything but what EncodeBans
// wrote in this version.
absl::StatusOr<StoredBans> DecodeBans(absl::string_view bytes);

}  // namespace fncache::cache::store

#endif  // FNCACHE_CACHE_STORE_STORED_BANS_H_
