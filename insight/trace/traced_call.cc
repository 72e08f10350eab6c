// SPDX-License-Identifier: Apache-2.0
#include "insight/trace/traced_call.h"

namespace fncache::insight::trace {

const char* OutcomeName(Outcome outcome) {
  switch (outcome) {
    case Outcome::kUnknown:
      return "unknown";
    case Outcome::kHit:
      return "hit";
    case Outcome::kMiss:
    case Outcome::kStale:
      return "miss";
    case Outcome::kStaleHit:
      return "stale";
    case Outcome::kCollapsed:
      return "collapsed";
    case Outcome::kBypass:
    case Outcome::kRequest:
      return "bypass";
    case Outcome::kNone:
      return "none";
  }
  return "unknown";
}

const char* ReasonName(Reason reason) {
  switch (reason) {
    case Reason::kNew:
      return "new";
    case Reason::kExpired:
      return "expired";
    case Reason::kEvicted:
      return "evicted";
    case Reason::kPurged:
      return "purged";
    case Reason::kGeneration:
      return "generation";
    case Reason::kNotStored:
      return "not-stored";
    case Reason::kUnknown:
      return "unknown";
    case Reason::kChanged:
      return "changed";
    case Reason::kDrift:
      return "drift";
    default:
      break;
  }
  return "";
}

}  // namespace fncache::insight::trace
