// Traffic as a runner makes it: composites with many observed buckets, rendered
// by a pipeline of two steps, its requests encoded as Go does (map order random
// on every call), and a driver that runs many of them and keeps every call.
#ifndef FNCACHE_RUNNER_DEMO_TRAFFIC_H_
#define FNCACHE_RUNNER_DEMO_TRAFFIC_H_

#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "google/protobuf/message.h"
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

// `message` as bytes with the entries of every map in random order.
std::string EncodeShuffled(const google::protobuf::Message& message,
                           std::mt19937* random);

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

// Runs `reconciles` in order against the function at `address`, over one
// connection for each build, at most `at_once` of them open and, as a runner
// does, one for each composite. `inputs` are by composite. Fills in what comes
// back. `progress` is told how many are done, on one thread at a time.
absl::Status Drive(const std::string& address,
                   const std::vector<engine::EngineInput>& inputs,
                   size_t at_once, const std::function<void(size_t)>& progress,
                   std::vector<DemoReconcile>* reconciles);

}  // namespace fncache::runner::demo

#endif  // FNCACHE_RUNNER_DEMO_TRAFFIC_H_
