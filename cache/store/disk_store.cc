// SPDX-License-Identifier: Apache-2.0
#include "cache/store/disk_store.h"

#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "cache/store/disk_database.h"
#include "cache/store/disk_directory.h"
#include "cache/store/disk_tally.h"
#include "cache/store/function_table.h"
#include "cache/store/hidden_keys.h"
#include "cache/store/highest_time.h"
#include "cache/store/stored_entry.h"
#include "common/log.h"
#include "common/log_limiter.h"
#include "common/mutex.h"

namespace fncache::cache::store {
namespace {

// The most that the clock may have gone back between two processes. Beyond it
// the database is dropped.
constexpr absl::Duration kTimeTolerance = absl::Seconds(5);
// When there are too many files, a fill waits while RocksDB drops them. It
// polls every kDropStep and stops after kDropPatience, in case the disk hangs.
constexpr absl::Duration kDropStep = absl::Milliseconds(100);
constexpr absl::Duration kDropPatience = absl::Seconds(10);
// The bytes that a probe writes: to check that writing is possible, and, added
// to the unwritten memory and the log, that the database can be reopened.
constexpr size_t kProbeBytes = 64 << 10;
constexpr size_t kReopenBytes = 1 << 20;

rocksdb::Slice SliceOf(const std::string& bytes) { return bytes; }

absl::string_view ViewOf(const rocksdb::Slice& slice) {
  return {slice.data(), slice.size()};
}

// The database keeps this and not the seed, so that a copy of it has no secret.
uint64_t FingerprintOf(const key::Seed& seed) {
  return XXH3_64bits_withSeed(seed.data(), seed.size(),
                              /*seed=*/0x666e63616368);
}

class RocksDiskStore final : public DiskStore {
 public:
  RocksDiskStore(DiskStoreOptions options,
                 std::unique_ptr<DiskDirectory> directory, Clock* clock,
                 Observer* observer)
      : options_(std::move(options)),
        clock_(clock),
        no_observer_(observer == nullptr ? std::make_unique<Observer>()
                                         : nullptr),
        observer_(observer == nullptr ? no_observer_.get() : observer),
        directory_(std::move(directory)),
        fingerprint_(FingerprintOf(directory_->seed())),
        tally_(
            std::make_shared<DiskTally>(options_.functions, clock_, observer_)),
        env_(PrivateEnv(options_.env == nullptr ? rocksdb::Env::Default()
                                                : options_.env)),
        capacity_(options_.capacity) {
    functions_ = FunctionTable::Make(options_.functions, nullptr);
  }

  ~RocksDiskStore() override {
    MutexLock write(&write_mutex_);
    MutexLock lock(&db_mutex_);
    if (db_ == nullptr) return;
    if (!degraded_) WriteState(clock_->Now());
    db_->Close().PermitUncheckedError();
  }

  absl::Status Start() {
    // RocksDB leaves new files behind each time that it fails to write all
    // files of an opened database.
    if (!directory_->DatabaseIsEmpty() && !Probe(kProbeBytes)) {
      return absl::UnavailableError(absl::StrCat(
          "cache directory ", directory_->path(),
          ": cannot be written to: no space, or a read-only file system"));
    }
    MutexLock write(&write_mutex_);
    MutexLock lock(&db_mutex_);
    return OpenDb();
  }

  Tier tier() const override { return Tier::kDisk; }
  bool is_shared() const override { return false; }
  const key::Seed& seed() const override { return directory_->seed(); }
  void Attach(Bans* bans, absl::Time now) override {
    bans->Attach(
        directory_->ReadBans(),
        [this](absl::string_view content) {
          return directory_->WriteBans(content);
        },
        std::max(now, LatestTime()));
  }
  const DiskDirectory& directory() const override { return *directory_; }
  absl::Time LatestTime() const override { return latest_.get(); }
  uint64_t EntriesOf(FunctionId function) const override;

