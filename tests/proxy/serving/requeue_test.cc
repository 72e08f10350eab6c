// SPDX-License-Identifier: Apache-2.0
// Idle composites under the reconciler's timers, in simulated time, through a
// whole daemon: what docs/hit-rates.md says of `ttl.min` beside `requeue_ttl:
// original`.
#include <atomic>
#include <memory>
#include <queue>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "proto/function_v1.grpc.pb.h"
#include "tests/proxy/simulated_daemon.h"

namespace fncache::proxy::serving {
namespace {

namespace fn = apiextensions::fn::proto::v1;

constexpr absl::Duration kTtl = absl::Seconds(60);
// The runner's (controller-runtime's jitter of the reconciler): a requeue comes
// after TTL x (1 +- 0.1).
constexpr double kJitter = 0.1;

// Answers with what it was asked, and a TTL.
class Function : public fn::FunctionRunnerService::Service {
 public:
  Function() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  grpc::Status RunFunction(grpc::ServerContext*,
                           const fn::RunFunctionRequest* request,
                           fn::RunFunctionResponse* response) override {
    ++runs;
    response->mutable_meta()->set_tag(request->meta().tag());
    response->mutable_meta()->mutable_ttl()->set_seconds(
        absl::ToInt64Seconds(kTtl));
    *response->mutable_desired()->mutable_composite()->mutable_resource() =
        request->observed().composite().resource();
    return grpc::Status::OK;
  }
  std::string target() const { return absl::StrCat("127.0.0.1:", port_); }

  std::atomic<int> runs{0};

 private:
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

fn::RunFunctionRequest Request(int composite, int version) {
  fn::RunFunctionRequest request;
  request.mutable_meta()->set_tag(absl::StrCat("tag of ", version));
  auto& fields = *request.mutable_observed()
                      ->mutable_composite()
                      ->mutable_resource()
                      ->mutable_fields();
  fields["name"].set_string_value(absl::StrCat("xr-", composite));
  fields["version"].set_number_value(version);
  return request;
}

absl::Duration TtlOf(const fn::RunFunctionResponse& response) {
  return absl::Seconds(response.meta().ttl().seconds()) +
         absl::Nanoseconds(response.meta().ttl().nanos());
}

// Composites that are reconciled when the TTL that they got is over, give or
// take the jitter, and change where `changes` says so.
class Reconciler {
 public:
  Reconciler(const std::string& settings, int composites, unsigned seed)
      : daemon_(settings, function_.target()),
        random_(seed),
        versions_(composites) {
    std::uniform_real_distribution<double> phase(0, 1);
    for (int i = 0; i < composites; ++i) {
      timers_.emplace(kTtl * phase(random_), i);
    }
  }

  struct Counts {
    int calls = 0;
    int hits = 0;
    int changed = 0;          // calls whose request was new
    int changed_and_hit = 0;  // of these; none may be
    int foreign = 0;          // answers to another request; none may be
    absl::Duration told_least = absl::InfiniteDuration();
    absl::Duration told_most;
  };

  // Reconciles until `end`, a composite changing before a call with this
  // probability.
  Counts RunUntil(absl::Duration end, double change = 0) {
    Counts counts;
    std::uniform_real_distribution<double> uniform(0, 1);
    while (timers_.top().first < end) {
      const auto [now, composite] = timers_.top();
      timers_.pop();
      daemon_.SetTime(now);
      int& version = versions_[composite];
      const bool changes = uniform(random_) < change;
      if (changes) ++version;
      const auto answer = daemon_.Call("function", Request(composite, version));
      ++counts.calls;
      counts.hits += answer.hit;
      counts.changed += changes;
      counts.changed_and_hit += changes && answer.hit;
      const auto& fields =
          answer.response.desired().composite().resource().fields();
      counts.foreign +=
          fields.at("name").string_value() != absl::StrCat("xr-", composite) ||
          fields.at("version").number_value() != version;
      const absl::Duration told = TtlOf(answer.response);
      counts.told_least = std::min(counts.told_least, told);
      counts.told_most = std::max(counts.told_most, told);
      timers_.emplace(now + told * (1 + kJitter * (2 * uniform(random_) - 1)),
                      composite);
    }
    return counts;
  }

  int runs() const { return function_.runs; }

 private:
  using Timer = std::pair<absl::Duration, int>;

  Function function_;
  SimulatedDaemon daemon_;
  std::mt19937 random_;
  std::vector<int> versions_;
  std::priority_queue<Timer, std::vector<Timer>, std::greater<>> timers_;
};

constexpr char kDefault[] = "";
constexpr char kLong[] = "ttl: {min: 24h}\nrequeue_ttl: original\n";
constexpr int kComposites = 50;

TEST(RequeueTest, NothingHitsAtATimerOfExactlyTheTtl) {
  Reconciler reconciler(kDefault, kComposites, 1);
  const auto counts = reconciler.RunUntil(10 * kTtl);
  EXPECT_EQ(counts.hits, 0);
  EXPECT_EQ(reconciler.runs(), counts.calls);
}

TEST(RequeueTest, IdleCompositesHitAtEveryTimerOfTenTtls) {
  Reconciler reconciler(kLong, kComposites, 2);
  // The first call of each fills.
  reconciler.RunUntil(kTtl);
  const auto counts = reconciler.RunUntil(11 * kTtl);
  EXPECT_GE(counts.calls, kComposites * 9);
  EXPECT_GE(counts.hits, 0.98 * counts.calls);
  EXPECT_EQ(counts.foreign, 0);
  // The runner comes as often as before: it gets the function's TTL.
  EXPECT_EQ(counts.told_least, kTtl);
  EXPECT_EQ(counts.told_most, kTtl);
}

TEST(RequeueTest, EveryChangeOfTheRequestStillMisses) {
  Reconciler reconciler(kLong, kComposites, 3);
  reconciler.RunUntil(kTtl);
  const int filled = reconciler.runs();
  const auto counts = reconciler.RunUntil(21 * kTtl, /*change=*/0.2);
  EXPECT_GT(counts.changed, 100);
  EXPECT_EQ(counts.changed_and_hit, 0);
  EXPECT_EQ(counts.foreign, 0);
  EXPECT_EQ(reconciler.runs() - filled, counts.changed);
  EXPECT_EQ(counts.hits, counts.calls - counts.changed);
}

TEST(RequeueTest, TheFunctionRunsAgainAfterTheLifetimeLessTheMargin) {
  Reconciler reconciler("ttl: {min: 1h}\nrequeue_ttl: original\n", 10, 4);
  reconciler.RunUntil(kTtl);
  EXPECT_EQ(reconciler.runs(), 10);
  // Each entry is served for 54 minutes from its fill, in the first minute.
  const auto until = reconciler.RunUntil(absl::Minutes(54));
  EXPECT_EQ(until.hits, until.calls);
  const auto after = reconciler.RunUntil(absl::Minutes(57));
  EXPECT_EQ(after.calls - after.hits, 10);
  EXPECT_EQ(reconciler.runs(), 20);
}

}  // namespace
}  // namespace fncache::proxy::serving
