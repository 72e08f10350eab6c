// SPDX-License-Identifier: Apache-2.0
// The messages of a call as bytes of protobuf, for features that the SDK does
// not know yet. A call that takes them has read everything.
//
// A part of a Context: it belongs to one call and one thread.
#ifndef FNCACHE_FUNCTION_RAW_H_
#define FNCACHE_FUNCTION_RAW_H_

#include <string>
#include <string_view>

#include "fncache/function/context.h"

namespace fncache::function {

// The RunFunctionRequest without its tag. Lives as long as the call.
std::string_view RawRequest(Context& ctx);
// A RunFunctionResponse that is merged into the response, as protobuf merges
// messages. A FATAL result in it makes the call FATAL, and so do bytes that are
// no message. A FATAL response has its results, conditions and requirements.
void MergeRawResponse(Context& ctx, std::string_view response);

}  // namespace fncache::function

#endif  // FNCACHE_FUNCTION_RAW_H_
