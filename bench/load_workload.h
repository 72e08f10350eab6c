// SPDX-License-Identifier: Apache-2.0
// Workload: what the load client sends, prepared before the clock starts.
//
// Holds each of `distinct` requests in `orders` encodings as framed gRPC
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

#include "absl/strings/string_view.h"
#include "bench/random.h"
#include "bench/request_generator.h"

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

  // A framed request of key `key` in an encoding that `random` picks, as parts
  // to be sent one after the other; `digits` gets the key's and must outlive
  // them.
  std::array<absl::string_view, 5> Parts(
      uint64_t key, Random* random,
      std::array<char, kSlotDigits>* digits) const;

  // The tag of key `key`'s request.
  std::string TagOf(uint64_t key) const;

  // The same as one piece of bytes.
  std::string Framed(uint64_t key, Random* random) const;

  // Of the average request, framed.
  size_t average_bytes() const { return average_bytes_; }

 private:
  struct Prepared {
    std::string framed;
    size_t tag_slot;
    size_t content_slot;
  };

  const WorkloadOptions options_;
  std::vector<Prepared> prepared_;  // the encodings of a request are neighbours
  size_t average_bytes_ = 0;
};

// Which keys are asked for, one after the other.
class KeyPicker {
 public:
  // Of `count` keys from `first` on, drawn at random or in turn; with `count` 0
  // every key is a new one.
  KeyPicker(uint64_t first, uint64_t count, bool random)
      : first_(first), count_(count), random_(random) {}

  uint64_t Next(Random* random) {
    if (count_ == 0) return first_ + next_++;
    if (random_) return first_ + random->Below(count_);
    const uint64_t key = first_ + next_;
    next_ = next_ + 1 < count_ ? next_ + 1 : 0;
    return key;
  }

 private:
  const uint64_t first_;
  const uint64_t count_;
  const bool random_;
  uint64_t next_ = 0;
};

}  // namespace fncache::bench

#endif  // FNCACHE_BENCH_LOAD_WORKLOAD_H_
