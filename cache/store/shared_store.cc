// SPDX-License-Identifier: Apache-2.0
#include "cache/store/shared_store.h"

#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "cache/store/function_table.h"
#include "cache/store/hidden_keys.h"
#include "cache/store/highest_time.h"
#include "cache/store/shared_value.h"
#include "common/log.h"
#include "common/log_limiter.h"
#include "common/mutex.h"

namespace fncache::cache::store {
namespace {

// The pause between rounds with the record, and while its node is not up, when
// a round sends nothing.
constexpr std::chrono::milliseconds kRound{1000};
constexpr std::chrono::milliseconds kRoundWhileDown{100};
// Limit of rejected values that wait to be deleted. Others are deleted after
// the next look-up that finds them.
constexpr size_t kMostRejected = 256;
// The bytes of a reply beyond those of an entry.
constexpr size_t kReplyOverhead = 4096;

absl::Duration Boottime() {
  return absl::Nanoseconds(ReadClock(CLOCK_BOOTTIME));
}

class FleetStore final : public SharedStore {
 public:
  FleetStore(SharedStoreOptions options, Bans* bans, Clock* clock,
             Observer* observer)
      : seal_(options.secret, options.prefix),
        server_(std::move(options.server)),
        bans_(bans),
        clock_(clock),
        no_observer_(observer == nullptr ? std::make_unique<Observer>()
                                         : nullptr),
        observer_(observer == nullptr ? no_observer_.get() : observer),
        sync_by_itself_(options.sync_by_itself),
        timeout_(absl::ToInt64Nanoseconds(options.timeout)),
        max_entry_bytes_(options.max_entry_bytes),
        functions_(FunctionTable::Make(options.functions, nullptr)),
        record_({server_.get(), &seal_, bans, clock, std::move(options.learned),
                 options.boottime == nullptr ? Boottime
                                             : std::move(options.boottime)}) {}

  ~FleetStore() override {
    record_.Stop();
    server_->Stop();
    {
      const std::lock_guard<std::mutex> lock(stop_mutex_);
      stop_ = true;
    }
    stopped_.notify_all();
    if (keeper_.joinable()) keeper_.join();
  }

  Tier tier() const override { return Tier::kShared; }
  bool is_shared() const override { return true; }
  const key::Seed& seed() const override { return seal_.key_seed(); }
  void Attach(Bans* bans, absl::Time now) override;
  absl::Time LatestTime() const override {
    return record_.ServerTime(clock_->Now()) + kPurgeAhead;
  }
  uint64_t EntriesOf(FunctionId function) const override { return 0; }

  bool MayFind() override {
    if (record_.up()) return true;
    Count(SharedFigures::kDown);
    return false;
  }
  bool KnowsPurges(absl::Time now) const override {
    return !sync_by_itself_ || record_.heard(now);
  }
  bool MayStore() const override { return record_.up(); }
  Found Find(const key::Key& key, FunctionId function, absl::Time now,
             SteadyTime began) override;
  PutResult PutOrGet(const key::Key& key, EntryRef entry, absl::Time now,
                     EntryRef* later) override;
  PutResult EraseUpTo(const key::Key& key, absl::Time started,
                      FunctionId function, absl::Time now,
                      EntryRef* later) override;
  bool Erase(const key::Key& key) override;
  PurgedKey Purge(const key::Key& key, absl::Time until,
                  absl::Time now) override;
  std::vector<Inspection> Inspect(const key::Key& key) const override;
  void Hide(const key::Key& key, absl::Time started) override {
    hidden_.Hide(key, started);
  }
  absl::Status Change(const LowerChange& change) override;
  bool MayKeep(const Entry& entry) const override { return !entry.secrets(); }
  bool IsPurged(const key::Key& key, const Entry& entry) const override {
    const auto functions = Functions();
    const StoredFunction* const of = functions->Find(entry.function());
    return of != nullptr &&
           bans_->CoversStored(of->name, of->generation, key, entry.started());
  }
  void OnNotWritten(Dropped why, FunctionId function) override {
    writes_[SharedFigures::kDropped].fetch_add(1, std::memory_order_relaxed);
    observer_->OnDropped(Tier::kShared, why, function);
  }
  void Tick(absl::Time now) override { latest_.See(now); }
  StoreStats Stats() const override {
    StoreStats stats;
    stats.up = record_.Describe().up;
    return stats;
  }

