// SPDX-License-Identifier: Apache-2.0
// The status page for programs: /statusz?format=json. docs/statusz.schema.json
// describes fields and units; a test compares it with the output.
//
// Pure function of its input; thread-safe.
#ifndef FNCACHE_PROXY_TELEMETRY_STATUS_JSON_H_
#define FNCACHE_PROXY_TELEMETRY_STATUS_JSON_H_

#include <string>

#include "proxy/telemetry/status.h"

namespace fncache::proxy::telemetry {

std::string RenderStatusJson(const Status& status);

}  // namespace fncache::proxy::telemetry

#endif  // FNCACHE_PROXY_TELEMETRY_STATUS_JSON_H_
