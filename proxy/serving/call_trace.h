// SPDX-License-Identifier: Apache-2.0
// CallTrace: what a trace tells of one RunFunction call, gathered as it goes.
//
// A call has one only while the daemon traces (trace.dir), so that others pay
// nothing. Belongs to its call's thread.
#ifndef FNCACHE_PROXY_SERVING_CALL_TRACE_H_
#define FNCACHE_PROXY_SERVING_CALL_TRACE_H_

#include <string>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "cache/key/key.h"
#include "cache/store/entry.h"
#include "common/method.h"
#include "grpc/impl/codegen/grpc_types.h"
#include "grpcpp/support/byte_buffer.h"
#include "insight/explain/miss_memory.h"
#include "insight/trace/writer.h"
#include "proxy/serving/upstream_run.h"
#include "proxy/telemetry/instruments.h"

namespace fncache::proxy::serving {

struct ServingContext;

class CallTrace {
 public:
  CallTrace(const ServingContext& context, Method method, absl::Time arrived)
      : context_(context), method_(method), arrived_(arrived) {}

  // The request is shared, not copied.
  void SetRequest(const grpc::ByteBuffer& request) { request_ = request; }
  // Takes the phase of a load from the request's metadata.
  void SetMetadata(absl::Span<const grpc_metadata> metadata);
  void SetKey(const cache::key::Key& key) { key_ = key; }
  // It was answered by this entry, at `now`.
  void SetHit(const cache::store::EntryInfo& entry, size_t bytes,
              absl::Time now);
  // What it was answered with.
  void SetAnswer(const grpc::ByteBuffer& answer) { answer_ = answer; }
  // It was answered by the function.
  void SetRun(const UpstreamRun& run);

  // Why it missed, if it did.
  void SetReason(const insight::explain::Explanation& why) {
    call_.reason = why.reason;
    call_.detail = why.detail;
  }

  // Hands it to the writer. Last.
  void Write(telemetry::Outcome outcome, int code, absl::Duration latency);

 private:
  const ServingContext& context_;
  const Method method_;
  const absl::Time arrived_;
  grpc::ByteBuffer request_;
  grpc::ByteBuffer answer_;
  absl::optional<cache::key::Key> key_;
  insight::trace::TracedCall call_;
};

}  // namespace fncache::proxy::serving

#endif  // FNCACHE_PROXY_SERVING_CALL_TRACE_H_
