// SPDX-License-Identifier: Apache-2.0
// Any bytes as a stored entry: never a crash, and what decodes says the same
// when it is encoded and decoded again. The first byte says whether the rest is
// the stored form as it is, or what follows a prefix of either
// version whose lengths and checksum are right, which no fuzzer would find by
// itself.
#include <xxhash.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "cache/store/stored_entry.h"

namespace fncache::cache {
namespace {

const key::Key kKey{1, 2};

// docs/storage-format.md, made from the format's description alone.
std::string Seal(absl::string_view parts, char version) {
  const size_t header = parts.empty() ? 0 : static_cast<uint8_t>(parts[0]);
  if (!parts.empty()) parts.remove_prefix(1);
  const size_t header_size = header < parts.size() ? header : parts.size();
  const size_t rest_size = (parts.size() - header_size) / 2;
  const size_t body_size = parts.size() - header_size - rest_size;
  std::string bytes("fncache");
  bytes.push_back(version);
  bytes.append(8, '\0');
  for (const size_t size : {header_size, rest_size, body_size}) {
    for (int i = 0; i < 4; ++i) {
      bytes.push_back(static_cast<char>(size >> (8 * i)));
    }
  }
  bytes.append(parts.data(), parts.size());
  const std::string start = kKey.Bytes() + bytes.substr(0, 8);
  const uint64_t checksum =
      XXH3_64bits_withSeed(bytes.data() + 16, bytes.size() - 16,
                           XXH3_64bits(start.data(), start.size()));
  for (int i = 0; i < 8; ++i) {
    bytes[8 + i] = static_cast<char>(checksum >> (8 * i));
  }
  return bytes;
}

void Check(bool ok) {
  if (!ok) std::abort();
}

void CheckStored(absl::string_view bytes) {
  std::string function;
  const std::string generation = "rev-1";
  const auto scopes = [&](absl::string_view name) {
    function = std::string(name);
    return absl::make_optional(store::StoredScope{5, generation});
  };
  const store::Stored stored = store::DecodeStored(kKey, bytes, scopes);
  Check((stored.entry ? true : false) ==
        (stored.miss == store::StoredMiss::kNone));
  if (!stored.entry) return;

  const std::string again =
      store::EncodeStored(kKey, function, generation, *stored.entry);
  const store::Stored second = store::DecodeStored(kKey, again, scopes);
  Check(second.miss == store::StoredMiss::kNone);
  const store::EntryInfo a = stored.entry->info();
  const store::EntryInfo b = second.entry->info();
  Check(a.function == 5 && b.function == 5);
  Check(a.started == b.started && a.arrived == b.arrived);
  Check(a.lifetime == b.lifetime && a.lifetime > absl::ZeroDuration());
  Check(a.ttl == b.ttl && a.cost == b.cost && a.secrets == b.secrets);
  Check(a.drift == b.drift);
  Check(stored.entry->body() == second.entry->body());
  Check(stored.entry->meta_rest() == second.entry->meta_rest());
  // Another key's it is not.
  Check(store::DecodeStored(key::Key{1, 3}, again, scopes).miss ==
        store::StoredMiss::kChecksum);
}

}  // namespace
}  // namespace fncache::cache

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0 || size > 64 * 1024) return 0;
  const absl::string_view bytes(reinterpret_cast<const char*>(data) + 1,
                                size - 1);
  if (data[0] % 2 == 0) {
    fncache::cache::CheckStored(bytes);
  } else {
    fncache::cache::CheckStored(
        fncache::cache::Seal(bytes, data[0] % 4 == 1 ? 1 : 2));
  }
  return 0;
}
