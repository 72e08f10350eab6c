// SPDX-License-Identifier: Apache-2.0
#include "cache/store/interim_store.h"

#include <chrono>
#include <utility>

#include "absl/strings/ascii.h"
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
      disk_bytes_(options.disk_bytes),
      open_(std::move(open)),
      observer_(observer) {
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
    auto store = threads.ok() ? open_() : threads;
    if (!store.ok()) {
      LogFailure(store.status());
      continue;
    }
    opened_ = *std::move(store);
    // First the seed, so that no call begins with the old one while its entries
    // go.
    set_successor(opened_.get());
    memory_.Close();
    Log(LogLevel::kInfo,
        "the cache on disk is open: memory was emptied, keys are made anew");
    return;
  }
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
  none.capacity = disk_bytes_;
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
