// SPDX-License-Identifier: Apache-2.0
// Any bytes as a stored entry: never a crash, and what decodes says the same
// when it is encoded and decoded again. The first byte says whether the rest is
// the stored form as it is, or what follows a prefix of either
// version whose lengths and checksum are right, which no fuzzer would find by
// itself.
#include <cstdint>
#include <string>

#include "cache/store/stored_entry.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/stored_forms.h"

namespace fncache::cache {
namespace {

using fuzz::Check;

const key::Key kKey{1, 2};

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
    fncache::cache::CheckStored(fncache::fuzz::StoredEntryOf(
        fncache::cache::kKey, bytes, data[0] % 4 == 1 ? 1 : 2));
  }
  return 0;
}
