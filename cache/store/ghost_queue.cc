// SPDX-License-Identifier: Apache-2.0
#include "cache/store/ghost_queue.h"

#include <algorithm>

namespace fncache::cache::store {
namespace {

uint32_t Fingerprint(uint64_t hash) {
  return (static_cast<uint32_t>(hash >> 48) | 1) << 16;
}

constexpr uint32_t kFingerprintMask = 0xffff0000u;

}  // namespace

uint32_t* GhostQueue::BucketOf(uint64_t hash) const {
  // The fingerprint uses the upper bits; the lower ones choose the bucket.
  const uint64_t buckets = slots_ / kBucket;
  return &table_[((hash & 0xffffffff) * buckets >> 32) * kBucket];
}

uint32_t GhostQueue::TimeUnit() const {
  // A window has 4,096 units, of the 65,536 that a mark can distinguish.
  return static_cast<uint32_t>(std::max<size_t>(slots_ / 4096, 1));
}

bool GhostQueue::TooOld(uint32_t mark) const {
  const uint16_t age = static_cast<uint16_t>(Time() - mark);
  return static_cast<uint64_t>(age) * TimeUnit() > live_;
}

void GhostQueue::Resize(size_t live) {
  const size_t wanted = std::max<size_t>(64, live + kBucket - live % kBucket);
  // Starting over forgets a window's worth of keys, but Insert does it rarely.
  table_ = std::make_unique<uint32_t[]>(wanted);
  slots_ = wanted;
}

void GhostQueue::Insert(uint64_t hash, size_t live) {
  if (live > slots_ + slots_ / 2 || slots_ > 64 + live * 4) Resize(live);
  live_ = live;
  ++inserted_;
  uint32_t* const bucket = BucketOf(hash);
  uint32_t* victim = bucket;
  uint16_t victim_age = 0;
  for (uint32_t* slot = bucket; slot != bucket + kBucket; ++slot) {
    if (*slot == 0 || (*slot & kFingerprintMask) == Fingerprint(hash)) {
      victim = slot;
      break;
    }
    const uint16_t age = static_cast<uint16_t>(Time() - *slot);
    if (age >= victim_age) {
      victim = slot;
      victim_age = age;
    }
  }
  *victim = Fingerprint(hash) | Time();
}

bool GhostQueue::Take(uint64_t hash) {
  if (slots_ == 0) return false;
  uint32_t* const bucket = BucketOf(hash);
  for (uint32_t* slot = bucket; slot != bucket + kBucket; ++slot) {
    if ((*slot & kFingerprintMask) != Fingerprint(hash)) continue;
    const bool remembered = !TooOld(*slot);
    *slot = 0;
    return remembered;
  }
  return false;
}

}  // namespace fncache::cache::store
