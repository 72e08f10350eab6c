// SPDX-License-Identifier: Apache-2.0
// Runs a function on one request: from the bytes of a RunFunctionRequest to
// those of its response.
//
// Thread-safe.
#ifndef FNCACHE_SDK_COMPOSE_RUN_H_
#define FNCACHE_SDK_COMPOSE_RUN_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "fncache/function/context.h"

namespace fncache::sdk {

// Facts about a call that the process knows.
struct CallInfo {
  absl::Time deadline = absl::InfiniteFuture();
  std::function<bool()> cancelled;  // null: never
  // Whether the caller wants to know what the response depends on.
  bool depends = false;
};

struct CallResult {
  absl::Status status;   // OK, or how the call ends
  std::string response;  // where it is OK
  // The value of the trailing metadata `fncache-depends`; empty: none.
  std::string depends;
  // Resources that are held, fields that are kept.
  int held = 0;
  int kept = 0;
  // Their names, sorted: `bucket`, `bucket.spec.x`.
  std::vector<std::string> held_names;
  std::vector<std::string> kept_fields;
};

// INTERNAL where `request` is no message.
CallResult Run(const function::Function& function,
               const function::Options& options, std::string request,
               const CallInfo& info);

}  // namespace fncache::sdk

#endif  // FNCACHE_SDK_COMPOSE_RUN_H_
