// The forward path: any call, unary or streaming, known or not, passed to the
// function message by message and back.
//
// One message is in flight each way: the next is read when the last was
// written, so that a slow side slows the other down and nothing piles up here.
// Half-close, headers as soon as they come, trailers, status, deadline and
// cancellation pass both ways.
#ifndef FNCACHE_PROXY_SERVING_STREAM_H_
#define FNCACHE_PROXY_SERVING_STREAM_H_

#include "absl/functional/any_invocable.h"
#include "grpcpp/support/status.h"
#include "proxy/transport/incoming_call.h"
#include "proxy/transport/upstream.h"

namespace fncache::proxy::serving {

// How a forwarded call ended.
struct StreamEnd {
  grpc::Status status;     // as the function, or we in its stead, gave it
  bool cancelled = false;  // the caller left before
  absl::Duration latency;  // since the call's arrival
};

// Forwards `call`, from which nothing has been read, to the end; on its worker.
// `ended`, if given, is called there just before the caller is told. A
// non-empty `cache_status` is added to the headers (or, when the function sends
// none, to what stands for them).
void ForwardStream(transport::IncomingCallPtr call,
                   transport::Upstream* upstream,
                   absl::AnyInvocable<void(const StreamEnd&)> ended = nullptr,
                   absl::string_view cache_status = {});

}  // namespace fncache::proxy::serving

#endif  // FNCACHE_PROXY_SERVING_STREAM_H_
