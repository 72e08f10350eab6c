// SPDX-License-Identifier: Apache-2.0
// CallTrace: what a trace tells of one RunFunction call, gathered as it goes.
//
// A call has one only if the daemon traced when it came, so that others pay
// nothing. Belongs to its call's thread.
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

  // Keeps the request, unpacked, when the call lets go of it.
  void KeepRequest(const transport::Message& request) { request_ = request; }
  // Takes the phase of a load from the request's metadata.
  void SetMetadata(const http2::Fields& fields);
  void SetKey(const cache::key::Key& key) { key_ = key; }
  // It was answered by this entry, at `now`, and told this TTL.
  void SetHit(const cache::store::EntryInfo& entry, size_t bytes,
              absl::optional<absl::Duration> told_ttl, absl::Time now);
  // What it was answered with. Shared, and only if the trace wants it.
  void SetAnswer(const transport::Message& answer);
  // It was answered by the function, which took so long.
  void SetRun(const UpstreamRun& run, absl::Duration cost);

  // Hands it to the writer; `why` it missed, if it did. Last. `request` is the
  // call's where it was not kept; it is shared if the trace wants it.
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
  std::string phase_;
  insight::trace::TracedAnswer answered_;
};

}  // namespace fncache::proxy::serving

#endif  // FNCACHE_PROXY_SERVING_CALL_TRACE_H_
