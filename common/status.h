// SPDX-License-Identifier: Apache-2.0
// Statuses that say what was being done when something failed.
//
// Pure functions, thread-safe.
#ifndef FNCACHE_COMMON_STATUS_H_
#define FNCACHE_COMMON_STATUS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace fncache {

// `status` with its message behind `PREFIX: `. The code stays, and a status
// that is ok stays ok. Payloads are lost; nothing here has any.
absl::Status Prefixed(absl::string_view prefix, const absl::Status& status);

}  // namespace fncache

#endif  // FNCACHE_COMMON_STATUS_H_
