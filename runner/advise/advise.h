// SPDX-License-Identifier: Apache-2.0
// Advise: the settings that a trace and its functions suggest.
//
//   explain   why calls missed
//   repeats   which runs got the answer of before (repeats.h)
//   probe     which paths each function leaves unread, asked at its address
//   what-if   the results of masks over those, and of a longer lifetime
//
// Where many repeats were over drift only, it proposes `tune: on`, and masks
// over other paths alone.
//
// Only masks that a probe found unread are used. Some hide the changes of a
// composite. Others hide the differences between composites, which then share
// answers: those help most while composites are created.
//
// Blocks; thread-safe.
#ifndef FNCACHE_RUNNER_ADVISE_ADVISE_H_
#define FNCACHE_RUNNER_ADVISE_ADVISE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "insight/explain/analysis.h"
#include "insight/whatif/settings.h"
#include "runner/advise/repeats.h"
#include "runner/client/function_client.h"
#include "runner/probe/probe.h"

namespace fncache::runner::advise {

struct AdviseOptions {
  std::string trace;
  // The addresses of the functions to ask; they have the daemon's names.
  std::vector<client::FunctionTarget> targets;
  std::string tls_dir;
  int calls = 1000;  // of each function at most
  absl::Duration timeout = absl::Seconds(30);
  uint64_t seed = 1;
};

struct FunctionAdvice {
  std::string function;
  // Why it was not asked; "" if it was.
  std::string not_asked;
  std::string asked_with;  // the requests, for people
  uint32_t compared = 0;   // calls of the trace with known changes
  probe::ProbeResult probe;
  std::vector<std::string> in_force;
  TraceRepeats repeats;
  bool tune_in_force = false;
  bool tune = false;  // `tune: on` is proposed
  // With `tune`, unread masks that hide nothing but drift.
  std::vector<std::string> drift_masks;
  // Masks over changes, and over differences between composites.
  std::vector<probe::ProposedMask> masks;
  std::vector<std::string> identity;
  // Other paths that differ between composites: paths that are read, or that no
  // mask over a leaf hides.
  std::vector<std::string> apart;
  // The number of composites that were compared; fewer than two show nothing.
  int composites = 0;
};

// The expected results of settings on the trace.
struct Expected {
  std::string settings;
  absl::optional<double> hit_rate;
  uint64_t runs = 0;
  // The hit rate of calls while composites were created; none if the trace has
  // no such calls.
  absl::optional<double> creation;
};

struct Advice {
  std::string trace;
  insight::explain::Analysis analysis;
  std::vector<FunctionAdvice> functions;
  // The settings of the daemon are a list of functions.
  bool several = false;
  std::vector<Expected> expected;
  // Rows with `tune: on` count as if all drift of it were masked.
  bool as_if_masked = false;
  // Identity masks save calls, and are in the settings.
  bool share = false;
  // The questions that stayed open, a sentence each.
  std::vector<std::string> unknown;
};

// FailedPrecondition if the trace has no information of this kind; any error of
// reading it.
absl::StatusOr<Advice> Advise(const AdviseOptions& options,
                              const insight::whatif::SettingsReader& settings);

// The advice as text for people: YAML first, the rest in its comments, so that
// all of it can be pasted. And as JSON for programs.
std::string AdviceText(const Advice& advice);
std::string AdviceJson(const Advice& advice);

}  // namespace fncache::runner::advise

#endif  // FNCACHE_RUNNER_ADVISE_ADVISE_H_
