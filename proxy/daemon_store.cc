// SPDX-License-Identifier: Apache-2.0
#include "proxy/daemon_store.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "cache/store/open_tiers.h"
#include "cache/store/shared_store.h"
#include "common/log.h"
#include "proxy/live_settings.h"
#include "proxy/shared_tier.h"
#include "resp/client.h"

namespace fncache::proxy {
namespace {

using cache::store::SharedStore;

// Threads that look up in the shared tier, since each waits for a round trip.
// At 1 ms each, 100 look-ups at once end within the default of shared.timeout.
// More threads are woken more often, which costs CPU time.
constexpr int kReaders = 3;

// The start waits for the directory's lock as long as a predecessor may drain,
// and this time longer.
constexpr absl::Duration kLockGrace = absl::Seconds(5);

}  // namespace

absl::Status DaemonStore::Open(const settings::DaemonOptions& options,
                               std::shared_ptr<cache::store::Bans> bans,
                               std::function<bool()> cancelled,
                               absl::Duration disk_retry, Clock* clock,
                               telemetry::Instruments* instruments) {
  cache::store::TieredOptions tiers;
  tiers.memory_bytes = options.cache_memory;
  tiers.max_entry_bytes = 0;
  for (const settings::FunctionOptions& function : options.functions) {
    tiers.max_entry_bytes =
        std::max(tiers.max_entry_bytes, function.policy.max_entry_bytes);
  }
  tiers.functions = StoredFunctionsOf(options);
  tiers.disk_dir = options.cache_dir;
  tiers.disk_bytes = options.cache_disk;
  tiers.lock_wait = options.drain + options.drain_delay + kLockGrace;
  tiers.cancelled = std::move(cancelled);
  tiers.disk_retry = disk_retry;
  tiers.bans = std::move(bans);
  const bool shared = !options.shared.url.empty();
  if (shared) {
    absl::Status prepared = PrepareShared(options, instruments, &tiers);
    if (!prepared.ok()) return prepared;
  }
  auto store =
      cache::store::OpenTiers(std::move(tiers), clock, instruments->observer());
  if (!store.ok()) return store.status();
  store_ = *std::move(store);
  cache::store::TieredStore* const opened = store_.get();
  instruments->WatchTier(cache::Tier::kMemory,
                         [opened] { return opened->Stats(); });
  // The disk tier is watched even while it cannot be opened, so its metrics
  // exist when it can.
  if (options.cache_dir.has_value()) {
    instruments->WatchTier(cache::Tier::kDisk,
                           [opened] { return opened->LowerStats(); });
  }
  if (shared || options.cache_dir.has_value()) {
    const std::string tier = shared ? "shared" : "disk";
    instruments->WatchQueue(tier + "_fills",
                            [opened] { return opened->QueueDepth(); });
    instruments->WatchQueue(tier + "_lookups",
                            [opened] { return opened->LookupQueueDepth(); });
  }
  return absl::OkStatus();
}

void DaemonStore::Close() {
  SetLearner(nullptr);
  store_ = nullptr;
}

absl::Status DaemonStore::PrepareShared(const settings::DaemonOptions& options,
                                        telemetry::Instruments* instruments,
                                        cache::store::TieredOptions* tiers) {
  auto read = ReadSharedTier(options.shared);
  if (!read.ok()) return read.status();
  for (const std::string& warning : read->warnings) {
    Log(LogLevel::kWarning, warning);
  }
  tiers->read_threads = kReaders;
  tiers->shared_timeout = options.shared.timeout;
  tiers->shared_max_entry_bytes = options.shared.max_entry_bytes;
  // std::function copies what it keeps, and a client is not copied.
  auto tier = std::make_shared<SharedTier>(*std::move(read));
  tiers->open_shared = [this, tier, &options, instruments](
                           cache::store::Bans* bans, Clock* clock,
                           cache::Observer* observer) {
    cache::store::SharedStoreOptions shared;
    shared.server = resp::Client::Create(std::move(tier->client));
    shared.secret = std::move(tier->secret);
    shared.prefix = options.shared.prefix;
    shared.functions = StoredFunctionsOf(options);
    shared.timeout = options.shared.timeout;
    shared.max_entry_bytes = options.shared.max_entry_bytes;
    shared.learned = [this](const cache::store::Bans::Learned& learned) {
      Learn(learned);
    };
    auto store = SharedStore::Create(std::move(shared), bans, clock, observer);
    instruments->WatchShared(
        [shared = store.get()] { return shared->figures(); });
    return store;
  };
  return absl::OkStatus();
}

void DaemonStore::SetLearner(Purger* learner) {
  MutexLock lock(&mutex_);
  learner_ = learner;
}

void DaemonStore::Learn(const cache::store::Bans::Learned& learned) {
  MutexLock lock(&mutex_);
  // Before there is a receiver, memory is empty.
  if (learner_ != nullptr) learner_->OnLearned(learned);
}

}  // namespace fncache::proxy
