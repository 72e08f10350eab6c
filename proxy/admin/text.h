// SPDX-License-Identifier: Apache-2.0
// Shows the daemon's answers as text for people, or as JSON for programs.
//
// Names that users chose are escaped. Pure functions, thread-safe.
#ifndef FNCACHE_PROXY_ADMIN_TEXT_H_
#define FNCACHE_PROXY_ADMIN_TEXT_H_

#include <string>

#include "proxy/admin/actions.h"

namespace fncache::proxy::admin {

std::string LookUpText(const v1::LookUpResponse& response);
// The daemon of this socket purged `what`: "key 0f…", "function a",
// "everything".
std::string PurgeText(const std::string& what, bool soft,
                      const std::string& socket,
                      const v1::PurgeResponse& response);
std::string ExplainText(const v1::ExplainResponse& response);
std::string ExplainJson(const v1::ExplainResponse& response);
std::string ReloadText(const v1::ReloadResponse& response);
std::string StartTraceText(const v1::StartTraceResponse& response);
std::string StopTraceText(const v1::StopTraceResponse& response);
std::string LogLevelText(const v1::SetLogLevelResponse& response);
std::string ShadowText(const v1::ShadowResponse& response);

}  // namespace fncache::proxy::admin

#endif  // FNCACHE_PROXY_ADMIN_TEXT_H_
