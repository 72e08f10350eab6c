// SPDX-License-Identifier: Apache-2.0
// The pipeline that the demo drives: a composite of ten buckets, rendered by
// two steps of fncache's own function.
#ifndef FNCACHE_RUNNER_DEMO_INPUTS_H_
#define FNCACHE_RUNNER_DEMO_INPUTS_H_

namespace fncache::runner::demo {

// The function that both steps name.
inline constexpr char kDemoFunction[] = "function-template";
inline constexpr int kDemoSteps = 2;

extern const char kDemoXr[];           // YAML
extern const char kDemoComposition[];  // YAML

}  // namespace fncache::runner::demo

#endif  // FNCACHE_RUNNER_DEMO_INPUTS_H_
