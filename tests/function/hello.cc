// SPDX-License-Identifier: Apache-2.0
// A function as its author builds it, for tests of the process: it answers
// every call with a result. With $HELLO_SLEEP_MS it takes that time first, with
// $HELLO_DEAF it takes no notice of a cancelled call.
#include <cstdlib>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "fncache/function.h"

namespace {

void Hello(fncache::function::Context& ctx) {
  const char* const milliseconds = std::getenv("HELLO_SLEEP_MS");
  if (milliseconds == nullptr) return;
  const absl::Time until =
      absl::Now() + absl::Milliseconds(std::atoi(milliseconds));
  const bool deaf = std::getenv("HELLO_DEAF") != nullptr;
  while (absl::Now() < until && (deaf || !ctx.cancelled())) {
    absl::SleepFor(absl::Milliseconds(1));
  }
}

}  // namespace

int main(int argc, char** argv) {
  return fncache::function::Main(argc, argv, "function-hello", Hello);
}
