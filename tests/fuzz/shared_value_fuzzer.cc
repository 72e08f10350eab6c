// SPDX-License-Identifier: Apache-2.0
// Any bytes as a value of the shared tier: never a crash, what is genuine says
// the same when it is encoded and decoded again, and is genuine under its own
// key and in every bit only. The first byte says what the rest is, because a
// fuzzer alone finds no sealed value: the value itself, a clear header and a
// message to seal, or the fields of a stored entry to seal.
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "cache/store/shared_value.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/stored_forms.h"

namespace fncache::cache::store {
namespace {

using fuzz::Check;
using fuzz::SealOfVectors;

// The key of the document's vectors.
const key::Key kKey{0x0123456789abcdef, 0xfedcba9876543210};

// docs/storage-format.md, made from the format's description alone.
std::string Sealed(absl::string_view header, absl::string_view message) {
  return absl::StrCat(
      header,
      SealOfVectors().Close(message, absl::StrCat("1", kKey.Bytes(), header)));
}

SharedValue Decode(absl::string_view bytes, const key::Key& key = kKey) {
  const auto scopes = [](absl::string_view function) {
    return function == "none" ? absl::nullopt
                              : absl::make_optional(StoredScope{5, "rev-1"});
  };
  SharedValue value = DecodeShared(SealOfVectors(), key, bytes, scopes);
  Check(!value.mark || value.genuine);
  if (!value.genuine || value.mark) {
    Check(!value.stored.entry && value.function.empty());
  }
  return value;
}

void CheckValue(std::string bytes, size_t bit) {
  const SharedValue value = Decode(bytes);
  if (!value.genuine) return;
  Check(bytes.substr(0, kClearHeader) == "1" + StartedText(value.started));
  Check(!Decode(bytes, key::Key{1, 2}).genuine);
  if (value.mark) {
    const SharedValue again =
        Decode(EncodeMark(SealOfVectors(), kKey, value.started));
    Check(again.mark && again.started == value.started);
  } else if (value.stored.entry) {
    const Entry& entry = *value.stored.entry;
    const SharedValue again = Decode(EncodeShared(
        SealOfVectors(), kKey, value.function, value.generation, entry));
    Check(again.genuine && again.started == value.started);
    Check(again.function == value.function);
    Check(again.generation == "rev-1" && value.generation == "rev-1");
    Check(again.stored.entry && again.stored.entry->body() == entry.body());
    Check(again.stored.entry->meta_rest() == entry.meta_rest());
  } else {
    Check(value.stored.miss == StoredMiss::kVersion ||
          value.stored.miss == StoredMiss::kFunction ||
          value.stored.miss == StoredMiss::kGeneration ||
          value.stored.miss == StoredMiss::kMemory);
  }
  bit %= 8 * bytes.size();
  bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
  Check(!Decode(bytes).genuine);
}

std::string ValueOf(uint8_t what, absl::string_view bytes) {
  if (what % 4 == 0) return std::string(bytes);
  if (what % 4 == 1) {
    const absl::string_view header = bytes.substr(0, kClearHeader);
    return Sealed(header, bytes.substr(header.size()));
  }
  const std::string stored =
      fuzz::StoredEntryOf(kKey, bytes, static_cast<char>(what % 4 - 1));
  const auto peek = PeekStored(stored);
  return Sealed("1" + StartedText(peek ? peek->started : absl::UnixEpoch()),
                stored);
}

}  // namespace
}  // namespace fncache::cache::store

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 3 || size > 64 * 1024) return 0;
  const absl::string_view bytes(reinterpret_cast<const char*>(data) + 3,
                                size - 3);
  fncache::cache::store::CheckValue(
      fncache::cache::store::ValueOf(data[0], bytes), data[1] * 256 + data[2]);
  return 0;
}
