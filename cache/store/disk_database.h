// SPDX-License-Identifier: Apache-2.0
// Opens the disk tier's RocksDB: its options, and the recovery of a damaged
// one. Only disk_store.cc includes this: it brings RocksDB's headers.
#ifndef FNCACHE_CACHE_STORE_DISK_DATABASE_H_
#define FNCACHE_CACHE_STORE_DISK_DATABASE_H_

#include <rocksdb/db.h>
#include <rocksdb/env.h>

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "cache/store/disk_directory.h"
#include "cache/store/disk_tally.h"

namespace fncache::cache::store {

// The key of the state. No entry's key has its size.
constexpr char kStateKey[] = "state";

struct OpenedDatabase {
  std::unique_ptr<rocksdb::DB> db;
  // The state as it was left, or a fresh one in a database that is empty.
  DiskState state;
};

// How many bytes are collected in memory before they become a file of entries,
// in a database of `capacity` bytes. A file is about as large.
uint64_t WriteBufferSize(uint64_t capacity);

// The limit of file bytes in a database of `capacity` bytes. Above it the
// oldest files are dropped.
uint64_t MaxFileBytes(uint64_t capacity);

// Wraps `env` so that only the owner may read the files that it makes.
std::unique_ptr<rocksdb::Env> PrivateEnv(rocksdb::Env* env);

rocksdb::Options DatabaseOptions(uint64_t capacity, rocksdb::Env* env);

// Opens DIR/db. A damaged one is set aside (loudly) and an empty one opened;
// any other failure is returned: Unavailable for lack of space or on a
// read-only file system, else FailedPrecondition. `now` is the time of a fresh
// state.
absl::StatusOr<OpenedDatabase> OpenDatabase(const DiskDirectory& directory,
                                            const rocksdb::Options& options,
                                            absl::Time now);

// Removes the content of DIR/db and opens it empty.
absl::StatusOr<OpenedDatabase> RecreateDatabase(const DiskDirectory& directory,
                                                const rocksdb::Options& options,
                                                absl::Time now);

}  // namespace fncache::cache::store

#endif  // FNCACHE_CACHE_STORE_DISK_DATABASE_H_
