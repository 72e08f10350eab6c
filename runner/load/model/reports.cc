// SPDX-License-Identifier: Apache-2.0
#include "runner/load/model/reports.h"

namespace fncache::runner::load::model {

const char* TriggerName(Trigger trigger) {
  switch (trigger) {
    case Trigger::kCreate:
      return "create";
    case Trigger::kEvent:
      return "event";
    case Trigger::kTimer:
      return "timer";
    case Trigger::kBackoff:
      return "backoff";
    case Trigger::kResync:
      return "resync";
    case Trigger::kRestart:
      return "restart";
    case Trigger::kDriver:
      return "driver";
  }
  return "";
}

int SettlingWrites(const ModelOptions& options) {
  return 400 + 10 * options.ready_writes;
}

}  // namespace fncache::runner::load::model
