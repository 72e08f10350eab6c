// SPDX-License-Identifier: Apache-2.0
// The stamp of stamping_function's answers: the key of the request, and when
// the answer was made. With it the load client finds answers to other requests,
// expired ones, and those that a purge should have removed.
//
// Pure functions, thread-safe.
#ifndef FNCACHE_BENCH_STAMP_H_
#define FNCACHE_BENCH_STAMP_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace fncache::bench {

// `digits` are the kSlotDigits digits of the request's slot.
std::string Stamp(absl::string_view digits, absl::Time made);

// OK if the answer's bytes contain the stamp of `key`, from `least` or later.
absl::Status CheckStamp(absl::string_view answer, uint64_t key,
                        absl::Time least);

}  // namespace fncache::bench

#endif  // FNCACHE_BENCH_STAMP_H_
