// SPDX-License-Identifier: Apache-2.0
#include "runner/function/responder.h"

#include <cstdint>

#include "proto/function_v1.pb.h"

namespace fncache::runner::function {

void SetTtl(absl::Duration ttl, RunFunctionResponse* response) {
  auto* field = response->mutable_meta()->mutable_ttl();
  field->set_seconds(absl::IDivDuration(ttl, absl::Seconds(1), &ttl));
  field->set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(ttl)));
}

}  // namespace fncache::runner::function
