// SPDX-License-Identifier: Apache-2.0
// Converts between a TracedCall and its record in a file.
//
// Pure functions, thread-safe.
#ifndef FNCACHE_INSIGHT_TRACE_RECORD_H_
#define FNCACHE_INSIGHT_TRACE_RECORD_H_

#include <cstdint>
#include <string>

#include "insight/trace/traced_call.h"

namespace fncache::trace {
class Call;
class Node;
}  // namespace fncache::trace

namespace fncache::insight::trace {

// Appends the bytes of the trace's Call, all but the request and the messages.
// A caller may append those fields to the same record. Written by hand, because
// a hit waits for it. In texts, U+FFFD replaces bytes that are no UTF-8, which
// protobuf would not read.
void AppendCall(const TracedCall& call, std::string* bytes);
// Values that this version does not know become unknown.
TracedCall FromRecord(const fncache::trace::Call& record);

// The summand of one node in Request.check.
uint64_t CheckOf(uint32_t path, uint32_t kind, uint64_t digest);
uint64_t CheckOf(const fncache::trace::Node& node);

}  // namespace fncache::insight::trace

#endif  // FNCACHE_INSIGHT_TRACE_RECORD_H_
