// SPDX-License-Identifier: Apache-2.0
// RunProbe: asks a function which fields of requests its answers depend on.
//
//   the requests, and what they would be if all were ready (additions.h)
//   each twice -> the unstable paths of the answers
//   groups of fields left out, altered or added (search.h)
//     -> read, unread, untried
//   unread paths, as masks (masks.h)
//
// Each request that is sent has a random tag of its own, because the protocol
// says that requests with identical tags are otherwise identical.
//
// A field matters if it does for one of the requests: a mask serves all
// requests of a function, whatever its inputs. The results are evidence for
// these requests, not proof: a function may read a field of another one.
#ifndef FNCACHE_RUNNER_PROBE_PROBE_H_
#define FNCACHE_RUNNER_PROBE_PROBE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/function_v1_fwd.h"
#include "runner/probe/additions.h"
#include "runner/probe/fields.h"
#include "runner/probe/hints.h"
#include "runner/probe/masks.h"
#include "runner/probe/search.h"
#include "runner/probe/variation.h"

namespace fncache::runner::client {
class FunctionCaller;
}  // namespace fncache::runner::client

namespace fncache::runner::probe {

struct ProbeOptions {
  std::string function;  // as `caller` knows it
  // The most calls; at least three for each request.
  int calls = 1000;
  absl::Duration timeout = absl::Seconds(30);  // of each call
  // Seed of the altered values: equal seeds give equal calls but for their
  // tags.
  uint64_t seed = 1;
  // Believes the function's hints: a question whose answer a hint decides is
  // not asked.
  bool trust_hint = false;
};

struct ProbeResult {
  // The fields that may be masked, parents before their children; also fields
  // that were added (Field::real is false for them).
  std::vector<Field> fields;
  std::vector<Search::Result> results;  // of each field
  std::vector<std::string> unstable;    // paths of responses, each once
  int requests = 0;                     // without those that were made up
  int calls = 0;
  // The number of restarts of the search because a value proved unstable only
  // later.
  int restarts = 0;
  // All rounds were asked; else the calls ended first.
  bool complete = false;
  // All names that were guessed were tried, too.
  bool guesses_complete = false;
  // Resources that the function desires, or that other requests had, of which
  // nothing was observed here. If there are any, masks name resources.
  std::vector<std::string> not_probed;
  // Fields that the function reads, and that make it fail with each value that
  // was tried. The probe does not know which others it reads with a good one.
  std::vector<std::string> failing;
  std::vector<ProposedMask> masks;
  HintFindings hint;
};

// Blocks; at least one request. The error is that of the call where the
// function does not answer a request as it is, or no longer does;
// FailedPrecondition where its answer is FATAL, for there is nothing to compare
// then.
absl::StatusOr<ProbeResult> RunProbe(
    std::vector<apiextensions::fn::proto::v1::RunFunctionRequest> requests,
    const Variation& variation, const Knowledge& knowledge,
    const ProbeOptions& options, client::FunctionCaller* caller);

}  // namespace fncache::runner::probe

#endif  // FNCACHE_RUNNER_PROBE_PROBE_H_
