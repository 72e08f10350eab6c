// SPDX-License-Identifier: Apache-2.0
// Tuning: what the functions of a daemon share so that entries answer across
// drift (DESIGN, "Tuning"), and what one call adds to the evidence.
//
// evidence.h decides; question.h asks the function.
#ifndef FNCACHE_PROXY_SERVING_TUNING_H_
#define FNCACHE_PROXY_SERVING_TUNING_H_

#include <atomic>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "cache/key/drift_kinds.h"
#include "cache/key/key.h"
#include "cache/response_digest.h"
#include "common/mutex.h"
#include "proxy/serving/evidence.h"

namespace fncache::proxy::serving {

class Questions;

// Thread-safe.
struct Tuning {
  Evidence evidence;
  cache::ResponseDigester digester;
  // From now on no question is asked: the daemon drains.
  std::atomic<bool> silent{false};

  // The answer with this body, and the TTL that the function gave, as the
  // evidence compares them: with `entry`'s start and drift, which are kept.
  // Absent: it cannot be read.
  absl::optional<TunedEntry> AnswerOf(absl::Span<const absl::string_view> body,
                                      absl::optional<absl::Duration> ttl) const;
  // The function's figures. Those of keys and steps are at most 100 ms old: a
  // scrape asks for each figure of each function, and to count the keys takes
  // most of a millisecond.
  Evidence::FunctionFigures FiguresOf(FunctionId function, absl::Time now);

 private:
  Mutex mutex_;
  absl::flat_hash_map<FunctionId, Evidence::FunctionFigures> figures_
      ABSL_GUARDED_BY(mutex_);
  absl::Time figures_read_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

// A request of a function that is tuned, from its look-up to the end of its
// run. Not thread-safe: first the call uses it, then its run.
struct TunedCall {
  cache::key::Key drift;
  cache::key::DriftKinds kinds;
  bool reencoded = false;  // its key took the slow path
  // The key's evidence may learn from the run's answer. Otherwise nothing of
  // the key was known when the function was called, and what follows is empty.
  bool learns = false;
  cache::key::Key step;
  // Null: no question may be asked about this request.
  std::shared_ptr<Questions> questions;
  // With Reason::kDrift: why the entry that was found does not answer.
  Judgement judgement;
  // Set by the run: questions are due about this answer.
  absl::optional<TunedEntry> asks;
};

// A pipeline stage as the wire shows it. `request` is a serialized
// RunFunctionRequest.
cache::key::Key StepOf(absl::string_view function, absl::string_view generation,
                       absl::string_view request);
// The same for people. It is not cheap: 10 us for an input of 4 KB.
StepNames NamesOf(absl::string_view request);

// A verdict as misses carry it: "unproven", "read", "old" or "moved".
const char* VerdictName(DriftVerdict verdict);

}  // namespace fncache::proxy::serving

#endif  // FNCACHE_PROXY_SERVING_TUNING_H_
