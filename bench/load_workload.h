// SPDX-License-Identifier: Apache-2.0
// Workload: what the load client sends, prepared before the clock starts.
//
// Keeps each of `distinct` requests in `orders` encodings as framed gRPC
// messages. Key k is request k mod `distinct` with k in its two slots
// (request_generator.h), in one of its encodings: the same key is always the
// same message, hardly ever the same bytes. With a drift (request_generator.h)
// it is that message with this drift in it.
//
// Immutable once made, thread-safe; the bytes live as long as the workload.
#ifndef FNCACHE_BENCH_LOAD_WORKLOAD_H_
#define FNCACHE_BENCH_LOAD_WORKLOAD_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/optional.h"
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
  // The bytes of one message's slots.
  struct Slots {
    std::array<char, kSlotDigits> key;
    std::array<char, kVersionDigits> version;
    std::array<char, kTimeBytes> time;
  };
  // The four slots, and the bytes between them.
  using Slices = absl::InlinedVector<http2::Slice, 9>;

  explicit Workload(const WorkloadOptions& options);

  // The framed request of key `key` in an encoding that `random` picks, as
  // slices to be sent one after the other. They refer to `slots`. It has drift
  // number `drift`, if the shape has drift slots. Absent: the drift slots stay
  // as they are.
  Slices Message(uint64_t key, absl::optional<uint64_t> drift, Random* random,
                 Slots* slots) const;

  // The same as one string.
  std::string Framed(uint64_t key, absl::optional<uint64_t> drift,
                     Random* random) const;

  // The tag of key `key`'s request.
  std::string TagOf(uint64_t key) const;

 private:
  struct Prepared {
    std::string framed;
    size_t tag_slot;
    size_t content_slot;
    size_t version_slot;
    size_t time_slot;
  };

  const WorkloadOptions options_;
  std::vector<Prepared> prepared_;  // the encodings of a request are neighbours
};

}  // namespace fncache::bench

#endif  // FNCACHE_BENCH_LOAD_WORKLOAD_H_
