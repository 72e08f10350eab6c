// SPDX-License-Identifier: Apache-2.0
// FakeActions: an administered thing whose answers a test sets, and that
// remembers what it was asked.
//
// Thread-safe.
#ifndef FNCACHE_TESTS_PROXY_ADMIN_FAKE_ACTIONS_H_
#define FNCACHE_TESTS_PROXY_ADMIN_FAKE_ACTIONS_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/mutex.h"
#include "proto/admin.pb.h"
#include "proxy/admin/actions.h"

namespace fncache::proxy::admin {

class FakeActions final : public Actions {
 public:
  // Called before each action answers, on its thread; may block. Set it before
  // the server starts.
  std::function<void(const std::string& method)> before;
  // Given instead of an answer, if it is not ok.
  void SetStatus(absl::Status status) {
    MutexLock lock(&mutex_);
    status_ = std::move(status);
  }
  v1::StatsResponse stats;
  v1::PurgeResponse purge;
  v1::LookUpResponse look_up;
  v1::ExplainResponse explain;
  v1::ConfigResponse config;
  v1::ReloadResponse reload;
  v1::StartTraceResponse start_trace;
  v1::StopTraceResponse stop_trace;
  v1::SetLogLevelResponse log_level;
  v1::ShadowResponse shadow;
  v1::TuneResponse tune;

  // "Purge: " and the request's fields, one for each call.
  std::vector<std::string> asked() const {
    MutexLock lock(&mutex_);
    return asked_;
  }

  absl::StatusOr<v1::StatsResponse> Stats(
      const v1::StatsRequest& request) override {
    return Answer("Stats", request, stats);
  }
  absl::StatusOr<v1::LookUpResponse> LookUp(
      const v1::LookUpRequest& request) override {
    return Answer("LookUp", request, look_up);
  }
  absl::StatusOr<v1::PurgeResponse> Purge(
      const v1::PurgeRequest& request) override {
    return Answer("Purge", request, purge);
  }
  absl::StatusOr<v1::ExplainResponse> Explain(
      const v1::ExplainRequest& request) override {
    return Answer("Explain", request, explain);
  }
  absl::StatusOr<v1::ConfigResponse> Config(
      const v1::ConfigRequest& request) override {
    return Answer("Config", request, config);
  }
  absl::StatusOr<v1::ReloadResponse> Reload(
      const v1::ReloadRequest& request) override {
    return Answer("Reload", request, reload);
  }
  absl::StatusOr<v1::StartTraceResponse> StartTrace(
      const v1::StartTraceRequest& request) override {
    return Answer("StartTrace", request, start_trace);
  }
  absl::StatusOr<v1::StopTraceResponse> StopTrace(
      const v1::StopTraceRequest& request) override {
    return Answer("StopTrace", request, stop_trace);
  }
  absl::StatusOr<v1::SetLogLevelResponse> SetLogLevel(
      const v1::SetLogLevelRequest& request) override {
    return Answer("SetLogLevel", request, log_level);
  }
  absl::StatusOr<v1::ShadowResponse> Shadow(
      const v1::ShadowRequest& request) override {
    return Answer("Shadow", request, shadow);
  }
  absl::StatusOr<v1::TuneResponse> Tune(
      const v1::TuneRequest& request) override {
    return Answer("Tune", request, tune);
  }

 private:
  template <typename Request, typename Response>
  absl::StatusOr<Response> Answer(const std::string& method,
                                  const Request& request,
                                  const Response& response) {
    if (before) before(method);
    MutexLock lock(&mutex_);
    std::string said = method;
    const std::string fields =
        request.ByteSizeLong() < 1000 ? request.ShortDebugString() : "large";
    if (!fields.empty()) said += ": " + fields;
    asked_.push_back(std::move(said));
    if (!status_.ok()) return status_;
    return response;
  }

  mutable Mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> asked_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fncache::proxy::admin

#endif  // FNCACHE_TESTS_PROXY_ADMIN_FAKE_ACTIONS_H_
