// SPDX-License-Identifier: Apache-2.0
// The stored form: an entry as bytes, for tiers that outlive the process.
//
// docs/storage-format.md describes it byte by byte. Bytes that come back from a
// disk are not trusted: any mismatch is a miss, with a reason by which the
// store counts damage apart from entries that are whole but not for this
// process.
//
// Pure functions; thread-safe.
#ifndef FNCACHE_CACHE_STORE_STORED_ENTRY_H_
#define FNCACHE_CACHE_STORE_STORED_ENTRY_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "cache/key/key.h"
#include "cache/store/entry.h"

namespace fncache::cache::store {

// The bytes of `entry` under `key`, filled by `function` in `generation`.
std::string EncodeStored(const key::Key& key, absl::string_view function,
                         absl::string_view generation, const Entry& entry);

// A function as tiers that outlive the process know it: by its name, because
// its FunctionId may be another one after a restart.
struct StoredFunction {
  std::string name;
  std::string generation;
  // Its responses with connection details may be stored in those tiers, too
  // (the setting `store_secrets: all`).
  bool stores_secrets = false;
};

// A function's name leads to this in this process.
struct StoredScope {
  FunctionId function = 0;
  absl::string_view generation;
  // Others that the function had in this process: a key is made of one of them,
  // so that each finds its own entries only.
  absl::Span<const std::string> earlier = {};
};
// Looks a function up by its name; absent if none of that name is configured
// (any more).
using StoredScopes =
    absl::FunctionRef<absl::optional<StoredScope>(absl::string_view function)>;

enum class StoredMiss {
  kNone,  // it is no miss: there is an entry
  // Foreign: whole perhaps, but not this process's to serve.
  kVersion,     // of another format
  kFunction,    // of a function that is not configured
  kGeneration,  // of another build of the function
  kPurged,      // an operator's purge covers it; the store finds that
  // Damaged.
  kMagic,      // not a stored entry
  kTruncated,  // shorter than it says
  kTrailing,   // longer than it says
  kChecksum,   // not the bytes that were written, or not under this key
  kHeader,     // checksum right, contents impossible
  kBody,       // the same of what is compressed
  // There is no memory for it.
  kMemory,
};

// Whether a sound disk never gives this. Such a miss is counted and logged.
bool IsDamage(StoredMiss miss);
// The reason as the log and the document name it, such as "checksum".
absl::string_view StoredMissName(StoredMiss miss);

struct Stored {
  EntryRef entry;  // null unless `miss` is kNone
  StoredMiss miss = StoredMiss::kNone;
};

// The entry that `bytes` are, if they were stored under `key`. Deadlines are
// not checked. Copies: nothing refers to `bytes` afterwards.
Stored DecodeStored(const key::Key& key, absl::string_view bytes,
                    StoredScopes scopes);

// Holds what stored bytes say of themselves, without a look at the checksum.
// This is for the store's own accounting, never for serving. Absent if the
// bytes are no stored entry.
struct StoredPeek {
  std::string function;
  std::string generation;
  absl::Time started;
  absl::Time arrived;
  absl::Time kept_until;
};
absl::optional<StoredPeek> PeekStored(absl::string_view bytes);

}  // namespace fncache::cache::store

#endif  // FNCACHE_CACHE_STORE_STORED_ENTRY_H_
