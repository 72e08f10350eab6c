// SPDX-License-Identifier: Apache-2.0
// Any bytes as the record of bans: never a crash, and what opens are the bans
// of its message. The first byte says whether the rest is the record itself, a
// message to seal, or what follows the prefix of a bans file with a right
// checksum.
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "cache/store/shared_value.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/stored_forms.h"

namespace fncache::cache::store {
namespace {

using fuzz::BansFileOf;
using fuzz::Check;
using fuzz::SealOfVectors;

std::string Sealed(absl::string_view file) {
  return absl::StrCat("1", SealOfVectors().Close(file, "1bans"));
}

void CheckRecord(absl::string_view bytes) {
  const auto bans = DecodeRecord(SealOfVectors(), bytes);
  if (!bans.ok()) return Check(absl::IsDataLoss(bans.status()));
  const auto again =
      DecodeRecord(SealOfVectors(), EncodeRecord(SealOfVectors(), *bans));
  Check(again.ok() && *again == *bans);
  std::string bad(bytes);
  bad.back() = static_cast<char>(bad.back() ^ 1);
  Check(!DecodeRecord(SealOfVectors(), bad).ok());
}

// A message opens exactly where the bans file would be read.
void CheckMessage(absl::string_view file) {
  const auto bans = DecodeBans(file);
  const auto record = DecodeRecord(SealOfVectors(), Sealed(file));
  Check(bans.ok() == record.ok());
  if (bans.ok()) Check(*bans == *record);
  CheckRecord(Sealed(file));
}

}  // namespace

void FuzzRecord(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data) + 1,
                                size - 1);
  if (data[0] % 3 == 0) {
    CheckRecord(bytes);
  } else {
    CheckMessage(data[0] % 3 == 1 ? std::string(bytes) : BansFileOf(bytes));
  }
}

}  // namespace fncache::cache::store

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 0 && size <= 64 * 1024)
    fncache::cache::store::FuzzRecord(data, size);
  return 0;
}
