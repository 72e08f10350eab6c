// SPDX-License-Identifier: Apache-2.0
#include "bench/load_workload.h"

#include "absl/strings/string_view.h"
#include "bench/request_encoding.h"
#include "proto/function_v1.pb.h"

namespace fncache::bench {
namespace {

// The flag and the length that GrpcFrame puts before the message.
constexpr size_t kPrefix = 5;
constexpr size_t kTagDigits = 64;

}  // namespace

Workload::Workload(const WorkloadOptions& options) : options_(options) {
  prepared_.reserve(options.distinct * options.orders);
  for (uint64_t i = 0; i < options.distinct; ++i) {
    const Request request = MakeRequest(options.shape, options.seed, i);
    for (uint64_t j = 0; j < options.orders; ++j) {
      const EncodedRequest encoded =
          Encode(request, options.seed + i * options.orders + j);
      prepared_.push_back({GrpcFrame(encoded.bytes), encoded.tag_slot + kPrefix,
                           encoded.content_slot + kPrefix});
    }
  }
}

std::array<http2::Slice, 5> Workload::Message(
    uint64_t key, Random* random, std::array<char, kSlotDigits>* digits) const {
  const size_t request = key % options_.distinct;
  const Prepared& prepared =
      prepared_[request * options_.orders + random->Below(options_.orders)];
  WriteSlot(key, digits->data());
  const absl::string_view all = prepared.framed;
  const http2::Slice slot =
      http2::Slice::Static({digits->data(), digits->size()});
  const size_t middle = prepared.tag_slot + kSlotDigits;
  const size_t end = prepared.content_slot + kSlotDigits;
  return {
      http2::Slice::Static(all.substr(0, prepared.tag_slot)), slot,
      http2::Slice::Static(all.substr(middle, prepared.content_slot - middle)),
      slot, http2::Slice::Static(all.substr(end))};
}

std::string Workload::Framed(uint64_t key, Random* random) const {
  std::array<char, kSlotDigits> digits;
  std::string framed;
  for (const http2::Slice& slice : Message(key, random, &digits)) {
    framed.append(slice.data(), slice.size());
  }
  return framed;
}

std::string Workload::TagOf(uint64_t key) const {
  const Prepared& prepared =
      prepared_[(key % options_.distinct) * options_.orders];
  std::string tag = prepared.framed.substr(
      prepared.tag_slot + kSlotDigits - kTagDigits, kTagDigits);
  WriteSlot(key, &tag[kTagDigits - kSlotDigits]);
  return tag;
}

}  // namespace fncache::bench
