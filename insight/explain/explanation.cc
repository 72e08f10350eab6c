// SPDX-License-Identifier: Apache-2.0
#include "insight/explain/explanation.h"

namespace fncache::insight::explain {
const char* NotStoredName(NotStored why) {
  switch (why) {
    case NotStored::kNoTtl:
      return "no-ttl";
    case NotStored::kFatal:
      return "fatal";
    case NotStored::kSecrets:
      return "secrets";
    case NotStored::kTooLarge:
      return "too-large";
    case NotStored::kModeOff:
      return "mode-off";
    case NotStored::kError:
      return "error";
    case NotStored::kAbandoned:
      break;
  }
  return "abandoned";
}

}  // namespace fncache::insight::explain
