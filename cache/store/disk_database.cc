// SPDX-License-Identifier: Apache-2.0
#include "cache/store/disk_database.h"

#include <rocksdb/cache.h>
#include <rocksdb/file_system.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/log.h"
#include "common/mutex.h"

namespace fncache::cache::store {
namespace {

// Writes RocksDB's errors to our log, at most ten a minute, because a failing
// disk repeats its errors.
class ErrorLogger : public rocksdb::Logger {
 public:
  ErrorLogger() : Logger(rocksdb::InfoLogLevel::ERROR_LEVEL) {}

  void LogHeader(const char*, va_list) override {}
  void Logv(const char* format, va_list arguments) override {
    Logv(rocksdb::InfoLogLevel::INFO_LEVEL, format, arguments);
  }
  void Logv(const rocksdb::InfoLogLevel level, const char* format,
            va_list arguments) override {
    if (level < rocksdb::InfoLogLevel::ERROR_LEVEL ||
        level >= rocksdb::InfoLogLevel::HEADER_LEVEL) {
      return;
    }
    if (!Allowed()) return;
    char text[500];
    std::vsnprintf(text, sizeof(text), format, arguments);
    Log(LogLevel::kWarning, "rocksdb", {{"message", text}});
  }

 private:
  bool Allowed() {
    MutexLock lock(&mutex_);
    const absl::Time now = absl::Now();
    if (now - since_ > absl::Minutes(1)) {
      since_ = now;
      written_ = 0;
    }
    return ++written_ <= 10;
  }

  Mutex mutex_;
  absl::Time since_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  int written_ ABSL_GUARDED_BY(mutex_) = 0;
};

// A file system whose files only their owner may read. The directory is private
// already. This protects files that are copied out of it.
class PrivateFileSystem : public rocksdb::FileSystemWrapper {
 public:
  using FileSystemWrapper::FileSystemWrapper;
  const char* Name() const override { return "PrivateFileSystem"; }

  rocksdb::IOStatus NewWritableFile(
      const std::string& name, const rocksdb::FileOptions& options,
      std::unique_ptr<rocksdb::FSWritableFile>* file,
      rocksdb::IODebugContext* debug) override {
    return Private(name, target()->NewWritableFile(name, options, file, debug));
  }
  rocksdb::IOStatus ReopenWritableFile(
      const std::string& name, const rocksdb::FileOptions& options,
      std::unique_ptr<rocksdb::FSWritableFile>* file,
      rocksdb::IODebugContext* debug) override {
    return Private(name,
                   target()->ReopenWritableFile(name, options, file, debug));
  }
  rocksdb::IOStatus LockFile(const std::string& name,
                             const rocksdb::IOOptions& options,
                             rocksdb::FileLock** lock,
                             rocksdb::IODebugContext* debug) override {
    return Private(name, target()->LockFile(name, options, lock, debug));
  }

