// SPDX-License-Identifier: Apache-2.0
// Explanation: why a request missed, and why an answer was not kept.
//
// Plain data; the functions are pure and thread-safe.
#ifndef FNCACHE_INSIGHT_EXPLAIN_EXPLANATION_H_
#define FNCACHE_INSIGHT_EXPLAIN_EXPLANATION_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "cache/key/key.h"
#include "insight/request/identity.h"
#include "insight/trace/traced_call.h"

namespace fncache::insight::explain {

// Paths that masks are proposed for, at most.
inline constexpr size_t kMostChanged = 64;

// Why an answer was not kept.
enum class NotStored {
  kNoTtl,      // no TTL, or zero, and no setting replaces it
  kFatal,      // it holds a FATAL result
  kSecrets,    // it holds connection details
  kTooLarge,   // above max_entry_bytes, or for the memory tier
  kModeOff,    // `mode: off` was put in force before it came
  kError,      // an error, or an invalid response
  kAbandoned,  // its callers left before it came
};
// "no-ttl", "fatal", "secrets", "too-large", "mode-off", "error", "abandoned".
const char* NotStoredName(NotStored why);

struct Explanation {
  trace::Reason reason = trace::Reason::kUnknown;
  // not-stored: the cause. changed: the first path, written as a mask, or "" if
  // only the section is known. Never a value, but names that users chose:
  // escape it where it is shown.
  std::string detail;
  std::string section;  // of changed, insight/request's SectionOf
  std::string writer;   // of changed, the manager that wrote the object last
  // changed: the masks under which it would not have changed. They are those to
  // propose (proposed_mask.h) for all that changed. Empty if a change has no
  // such mask, or if more than kMostChanged paths changed.
  std::vector<std::string> masks;
};

// A path that changed and did not change the answer.
struct UnreadPath {
  std::string path;    // written as a mask
  std::string mask;    // hides it; to use it is an operator's promise
  uint64_t count = 0;  // perhaps too high, never too low
};

// One of the last misses, as it was explained.
struct ExplainedMiss {
  absl::Time time;
  std::string function;
  request::CompositeName composite;  // empty where not known
  cache::key::Key key;
  Explanation why;
};

}  // namespace fncache::insight::explain

#endif  // FNCACHE_INSIGHT_EXPLAIN_EXPLANATION_H_
