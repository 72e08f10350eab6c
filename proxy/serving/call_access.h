// SPDX-License-Identifier: Apache-2.0
// CallAccess: one call's line of the access log, gathered while the call lives.
// It costs a call nothing while the log is off, and a hit without a line one
// check.
//
// Belongs to its call's thread.
#ifndef FNCACHE_PROXY_SERVING_CALL_ACCESS_H_
#define FNCACHE_PROXY_SERVING_CALL_ACCESS_H_

#include <memory>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "cache/key/key.h"
#include "insight/explain/miss_memory.h"
#include "insight/request/identity.h"
#include "proxy/telemetry/access_log.h"

namespace fncache::proxy::serving {

class CallAccess {
 public:
  // `log` may be null; otherwise it outlives this object.
  explicit CallAccess(telemetry::AccessLog* log) : log_(log) {}

  // Keeps the composite of the decompressed request, before the call releases
  // the request.
  void KeepRequest(absl::string_view request) {
    if (log_ != nullptr && log_->on()) ReadRequest(request);
  }
  // Sets how long the function took to answer the call.
  void SetUpstreamLatency(absl::Duration latency) { upstream_ = latency; }

  // The last step: writes the line if the call has one. `request` is the call's
  // decompressed request, and is read if KeepRequest was not called. A zero
  // `key` is none.
  void Write(absl::string_view function, const telemetry::CallRecord& call,
             const insight::explain::Explanation& why,
             const cache::key::Key& key, absl::string_view request) {
    if (log_ != nullptr && log_->Wants(call)) {
      WriteLine(function, call, why, key, request);
    }
  }

 private:
  void ReadRequest(absl::string_view request);
  void WriteLine(absl::string_view function, const telemetry::CallRecord& call,
                 const insight::explain::Explanation& why,
                 const cache::key::Key& key, absl::string_view request);

  telemetry::AccessLog* const log_;
  // Its texts are cut to the length that is written.
  std::unique_ptr<insight::request::CompositeName> composite_;
  absl::Duration upstream_;
};

}  // namespace fncache::proxy::serving

#endif  // FNCACHE_PROXY_SERVING_CALL_ACCESS_H_
