// SPDX-License-Identifier: Apache-2.0
#include "tests/cache/store/store_testing.h"

#include <stdlib.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <utility>

#include "gtest/gtest.h"

namespace fncache::cache::store::testing {
namespace {

uint64_t Mix(uint64_t x) {  // splitmix64
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

template <typename Map>
uint64_t At(const Map& map, const typename Map::key_type& key) {
  const auto it = map.find(key);
  return it == map.end() ? 0 : it->second;
}

}  // namespace

key::Key KeyOf(uint64_t n) { return {Mix(2 * n), Mix(2 * n + 1)}; }

std::string BodyOf(uint64_t n, uint64_t version, size_t size) {
  size = std::max<size_t>(size, 2 * sizeof(uint64_t));
  std::string body(size, '\0');
  const uint64_t length = size;
  std::memcpy(&body[0], &version, sizeof(version));
  std::memcpy(&body[8], &length, sizeof(length));
  uint64_t state = Mix(n) ^ Mix(version + 1) ^ length;
  for (size_t at = 16; at < size; at += sizeof(state)) {
    state = Mix(state);
    std::memcpy(&body[at], &state, std::min(sizeof(state), size - at));
  }
  return body;
}

int64_t VersionOf(uint64_t n, absl::string_view body) {
  uint64_t version;
  uint64_t length;
  if (body.size() < 2 * sizeof(uint64_t)) return -1;
  std::memcpy(&version, body.data(), sizeof(version));
  std::memcpy(&length, body.data() + 8, sizeof(length));
  if (length != body.size() || version >> 62 != 0) return -1;
  if (BodyOf(n, version, body.size()) != body) return -1;
  return static_cast<int64_t>(version);
}

EntryRef EntryOf(uint64_t n, const EntrySpec& spec) {
  EntryInfo info;
  info.function = spec.function;
  info.started = spec.started;
  info.arrived = spec.started + spec.took;
  info.lifetime = spec.lifetime;
  info.ttl = spec.lifetime;
  info.cost = spec.took;
  const std::string body = BodyOf(n, spec.version, spec.size);
  // In two parts, as the transport hands it over.
  const absl::string_view all = body;
  return Entry::Create(
      info, n % 2 == 0 ? "" : "rest",
      {all.substr(0, all.size() / 3), all.substr(all.size() / 3)});
}

void CountingObserver::OnRemoved(Tier tier, Removal why, FunctionId function,
                                 bool last, uint64_t count, uint64_t bytes) {
  MutexLock lock(&mutex_);
  removed_[{tier, why}] += count;
  removed_of_[{tier, function}] += count;
  removed_bytes_[tier] += bytes;
  if (last) removed_last_ += count;
  removed_more_.SignalAll();
}
void CountingObserver::OnDropped(Tier tier, Dropped why, FunctionId) {
  MutexLock lock(&mutex_);
  ++dropped_[{tier, why}];
}
void CountingObserver::OnError(Tier tier, TierError what, FunctionId function) {
  MutexLock lock(&mutex_);
  ++errors_[{tier, what}];
  ++errors_of_[{tier, function}];
}
void CountingObserver::OnWritten(Tier tier, FunctionId, uint64_t,
                                 absl::Duration took) {
  EXPECT_GE(took, absl::ZeroDuration());
  MutexLock lock(&mutex_);
  ++written_[tier];
}

uint64_t CountingObserver::removed(Tier tier, Removal why) const {
  MutexLock lock(&mutex_);
  return At(removed_, {tier, why});
}
uint64_t CountingObserver::AwaitRemoved(Tier tier, Removal why,
                                        uint64_t count) {
  MutexLock lock(&mutex_);
  while (At(removed_, {tier, why}) < count) {
    if (removed_more_.WaitWithTimeout(&mutex_, absl::Minutes(1))) break;
  }
  return At(removed_, {tier, why});
}
uint64_t CountingObserver::removed_of(Tier tier, FunctionId function) const {
  MutexLock lock(&mutex_);
  return At(removed_of_, {tier, function});
}
uint64_t CountingObserver::removed_last() const {
  MutexLock lock(&mutex_);
  return removed_last_;
}
uint64_t CountingObserver::removed_bytes(Tier tier) const {
  MutexLock lock(&mutex_);
  return At(removed_bytes_, tier);
}
uint64_t CountingObserver::dropped(Tier tier, Dropped why) const {
  MutexLock lock(&mutex_);
  return At(dropped_, {tier, why});
}
uint64_t CountingObserver::errors_of(Tier tier, FunctionId function) const {
  MutexLock lock(&mutex_);
  return At(errors_of_, {tier, function});
}
uint64_t CountingObserver::errors(Tier tier, TierError what) const {
  MutexLock lock(&mutex_);
  return At(errors_, {tier, what});
}
uint64_t CountingObserver::written(Tier tier) const {
  MutexLock lock(&mutex_);
  return At(written_, tier);
}

}  // namespace fncache::cache::store::testing
