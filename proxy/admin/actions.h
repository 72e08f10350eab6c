// SPDX-License-Identifier: Apache-2.0
// Actions: the actions that an administrator has on a daemon. Each method is
// one method of the admin service. The server calls them; the daemon implements
// them.
//
// Arguments and results are the service's own messages (proto/admin.proto), so
// the client reads exactly the daemon's answer. A status that is not OK becomes
// the call's status; its message is a line for people.
//
// Thread-safe: several may run at once, on threads where they may block.
#ifndef FNCACHE_PROXY_ADMIN_ACTIONS_H_
#define FNCACHE_PROXY_ADMIN_ACTIONS_H_

#include "absl/status/statusor.h"

// A source file that calls or implements an action includes proto/admin.pb.h.
namespace fncache::admin::v1 {
class ConfigRequest;
class ConfigResponse;
class ExplainRequest;
class ExplainResponse;
class LookUpRequest;
class LookUpResponse;
class PurgeRequest;
class PurgeResponse;
class ReloadRequest;
class ReloadResponse;
class SetLogLevelRequest;
class SetLogLevelResponse;
class ShadowRequest;
class ShadowResponse;
class StartTraceRequest;
class StartTraceResponse;
class StatsRequest;
class StatsResponse;
class StopTraceRequest;
class StopTraceResponse;
class TuneRequest;
class TuneResponse;
}  // namespace fncache::admin::v1

namespace fncache::proxy::admin {

// The package of the service's messages. Within fncache::proxy `admin` is this
// namespace.
namespace v1 = ::fncache::admin::v1;

class Actions {
 public:
  virtual ~Actions() = default;

  virtual absl::StatusOr<v1::StatsResponse> Stats(
      const v1::StatsRequest& request) = 0;
  virtual absl::StatusOr<v1::LookUpResponse> LookUp(
      const v1::LookUpRequest& request) = 0;
  virtual absl::StatusOr<v1::PurgeResponse> Purge(
      const v1::PurgeRequest& request) = 0;
  virtual absl::StatusOr<v1::ExplainResponse> Explain(
      const v1::ExplainRequest& request) = 0;
  virtual absl::StatusOr<v1::ConfigResponse> Config(
      const v1::ConfigRequest& request) = 0;
  virtual absl::StatusOr<v1::ReloadResponse> Reload(
      const v1::ReloadRequest& request) = 0;
  virtual absl::StatusOr<v1::StartTraceResponse> StartTrace(
      const v1::StartTraceRequest& request) = 0;
  virtual absl::StatusOr<v1::StopTraceResponse> StopTrace(
      const v1::StopTraceRequest& request) = 0;
  virtual absl::StatusOr<v1::SetLogLevelResponse> SetLogLevel(
      const v1::SetLogLevelRequest& request) = 0;
  virtual absl::StatusOr<v1::ShadowResponse> Shadow(
      const v1::ShadowRequest& request) = 0;
  virtual absl::StatusOr<v1::TuneResponse> Tune(
      const v1::TuneRequest& request) = 0;
};

}  // namespace fncache::proxy::admin

#endif  // FNCACHE_PROXY_ADMIN_ACTIONS_H_
