// SPDX-License-Identifier: Apache-2.0
// How much a test does that would take more than 30 s of CPU time.
//
// `make test` and CI run the short form. `make nightly` sets
// FNCACHE_LONG_TESTS=1, which asks for the long one. Thread-safe while nothing
// changes the environment.
#ifndef FNCACHE_TESTS_COMMON_LONG_FORM_H_
#define FNCACHE_TESTS_COMMON_LONG_FORM_H_

#include <cstdlib>
#include <string>

namespace fncache::testing {

// Returns `long_form` if FNCACHE_LONG_TESTS is 1, else `short_form`.
template <typename Number>
Number ShortOrLong(Number short_form, Number long_form) {
  const char* const asked = std::getenv("FNCACHE_LONG_TESTS");
  return asked != nullptr && std::string(asked) == "1" ? long_form : short_form;
}

}  // namespace fncache::testing

#endif  // FNCACHE_TESTS_COMMON_LONG_FORM_H_
