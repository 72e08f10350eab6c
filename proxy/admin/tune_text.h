// SPDX-License-Identifier: Apache-2.0
// Shows what `tune: on` has done, as text for people or as JSON for programs.
//
// Names that users chose are escaped. Pure functions, thread-safe.
#ifndef FNCACHE_PROXY_ADMIN_TUNE_TEXT_H_
#define FNCACHE_PROXY_ADMIN_TUNE_TEXT_H_

#include <string>

#include "proxy/admin/actions.h"

namespace fncache::proxy::admin {

std::string TuneText(const v1::TuneResponse& response);
std::string TuneJson(const v1::TuneResponse& response);

}  // namespace fncache::proxy::admin

#endif  // FNCACHE_PROXY_ADMIN_TUNE_TEXT_H_
