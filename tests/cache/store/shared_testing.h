// SPDX-License-Identifier: Apache-2.0
// Servers for tests that run over the shared tier, simulated and real ones, and
// the shared tier of a process on such a server.
#ifndef FNCACHE_TESTS_CACHE_STORE_SHARED_TESTING_H_
#define FNCACHE_TESTS_CACHE_STORE_SHARED_TESTING_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cache/observer.h"
#include "cache/store/bans.h"
#include "cache/store/shared_store.h"
#include "cache/store/stored_entry.h"
#include "cache/store/tiered_store.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "resp/server.h"
#include "tests/cache/store/simulated_server.h"

namespace fncache::cache::store::testing {

class TestServer {
 public:
  virtual ~TestServer() = default;
  virtual std::unique_ptr<resp::Server> Connect(int replica) = 0;
  // Whether a client with these figures has found all nodes.
  virtual bool IsKnown(const resp::ServerFigures&) const { return true; }
  // Null: a real server, whose time is the system's.
  virtual SimulatedServer* simulated() { return nullptr; }
};

std::unique_ptr<TestServer> MakeSimulatedServer(Clock* clock);
std::unique_ptr<TestServer> MakeRedisServer(Clock* clock);
// Three masters. All tests have the same ones, because they start slowly.
std::unique_ptr<TestServer> MakeRedisCluster(Clock* clock);

// The shared tier of the replicas of one fleet, and its server. No replica
// syncs by itself. The tier's look-ups have a minute, so that no load of the
// machine makes one a miss.
class SharedTier {
 public:
  // `clock` is the replicas', and is set to the system's time if the server is
  // a real one. Null: theirs is the system's.
  SharedTier(std::unique_ptr<TestServer> server, SimulatedClock* clock);

  // A store that is not attached.
  std::unique_ptr<SharedStore> Create(std::vector<StoredFunction> functions,
                                      uint64_t max_entry_bytes, Bans* bans,
                                      Clock* clock, Observer* observer,
                                      int replica = 0);
  // Memory with this tier below it, which is in use. Has no directory.
  absl::StatusOr<std::unique_ptr<TieredStore>> Open(TieredOptions options,
                                                    Clock* clock,
                                                    Observer* observer,
                                                    int replica = 0);
  // Syncs until the store is in use.
  void AwaitUse(SharedStore* store);
  // Sets the clock forward to the time of a real server, which compares it. A
  // fill of more than kClockTolerance ago seems late to it.
  void FollowRealTime();
  // True: the server is a real one, whose clock is that of the machine.
  bool follows() const { return clock_ != nullptr; }

  // The last store that a replica made.
  SharedStore& store(int replica = 0) { return *stores_.at(replica); }
  SimulatedServer& simulated() { return *server_->simulated(); }
  // The clock that counts suspension, of all replicas; in nanoseconds.
  std::atomic<int64_t> boottime{0};

 private:
  const std::unique_ptr<TestServer> server_;
  SimulatedClock* const clock_ = nullptr;
  const std::string secret_;
  std::map<int, SharedStore*> stores_;
};

// Blocks threads that pass it while it is closed.
class Gate {
 public:
  void Close() {
    MutexLock lock(&mutex_);
    closed_ = true;
  }
  void Open() {
    MutexLock lock(&mutex_);
    closed_ = false;
    changed_.SignalAll();
  }
  void Pass() {
    MutexLock lock(&mutex_);
    ++waiting_;
    changed_.SignalAll();
    while (closed_) changed_.Wait(&mutex_);
    --waiting_;
  }
  // Until a thread waits, or passes.
  void AwaitThread() {
    MutexLock lock(&mutex_);
    while (waiting_ == 0) changed_.Wait(&mutex_);
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  int waiting_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace fncache::cache::store::testing

#endif  // FNCACHE_TESTS_CACHE_STORE_SHARED_TESTING_H_
