// SPDX-License-Identifier: Apache-2.0
// The names that a header of C++ declares for its users. It knows as much of
// the language as the SDK's headers use.
#ifndef FNCACHE_TESTS_DOCS_PUBLIC_NAMES_H_
#define FNCACHE_TESTS_DOCS_PUBLIC_NAMES_H_

#include <set>
#include <string>

namespace fncache::docs {

// Classes, enumerators, aliases, functions, constants, and public members, each
// without its scope. Neither operators, friends, nor what is in a namespace
// `internal`.
std::set<std::string> PublicNames(const std::string& header);

}  // namespace fncache::docs

#endif  // FNCACHE_TESTS_DOCS_PUBLIC_NAMES_H_
