// SPDX-License-Identifier: Apache-2.0
// The stores' tests share these: entries whose bytes prove whose they are, and
// an observer that counts.
#ifndef FNCACHE_TESTS_CACHE_STORE_STORE_TESTING_H_
#define FNCACHE_TESTS_CACHE_STORE_STORE_TESTING_H_

#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "cache/key/key.h"
#include "cache/observer.h"
#include "cache/store/entry.h"
#include "common/mutex.h"
#include "tests/common/temp_dir.h"

namespace fncache::cache::store::testing {

// Distinct for distinct `n`, and as evenly spread as real keys.
key::Key KeyOf(uint64_t n);

// Bytes that can only be version `version` of what is stored under KeyOf(n).
std::string BodyOf(uint64_t n, uint64_t version, size_t size);

// Which version of KeyOf(n) these bytes are; -1 if they are not whole, or
// another key's.
int64_t VersionOf(uint64_t n, absl::string_view body);

struct EntrySpec {
  uint64_t version = 0;
  size_t size = 100;
  absl::Time started;
  absl::Duration lifetime = absl::Hours(1);
  absl::Duration took = absl::Seconds(1);  // arrived - started
  FunctionId function = 0;
};
EntryRef EntryOf(uint64_t n, const EntrySpec& spec);

using ::fncache::testing::TempDir;

class CountingObserver : public Observer {
 public:
  void OnRemoved(Tier tier, Removal why, FunctionId function, bool last,
                 uint64_t count, uint64_t bytes) override;
  void OnDropped(Tier tier, Dropped why, FunctionId function) override;
  void OnError(Tier tier, TierError what, FunctionId function) override;
  void OnWritten(Tier tier, FunctionId function, uint64_t bytes,
                 absl::Duration took) override;

  uint64_t removed(Tier tier, Removal why) const;
  // The same once they are `count` or more, or after a minute.
  uint64_t AwaitRemoved(Tier tier, Removal why, uint64_t count);
  uint64_t removed_of(Tier tier, FunctionId function) const;
  uint64_t removed_last() const;
  uint64_t removed_bytes(Tier tier) const;
  uint64_t dropped(Tier tier, Dropped why) const;
  uint64_t errors(Tier tier, TierError what) const;
  uint64_t errors_of(Tier tier, FunctionId function) const;
  uint64_t written(Tier tier) const;

 private:
  mutable Mutex mutex_;
  CondVar removed_more_;
  std::map<std::pair<Tier, Removal>, uint64_t> removed_ ABSL_GUARDED_BY(mutex_);
  std::map<std::pair<Tier, FunctionId>, uint64_t> removed_of_
      ABSL_GUARDED_BY(mutex_);
  std::map<Tier, uint64_t> removed_bytes_ ABSL_GUARDED_BY(mutex_);
  uint64_t removed_last_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::pair<Tier, Dropped>, uint64_t> dropped_ ABSL_GUARDED_BY(mutex_);
  std::map<std::pair<Tier, TierError>, uint64_t> errors_
      ABSL_GUARDED_BY(mutex_);
  std::map<std::pair<Tier, FunctionId>, uint64_t> errors_of_
      ABSL_GUARDED_BY(mutex_);
  std::map<Tier, uint64_t> written_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fncache::cache::store::testing

#endif  // FNCACHE_TESTS_CACHE_STORE_STORE_TESTING_H_
