// SPDX-License-Identifier: Apache-2.0
#include "proxy/admin_actions.h"

#include <utility>

#include "common/version.h"
#include "google/protobuf/util/time_util.h"
#include "proxy/admin_stats.h"
#include "proxy/telemetry/process_metrics.h"

namespace fncache::proxy {
namespace {

namespace v1 = admin::v1;
using google::protobuf::util::TimeUtil;

absl::Status NotInThisBuild() {
  return absl::UnimplementedError("not in this build");
}

}  // namespace

DaemonActions::DaemonActions(Parts parts)
    : parts_(std::move(parts)), started_(parts_.clock->Now()) {}

absl::StatusOr<v1::StatsResponse> DaemonActions::Stats(
    const v1::StatsRequest& /*request*/) {
  v1::StatsResponse stats =
      ReadStats(*parts_.instruments, *parts_.inflight, parts_.upstreams);
  const absl::Time now = parts_.clock->Now();
  stats.set_version(Version());
  stats.set_state(parts_.state());
  *stats.mutable_now() =
      TimeUtil::NanosecondsToTimestamp(absl::ToUnixNanos(now));
  *stats.mutable_uptime() =
      TimeUtil::NanosecondsToDuration(absl::ToInt64Nanoseconds(now - started_));
  const telemetry::ProcessFigures process = telemetry::ReadProcess();
  *stats.mutable_process()->mutable_cpu() =
      TimeUtil::NanosecondsToDuration(absl::ToInt64Nanoseconds(process.cpu));
  stats.mutable_process()->set_resident_bytes(process.resident_bytes);
  stats.mutable_process()->set_open_files(process.open_fds);
  stats.mutable_process()->set_max_open_files(process.max_fds);
  return stats;
}

absl::StatusOr<v1::ExplainResponse> DaemonActions::Explain(
    const v1::ExplainRequest& request) {
  return ReadMisses(*parts_.instruments, parts_.misses, request);
}

absl::StatusOr<v1::ConfigResponse> DaemonActions::Config(
    const v1::ConfigRequest& /*request*/) {
  v1::ConfigResponse response;
  response.set_yaml(parts_.settings);
  return response;
}

absl::StatusOr<v1::LookUpResponse> DaemonActions::LookUp(
    const v1::LookUpRequest& /*request*/) {
  return NotInThisBuild();
}

absl::StatusOr<v1::PurgeResponse> DaemonActions::Purge(
    const v1::PurgeRequest& /*request*/) {
  return NotInThisBuild();
}

absl::StatusOr<v1::ReloadResponse> DaemonActions::Reload(
    const v1::ReloadRequest& /*request*/) {
  return NotInThisBuild();
}

absl::StatusOr<v1::StartTraceResponse> DaemonActions::StartTrace(
    const v1::StartTraceRequest& /*request*/) {
  return NotInThisBuild();
}

absl::StatusOr<v1::StopTraceResponse> DaemonActions::StopTrace(
    const v1::StopTraceRequest& /*request*/) {
  return NotInThisBuild();
}

absl::StatusOr<v1::SetLogLevelResponse> DaemonActions::SetLogLevel(
    const v1::SetLogLevelRequest& /*request*/) {
  return NotInThisBuild();
}

absl::StatusOr<v1::ShadowResponse> DaemonActions::Shadow(
    const v1::ShadowRequest& /*request*/) {
  return NotInThisBuild();
}

}  // namespace fncache::proxy
