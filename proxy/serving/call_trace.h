// SPDX-License-Identifier: Apache-2.0
// CallTrace: the record of one RunFunction call in a trace, gathered while the
// call lives.
//
// A call has one only if the daemon traced when the call arrived, so that other
// calls pay nothing. Belongs to its call's thread.
#ifndef FNCACHE_PROXY_SERVING_CALL_TRACE_H_
#define FNCACHE_PROXY_SERVING_CALL_TRACE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "cache/key/key.h"
#include "cache/store/entry.h"
#include "common/method.h"
#include "http2/fields.h"
#include "insight/explain/miss_memory.h"
#include "insight/trace/writer.h"
#include "proxy/serving/upstream_run.h"
#include "proxy/telemetry/instruments.h"
#include "proxy/transport/message.h"

namespace fncache::proxy::serving {

struct ServingContext;

class CallTrace {
 public:
  CallTrace(const ServingContext& context,
            std::shared_ptr<insight::trace::TraceWriter> writer, Method method,
            absl::Time arrived)
      : context_(context),
        writer_(std::move(writer)),
        method_(method),
        arrived_(arrived) {}

  // Keeps the decompressed request, before the call releases it.
  void KeepRequest(const transport::Message& request) { request_ = request; }
  // Takes the phase of a load from the request's metadata.
  void SetMetadata(const http2::Fields& fields);
  // `tuned`: the key is without drift.
  void SetKey(const cache::key::Key& key, bool tuned) {
    key_ = key;
    tuned_ = tuned;
  }
  // This entry answered the call, at `now`, with this TTL.
  void SetHit(const cache::store::EntryInfo& entry, size_t bytes,
              absl::optional<absl::Duration> told_ttl, absl::Time now);
  // Keeps the answer, if the trace wants it. The bytes are shared.
  void SetAnswer(const transport::Message& answer);
  // The function answered the call, and took `cost`.
  void SetRun(const UpstreamRun& run, absl::Duration cost);

  // The last step: passes the record to the writer. `why`: the reason of the
  // miss, if the call was one. `request` is the call's request, and is used if
  // KeepRequest was not called. Its bytes are shared if the trace wants them.
  void Write(telemetry::Outcome outcome, int code, absl::Duration latency,
             const insight::explain::Explanation& why,
             absl::string_view generation, const transport::Message* request);

 private:
  const ServingContext& context_;
  const std::shared_ptr<insight::trace::TraceWriter> writer_;
  const Method method_;
  const absl::Time arrived_;
  transport::Message request_;
  transport::Message answer_;
  absl::optional<cache::key::Key> key_;
  bool tuned_ = false;
  std::string phase_;
  insight::trace::TracedAnswer answered_;
};

}  // namespace fncache::proxy::serving

#endif  // FNCACHE_PROXY_SERVING_CALL_TRACE_H_
