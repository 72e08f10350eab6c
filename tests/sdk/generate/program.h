// SPDX-License-Identifier: Apache-2.0
// A program that sets every field of generated classes, and the documents that
// it must make. The program is written from the classes; the documents come
// from the schemas alone, so a field that the generator lost, or wrote under
// another name, makes them differ.
#ifndef FNCACHE_TESTS_SDK_GENERATE_PROGRAM_H_
#define FNCACHE_TESTS_SDK_GENERATE_PROGRAM_H_

#include <set>
#include <string>
#include <vector>

#include "sdk/generate/definitions.h"
#include "sdk/generate/models.h"
#include "text/json.h"

namespace fncache::testing {

// The type of the program's only function, SetEverything. It passes the file of
// each kind's header with what was set, and with a copy that was made through
// the getters; both as JSON.
using Take = void (*)(const char* file, const char* set, const char* copied);

// The program of the kinds among `headers`, which has all their classes.
std::string ProgramOf(const std::vector<sdk::Header>& headers);

// The document that the program sets for a kind. `components` are the kinds of
// its document, whose head the base class has.
text::Json ExpectedOf(const sdk::Definition& kind, bool input,
                      const std::set<std::string>& components);

}  // namespace fncache::testing

#endif  // FNCACHE_TESTS_SDK_GENERATE_PROGRAM_H_
