// SPDX-License-Identifier: Apache-2.0
// Random requests and responses and small changes to them: what the property
// tests and fuzzers of keys and digests are made of.
//
// Pure functions of the Random that they are given, which belongs to one
// thread.
#ifndef FNCACHE_TESTS_CACHE_KEY_RANDOM_REQUEST_H_
#define FNCACHE_TESTS_CACHE_KEY_RANDOM_REQUEST_H_

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "cache/key/mask.h"
#include "google/protobuf/message.h"
#include "proto/function_v1_fwd.h"

namespace fncache::cache::key {

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  // In [0, n).
  size_t Below(size_t n) { return engine_() % n; }
  bool OneIn(size_t n) { return Below(n) == 0; }
  uint64_t Bits() { return engine_(); }

 private:
  std::mt19937_64 engine_;
};

// A request of a few dozen fields out of small sets of names and values, so
// that two of them often share parts, with every odd thing that a message may
// hold: empty keys and messages, values without kind, unknown fields and
// groups, unknown enum numbers, NaNs and -0.0; and with tags that `key: tag`
// goes by, and others.
apiextensions::fn::proto::v1::RunFunctionRequest RandomRequest(Random* random);

// The same of a response, without meta.
apiextensions::fn::proto::v1::RunFunctionResponse RandomResponse(
    Random* random);

// Sets of masks of many shapes, the empty one first. Their names are those of
// random requests.
const std::vector<MaskSet>& MaskSets();

// Changes one field somewhere in the message, or adds or removes one. May find
// nothing to change.
void Mutate(google::protobuf::Message* message, Random* random);

}  // namespace fncache::cache::key

#endif  // FNCACHE_TESTS_CACHE_KEY_RANDOM_REQUEST_H_
