// SPDX-License-Identifier: Apache-2.0
// Other values of a type, which a function takes as readily as the first.
//
// Pure functions; thread-safe.
#ifndef FNCACHE_RUNNER_PROBE_ALTER_H_
#define FNCACHE_RUNNER_PROBE_ALTER_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace fncache::runner::probe {

// The next number of a sequence that is spread over all of 64 bits; `state` is
// where the sequence stands.
uint64_t NextRandom(uint64_t* state);

// A text that is not `text`, of the same length where it has letters or digits,
// and of the same form: digits stay digits, letters stay letters of their case,
// all else stays. A time becomes another time, `True`, `False` and `Unknown`
// one of the others, `true` and `false` the opposite.
std::string AlteredText(absl::string_view text, uint64_t random);

// A number that is not `number`; a whole one stays whole and keeps its sign,
// and is not far away.
double AlteredNumber(double number, uint64_t random);

}  // namespace fncache::runner::probe

#endif  // FNCACHE_RUNNER_PROBE_ALTER_H_
