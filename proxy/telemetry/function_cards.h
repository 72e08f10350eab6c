// SPDX-License-Identifier: Apache-2.0
// The section of the status page with a card for each function: the last hour
// as a chart, the function's state, callers, flights, why calls missed, masks,
// bans.
//
// Pure function, thread-safe.
#ifndef FNCACHE_PROXY_TELEMETRY_FUNCTION_CARDS_H_
#define FNCACHE_PROXY_TELEMETRY_FUNCTION_CARDS_H_

#include <string>

#include "proxy/telemetry/status.h"

namespace fncache::proxy::telemetry {

void AppendFunctionCards(const Status& status, std::string* out);

}  // namespace fncache::proxy::telemetry

#endif  // FNCACHE_PROXY_TELEMETRY_FUNCTION_CARDS_H_
