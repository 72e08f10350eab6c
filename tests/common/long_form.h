// SPDX-License-Identifier: Apache-2.0
// How much a test does that would take more than 30 s of CPU time.
//
// Where the time goes to many variations of one thing, sanitizers make do with
// a fraction of them (FewerSanitized).
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

#if defined(FNCACHE_ASAN) || defined(FNCACHE_TSAN)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

// Returns `plain`, or an eighth of it in a sanitizer's build.
constexpr int FewerSanitized(int plain) {
  return kSanitized ? plain / 8 : plain;
}

}  // namespace fncache::testing

#endif  // FNCACHE_TESTS_COMMON_LONG_FORM_H_
