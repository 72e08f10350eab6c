// SPDX-License-Identifier: Apache-2.0
// Parsing with a nesting limit for real messages: protobuf's default of 100 is
// less than real schemas need.
//
// Thread-safe.
#ifndef FNCACHE_RUNNER_CLIENT_PARSE_H_
#define FNCACHE_RUNNER_CLIENT_PARSE_H_

#include "google/protobuf/io/zero_copy_stream.h"
#include "google/protobuf/message_lite.h"

namespace fncache::runner::client {

// Levels as CodedInputStream counts, three for each level of JSON objects. Four
// times the limit of cache keys (1,000), so that the function also answers
// requests that are only forwarded. A thread's 8 MiB of stack suffice for
// several times this.
inline constexpr int kMaxNesting = 4000;

// False if `in` has anything but one whole message.
bool ParseNested(google::protobuf::io::ZeroCopyInputStream* in,
                 google::protobuf::MessageLite* message);

}  // namespace fncache::runner::client

#endif  // FNCACHE_RUNNER_CLIENT_PARSE_H_
