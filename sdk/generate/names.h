// SPDX-License-Identifier: Apache-2.0
// Names in C++ for names on the wire.
//
// A name in C++ is the wire's name, but for what a compiler would not take:
// other characters than [A-Za-z0-9_] become `_`, a digit at the start gets `_`
// before it, and a reserved word `_` after it. Reserved are keywords, other
// spellings of operators, macros of the standard headers, and names that the
// compiler keeps for itself (`__x`, `_MAX`).
//
// Pure functions, thread-safe. Names is not.
#ifndef FNCACHE_SDK_GENERATE_NAMES_H_
#define FNCACHE_SDK_GENERATE_NAMES_H_

#include <set>
#include <string>

#include "absl/strings/string_view.h"

namespace fncache::sdk {

// Whether no declaration may have this name.
bool IsReserved(absl::string_view name);

// The name in C++; never empty.
std::string CppName(absl::string_view wire);
// The same with a capital letter at the start, for the class of a field's value
// and with `suffix` behind it: `Spec`, `RulesItem`.
std::string CppClassName(absl::string_view wire, absl::string_view suffix = "");
// The name of an enum's constant: `public-read` is kPublicRead.
std::string CppConstantName(absl::string_view value);

// Names of one scope.
class Names {
 public:
  Names() = default;
  // `members` may not be used: a member of a base, the name of the class.
  explicit Names(std::set<std::string> members)
      : members_(std::move(members)) {}

  // Returns `name`, which is used from now on; with `_` after it where it is
  // one of the members, and with `_2` (`_3` ...) where it is used already.
  std::string Add(std::string name);

 private:
  std::set<std::string> members_;
  std::set<std::string> used_;
};

}  // namespace fncache::sdk

#endif  // FNCACHE_SDK_GENERATE_NAMES_H_
