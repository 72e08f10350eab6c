// SPDX-License-Identifier: Apache-2.0
// Traffic as a runner makes it.
//
// There are composites with many observed buckets, each rendered by a pipeline
// of two steps, and runners of different builds, which run many such pipelines
// and keep every call.
//
// DemoRunners is for one thread at a time; the functions are pure.
#ifndef FNCACHE_RUNNER_DEMO_TRAFFIC_H_
#define FNCACHE_RUNNER_DEMO_TRAFFIC_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/function_v1.pb.h"
#include "runner/engine/composition.h"
#include "runner/engine/engine.h"

namespace fncache::runner::demo {

// The function that both steps of the pipeline name.
inline constexpr char kDemoFunction[] = "function-template";
inline constexpr int kDemoSteps = 2;
inline constexpr int kDemoBuilds = 2;

// Renders a composite's buckets, then a policy for what the first step made.
std::shared_ptr<const engine::Composition> DemoComposition();

// Composite number `composite`, which observes `buckets` buckets.
engine::EngineInput DemoInput(
    std::shared_ptr<const engine::Composition> composition, int composite,
    int buckets);

// The tag that build number `build` of the runner gives what build 0 tags
// `tag`: other builds encode in another order.
std::string TagOfBuild(const std::string& tag, int build);

// One call of a function, from request to answer.
struct DemoCall {
  int composite = 0;
  int step = 0;  // from 0
  std::string tag;

  absl::Status status;
  absl::Time started;
  // From the request's bytes to the response's, without encoding and reading
  // them: what the network, the daemon and the function take.
  absl::Duration latency;
  std::string cache_status;  // the response header, "" if absent
  apiextensions::fn::proto::v1::RunFunctionResponse response;
};

// One run of a composite's pipeline.
struct DemoReconcile {
  int composite = 0;
  int build = 0;  // of the runner, under kDemoBuilds

  absl::Status status;
  int composed = 0;             // resources that would be applied
  std::vector<DemoCall> calls;  // in their order
};

// The runner's replicas, one of each build. Each has one connection to the
// function, which stays open from its first call on, as a runner's does.
class DemoRunners {
 public:
  // The function is at `address`. `inputs`, which are by composite, outlive it.
  static absl::StatusOr<std::unique_ptr<DemoRunners>> Create(
      const std::string& address,
      const std::vector<engine::EngineInput>* inputs);
  ~DemoRunners();

  // Runs `reconciles` in order, at most `at_once` of them at a time and, as a
  // runner does, one for each composite. Fills in what comes back. `progress`
  // is told how many are done, on one thread at a time.
  void Drive(size_t at_once, const std::function<void(size_t)>& progress,
             std::vector<DemoReconcile>* reconciles);

 private:
  struct Impl;
  explicit DemoRunners(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace fncache::runner::demo

#endif  // FNCACHE_RUNNER_DEMO_TRAFFIC_H_
