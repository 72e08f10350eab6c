// SPDX-License-Identifier: Apache-2.0
#include "runner/render/operations.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "google/protobuf/struct.pb.h"
#include "nlohmann/json.hpp"
#include "text/object.h"

namespace fncache::runner::render {

absl::Status OperationRefused(absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("cannot render ", what,
                   ": not supported, fncache renders composite resources "
                   "only"));
}

absl::Status CheckNoOperation(const text::Json& object) {
  if (text::GroupOf(text::FindText(object, {"apiVersion"})) !=
      "ops.crossplane.io") {
    return absl::OkStatus();
  }
  const std::string& kind = text::FindText(object, {"kind"});
  if (kind == "Operation") return OperationRefused("operation");
  if (kind == "CronOperation") return OperationRefused("cron operation");
  if (kind == "WatchOperation") return OperationRefused("watch operation");
  return absl::OkStatus();
}

}  // namespace fncache::runner::render
