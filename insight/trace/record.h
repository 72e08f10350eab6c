// SPDX-License-Identifier: Apache-2.0
// Between a TracedCall and the record that a file holds of it.
//
// Pure functions, thread-safe.
#ifndef FNCACHE_INSIGHT_TRACE_RECORD_H_
#define FNCACHE_INSIGHT_TRACE_RECORD_H_

#include <cstdint>

#include "insight/trace/traced_call.h"
#include "proto/trace.pb.h"

namespace fncache::insight::trace {

// All but the request and the messages.
void ToRecord(const TracedCall& call, fncache::trace::Call* record);
// What a reader does not know becomes unknown.
TracedCall FromRecord(const fncache::trace::Call& record);

// What one node adds to Request.check.
uint64_t CheckOf(const fncache::trace::Node& node);

}  // namespace fncache::insight::trace

#endif  // FNCACHE_INSIGHT_TRACE_RECORD_H_