  Found Find(const key::Key& key, FunctionId function, absl::Time now,
             SteadyTime began) override;
  PutResult PutOrGet(const key::Key& key, EntryRef entry, absl::Time now,
                     EntryRef* later) override;
  bool Erase(const key::Key& key) override;
  PurgedKey Purge(const key::Key& key, absl::Time until,
                  absl::Time now) override;
  std::vector<Inspection> Inspect(const key::Key& key) const override;
  PutResult EraseUpTo(const key::Key& key, absl::Time started,
                      FunctionId function, absl::Time now,
                      EntryRef* later) override;
  void Hide(const key::Key& key, absl::Time started) override {
    hidden_.Hide(key, started);
  }
  void Tick(absl::Time now) override;
  absl::Status Change(const LowerChange& change) override;
  void OnNotWritten(Dropped why, FunctionId function) override {
    observer_->OnDropped(Tier::kDisk, why, function);
  }
  bool MayKeep(const Entry& entry) const override {
    return entry.secrets() ? Functions()->MayKeep(entry) : true;
  }
  bool IsPurged(const key::Key& key, const Entry& entry) const override {
    if (options_.bans == nullptr) return false;
    const auto functions = Functions();
    const StoredFunction* const of = functions->Find(entry.function());
    return of != nullptr && options_.bans->CoversStored(
                                of->name, of->generation, key, entry.started());
  }
  StoreStats Stats() const override;

 private:
  // The database's value under a key, without its body.
  struct There {
    bool found = false;
    // The value exists but cannot be read.
    bool unsure = false;
    std::string function;
    absl::Time started;
    bool future = false;
    bool expired = false;
    size_t bytes = 0;
  };

