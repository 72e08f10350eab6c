// SPDX-License-Identifier: Apache-2.0
// A page of the manual (man 1) from a help text.
//
// Pure functions, thread-safe.
#ifndef FNCACHE_PROGRAM_MAN_PAGE_H_
#define FNCACHE_PROGRAM_MAN_PAGE_H_

#include <string>

#include "absl/strings/string_view.h"

namespace fncache::program {

struct ManPage {
  std::string name;     // "fncache-serve"
  std::string purpose;  // a phrase within a line
  std::string version;  // "fncache 0.1.0"
  // As Command::help has it: text before "Usage: " is the description, headings
  // become sections, and everything else keeps its layout.
  std::string help;
  std::string see_also;  // "fncache(1)"
};

// The page as troff source of the `man` macros.
std::string PrintManPage(const ManPage& page);

}  // namespace fncache::program

#endif  // FNCACHE_PROGRAM_MAN_PAGE_H_
