// SPDX-License-Identifier: Apache-2.0
// The values on the shared server: an entry, the mark of a purged key, and the
// record of bans.
//
// An entry or mark starts with a clear header, which the server's scripts
// compare: the version `1` and `started` as 20 decimal digits (nanoseconds
// since the Unix epoch). The sealed form follows: of an entry, the stored form
// of the disk (stored_entry.h); of a mark, the text `purged`. Version, key and
// clear header are the associated data.
//
// The record starts with the version `1`. The sealed bans follow in the form of
// the bans file (stored_bans.h), so the first kRecordBeginning bytes differ
// after each writing. docs/storage-format.md describes both.
//
// Pure functions; thread-safe.
#ifndef FNCACHE_CACHE_STORE_SHARED_VALUE_H_
#define FNCACHE_CACHE_STORE_SHARED_VALUE_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "cache/key/key.h"
#include "cache/store/seal.h"
#include "cache/store/stored_bans.h"
#include "cache/store/stored_entry.h"

namespace fncache::cache::store {

// `started` as clear headers have it: 20 digits, so texts compare as times do.
// Times before the epoch count as the epoch.
std::string StartedText(absl::Time started);
// The clear header of an entry or mark that started then.
std::string ClearHeader(absl::Time started);

// The clear header's size. A value's first kValueBeginning bytes are unlike
// those of any other value: header and nonce.
inline constexpr size_t kClearHeader = 21;
inline constexpr size_t kValueBeginning = kClearHeader + Seal::kNonceSize;

// The Encode functions return nothing if Seal::Close does: the write has
// failed.
std::string EncodeShared(const Seal& seal, const key::Key& key,
                         absl::string_view function,
                         absl::string_view generation, const Entry& entry);
std::string EncodeMark(const Seal& seal, const key::Key& key,
                       absl::Time started);

struct SharedValue {
  // False: it does not open under this seal and key, or is damaged inside. It
  // is to be rejected.
  bool genuine = false;
  bool mark = false;   // the entry was purged or erased
  absl::Time started;  // if it is genuine
  // The entry, or why there is none. Deadlines are not checked.
  Stored stored;
  std::string function;    // of an entry; also of functions without a scope
  std::string generation;  // likewise
};
// Opens `bytes` before it parses or decompresses any of them.
SharedValue DecodeShared(const Seal& seal, const key::Key& key,
                         absl::string_view bytes, StoredScopes scopes);

inline constexpr size_t kRecordBeginning = 1 + Seal::kNonceSize;
std::string EncodeRecord(const Seal& seal, const StoredBans& bans);
// DataLoss with the reason if it does not open, or has no bans.
absl::StatusOr<StoredBans> DecodeRecord(const Seal& seal,
                                        absl::string_view bytes);

}  // namespace fncache::cache::store

#endif  // FNCACHE_CACHE_STORE_SHARED_VALUE_H_
