// SPDX-License-Identifier: Apache-2.0
// Makes a list of paths and values of a message, and reports the differences of
// two such lists, for people who want to know why two requests are not the
// same.
//
// Struct's inner fields are not part of paths: they read as an operator writes
// them, `observed.composite.resource.spec.zones[0]`.
//
// Pure functions, thread-safe.
#ifndef FNCACHE_RUNNER_FUNCTION_FLAT_MESSAGE_H_
#define FNCACHE_RUNNER_FUNCTION_FLAT_MESSAGE_H_

#include <map>
#include <string>

#include "google/protobuf/message.h"

namespace fncache::runner::function {

// Value by path. Text is quoted, so that no character of it can act on a
// terminal; an empty object, list or message reads `{}`, `[]`. Bytes, which may
// be secrets, read as their number and a hash that only this process can make.
using FlatMessage = std::map<std::string, std::string>;

FlatMessage Flatten(const google::protobuf::Message& message);

// The number of paths that have another value, or are in one of the two only.
size_t CountDifferences(const FlatMessage& a, const FlatMessage& b);

// Three lines for each path that differs, path and values cut to a readable
// length; no more than `max_paths` paths, and then a line that says how many
// are left.
std::string DescribeDifferences(const FlatMessage& recorded,
                                const FlatMessage& sent, size_t max_paths);

}  // namespace fncache::runner::function

#endif  // FNCACHE_RUNNER_FUNCTION_FLAT_MESSAGE_H_
