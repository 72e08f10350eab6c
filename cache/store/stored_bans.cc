// SPDX-License-Identifier: Apache-2.0
#include "cache/store/stored_bans.h"

#include <xxhash.h>

#include <algorithm>
#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/stored_bans.pb.h"

namespace fncache::cache::store {
namespace {

// docs/storage-format.md names these.
constexpr absl::string_view kMagic = "fncbans";
constexpr char kVersion = 1;
constexpr size_t kChecksumAt = 8;
constexpr size_t kPrefixSize = 16;
constexpr size_t kKeySize = 16;

// The checksum of all bytes but its own: of the bytes after it, under a seed
// made of the bytes before it.
uint64_t Checksum(absl::string_view bytes) {
  return XXH3_64bits_withSeed(bytes.data() + kPrefixSize,
                              bytes.size() - kPrefixSize,
                              XXH3_64bits(bytes.data(), kChecksumAt));
}

absl::Status Damage(absl::string_view why) {
  return absl::DataLossError(absl::StrCat("the bans are damaged: ", why));
}

int64_t ToStored(int64_t time) { return time == kNeverBanned ? 0 : time; }
int64_t FromStored(int64_t time) { return time == 0 ? kNeverBanned : time; }

template <typename Stored>
void SetTimes(const BanTimes& times, Stored* stored) {
  stored->set_purged(ToStored(times.purged));
  stored->set_stale(ToStored(times.stale));
}

// False if EncodeBans never writes such times.
template <typename Stored>
bool GetTimes(const Stored& stored, BanTimes* times) {
  if (stored.purged() < 0 || stored.stale() < 0) return false;
  times->purged = FromStored(stored.purged());
  times->stale = FromStored(stored.stale());
  return !times->empty();
}

}  // namespace

bool BanTimes::Add(const BanTimes& other) {
  const BanTimes before = *this;
  purged = std::max(purged, other.purged);
  stale = std::max(stale, other.stale);
  return !(before == *this);
}

bool Clamp(int64_t latest, StoredBans* bans) {
  bool clamped = false;
  const auto clamp = [&](BanTimes* times) {
    clamped |= times->purged > latest || times->stale > latest;
    *times = {std::min(times->purged, latest), std::min(times->stale, latest)};
  };
  clamp(&bans->all);
  for (auto& [name, times] : bans->functions) clamp(&times);
  for (auto& [name, times] : bans->generations) clamp(&times);
  for (auto& [key, of_key] : bans->keys) clamp(&of_key.times);
  return clamped;
}

std::string EncodeBans(const StoredBans& bans) {
  storage::StoredBans message;
  const auto add = [&message](storage::StoredBans::Of of,
                              const BanTimes& times) {
    storage::StoredBans::Ban* const ban = message.add_bans();
    ban->set_of(of);
    SetTimes(times, ban);
    return ban;
  };
  if (!bans.all.empty()) add(storage::StoredBans::ALL, bans.all);
  for (const auto& [function, times] : bans.functions) {
    if (times.empty()) continue;
    add(storage::StoredBans::FUNCTION, times)->set_function(function);
  }
  for (const auto& [generation, times] : bans.generations) {
    if (times.empty()) continue;
    auto* const ban = add(storage::StoredBans::GENERATION, times);
    ban->set_function(generation.first);
    ban->set_generation(generation.second);
  }
  for (const auto& [key, of_key] : bans.keys) {
    if (of_key.times.empty()) continue;
    storage::StoredBans::KeyBan* const ban = message.add_keys();
    ban->set_key(key.Bytes());
    SetTimes(of_key.times, ban);
    ban->set_until(of_key.until);
  }
  std::string bytes(kMagic);
  bytes.push_back(kVersion);
  bytes.resize(kPrefixSize);
  message.AppendToString(&bytes);
  const uint64_t checksum = Checksum(bytes);
  for (size_t i = 0; i < sizeof(checksum); ++i) {
    bytes[kChecksumAt + i] = static_cast<char>(checksum >> (8 * i));
  }
  return bytes;
}

absl::StatusOr<StoredBans> DecodeBans(absl::string_view bytes) {
  if (bytes.size() < kPrefixSize) return Damage("cut off");
  if (bytes.substr(0, kMagic.size()) != kMagic) return Damage("magic");
  if (bytes[kMagic.size()] != kVersion) return Damage("version");
  uint64_t checksum = 0;
  for (size_t i = 0; i < sizeof(checksum); ++i) {
    checksum |=
        static_cast<uint64_t>(static_cast<uint8_t>(bytes[kChecksumAt + i]))
        << (8 * i);
  }
  if (checksum != Checksum(bytes)) return Damage("checksum");
  storage::StoredBans message;
  const absl::string_view body = bytes.substr(kPrefixSize);
  if (body.size() > std::numeric_limits<int>::max() ||
      !message.ParseFromArray(body.data(), static_cast<int>(body.size()))) {
    return Damage("content");
  }
  StoredBans bans;
  for (const storage::StoredBans::Ban& ban : message.bans()) {
    BanTimes times;
    if (!GetTimes(ban, &times)) return Damage("times");
    switch (ban.of()) {
      case storage::StoredBans::ALL:
        bans.all.Add(times);
        break;
      case storage::StoredBans::FUNCTION:
        bans.functions[ban.function()].Add(times);
        break;
      case storage::StoredBans::GENERATION:
        bans.generations[{ban.function(), ban.generation()}].Add(times);
        break;
      default:
        return Damage("a ban of something unknown");
    }
  }
  for (const storage::StoredBans::KeyBan& ban : message.keys()) {
    StoredKeyBan of_key;
    if (ban.key().size() != kKeySize || ban.until() < 0 ||
        !GetTimes(ban, &of_key.times)) {
      return Damage("a key");
    }
    StoredKeyBan& there = bans.keys[key::Key::FromBytes(ban.key())];
    there.times.Add(of_key.times);
    there.until = std::max(there.until, ban.until());
  }
  return bans;
}

}  // namespace fncache::cache::store