 private:
  static rocksdb::IOStatus Private(const std::string& name,
                                   rocksdb::IOStatus status) {
    if (status.ok() && chmod(name.c_str(), 0600) != 0) {
      return rocksdb::IOStatus::IOError("cannot make it private", name);
    }
    return status;
  }
};

bool IsLackOfSpace(const rocksdb::Status& status) {
  if (status.IsNoSpace()) return true;
  if (!status.IsIOError()) return false;
  // RocksDB keeps only the system's error text, not the number.
  const std::string text = status.ToString();
  for (const int error : kLackOfSpace) {
    if (absl::StrContains(text, std::generic_category().message(error))) {
      return true;
    }
  }
  return false;
}

absl::Status Failure(const DiskDirectory& directory,
                     const rocksdb::Status& status) {
  return absl::Status(IsLackOfSpace(status)
                          ? absl::StatusCode::kUnavailable
                          : absl::StatusCode::kFailedPrecondition,
                      absl::StrCat("cache directory ", directory.path(),
                                   ": cannot open db: ", status.ToString()));
}

// Whether files are changed or missing, as opposed to a disk that fails or must
// not be used.
bool IsDamage(const rocksdb::Status& status) {
  return status.IsCorruption() || status.IsPathNotFound() ||
         status.IsNotFound();
}

absl::StatusOr<OpenedDatabase> OpenOnce(const rocksdb::Options& options,
                                        const DiskDirectory& directory,
                                        absl::Time now,
                                        rocksdb::Status* status) {
  OpenedDatabase opened;
  rocksdb::DB* db = nullptr;
  if (directory.DatabaseLacksItsHead()) {
    *status = rocksdb::Status::Corruption("CURRENT or its MANIFEST is missing");
    return Failure(directory, *status);
  }
  *status = rocksdb::DB::Open(options, directory.db(), &db);
  if (!status->ok()) return Failure(directory, *status);
  opened.db.reset(db);

  std::string bytes;
  *status = db->Get(rocksdb::ReadOptions(), kStateKey, &bytes);
  if (status->IsNotFound()) {
    const std::unique_ptr<rocksdb::Iterator> first(
        db->NewIterator(rocksdb::ReadOptions()));
    first->SeekToFirst();
    if (!first->Valid() && first->status().ok()) {
      *status = rocksdb::Status::OK();
      opened.state.time = now;
      return opened;
    }
    *status = rocksdb::Status::Corruption("entries without a state");
  } else if (status->ok()) {
    auto state = DiskState::Decode(bytes);
    if (state.has_value()) {
      opened.state = *std::move(state);
      return opened;
    }
    *status = rocksdb::Status::Corruption("the state is damaged");
  }
  return Failure(directory, *status);
}

constexpr uint64_t kSmallestBuffer = 256 << 10;

// Opens what is in DIR/db. If a new database finds no space, its files are
// removed: the next start would take them for a damaged database.
absl::StatusOr<OpenedDatabase> OpenOrLeaveNothing(
    const rocksdb::Options& options, const DiskDirectory& directory,
    absl::Time now, rocksdb::Status* status) {
  const bool anew = directory.DatabaseIsEmpty();
  auto opened = OpenOnce(options, directory, now, status);
  if (anew && !opened.ok()) directory.DropDatabase().IgnoreError();
  return opened;
}

}  // namespace

std::unique_ptr<rocksdb::Env> PrivateEnv(rocksdb::Env* env) {
  return rocksdb::NewCompositeEnv(
      std::make_shared<PrivateFileSystem>(env->GetFileSystem()));
}

uint64_t WriteBufferSize(uint64_t capacity) {
  return std::clamp<uint64_t>(capacity / 128, kSmallestBuffer, 128 << 20);
}

uint64_t MaxFileBytes(uint64_t capacity) {
  const uint64_t buffer = WriteBufferSize(capacity);
  return capacity > 16 * buffer ? capacity - 8 * buffer : capacity / 2;
}

rocksdb::Options DatabaseOptions(uint64_t capacity, rocksdb::Env* env) {
  rocksdb::Options options;
  options.env = env;
  options.create_if_missing = true;

  // These options keep the bound. Beside the files there are up to three write
  // buffers of log and as many of a file that is being written, and two of new
  // files until the oldest are dropped.
  const uint64_t buffer = WriteBufferSize(capacity);
  options.compaction_style = rocksdb::kCompactionStyleFIFO;
  options.compaction_options_fifo.max_table_files_size = MaxFileBytes(capacity);
  options.compaction_options_fifo.allow_compaction = false;
  options.ttl = 0;
  options.periodic_compaction_seconds = 0;
  options.write_buffer_size = buffer;
  // An eighth of the smallest buffer, whatever the size of this one. By default
  // the block follows the buffer at open. A buffer that is later made smaller
  // than one block is full from the start, and RocksDB's assertions then end
  // the process (MemTable::ShouldFlushNow).
  options.arena_block_size = kSmallestBuffer / 8;
  options.max_write_buffer_number = 3;
  options.max_background_jobs = 2;
  options.memtable_prefix_bloom_size_ratio = 0.02;
  options.memtable_whole_key_filtering = true;
  // Values are compressed already (docs/storage-format.md), so that a file of
  // them is as large as the buffer that it was written from: a look-up pays for
  // each file that it asks.
  options.compression = rocksdb::kNoCompression;

  // A restart replays less than a buffer of log and opens the files, no more. A
  // log that ends in the middle of a record was being written when the process
  // was killed; anything else that is wrong with it counts as damage.
  options.wal_recovery_mode =
      rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  options.avoid_flush_during_recovery = true;
  options.avoid_flush_during_shutdown = true;
  options.skip_stats_update_on_db_open = true;

  // Every look-up asks every file's filter, so files, filters and indexes stay
  // open (about 1/400 of the capacity in memory) as far as the system lets us.
  struct rlimit limit;
  const uint64_t files = 4 * capacity / buffer;
  options.max_open_files = -1;
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur / 2 < files) {
    options.max_open_files = static_cast<int>(limit.rlim_cur / 2);
  }
  rocksdb::BlockBasedTableOptions table;
  // With 16 bits a key one guess in a thousand is wrong for each file; with 10,
  // every look-up in a full database would read a block in vain.
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(16));
  table.checksum = rocksdb::kXXH3;
  table.block_size = 8 << 10;
  table.format_version = 5;
  // The memory tier is the cache; this one is for indexes that are read again.
  table.block_cache = rocksdb::NewLRUCache(8 << 20, 2);
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));

  // RocksDB writes no log and no statistics of its own.
  options.info_log = std::make_shared<ErrorLogger>();
  options.info_log_level = rocksdb::InfoLogLevel::ERROR_LEVEL;
  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
  options.max_manifest_file_size = 4 << 20;
  // Preallocation (4 MiB by default) can take the last space of a disk. The
  // probe would then succeed, and reopening the database would fail.
  options.manifest_preallocation_size = 64 << 10;
  options.keep_log_file_num = 1;
  return options;
}

absl::StatusOr<OpenedDatabase> OpenDatabase(const DiskDirectory& directory,
                                            const rocksdb::Options& options,
                                            absl::Time now) {
  if (absl::Status made = directory.EnsureDatabase(); !made.ok()) return made;
  rocksdb::Status status;
  auto opened = OpenOrLeaveNothing(options, directory, now, &status);
  if (opened.ok() || !IsDamage(status)) return opened;
  Log(LogLevel::kError,
      "the cache on disk is damaged: set aside, starting with an empty one",
      {{"dir", directory.path()},
       {"aside", directory.path() + "/damaged"},
       {"error", status.ToString()}});
  if (absl::Status aside = directory.SetDatabaseAside(); !aside.ok()) {
    return aside;
  }
  return OpenOrLeaveNothing(options, directory, now, &status);
}

absl::StatusOr<OpenedDatabase> RecreateDatabase(const DiskDirectory& directory,
                                                const rocksdb::Options& options,
                                                absl::Time now) {
  if (absl::Status dropped = directory.DropDatabase(); !dropped.ok()) {
    return dropped;
  }
  return OpenDatabase(directory, options, now);
}

}  // namespace fncache::cache::store
