// SPDX-License-Identifier: Apache-2.0
#include "common/version.h"

namespace fncache {

const char* Version() { return FNCACHE_VERSION; }

}  // namespace fncache
