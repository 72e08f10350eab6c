// SPDX-License-Identifier: Apache-2.0
// Workload: what the load client sends, prepared before the clock starts.
//
// Keeps each of `distinct` requests in `orders` encodings as framed gRPC
// messages. Key k is request k mod `distinct` with k in its two slots
// (request_generator.h), in one of its encodings: the same key is always the
// same message, hardly ever the same bytes.
//
// Immutable once made, thread-safe; the bytes live as long as the workload.
#ifndef FNCACHE_BENCH_LOAD_WORKLOAD_H_
#define FNCACHE_BENCH_LOAD_WORKLOAD_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/random.h"
#include "bench/request_generator.h"
#include "http2/slice.h"

namespace fncache::bench {

struct WorkloadOptions {
  Shape shape = Shape::k17K;
  uint64_t seed = 1;
  // At least 1 each.
  uint64_t distinct = 64;
  uint64_t orders = 8;
};

class Workload {
 public:
  explicit Workload(const WorkloadOptions& options);

  // The framed request of key `key` in an encoding that `random` picks, as
  // slices to be sent one after the other. `digits` gets the key's digits; two
  // slices refer to it.
  std::array<http2::Slice, 5> Message(
      uint64_t key, Random* random,
      std::array<char, kSlotDigits>* digits) const;

  // The same as one string.
  std::string Framed(uint64_t key, Random* random) const;

  // The tag of key `key`'s request.
  std::string TagOf(uint64_t key) const;

 private:
  struct Prepared {
    std::string framed;
    size_t tag_slot;
    size_t content_slot;
  };

  const WorkloadOptions options_;
  std::vector<Prepared> prepared_;  // the encodings of a request are neighbours
};

}  // namespace fncache::bench

#endif  // FNCACHE_BENCH_LOAD_WORKLOAD_H_
