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
                           encoded.content_slot + kPrefix,
                           encoded.version_slot + kPrefix,
                           encoded.time_slot + kPrefix});
    }
  }
}

Workload::Slices Workload::Message(uint64_t key, absl::optional<uint64_t> drift,
                                   Random* random, Slots* slots) const {
  const size_t request = key % options_.distinct;
  const Prepared& prepared =
      prepared_[request * options_.orders + random->Below(options_.orders)];
  const absl::string_view all = prepared.framed;
  Slices slices;
  size_t end = 0;  // of the bytes that `slices` has
  const auto add = [&](size_t slot, const auto& bytes) {
    slices.push_back(http2::Slice::Static(all.substr(end, slot - end)));
    slices.push_back(http2::Slice::Static({bytes.data(), bytes.size()}));
    end = slot + bytes.size();
  };
  WriteSlot(key, slots->key.data());
  add(prepared.tag_slot, slots->key);
  add(prepared.content_slot, slots->key);
  if (drift.has_value() && HasDrift(options_.shape)) {
    WriteDrift(*drift, slots->version.data(), slots->time.data());
    const bool time_first = prepared.time_slot < prepared.version_slot;
    if (time_first) add(prepared.time_slot, slots->time);
    add(prepared.version_slot, slots->version);
    if (!time_first) add(prepared.time_slot, slots->time);
  }
  slices.push_back(http2::Slice::Static(all.substr(end)));
  return slices;
}

std::string Workload::Framed(uint64_t key, absl::optional<uint64_t> drift,
                             Random* random) const {
  Slots slots;
  std::string framed;
  for (const http2::Slice& slice : Message(key, drift, random, &slots)) {
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
