#include "proxy/function_handler.h"

#include <utility>

#include "proxy/serving/call.h"
#include "proxy/serving/stream.h"

namespace fncache::proxy {

void FunctionHandler::StartCall(transport::IncomingCallPtr call) {
  if (call->method() == Method::kOther) {
    serving::ForwardStream(std::move(call), &context_.upstream,
                           context_.instruments);
  } else {
    serving::StartRunFunction(std::move(call), &context_);
  }
}

}  // namespace fncache::proxy
