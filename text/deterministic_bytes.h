// SPDX-License-Identifier: Apache-2.0
// The encoding of a protobuf message that does not depend on chance, for
// hashing messages and telling whether two are equal.
//
// Pure function, thread-safe.
#ifndef FNCACHE_TEXT_DETERMINISTIC_BYTES_H_
#define FNCACHE_TEXT_DETERMINISTIC_BYTES_H_

#include <string>

#include "google/protobuf/message_lite.h"

namespace fncache::text {

// Encodes `message` with the entries of every map in the order of their keys.
// The bytes of two equal messages without unknown fields are equal.
std::string DeterministicBytes(const google::protobuf::MessageLite& message);

}  // namespace fncache::text

#endif  // FNCACHE_TEXT_DETERMINISTIC_BYTES_H_
