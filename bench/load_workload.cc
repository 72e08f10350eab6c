// SPDX-License-Identifier: Apache-2.0
#include "bench/load_workload.h"

#include <utility>

#include "bench/request_encoding.h"
#include "proto/function_v1.pb.h"

namespace fncache::bench {
namespace {

// GrpcFrame puts so many bytes before the message, and the tag begins behind
// the tags and lengths of `meta` and `tag`.
constexpr size_t kPrefix = 5;
constexpr size_t kTagDigits = 64;

}  // namespace

Workload::Workload(const WorkloadOptions& options) : options_(options) {
  prepared_.reserve(options.distinct * options.orders);
  size_t bytes = 0;
  for (uint64_t i = 0; i < options.distinct; ++i) {
    const Request request = MakeRequest(options.shape, options.seed, i);
    for (uint64_t j = 0; j < options.orders; ++j) {
      const EncodedRequest encoded =
          Encode(request, options.seed + i * options.orders + j);
      prepared_.push_back({GrpcFrame(encoded.bytes), encoded.tag_slot + kPrefix,
                           encoded.content_slot + kPrefix});
      bytes += prepared_.back().framed.size();
    }
  }
  average_bytes_ = bytes / prepared_.size();
}

std::array<absl::string_view, 5> Workload::Parts(
    uint64_t key, Random* random, std::array<char, kSlotDigits>* digits) const {
  const size_t request = key % options_.distinct;
  const Prepared& prepared =
      prepared_[request * options_.orders + random->Below(options_.orders)];
  WriteSlot(key, digits->data());
  const absl::string_view all = prepared.framed;
  const absl::string_view slot(digits->data(), digits->size());
  const size_t middle = prepared.tag_slot + kSlotDigits;
  const size_t end = prepared.content_slot + kSlotDigits;
  return {all.substr(0, prepared.tag_slot), slot,
          all.substr(middle, prepared.content_slot - middle), slot,
          all.substr(end)};
}

std::string Workload::TagOf(uint64_t key) const {
  const Prepared& prepared =
      prepared_[(key % options_.distinct) * options_.orders];
  std::string tag = prepared.framed.substr(
      prepared.tag_slot + kSlotDigits - kTagDigits, kTagDigits);
  WriteSlot(key, &tag[kTagDigits - kSlotDigits]);
  return tag;
}

std::string Workload::Framed(uint64_t key, Random* random) const {
  std::array<char, kSlotDigits> digits;
  std::string framed;
  for (const absl::string_view part : Parts(key, random, &digits)) {
    framed.append(part.data(), part.size());
  }
  return framed;
}

}  // namespace fncache::bench
