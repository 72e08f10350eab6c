// SPDX-License-Identifier: Apache-2.0
#include "cache/store/interim_store.h"

#include <chrono>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/time/clock.h"
#include "common/log.h"
#include "common/threads.h"

namespace fncache::cache::store {
namespace {

// More than what RocksDB and the tiers' own queues make when they open.
constexpr int kOpeningThreads = 32;

}  // namespace

InterimStore::InterimStore(const TieredOptions& options,
                           const absl::Status& reason, Opener open,
                           Observer* observer)
    : MemoryOnly(options, observer),
      retry_(options.disk_retry),
      open_(std::move(open)),
      observer_(observer),
      options_(options) {
  LogFailure(reason);
  thread_ = std::thread([this] { Run(); });
}

InterimStore::~InterimStore() {
  {
    MutexLock lock(&mutex_);
    stop_ = true;
    stopped_.SignalAll();
  }
  thread_.join();
}

void InterimStore::Run() {
  while (true) {
    {
      MutexLock lock(&mutex_);
      // The time is taken from a clock that nobody sets.
      const auto begin = std::chrono::steady_clock::now();
      absl::Duration left = retry_;
      while (left > absl::ZeroDuration() && !stop_) {
        stopped_.WaitWithTimeout(&mutex_, left);
        left =
            retry_ - absl::FromChrono(std::chrono::steady_clock::now() - begin);
      }
      if (stop_) return;
    }
    // RocksDB ends the process where it cannot make a thread.
    const absl::Status threads = CheckThreads(kOpeningThreads);
    const absl::Status opened = threads.ok() ? TryToOpen() : threads;
    if (!opened.ok()) {
      LogFailure(opened);
      continue;
    }
    Log(LogLevel::kInfo,
        "the cache on disk is open: memory was emptied, keys are made anew");
    return;
  }
}

absl::Status InterimStore::TryToOpen() {
  TieredOptions options;
  {
    MutexLock lock(&mutex_);
    options = options_;
  }
  auto store = open_(options);
  if (!store.ok()) return store.status();
  {
    MutexLock lock(&mutex_);
    // Meanwhile it may have been told of changes.
    const absl::Status changed = (*store)->Change(
        {options_.memory_bytes, options_.disk_bytes, options_.functions},
        absl::Now());
    if (!changed.ok()) return changed;
    opened_ = *std::move(store);
    // First the seed, so that no call begins with the old one while its
    // entries go.
    set_successor(opened_.get());
  }
  memory_.Close();
  return absl::OkStatus();
}

absl::Status InterimStore::Change(const TieredChange& change, absl::Time now) {
  MutexLock lock(&mutex_);
  if (TieredStore* const next = successor()) {
    const absl::Status changed = next->Change(change, now);
    if (!changed.ok()) return changed;
  } else {
    memory_.SetCapacity(change.memory_bytes, now);
  }
  options_.memory_bytes = change.memory_bytes;
  options_.disk_bytes = change.disk_bytes;
  options_.functions = change.functions;
  return absl::OkStatus();
}

void InterimStore::EraseSecrets(FunctionId function) {
  memory_.EraseSecrets(function);
  if (TieredStore* const next = successor()) next->EraseSecrets(function);
}

void InterimStore::LogFailure(const absl::Status& status) {
  // The numbers of a database's files are others at each attempt.
  std::string reason;
  for (const char c : status.message()) {
    if (!absl::ascii_isdigit(c)) reason += c;
  }
  if (logged_ == reason) return;
  logged_ = std::move(reason);
  Log(LogLevel::kError,
      "the cache on disk cannot be opened: memory only, trying again",
      {{"every", absl::FormatDuration(retry_)}, {"error", status.message()}});
}

PutResult InterimStore::Fill(const key::Key& key, EntryRef entry, bool lower,
                             absl::Time now) {
  const FunctionId function = entry ? entry->function() : kNoFunction;
  const PutResult result = memory_.Put(key, std::move(entry), now);
  if (lower && result == PutResult::kStored && observer_ != nullptr) {
    observer_->OnDropped(Tier::kDisk, Dropped::kError, function);
  }
  return result;
}

StoreStats InterimStore::Stats() const {
  const TieredStore* const next = successor();
  return next == nullptr ? memory_.Stats() : next->Stats();
}

StoreStats InterimStore::LowerStats() const {
  const TieredStore* const next = successor();
  if (next != nullptr) return next->LowerStats();
  StoreStats none = MemoryOnly::LowerStats();
  MutexLock lock(&mutex_);
  none.capacity = options_.disk_bytes;
  return none;
}

size_t InterimStore::QueueDepth() const {
  const TieredStore* const next = successor();
  return next == nullptr ? 0 : next->QueueDepth();
}

size_t InterimStore::LookupQueueDepth() const {
  const TieredStore* const next = successor();
  return next == nullptr ? 0 : next->LookupQueueDepth();
}

void InterimStore::Flush() {
  if (TieredStore* const next = successor()) next->Flush();
}

}  // namespace fncache::cache::store
