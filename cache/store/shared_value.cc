// SPDX-License-Identifier: Apache-2.0
#include "cache/store/shared_value.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace fncache::cache::store {
namespace {

// docs/storage-format.md names these.
constexpr absl::string_view kVersion = "1";
constexpr absl::string_view kMark = "purged";
constexpr absl::string_view kRecordAssociated = "1bans";

std::string Associated(const key::Key& key, absl::string_view header) {
  return absl::StrCat(kVersion, key.Bytes(), header);
}

std::string Encode(const Seal& seal, const key::Key& key, absl::Time started,
                   absl::string_view message) {
  const std::string header = ClearHeader(started);
  const std::string sealed = seal.Close(message, Associated(key, header));
  return sealed.empty() ? "" : absl::StrCat(header, sealed);
}

}  // namespace

std::string StartedText(absl::Time started) {
  return absl::StrCat(absl::Dec(
      std::max(int64_t{0}, absl::ToUnixNanos(started)), absl::kZeroPad20));
}

std::string ClearHeader(absl::Time started) {
  return absl::StrCat(kVersion, StartedText(started));
}

std::string EncodeShared(const Seal& seal, const key::Key& key,
                         absl::string_view function,
                         absl::string_view generation, const Entry& entry) {
  return Encode(seal, key, entry.started(),
                EncodeStored(key, function, generation, entry));
}

std::string EncodeMark(const Seal& seal, const key::Key& key,
                       absl::Time started) {
  return Encode(seal, key, started, kMark);
}

SharedValue DecodeShared(const Seal& seal, const key::Key& key,
                         absl::string_view bytes, StoredScopes scopes) {
  if (bytes.size() < kClearHeader || bytes.substr(0, 1) != kVersion) return {};
  const absl::string_view header = bytes.substr(0, kClearHeader);
  const auto message =
      seal.Open(bytes.substr(kClearHeader), Associated(key, header));
  if (!message.has_value()) return {};

  SharedValue value;
  const absl::string_view text = header.substr(kVersion.size());
  int64_t started = 0;
  if (!absl::SimpleAtoi(text, &started)) return {};
  value.started = absl::FromUnixNanos(started);
  if (StartedText(value.started) != text) return {};
  value.mark = *message == kMark;
  if (!value.mark) {
    value.stored = DecodeStored(key, *message, scopes);
    if (IsDamage(value.stored.miss)) return {};
    // Absent for the stored form's later versions, which are a miss.
    auto peek = PeekStored(*message);
    if (peek.has_value()) {
      if (StartedText(peek->started) != text) return {};
      value.function = std::move(peek->function);
      value.generation = std::move(peek->generation);
    }
  }
  value.genuine = true;
  return value;
}

std::string EncodeRecord(const Seal& seal, const StoredBans& bans) {
  const std::string sealed = seal.Close(EncodeBans(bans), kRecordAssociated);
  return sealed.empty() ? "" : absl::StrCat(kVersion, sealed);
}

absl::StatusOr<StoredBans> DecodeRecord(const Seal& seal,
                                        absl::string_view bytes) {
  const auto message = absl::ConsumePrefix(&bytes, kVersion)
                           ? seal.Open(bytes, kRecordAssociated)
                           : absl::nullopt;
  if (!message.has_value()) {
    return absl::DataLossError("the record of bans does not open");
  }
  return DecodeBans(*message);
}

}  // namespace fncache::cache::store