  absl::Status Sync() override {
    absl::Status status = record_.Sync();
    DeleteRejected();
    return status;
  }
  SharedFigures figures() const override;

 private:
  // The value of a key, outside of look-ups.
  resp::Answer Fetch(const key::Key& key) const {
    const std::string name = seal_.NameOf(key);
    return RunCommand(server_.get(), name, {"GET", name}, MaxReply());
  }
  // The entry that `bytes` are, if it may be served. `*how` is set to the
  // result of the look-up, and `*started` (may be null) to the start of what
  // opens.
  Found Judge(const key::Key& key, absl::string_view bytes, FunctionId function,
              absl::Time now, SharedFigures::Lookup* how,
              absl::Time* started = nullptr);
  // Remembers a value that does not open, for Sync to delete it.
  void Reject(const key::Key& key, absl::string_view bytes,
              FunctionId function);
  void DeleteRejected();
  // After a script said that a value stays that started later than `started`:
  // sets `*later` (may be null) to the entry there. Returns kOlder, or kFailed
  // unless the value says so itself once it is opened.
  PutResult Older(const key::Key& key, absl::Time started, FunctionId function,
                  absl::Time now, EntryRef* later);
  // Runs a script that returns an integer. Absent if it did not run, which is
  // reported as the function's failure; its entry is hidden up to `started`.
  absl::optional<int64_t> Write(
      absl::string_view script, const key::Key& key, absl::Time started,
      FunctionId function, std::initializer_list<absl::string_view> arguments,
      SharedFigures::Write* how);
  // Runs kFillScript or kEraseScript with a mark that started then.
  absl::optional<int64_t> WriteMark(absl::string_view script,
                                    const key::Key& key, absl::Time started,
                                    FunctionId function, absl::Time now,
                                    SharedFigures::Write* how);
  void Keep();

  std::shared_ptr<const FunctionTable> Functions() const {
    MutexLock lock(&mutex_);
    return functions_;
  }
  void Count(SharedFigures::Lookup how) {
    lookups_[how].fetch_add(1, std::memory_order_relaxed);
  }
  void Count(SharedFigures::Write how) {
    writes_[how].fetch_add(1, std::memory_order_relaxed);
  }
  size_t MaxReply() const { return max_entry_bytes_ + kReplyOverhead; }

  const Seal seal_;
  const std::unique_ptr<resp::Server> server_;
  Bans* const bans_;
  Clock* const clock_;
  const std::unique_ptr<Observer> no_observer_;
  Observer* const observer_;
  const bool sync_by_itself_;
  HighestTime latest_;
  std::atomic<int64_t> timeout_;  // nanoseconds
  std::atomic<uint64_t> max_entry_bytes_;

  mutable Mutex mutex_;
  std::shared_ptr<const FunctionTable> functions_ ABSL_GUARDED_BY(mutex_);
  // The names of values to delete, and how these begin.
  absl::flat_hash_map<std::string, std::string> rejected_
      ABSL_GUARDED_BY(mutex_);
  LogLimiter rejected_lines_{absl::Minutes(1)};

  HiddenKeys hidden_;
  mutable SharedRecord record_;
  std::array<std::atomic<uint64_t>, 6> lookups_ = {};
  std::array<std::atomic<uint64_t>, 4> writes_ = {};

