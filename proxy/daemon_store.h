// SPDX-License-Identifier: Apache-2.0
// DaemonStore: the daemon's tiers, and their metrics. It passes the purges of
// other replicas on, if there is a shared tier.
//
// Thread-safe once Open has returned.
#ifndef FNCACHE_PROXY_DAEMON_STORE_H_
#define FNCACHE_PROXY_DAEMON_STORE_H_

#include <functional>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "cache/store/bans.h"
#include "cache/store/tiered_store.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "proxy/purge.h"
#include "proxy/settings/options.h"
#include "proxy/telemetry/instruments.h"

namespace fncache::proxy {

class DaemonStore {
 public:
  // Opens the tiers of these options (cache/store/open_tiers.h). It waits for
  // the directory's lock until `cancelled`. It reads the files of a shared
  // tier, which connects in the background. An error names the directory, or
  // the setting and the file. The references outlive this object.
  absl::Status Open(const settings::DaemonOptions& options,
                    std::shared_ptr<cache::store::Bans> bans,
                    std::function<bool()> cancelled, absl::Duration disk_retry,
                    Clock* clock, telemetry::Instruments* instruments);
  // Null before Open.
  cache::store::TieredStore* get() const { return store_.get(); }
  // Writes what is queued, as far as it can, and closes the tiers. From then on
  // no purge is passed on.
  void Close();

  // Sets the receiver of the purges of other replicas, for which Close ends
  // that. Null: there is none.
  void SetLearner(Purger* learner);

 private:
  // Reads the files of the shared tier, and sets how it is opened.
  absl::Status PrepareShared(const settings::DaemonOptions& options,
                             telemetry::Instruments* instruments,
                             cache::store::TieredOptions* tiers);
  void Learn(const cache::store::Bans::Learned& learned);

  Mutex mutex_;
  Purger* learner_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::unique_ptr<cache::store::TieredStore> store_;
};

}  // namespace fncache::proxy

#endif  // FNCACHE_PROXY_DAEMON_STORE_H_
