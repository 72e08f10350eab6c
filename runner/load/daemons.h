// SPDX-License-Identifier: Apache-2.0
// Daemons: compares the daemons' /metrics of the calls that they answered with
// the measurements here.
//
// Used by one thread. Blocks while it reads.
#ifndef FNCACHE_RUNNER_LOAD_DAEMONS_H_
#define FNCACHE_RUNNER_LOAD_DAEMONS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runner/load/results.h"

namespace fncache::runner::load {

class Daemons {
 public:
  // `addresses` must outlive it.
  explicit Daemons(const std::vector<std::string>& addresses)
      : addresses_(addresses) {}

  // Reads them at the beginning of the measured phase.
  absl::Status Before();

  // After the run. Where the warm-up's last calls overlap the beginning, up to
  // `tolerated` calls may be on either side.
  absl::Status After(uint64_t tolerated, LoadResults* results) const;

 private:
  absl::StatusOr<std::map<std::string, uint64_t>> Read() const;

  const std::vector<std::string>& addresses_;
  std::map<std::string, uint64_t> before_;
};

}  // namespace fncache::runner::load

#endif  // FNCACHE_RUNNER_LOAD_DAEMONS_H_
