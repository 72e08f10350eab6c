// SPDX-License-Identifier: Apache-2.0
// DaemonActions: the actions of the admin service, implemented with the
// daemon's components.
//
// Thread-safe, as the components are; they outlive it.
#ifndef FNCACHE_PROXY_DAEMON_ACTIONS_H_
#define FNCACHE_PROXY_DAEMON_ACTIONS_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "insight/explain/miss_memory.h"
#include "proxy/admin/actions.h"
#include "proxy/limits/budget.h"
#include "proxy/live_settings.h"
#include "proxy/purge.h"
#include "proxy/reload.h"
#include "proxy/telemetry/instruments.h"
#include "proxy/telemetry/shadow_report.h"
#include "proxy/telemetry/tune_report.h"

namespace fncache::proxy {

class DaemonActions final : public admin::Actions {
 public:
  struct Sources {
    const telemetry::Instruments* instruments = nullptr;
    const limits::Budget* inflight = nullptr;
    // Null: misses are not explained.
    const insight::explain::MissMemory* misses = nullptr;
    Clock* clock = nullptr;
    // Each function's target, by FunctionId.
    std::vector<std::string> upstreams;
    // "starting", "ready", "draining".
    std::function<std::string()> state;
    // The settings in force, as a file that can be read again.
    std::function<std::string()> settings;
    Purger* purger = nullptr;
    LiveSettings* live = nullptr;
    std::function<absl::StatusOr<ReloadResult>()> reload;
    std::function<std::vector<telemetry::ShadowReport>()> shadow;
    std::function<std::vector<telemetry::TuneReport>()> tune;
  };

  explicit DaemonActions(Sources sources);

  absl::StatusOr<admin::v1::StatsResponse> Stats(
      const admin::v1::StatsRequest& request) override;
  absl::StatusOr<admin::v1::LookUpResponse> LookUp(
      const admin::v1::LookUpRequest& request) override;
  absl::StatusOr<admin::v1::PurgeResponse> Purge(
      const admin::v1::PurgeRequest& request) override;
  absl::StatusOr<admin::v1::ExplainResponse> Explain(
      const admin::v1::ExplainRequest& request) override;
  absl::StatusOr<admin::v1::ConfigResponse> Config(
      const admin::v1::ConfigRequest& request) override;
  absl::StatusOr<admin::v1::ReloadResponse> Reload(
      const admin::v1::ReloadRequest& request) override;
  absl::StatusOr<admin::v1::StartTraceResponse> StartTrace(
      const admin::v1::StartTraceRequest& request) override;
  absl::StatusOr<admin::v1::StopTraceResponse> StopTrace(
      const admin::v1::StopTraceRequest& request) override;
  absl::StatusOr<admin::v1::SetLogLevelResponse> SetLogLevel(
      const admin::v1::SetLogLevelRequest& request) override;
  absl::StatusOr<admin::v1::ShadowResponse> Shadow(
      const admin::v1::ShadowRequest& request) override;
  absl::StatusOr<admin::v1::TuneResponse> Tune(
      const admin::v1::TuneRequest& request) override;

 private:
  const Sources sources_;
  const absl::Time started_;
};

}  // namespace fncache::proxy

#endif  // FNCACHE_PROXY_DAEMON_ACTIONS_H_
