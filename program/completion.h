// SPDX-License-Identifier: Apache-2.0
// Scripts that teach a shell to complete the commands of the binary, their
// flags and the names of files where a flag takes one.
//
// Pure functions, thread-safe.
#ifndef FNCACHE_PROGRAM_COMPLETION_H_
#define FNCACHE_PROGRAM_COMPLETION_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "program/command.h"

namespace fncache::program {

std::string BashCompletion(const std::vector<Command>& commands);
std::string ZshCompletion(const std::vector<Command>& commands);
std::string FishCompletion(const std::vector<Command>& commands);

}  // namespace fncache::program

#endif  // FNCACHE_PROGRAM_COMPLETION_H_
