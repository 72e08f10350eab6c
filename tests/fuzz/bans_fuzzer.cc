// SPDX-License-Identifier: Apache-2.0
// Any bytes as a file of bans: never a crash, and decoded bans are the same
// when they are encoded and decoded again. The first byte says whether the rest
// is the whole file, or follows a prefix with a right checksum, which a fuzzer
// alone would not find.
#include <cstdint>
#include <string>

#include "cache/store/stored_bans.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/stored_forms.h"

namespace fncache::cache::store {
namespace {

bool IsBan(const BanTimes& times) {
  return !times.empty() && times.purged != 0 && times.stale != 0;
}

void CheckBans(absl::string_view bytes) {
  using fuzz::Check;
  const auto bans = DecodeBans(bytes);
  if (!bans.ok()) return Check(absl::IsDataLoss(bans.status()));
  Check(bans->all.empty() || IsBan(bans->all));
  for (const auto& [name, times] : bans->functions) Check(IsBan(times));
  for (const auto& [name, times] : bans->generations) Check(IsBan(times));
  const auto again = DecodeBans(EncodeBans(*bans));
  Check(again.ok());
  Check(again->all == bans->all);
  Check(again->functions == bans->functions);
  Check(again->generations == bans->generations);
  Check(again->keys.size() == bans->keys.size());
  for (const auto& [key, ban] : bans->keys) {
    const auto it = again->keys.find(key);
    Check(it != again->keys.end());
    Check(IsBan(ban.times) && it->second.times == ban.times);
    Check(it->second.until == ban.until);
  }
}

}  // namespace
}  // namespace fncache::cache::store

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0 || size > 64 * 1024) return 0;
  const absl::string_view bytes(reinterpret_cast<const char*>(data) + 1,
                                size - 1);
  fncache::cache::store::CheckBans(
      data[0] % 2 == 0 ? std::string(bytes) : fncache::fuzz::BansFileOf(bytes));
  return 0;
}
