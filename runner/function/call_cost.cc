// SPDX-License-Identifier: Apache-2.0
#include "runner/function/call_cost.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/duration.h"

namespace fncache::runner::function {
namespace {

absl::Status Refuse(absl::string_view part) {
  return absl::InvalidArgumentError(
      absl::StrCat("\"", part,
                   "\" is not a cost; accepted: sleep=DURATION or "
                   "cpu=DURATION, such as sleep=2s or cpu=200ms, up to 1h"));
}

}  // namespace

absl::StatusOr<CallCost> ParseCallCost(const std::vector<std::string>& values) {
  CallCost cost;
  for (const std::string& value : values) {
    for (const absl::string_view part : absl::StrSplit(value, ',')) {
      const std::pair<std::string, std::string> pair =
          absl::StrSplit(part, absl::MaxSplits('=', 1));
      const auto duration = ParseGoDuration(pair.second);
      if ((pair.first != "sleep" && pair.first != "cpu") || !duration.ok() ||
          *duration < absl::ZeroDuration() || *duration > absl::Hours(1)) {
        return Refuse(part);
      }
      (pair.first == "sleep" ? cost.sleep : cost.cpu) += *duration;
    }
  }
  return cost;
}

bool CallFails(double fail_rate, uint64_t seed, uint64_t call) {
  // splitmix64: every call's own number in [0, 1).
  uint64_t x = seed * 0x9e3779b97f4a7c15ULL + call * 0xd1342543de82ef95ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  x ^= x >> 31;
  return static_cast<double>(x >> 11) * 0x1.0p-53 < fail_rate;
}

}  // namespace fncache::runner::function
