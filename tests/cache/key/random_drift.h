// SPDX-License-Identifier: Apache-2.0
// Random drift in requests, and values that nearly are drift.
//
// Pure functions of the Random that they are given.
#ifndef FNCACHE_TESTS_CACHE_KEY_RANDOM_DRIFT_H_
#define FNCACHE_TESTS_CACHE_KEY_RANDOM_DRIFT_H_

#include <string>

#include "proto/function_v1.pb.h"
#include "tests/cache/key/random_request.h"

namespace fncache::cache::key {

// A time, or a text like one.
std::string RandomTime(Random* random);

// Adds metadata and a status to some of the request's objects, those of
// `desired` too.
void AddDrift(apiextensions::fn::proto::v1::RunFunctionRequest* request,
              Random* random);

// Gives one drift of the request another value, mostly of its own type. May
// find none.
void MutateDrift(apiextensions::fn::proto::v1::RunFunctionRequest* request,
                 Random* random);

}  // namespace fncache::cache::key

#endif  // FNCACHE_TESTS_CACHE_KEY_RANDOM_DRIFT_H_
