// SPDX-License-Identifier: Apache-2.0
// Encodes messages as Go does, whose maps come in another order every time.
//
// The demo's runners send such requests, so that what hits is the content and
// not the bytes. Pure functions but for the random numbers that they take;
// thread-safe where every thread brings its own.
#ifndef FNCACHE_RUNNER_DEMO_ENCODING_H_
#define FNCACHE_RUNNER_DEMO_ENCODING_H_

#include <random>
#include <string>

#include "google/protobuf/message.h"
#include "proto/function_v1.pb.h"

namespace fncache::runner::demo {

// `message` as bytes with the entries of every map in random order. It has no
// fields of other types than the function protocol has, and no unknown ones.
std::string EncodeShuffled(const google::protobuf::Message& message,
                           std::mt19937* random);

// The same, with `meta` in place of the request's own.
std::string EncodeShuffled(
    const apiextensions::fn::proto::v1::RunFunctionRequest& request,
    const apiextensions::fn::proto::v1::RequestMeta& meta,
    std::mt19937* random);

}  // namespace fncache::runner::demo

#endif  // FNCACHE_RUNNER_DEMO_ENCODING_H_