  absl::Status OpenDb() ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_, db_mutex_);
  There Look(const key::Key& key, absl::Time now, rocksdb::PinnableSlice* value)
      ABSL_SHARED_LOCKS_REQUIRED(db_mutex_);
  // Deletes what Look has found. If that fails, entries that started then or
  // before are hidden, and the result is false.
  bool Delete(const key::Key& key, const There& there, absl::Time started,
              FunctionId function, absl::Time now, Removal why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_)
          ABSL_SHARED_LOCKS_REQUIRED(db_mutex_);
  Stored Decode(const key::Key& key, const rocksdb::Slice& value) const;
  // The entry, or null unless it may be served.
  EntryRef Alive(const key::Key& key, const rocksdb::Slice& value,
                 absl::Time now);
  // Writes `batch` and the state. It reports and logs a failure itself.
  bool Write(rocksdb::WriteBatch* batch, absl::Time now, FunctionId function)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_)
          ABSL_SHARED_LOCKS_REQUIRED(db_mutex_);
  bool WriteState(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_)
      ABSL_SHARED_LOCKS_REQUIRED(db_mutex_);
  std::string EncodeState(absl::Time now) const;
  // Delays a writer while there are more file bytes than the bound allows.
  void AwaitDrops() ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  // True while the database writes or drops files, or is about to.
  bool IsAtWork() const;
  void Degrade(const rocksdb::Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  // True if writing is possible; tries to recover if that is due.
  bool Writable(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  bool Probe(size_t bytes) const;
  // About how many bytes reopening the database writes.
  size_t ReopenBytes() const;
  // At most one line a minute, because a failing disk repeats its errors.
  void LogDamage(absl::string_view why);
  void EraseDamaged(const key::Key& key, FunctionId function, absl::Time now);

  std::shared_ptr<const FunctionTable> Functions() const {
    MutexLock lock(&functions_mutex_);
    return functions_;
  }
  FunctionId IdOf(absl::string_view function) const {
    return Functions()->IdOf(function);
  }
  uint64_t capacity() const {
    return capacity_.load(std::memory_order_relaxed);
  }
  // Applies the present capacity to the database.
  void Resize() ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_)
      ABSL_SHARED_LOCKS_REQUIRED(db_mutex_);

  const DiskStoreOptions options_;
  Clock* const clock_;
  const std::unique_ptr<Observer> no_observer_;
  Observer* const observer_;
  const std::unique_ptr<DiskDirectory> directory_;
  const uint64_t fingerprint_;
  const std::shared_ptr<DiskTally> tally_;
  const std::unique_ptr<rocksdb::Env> env_;
  std::atomic<uint64_t> capacity_;
  mutable Mutex functions_mutex_;
  std::shared_ptr<const FunctionTable> functions_
      ABSL_GUARDED_BY(functions_mutex_);

  HighestTime latest_;

  // One writer at a time. Locked before db_mutex_.
  mutable Mutex write_mutex_ ABSL_ACQUIRED_BEFORE(db_mutex_);
  bool degraded_ ABSL_GUARDED_BY(write_mutex_) = false;
  // The log says already that it cannot be reopened.
  bool logged_ ABSL_GUARDED_BY(write_mutex_) = false;
  std::chrono::steady_clock::time_point tried_ ABSL_GUARDED_BY(write_mutex_);
  // The file bytes at which the last wait stopped without success. A file that
  // a reader had pinned goes only with a later flush, so no fill waits until
  // this number has changed.
  uint64_t held_bytes_ ABSL_GUARDED_BY(write_mutex_) = 0;
  absl::Time state_written_ ABSL_GUARDED_BY(write_mutex_) =
      absl::InfinitePast();

  // Locked shared to use the database, exclusive to replace it.
  mutable Mutex db_mutex_;
  std::unique_ptr<rocksdb::DB> db_ ABSL_GUARDED_BY(db_mutex_);

  LogLimiter damage_lines_{absl::Minutes(1)};

  HiddenKeys hidden_;
};

// --------------------------------------------------------------- Opening

absl::Status RocksDiskStore::OpenDb() {
  rocksdb::Options options = DatabaseOptions(capacity(), env_.get());
  tally_->Listen(&options);
  const absl::Time now = latest_.See(clock_->Now());
  auto opened = OpenDatabase(*directory_, options, now);
  if (!opened.ok()) return opened.status();
  DiskState& state = opened->state;
  const bool fresh = state.seed_fingerprint == 0;
  const bool foreign = !fresh && state.seed_fingerprint != fingerprint_;
  const bool back = state.time > clock_->Now() + kTimeTolerance;
  if (foreign || back) {
    Log(foreign ? LogLevel::kError : LogLevel::kWarning,
        foreign ? "the cache on disk was made under another seed: dropped"
                : "the clock went back since the cache was written: dropped",
        {{"dir", directory_->path()}, {"last", absl::FormatTime(state.time)}});
    opened->db->Close().PermitUncheckedError();
    opened->db.reset();
    tally_->DropAll(state.functions);
    opened = RecreateDatabase(*directory_, options, now);
    if (!opened.ok()) return opened.status();
  }
  latest_.See(opened->state.time);
  db_ = std::move(opened->db);
  tally_->Load(db_.get(), opened->state.functions);
  degraded_ = false;
  if (!WriteState(now)) {
    // Reads work, and writing may work later.
    tried_ = std::chrono::steady_clock::now();
  }
  return absl::OkStatus();
}

// --------------------------------------------------------------- Reading

Stored RocksDiskStore::Decode(const key::Key& key,
                              const rocksdb::Slice& value) const {
  const auto functions = Functions();
  std::string name;
  absl::string_view generation;
  Stored stored =
      DecodeStored(key, ViewOf(value), [&](absl::string_view function) {
        const auto scope = functions->ScopeOf(function);
        if (scope.has_value()) {
          name = std::string(function);
          generation = scope->generation;
        }
        return scope;
      });
  if (stored.entry && options_.bans != nullptr &&
      options_.bans->CoversStored(name, generation, key,
                                  stored.entry->started())) {
    return Stored{nullptr, StoredMiss::kPurged};
  }
  return stored;
}

Found RocksDiskStore::Find(const key::Key& key, FunctionId function,
                           absl::Time now, SteadyTime /*began*/) {
  const absl::Time latest = latest_.See(now);
  bool damaged = false;
  {
    ReaderMutexLock lock(&db_mutex_);
    if (db_ == nullptr) {
      observer_->OnError(Tier::kDisk, TierError::kRead, function);
      return {};
    }
    // The memory tier gets the entry, so the block cache need not keep its
    // block.
    rocksdb::ReadOptions read;
    read.fill_cache = false;
    rocksdb::PinnableSlice value;
    const rocksdb::Status status =
        db_->Get(read, db_->DefaultColumnFamily(), key.Bytes(), &value);
    if (status.IsNotFound()) return {};
    if (!status.ok()) {
      damaged = status.IsCorruption();
      observer_->OnError(Tier::kDisk,
                         damaged ? TierError::kCorrupt : TierError::kRead,
                         function);
      if (!damaged) return {};
      LogDamage(status.ToString());
    } else {
      Stored stored = Decode(key, value);
      if (stored.entry) {
        const Entry& entry = *stored.entry;
        if (hidden_.IsHidden(key, entry.started()) || !MayKeep(entry))
          return {};
        if (IsFromTheFuture(entry, now) || latest >= entry.kept_until()) {
          return {nullptr, /*expired=*/true};
        }
        return {std::move(stored.entry), /*expired=*/false};
      }
      damaged = IsDamage(stored.miss);
      if (!damaged) {
        if (stored.miss == StoredMiss::kMemory) {
          observer_->OnError(Tier::kDisk, TierError::kOther, function);
        }
        return {};
      }
      observer_->OnError(Tier::kDisk, TierError::kCorrupt, function);
      LogDamage(StoredMissName(stored.miss));
    }
  }
  EraseDamaged(key, function, now);
  return {};
}

void RocksDiskStore::LogDamage(absl::string_view why) {
  uint64_t unlogged;
  if (!damage_lines_.Allows(absl::Now(), &unlogged)) return;
  Log(LogLevel::kWarning, "an entry on disk is damaged: it counts as a miss",
      {{"dir", directory_->path()}, {"why", why}, {"more", unlogged}});
}

void RocksDiskStore::EraseDamaged(const key::Key& key, FunctionId function,
                                  absl::Time now) {
  MutexLock write(&write_mutex_);
  ReaderMutexLock lock(&db_mutex_);
  if (db_ == nullptr || degraded_) return;
  // A fill may have replaced the entry meanwhile.
  rocksdb::PinnableSlice value;
  const rocksdb::Status status = db_->Get(
      rocksdb::ReadOptions(), db_->DefaultColumnFamily(), key.Bytes(), &value);
  if (status.IsNotFound()) return;
  const auto peek = status.ok() ? PeekStored(ViewOf(value)) : absl::nullopt;
  if (status.ok() && !IsDamage(Decode(key, value).miss)) return;
  if (peek.has_value() && IdOf(peek->function) != kNoFunction) {
    tally_->Died(peek->function);
    observer_->OnRemoved(Tier::kDisk, Removal::kDropped, IdOf(peek->function),
                         /*last=*/true, 1, value.size());
  }
  rocksdb::WriteBatch batch;
  batch.Delete(key.Bytes());
  Write(&batch, now, function);
}

RocksDiskStore::There RocksDiskStore::Look(const key::Key& key, absl::Time now,
                                           rocksdb::PinnableSlice* value) {
  There there;
  rocksdb::ReadOptions read;
  read.fill_cache = false;
  const rocksdb::Status status =
      db_->Get(read, db_->DefaultColumnFamily(), key.Bytes(), value);
  if (status.IsNotFound()) return there;
  const auto peek = status.ok() ? PeekStored(ViewOf(*value)) : absl::nullopt;
  there.unsure = !peek.has_value();
  if (there.unsure) return there;
  there.found = true;
  there.function = peek->function;
  there.started = peek->started;
  there.future = peek->arrived > now + kClockTolerance;
  there.expired = peek->kept_until <= now;
  there.bytes = value->size();
  return there;
}

EntryRef RocksDiskStore::Alive(const key::Key& key, const rocksdb::Slice& value,
                               absl::Time now) {
  Stored stored = Decode(key, value);
  if (!stored.entry || stored.entry->kept_until() <= latest_.See(now) ||
      hidden_.IsHidden(key, stored.entry->started()) ||
      !MayKeep(*stored.entry)) {
    return nullptr;
  }
  return std::move(stored.entry);
}

// --------------------------------------------------------------- Writing

PutResult RocksDiskStore::PutOrGet(const key::Key& key, EntryRef entry,
                                   absl::Time now, EntryRef* later) {
  const auto begin = std::chrono::steady_clock::now();
  if (!entry) return PutResult::kTooLarge;
  const FunctionId function = entry->function();
  if (entry->kept_until() <= latest_.See(now)) return PutResult::kExpired;
  const auto drop = [&](Dropped why, PutResult result) {
    observer_->OnDropped(Tier::kDisk, why, function);
    Hide(key, entry->started());
    return result;
  };
  const auto functions = Functions();
  const StoredFunction* const known = functions->Find(function);
  if (known == nullptr) return drop(Dropped::kError, PutResult::kFailed);
  const StoredFunction& name = *known;
  if (!functions->MayKeep(*entry)) {
    // The setting changed while the entry waited. It stays in memory only.
    return EraseUpTo(key, entry->started(), function, now, later);
  }
  if (entry->body().size() + entry->meta_rest().size() > capacity() / 8) {
    return drop(Dropped::kTooLarge, PutResult::kTooLarge);
  }
  if (options_.bans != nullptr &&
      options_.bans->CoversStored(name.name, name.generation, key,
                                  entry->started())) {
    return PutResult::kPurged;
  }
  const std::string bytes =
      EncodeStored(key, name.name, name.generation, *entry);

  MutexLock write(&write_mutex_);
  if (!Writable(now)) {
    observer_->OnError(Tier::kDisk, TierError::kWrite, function);
    return drop(Dropped::kError, PutResult::kFailed);
  }
  {
    ReaderMutexLock lock(&db_mutex_);
    // The hidden fill of a later start counts as well.
    if (hidden_.IsHidden(key, entry->started() + absl::Nanoseconds(1))) {
      return PutResult::kOlder;
    }
    rocksdb::PinnableSlice value;
    const There there = Look(key, now, &value);
    if (there.found && !there.future && there.started > entry->started()) {
      if (later != nullptr) *later = Alive(key, value, now);
      return PutResult::kOlder;
    }
    if (there.found) tally_->Died(there.function);
    tally_->Added(name.name);
    rocksdb::WriteBatch batch;
    batch.Put(key.Bytes(), SliceOf(bytes));
    if (!Write(&batch, now, function)) {
      tally_->NotAdded(name.name);
      if (there.found) tally_->NotDied(there.function);
      return drop(Dropped::kError, PutResult::kFailed);
    }
    hidden_.Unhide(key);
    if (there.found) {
      observer_->OnRemoved(Tier::kDisk,
                           there.future    ? Removal::kDropped
                           : there.expired ? Removal::kExpired
                                           : Removal::kReplaced,
                           IdOf(there.function), /*last=*/true, 1, there.bytes);
    }
  }
  AwaitDrops();
  observer_->OnWritten(
      Tier::kDisk, function, bytes.size(),
      absl::FromChrono(std::chrono::steady_clock::now() - begin));
  return PutResult::kStored;
}

void RocksDiskStore::AwaitDrops() {
  const uint64_t bound =
      MaxFileBytes(capacity()) + 2 * WriteBufferSize(capacity());
  uint64_t bytes = tally_->AwaitFileBytes(bound, absl::ZeroDuration());
  const auto begin = std::chrono::steady_clock::now();
  while (bytes > bound && bytes != held_bytes_) {
    bytes = tally_->AwaitFileBytes(bound, kDropStep);
    const auto waited = std::chrono::steady_clock::now() - begin;
    if (!IsAtWork() || absl::FromChrono(waited) > kDropPatience) {
      held_bytes_ = bytes;
    }
  }
}

bool RocksDiskStore::IsAtWork() const {
  ReaderMutexLock lock(&db_mutex_);
  if (db_ == nullptr) return false;
  using Properties = rocksdb::DB::Properties;
  for (const std::string& property :
       {Properties::kNumRunningFlushes, Properties::kCompactionPending,
        Properties::kNumRunningCompactions}) {
    uint64_t value = 0;
    if (db_->GetIntProperty(property, &value) && value > 0) return true;
  }
  return false;
}

bool RocksDiskStore::Erase(const key::Key& key) {
  const absl::Time now = latest_.See(clock_->Now());
  MutexLock write(&write_mutex_);
  if (!Writable(now)) {
    Hide(key, now);
    return false;
  }
  ReaderMutexLock lock(&db_mutex_);
  rocksdb::PinnableSlice value;
  const There there = Look(key, now, &value);
  if (!there.found) return false;
  Delete(key, there, there.started, IdOf(there.function), now,
         Removal::kDropped);
  return true;
}

PurgedKey RocksDiskStore::Purge(const key::Key& key, absl::Time until,
                                absl::Time now) {
  MutexLock write(&write_mutex_);
  const bool writable = Writable(now);
  ReaderMutexLock lock(&db_mutex_);
  There there;
  there.unsure = true;
  rocksdb::PinnableSlice value;
  if (db_ != nullptr) there = Look(key, now, &value);
  if (!there.found && !there.unsure) return {};
  if (there.found && !there.future && there.started > until) return {};
  const absl::Time last = there.found ? std::max(until, there.started) : until;
  if (!writable || db_ == nullptr) {
    Hide(key, last);
    return {0, /*lasting=*/false};
  }
  const bool lasting =
      Delete(key, there, last, IdOf(there.function), now, Removal::kPurged);
  return {lasting && there.found ? 1 : 0, lasting};
}

std::vector<Inspection> RocksDiskStore::Inspect(const key::Key& key) const {
  ReaderMutexLock lock(&db_mutex_);
  if (db_ == nullptr) return {};
  rocksdb::ReadOptions read;
  read.fill_cache = false;
  rocksdb::PinnableSlice value;
  if (!db_->Get(read, db_->DefaultColumnFamily(), key.Bytes(), &value).ok()) {
    return {};
  }
  const auto peek = PeekStored(ViewOf(value));
  if (!peek.has_value()) return {};
  // Decodes the entry of any function and generation.
  Stored stored = DecodeStored(
      key, ViewOf(value),
      [&](absl::string_view function) -> absl::optional<StoredScope> {
        return StoredScope{IdOf(function), peek->generation};
      });
  if (!stored.entry || hidden_.IsHidden(key, stored.entry->started()))
    return {};
  Inspection there;
  there.tier = Tier::kDisk;
  there.entry = std::move(stored.entry);
  there.function = peek->function;
  there.generation = peek->generation;
  there.bytes = value.size();
  return {there};
}

uint64_t RocksDiskStore::EntriesOf(FunctionId function) const {
  if (function >= options_.functions.size()) return 0;
  const DiskTally::Counts counts = tally_->counts();
  const auto it = counts.find(options_.functions[function].name);
  return it == counts.end() ? 0 : it->second.live;
}

PutResult RocksDiskStore::EraseUpTo(const key::Key& key, absl::Time started,
                                    FunctionId function, absl::Time now,
                                    EntryRef* later) {
  MutexLock write(&write_mutex_);
  if (!Writable(now)) {
    observer_->OnError(Tier::kDisk, TierError::kWrite, function);
    Hide(key, started);
    return PutResult::kFailed;
  }
  ReaderMutexLock lock(&db_mutex_);
  if (hidden_.IsHidden(key, started + absl::Nanoseconds(1)))
    return PutResult::kOlder;
  rocksdb::PinnableSlice value;
  const There there = Look(key, now, &value);
  if (!there.found) return PutResult::kStored;
  if (!there.future && there.started > started) {
    if (later != nullptr) *later = Alive(key, value, now);
    return PutResult::kOlder;
  }
  return Delete(key, there, started, function, now,
                there.expired ? Removal::kExpired : Removal::kReplaced)
             ? PutResult::kStored
             : PutResult::kFailed;
}

bool RocksDiskStore::Delete(const key::Key& key, const There& there,
                            absl::Time started, FunctionId function,
                            absl::Time now, Removal why) {
  if (there.found) tally_->Died(there.function);
  rocksdb::WriteBatch batch;
  batch.Delete(key.Bytes());
  if (!Write(&batch, now, function)) {
    if (there.found) tally_->NotDied(there.function);
    Hide(key, started);
    return false;
  }
  if (there.found) {
    observer_->OnRemoved(Tier::kDisk, why, IdOf(there.function),
                         /*last=*/true, 1, there.bytes);
  }
  return true;
}

std::string RocksDiskStore::EncodeState(absl::Time now) const {
  DiskState state;
  state.time = now;
  state.seed_fingerprint = fingerprint_;
  state.functions = tally_->counts();
  return state.Encode();
}

bool RocksDiskStore::Write(rocksdb::WriteBatch* batch, absl::Time now,
                           FunctionId function) {
  const absl::Time latest = latest_.See(now);
  batch->Put(kStateKey, EncodeState(latest));
  // The write is not synced. The operating system has it, so it survives the
  // end of the process.
  const rocksdb::Status status = db_->Write(rocksdb::WriteOptions(), batch);
  if (status.ok()) {
    state_written_ = latest;
    return true;
  }
  observer_->OnError(Tier::kDisk, TierError::kWrite, function);
  Degrade(status);
  return false;
}

bool RocksDiskStore::WriteState(absl::Time now) {
  rocksdb::WriteBatch batch;
  return Write(&batch, now, kNoFunction);
}

void RocksDiskStore::Tick(absl::Time now) {
  const absl::Time latest = latest_.See(now);
  MutexLock write(&write_mutex_);
  if (!Writable(now)) return;
  ReaderMutexLock lock(&db_mutex_);
  if (latest - state_written_ >= absl::Seconds(1)) WriteState(latest);
}

// -------------------------------------------------------------- Recovery

void RocksDiskStore::Degrade(const rocksdb::Status& status) {
  if (!degraded_) {
    Log(LogLevel::kError, "cannot write to the cache on disk; reads go on",
        {{"dir", directory_->path()}, {"error", status.ToString()}});
  }
  degraded_ = true;
  tried_ = std::chrono::steady_clock::now();
}

bool RocksDiskStore::Probe(size_t bytes) const {
  const std::string file = directory_->path() + "/probe";
  std::unique_ptr<rocksdb::WritableFile> probe;
  rocksdb::Status status =
      env_->NewWritableFile(file, &probe, rocksdb::EnvOptions());
  const std::string chunk(kProbeBytes, 'p');
  for (size_t done = 0; status.ok() && done < bytes; done += chunk.size()) {
    status = probe->Append(chunk);
  }
  if (status.ok()) status = probe->Flush();
  if (probe != nullptr) {
    const rocksdb::Status closed = probe->Close();
    if (status.ok()) status = closed;
  }
  env_->DeleteFile(file).PermitUncheckedError();
  return status.ok();
}

size_t RocksDiskStore::ReopenBytes() const {
  ReaderMutexLock lock(&db_mutex_);
  uint64_t unwritten = 0;
  if (db_ == nullptr) return kProbeBytes;
  db_->GetIntProperty(rocksdb::DB::Properties::kCurSizeAllMemTables,
                      &unwritten);
  // A new log preallocates its space, a tenth more than a buffer.
  const uint64_t log = 2 * WriteBufferSize(capacity());
  return unwritten + log + kReopenBytes;
}

bool RocksDiskStore::Writable(absl::Time now) {
  if (!degraded_) return true;
  const auto steady = std::chrono::steady_clock::now();
  if (absl::FromChrono(steady - tried_) < options_.retry) return false;
  tried_ = steady;
  if (!Probe(kProbeBytes)) return false;
  {
    ReaderMutexLock lock(&db_mutex_);
    if (db_ != nullptr && db_->Resume().ok() && WriteState(now)) {
      degraded_ = false;
    }
  }
  // A closed database that cannot be reopened serves no reads. So it stays open
  // until there is space for the bytes that reopening writes.
  if (degraded_ && !Probe(ReopenBytes())) return false;
  if (degraded_) {
    MutexLock lock(&db_mutex_);
    if (db_ != nullptr) db_->Close().PermitUncheckedError();
    db_.reset();
    if (absl::Status opened = OpenDb(); !opened.ok()) {
      if (!std::exchange(logged_, true)) {
        Log(LogLevel::kError, "cannot reopen the cache on disk; trying on",
            {{"error", opened.ToString()}});
      }
      degraded_ = true;
    }
  }
  if (!degraded_) {
    logged_ = false;
    Log(LogLevel::kInfo, "the cache on disk takes writes",
        {{"dir", directory_->path()}});
  }
  return !degraded_;
}

// -------------------------------------------------------------- Changing

absl::Status RocksDiskStore::Change(const LowerChange& change) {
  MutexLock write(&write_mutex_);
  absl::Status noted = directory_->NoteSecrets(change.functions);
  if (!noted.ok()) return noted;
  {
    MutexLock lock(&functions_mutex_);
    functions_ = FunctionTable::Make(change.functions, functions_.get());
  }
  const uint64_t capacity = change.disk_bytes;
  if (capacity_.exchange(capacity) == capacity) return absl::OkStatus();
  held_bytes_ = 0;
  ReaderMutexLock lock(&db_mutex_);
  if (db_ != nullptr) Resize();
  return absl::OkStatus();
}

void RocksDiskStore::Resize() {
  const rocksdb::Options options = DatabaseOptions(capacity(), env_.get());
  const uint64_t buffer = db_->GetOptions().write_buffer_size;
  rocksdb::Status status = db_->SetOptions(
      {{"compaction_options_fifo",
        absl::StrCat("{max_table_files_size=",
                     options.compaction_options_fifo.max_table_files_size,
                     ";allow_compaction=false;}")},
       {"write_buffer_size", absl::StrCat(options.write_buffer_size)}});
  if (status.ok()) {
    status = db_->SetDBOptions(
        {{"max_open_files", absl::StrCat(options.max_open_files)}});
  }
  // The bytes in memory may exceed the new buffer. A flush also makes the
  // database check its size.
  if (status.ok() && options.write_buffer_size < buffer) {
    rocksdb::FlushOptions flush;
    flush.wait = false;
    status = db_->Flush(flush);
  }
  if (!status.ok()) {
    Log(LogLevel::kError, "cannot give the cache on disk another bound",
        {{"dir", directory_->path()}, {"error", status.ToString()}});
  }
}

StoreStats RocksDiskStore::Stats() const {
  StoreStats stats;
  stats.entries = tally_->entries();
  stats.capacity = capacity();
  ReaderMutexLock lock(&db_mutex_);
  stats.up = db_ != nullptr;
  if (!stats.up) return stats;
  uint64_t files = 0;
  uint64_t memory = 0;
  db_->GetIntProperty(rocksdb::DB::Properties::kTotalSstFilesSize, &files);
  db_->GetIntProperty(rocksdb::DB::Properties::kCurSizeAllMemTables, &memory);
  stats.bytes = files + memory;
  return stats;
}

}  // namespace

absl::StatusOr<std::unique_ptr<DiskStore>> DiskStore::Open(
    DiskStoreOptions options, Clock* clock, Observer* observer) {
  auto directory =
      DiskDirectory::Open(options.dir, options.lock_wait, options.cancelled);
  if (!directory.ok()) return directory.status();
  if (absl::Status enforced = (*directory)->EnforceSecrets(options.functions);
      !enforced.ok()) {
    return enforced;
  }
  auto store = std::make_unique<RocksDiskStore>(
      std::move(options), *std::move(directory), clock, observer);
  if (absl::Status started = store->Start(); !started.ok()) return started;
  return store;
}

}  // namespace fncache::cache::store
