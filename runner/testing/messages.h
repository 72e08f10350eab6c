// SPDX-License-Identifier: Apache-2.0
// Messages as tests of functions need them: as documents, as JSON, with their
// maps in any order, and where two of them differ.
//
// Pure functions, thread-safe.
#ifndef FNCACHE_RUNNER_TESTING_MESSAGES_H_
#define FNCACHE_RUNNER_TESTING_MESSAGES_H_

#include <cstdint>
#include <string>

#include "fncache/function/value.h"
#include "google/protobuf/message.h"
#include "google/protobuf/struct.pb.h"
#include "proto/function_v1.pb.h"
#include "text/json.h"

namespace fncache::function::testing {

// The next number of a sequence that is spread over all of 64 bits; `state` is
// where the sequence stands. The same in each process.
uint64_t NextRandom(uint64_t* state);

// Connection details are their sizes.
text::Json ToJson(
    const apiextensions::fn::proto::v1::RunFunctionResponse& response);

// The path of the first difference, meta.tag left out; "" where there is none.
std::string Difference(
    const apiextensions::fn::proto::v1::RunFunctionResponse& a,
    const apiextensions::fn::proto::v1::RunFunctionResponse& b);

// The encoding of an equal message with the entries of each map in an order
// that follows from `random`.
std::string ShuffledBytes(const google::protobuf::Message& message,
                          uint64_t* random);

// A document that stands alone, and can be written.
Value ToValue(const google::protobuf::Struct& object);
// The Struct of the document; empty where it is no object.
google::protobuf::Struct ToStruct(const Value& value);

}  // namespace fncache::function::testing

#endif  // FNCACHE_RUNNER_TESTING_MESSAGES_H_
