// SPDX-License-Identifier: Apache-2.0
// The command line of `load`.
#ifndef FNCACHE_BENCH_LOAD_OPTIONS_H_
#define FNCACHE_BENCH_LOAD_OPTIONS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "bench/load_client.h"
#include "bench/load_workload.h"
#include "bench/request_generator.h"

namespace fncache::bench {

struct LoadCommand {
  WorkloadOptions workload;
  LoadOptions load;
  // Empty: not given.
  std::string expect_response;
  std::string write_request;
  std::string write_response;
  // Of the response to write.
  AnswerShape answer = AnswerShape::k13K;
  absl::optional<absl::Duration> ttl = absl::Hours(1);
  // --help was asked for: the text to print; nothing else is set.
  std::string help;
};

// Reads the command line; argv[0] is the program. InvalidArgument names the
// option that does not fit and what it accepts. Thread-safe.
absl::StatusOr<LoadCommand> ParseLoadCommand(int argc, const char* const* argv);

}  // namespace fncache::bench

#endif  // FNCACHE_BENCH_LOAD_OPTIONS_H_