  // absl's waits follow the wall clock, which may be set back.
  std::mutex stop_mutex_;
  std::condition_variable stopped_;
  bool stop_ = false;
  std::thread keeper_;
};

void FleetStore::Attach(Bans* bans, absl::Time now) {
  latest_.See(now);
  bans->Share([this] { return Sync(); }, kKeyLasts);
  if (sync_by_itself_) keeper_ = std::thread([this] { Keep(); });
}

void FleetStore::Keep() {
  const std::string name = seal_.NameOfBans();
  std::unique_lock<std::mutex> lock(stop_mutex_);
  while (!stop_) {
    lock.unlock();
    const auto began = std::chrono::steady_clock::now();
    // Save after a failure is due once the record can be written.
    if (Sync().ok()) bans_->Retry();
    const bool up = server_->NodeOf(name).state == resp::Node::State::kUp;
    lock.lock();
    stopped_.wait_until(lock, began + (up ? kRound : kRoundWhileDown),
                        [this] { return stop_; });
  }
}

// --------------------------------------------------------------- Reading

Found FleetStore::Judge(const key::Key& key, absl::string_view bytes,
                        FunctionId function, absl::Time now,
                        SharedFigures::Lookup* how, absl::Time* started) {
  const auto functions = Functions();
  SharedValue value = DecodeShared(
      seal_, key, bytes,
      [&](absl::string_view name) { return functions->ScopeOf(name); });
  if (!value.genuine) {
    *how = SharedFigures::kRejected;
    Reject(key, bytes, function);
    return {};
  }
  if (started != nullptr) *started = value.started;
  *how = SharedFigures::kMiss;
  if (value.mark || bans_->CoversStored(value.function, value.generation, key,
                                        value.started)) {
    *how = SharedFigures::kLookupPurged;
    return {};
  }
  EntryRef& entry = value.stored.entry;
  if (!entry) {
    if (value.stored.miss == StoredMiss::kMemory) {
      observer_->OnError(Tier::kShared, TierError::kOther, function);
    }
    return {};
  }
  if (hidden_.IsHidden(key, entry->started()) || !MayKeep(*entry)) return {};
  if (IsFromTheFuture(*entry, now) || latest_.See(now) >= entry->kept_until()) {
    return {nullptr, /*expired=*/true};
  }
  *how = SharedFigures::kHit;
  return {std::move(entry), /*expired=*/false};
}

Found FleetStore::Find(const key::Key& key, FunctionId function, absl::Time now,
                       SteadyTime began) {
  latest_.See(now);
  const auto miss = [this](SharedFigures::Lookup how) {
    Count(how);
    return Found{};
  };
  if (!record_.usable()) return miss(SharedFigures::kDown);
  const std::string name = seal_.NameOf(key);
  resp::Command command;
  command.words = {"GET", name};
  command.key = name;
  command.deadline = began + std::chrono::nanoseconds(timeout_);
  command.max_reply_bytes = MaxReply();
  command.is_lookup = true;
  if (std::chrono::steady_clock::now() >= command.deadline) {
    return miss(SharedFigures::kTimeout);
  }
  const resp::Answer answer = server_->Run(command);
  observer_->OnSharedLookup(
      absl::FromChrono(std::chrono::steady_clock::now() - began));
  if (answer.outcome == resp::Outcome::kTimeout) {
    return miss(SharedFigures::kTimeout);
  }
  const resp::Reply::Kind kind = answer.reply.kind;
  if (answer.outcome != resp::Outcome::kReply ||
      (kind != resp::Reply::Kind::kText && kind != resp::Reply::Kind::kNil)) {
    observer_->OnError(Tier::kShared, TierError::kRead, function);
    return miss(SharedFigures::kDown);
  }
  // The process may have been stopped meanwhile, and have missed a purge.
  if (!record_.usable()) return miss(SharedFigures::kDown);
  if (kind == resp::Reply::Kind::kNil) return miss(SharedFigures::kMiss);
  SharedFigures::Lookup how = SharedFigures::kMiss;
  Found found = Judge(key, answer.reply.text, function, now, &how);
  Count(how);
  return found;
}

void FleetStore::Reject(const key::Key& key, absl::string_view bytes,
                        FunctionId function) {
  observer_->OnError(Tier::kShared, TierError::kCorrupt, function);
  const std::string name = seal_.NameOf(key);
  uint64_t unlogged;
  if (rejected_lines_.Allows(clock_->Now(), &unlogged)) {
    Log(LogLevel::kWarning,
        "a value of the shared tier does not open: it counts as a miss and is "
        "deleted",
        {{"name", name}, {"more", unlogged}});
  }
  MutexLock lock(&mutex_);
  if (rejected_.size() < kMostRejected) {
    rejected_.emplace(name, bytes.substr(0, kValueBeginning));
  }
}

void FleetStore::DeleteRejected() {
  absl::flat_hash_map<std::string, std::string> rejected;
  {
    MutexLock lock(&mutex_);
    rejected.swap(rejected_);
  }
  for (const auto& [name, beginning] : rejected) {
    // Otherwise a later look-up finds it.
    if (!record_.usable()) return;
    const resp::Answer answer =
        RunScript(server_.get(), kRejectScript, name, {beginning});
    if (answer.outcome != resp::Outcome::kReply &&
        answer.outcome != resp::Outcome::kError) {
      return;
    }
  }
}

std::vector<Inspection> FleetStore::Inspect(const key::Key& key) const {
  if (!record_.usable()) return {};
  const resp::Answer answer = Fetch(key);
  if (answer.outcome != resp::Outcome::kReply ||
      answer.reply.kind != resp::Reply::Kind::kText) {
    return {};
  }
  const std::string& bytes = answer.reply.text;
  SharedValue value = DecodeShared(seal_, key, bytes, [](absl::string_view) {
    return absl::optional<StoredScope>();
  });
  if (!value.genuine || value.mark || hidden_.IsHidden(key, value.started)) {
    return {};
  }
  // Decodes the entry of any function and generation.
  const auto functions = Functions();
  value.stored =
      DecodeShared(
          seal_, key, bytes,
          [&](absl::string_view name) -> absl::optional<StoredScope> {
            return StoredScope{functions->IdOf(name), value.generation};
          })
          .stored;
  if (!value.stored.entry) return {};
  Inspection there;
  there.tier = Tier::kShared;
  there.entry = std::move(value.stored.entry);
  there.function = std::move(value.function);
  there.generation = std::move(value.generation);
  there.bytes = bytes.size();
  return {there};
}

// --------------------------------------------------------------- Writing

absl::optional<int64_t> FleetStore::Write(
    absl::string_view script, const key::Key& key, absl::Time started,
    FunctionId function, std::initializer_list<absl::string_view> arguments,
    SharedFigures::Write* how) {
  *how = SharedFigures::kDropped;
  if (record_.usable()) {
    const resp::Answer answer =
        RunScript(server_.get(), script, seal_.NameOf(key), arguments);
    if (answer.outcome == resp::Outcome::kReply &&
        answer.reply.kind == resp::Reply::Kind::kInteger) {
      return answer.reply.integer;
    }
    if (answer.outcome == resp::Outcome::kError) *how = SharedFigures::kRefused;
  }
  observer_->OnError(Tier::kShared, TierError::kWrite, function);
  Hide(key, started);
  return absl::nullopt;
}

absl::optional<int64_t> FleetStore::WriteMark(
    absl::string_view script, const key::Key& key, absl::Time started,
    FunctionId function, absl::Time now, SharedFigures::Write* how) {
  const std::string mark = EncodeMark(seal_, key, started);
  if (mark.empty()) {
    Hide(key, started);
    return absl::nullopt;
  }
  return Write(script, key, started, function,
               {mark, ClearHeader(now + kClockTolerance),
                absl::StrCat(absl::ToInt64Milliseconds(kKeyLasts))},
               how);
}

PutResult FleetStore::Older(const key::Key& key, absl::Time started,
                            FunctionId function, absl::Time now,
                            EntryRef* later) {
  const resp::Answer answer = Fetch(key);
  absl::Time there = absl::InfinitePast();
  EntryRef entry;
  if (answer.outcome == resp::Outcome::kReply &&
      answer.reply.kind == resp::Reply::Kind::kText && record_.usable()) {
    SharedFigures::Lookup how = SharedFigures::kMiss;
    entry = Judge(key, answer.reply.text, function, now, &how, &there).entry;
  }
  if (there <= started) {
    Hide(key, started);
    return PutResult::kFailed;
  }
  if (later != nullptr) *later = std::move(entry);
  return PutResult::kOlder;
}

PutResult FleetStore::PutOrGet(const key::Key& key, EntryRef entry,
                               absl::Time now, EntryRef* later) {
  const auto begin = std::chrono::steady_clock::now();
  if (!entry) return PutResult::kTooLarge;
  const FunctionId function = entry->function();
  const absl::Time started = entry->started();
  const absl::Duration left = entry->kept_until() - latest_.See(now);
  if (left < absl::Milliseconds(1)) return PutResult::kExpired;
  const auto functions = Functions();
  const StoredFunction* const name = functions->Find(function);
  const auto fail = [&](SharedFigures::Write how) {
    Count(how);
    observer_->OnDropped(Tier::kShared, Dropped::kError, function);
    Hide(key, started);
    return PutResult::kFailed;
  };
  const auto too_large = [&] {
    OnNotWritten(Dropped::kTooLarge, function);
    const PutResult erased = EraseUpTo(key, started, function, now, later);
    return erased == PutResult::kOlder ? erased : PutResult::kTooLarge;
  };
  if (name == nullptr) return fail(SharedFigures::kDropped);
  if (!MayKeep(*entry)) return EraseUpTo(key, started, function, now, later);
  const uint64_t most = max_entry_bytes_;
  if (entry->body().size() + entry->meta_rest().size() > most) {
    return too_large();
  }
  if (bans_->CoversStored(name->name, name->generation, key, started)) {
    return PutResult::kPurged;
  }
  if (!record_.usable()) return fail(SharedFigures::kDropped);
  // The hidden fill of a later start counts as well.
  if (hidden_.IsHidden(key, started + absl::Nanoseconds(1))) {
    Count(SharedFigures::kOlder);
    return PutResult::kOlder;
  }
  const std::string bytes =
      EncodeShared(seal_, key, name->name, name->generation, *entry);
  if (bytes.size() > most) return too_large();
  if (bytes.empty()) return fail(SharedFigures::kDropped);
  SharedFigures::Write how;
  const auto stored = Write(kFillScript, key, started, function,
                            {bytes, ClearHeader(now + kClockTolerance),
                             absl::StrCat(absl::ToInt64Milliseconds(left))},
                            &how);
  if (!stored.has_value()) return fail(how);
  if (*stored != 1) {
    const PutResult older = Older(key, started, function, now, later);
    if (older == PutResult::kFailed) return fail(SharedFigures::kDropped);
    Count(SharedFigures::kOlder);
    return older;
  }
  hidden_.Unhide(key);
  Count(SharedFigures::kStored);
  observer_->OnWritten(
      Tier::kShared, function, bytes.size(),
      absl::FromChrono(std::chrono::steady_clock::now() - begin));
  return PutResult::kStored;
}

PutResult FleetStore::EraseUpTo(const key::Key& key, absl::Time started,
                                FunctionId function, absl::Time now,
                                EntryRef* later) {
  latest_.See(now);
  if (hidden_.IsHidden(key, started + absl::Nanoseconds(1))) {
    return PutResult::kOlder;
  }
  SharedFigures::Write how;
  const auto erased =
      WriteMark(kEraseScript, key, started, function, now, &how);
  if (!erased.has_value()) return PutResult::kFailed;
  return *erased == 1 ? PutResult::kStored
                      : Older(key, started, function, now, later);
}

bool FleetStore::Erase(const key::Key& key) {
  const absl::Time now = latest_.See(clock_->Now());
  if (record_.usable()) {
    const std::string name = seal_.NameOf(key);
    const resp::Answer answer = RunCommand(server_.get(), name, {"DEL", name});
    if (answer.outcome == resp::Outcome::kReply) {
      return answer.reply.integer == 1;
    }
  }
  Hide(key, now);
  return false;
}

PurgedKey FleetStore::Purge(const key::Key& key, absl::Time until,
                            absl::Time now) {
  latest_.See(now);
  const std::vector<Inspection> there = Inspect(key);
  SharedFigures::Write how;
  const auto stored =
      WriteMark(kFillScript, key, until, kNoFunction, now, &how);
  if (!stored.has_value()) return {0, /*lasting=*/false};
  if (*stored != 1 || there.empty()) return {};
  observer_->OnRemoved(Tier::kShared, Removal::kPurged,
                       there[0].entry->function(), /*last=*/true, 1,
                       there[0].bytes);
  return {1, /*lasting=*/true};
}

// -------------------------------------------------------------- Changing

absl::Status FleetStore::Change(const LowerChange& change) {
  timeout_ = absl::ToInt64Nanoseconds(change.shared_timeout);
  max_entry_bytes_ = change.shared_max_entry_bytes;
  MutexLock lock(&mutex_);
  functions_ = FunctionTable::Make(change.functions, functions_.get());
  return absl::OkStatus();
}

SharedFigures FleetStore::figures() const {
  SharedFigures figures;
  static_cast<SharedRecord::State&>(figures) = record_.Describe();
  figures.server = server_->figures();
  for (size_t i = 0; i < lookups_.size(); ++i) {
    figures.lookups[i] = lookups_[i].load(std::memory_order_relaxed);
  }
  for (size_t i = 0; i < writes_.size(); ++i) {
    figures.writes[i] = writes_[i].load(std::memory_order_relaxed);
  }
  return figures;
}

}  // namespace

std::unique_ptr<SharedStore> SharedStore::Create(SharedStoreOptions options,
                                                 Bans* bans, Clock* clock,
                                                 Observer* observer) {
  return std::make_unique<FleetStore>(std::move(options), bans, clock,
                                      observer);
}

}  // namespace fncache::cache::store
