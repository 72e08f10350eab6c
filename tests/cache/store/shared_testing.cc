// SPDX-License-Identifier: Apache-2.0
#include "tests/cache/store/shared_testing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cache/store/open_tiers.h"
#include "cache/store/seal.h"
#include "resp/client.h"
#include "tests/cache/store/store_testing.h"
#include "tests/common/eventually.h"
#include "tests/resp/redis_server.h"

namespace fncache::cache::store::testing {
namespace {

std::unique_ptr<resp::Server> ConnectTo(const resp::testing::RedisServer& to) {
  resp::ClientOptions options;
  options.endpoint = to.endpoint();
  return resp::Client::Create(options);
}

class Simulated : public TestServer {
 public:
  explicit Simulated(Clock* clock) : server_(clock) {}
  std::unique_ptr<resp::Server> Connect(int replica) override {
    return server_.Connect(replica);
  }
  SimulatedServer* simulated() override { return &server_; }

 private:
  SimulatedServer server_;
};

class Single : public TestServer {
 public:
  std::unique_ptr<resp::Server> Connect(int) override {
    return ConnectTo(server_);
  }

 private:
  resp::testing::RedisServer server_;
};

class Cluster : public TestServer {
 public:
  std::unique_ptr<resp::Server> Connect(int) override {
    static resp::testing::RedisCluster cluster;
    return ConnectTo(cluster.node(0));
  }
  bool IsKnown(const resp::ServerFigures& figures) const override {
    return figures.nodes.size() == 3 &&
           std::all_of(figures.nodes.begin(), figures.nodes.end(),
                       [](const resp::Node& node) {
                         return node.state == resp::Node::State::kUp;
                       });
  }
};

// Tests that use one server do not see the values of each other.
std::string NewSecret() {
  static std::atomic<int> secrets{0};
  return absl::StrCat(std::string(Seal::kMinSecret, 's'), ++secrets);
}

}  // namespace

std::unique_ptr<TestServer> MakeSimulatedServer(Clock* clock) {
  return std::make_unique<Simulated>(clock);
}
std::unique_ptr<TestServer> MakeRedisServer(Clock*) {
  return std::make_unique<Single>();
}
std::unique_ptr<TestServer> MakeRedisCluster(Clock*) {
  return std::make_unique<Cluster>();
}

SharedTier::SharedTier(std::unique_ptr<TestServer> server,
                       SimulatedClock* clock)
    : server_(std::move(server)),
      clock_(server_->simulated() == nullptr ? clock : nullptr),
      secret_(NewSecret()) {
  FollowRealTime();
}

void SharedTier::FollowRealTime() {
  if (clock_ != nullptr) clock_->Set(std::max(clock_->Now(), absl::Now()));
}

std::unique_ptr<SharedStore> SharedTier::Create(
    std::vector<StoredFunction> functions, uint64_t max_entry_bytes, Bans* bans,
    Clock* clock, Observer* observer, int replica) {
  SharedStoreOptions options;
  options.server = server_->Connect(replica);
  options.secret = secret_;
  options.functions = std::move(functions);
  options.max_entry_bytes = max_entry_bytes;
  options.timeout = absl::Minutes(1);
  options.boottime = [this] { return absl::Nanoseconds(boottime.load()); };
  options.sync_by_itself = false;
  auto store = SharedStore::Create(std::move(options), bans, clock, observer);
  stores_[replica] = store.get();
  return store;
}

absl::StatusOr<std::unique_ptr<TieredStore>> SharedTier::Open(
    TieredOptions options, Clock* clock, Observer* observer, int replica) {
  options.disk_dir.reset();
  options.shared_timeout = absl::Minutes(1);
  options.shared_max_entry_bytes = options.max_entry_bytes;
  options.open_shared = [this, functions = options.functions, replica,
                         max_entry_bytes = options.max_entry_bytes](
                            Bans* bans, Clock* of, Observer* by) {
    return Create(functions, max_entry_bytes, bans, of, by, replica);
  };
  auto opened = OpenTiers(std::move(options), clock, observer);
  if (opened.ok()) AwaitUse(stores_.at(replica));
  return opened;
}

void SharedTier::AwaitUse(SharedStore* store) {
  EXPECT_TRUE(Eventually([&, n = uint64_t{1} << 40]() mutable {
    FollowRealTime();
    const bool in_use = store->Sync().ok();
    const resp::ServerFigures figures = store->figures().server;
    if (in_use && server_->IsKnown(figures)) return true;
    // A key of another node than the first shows that it is a Cluster.
    store->Erase(KeyOf(++n));
    return false;
  }));
}

}  // namespace fncache::cache::store::testing
