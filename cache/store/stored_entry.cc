// SPDX-License-Identifier: Apache-2.0
#include "cache/store/stored_entry.h"

#include <lz4.h>
#include <xxhash.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "proto/stored_entry.pb.h"

namespace fncache::cache::store {
namespace {

// docs/storage-format.md names these.
constexpr absl::string_view kMagic = "fncache";
constexpr char kPlain = 1;
constexpr char kCompressed = 2;
constexpr size_t kVersionAt = 7;
constexpr size_t kChecksumAt = 8;
constexpr size_t kHeaderSizeAt = 16;
constexpr size_t kMetaRestSizeAt = 20;
constexpr size_t kBodySizeAt = 24;
constexpr size_t kPrefixSize = 28;

// LZ4 never compresses better than this.
constexpr uint64_t kMaxRatio = 255;
// Bodies smaller than this hardly ever compress.
constexpr size_t kMinCompressed = 128;

// A drift digest's bytes, big-endian (key::Key::Bytes).
constexpr size_t kDriftSize = 16;

constexpr int64_t kMaxTtlSeconds = 315'576'000'000;

template <typename Int>
void PutLittleEndian(Int value, char* to) {
  for (size_t i = 0; i < sizeof(Int); ++i) {
    to[i] = static_cast<char>(value >> (8 * i));
  }
}

template <typename Int>
Int GetLittleEndian(const char* from) {
  Int value = 0;
  for (size_t i = 0; i < sizeof(Int); ++i) {
    value |= static_cast<Int>(static_cast<uint8_t>(from[i])) << (8 * i);
  }
  return value;
}

// The checksum of everything but itself: of the bytes after it, under a seed
// made of the key and the bytes before it.
uint64_t Checksum(const key::Key& key, absl::string_view bytes) {
  std::string start = key.Bytes();
  start.append(bytes.data(), kChecksumAt);
  return XXH3_64bits_withSeed(bytes.data() + kHeaderSizeAt,
                              bytes.size() - kHeaderSizeAt,
                              XXH3_64bits(start.data(), start.size()));
}

// Whether the header's values are valid for a stored entry. A correct checksum
// vouches for the bytes, not for their writer.
bool IsPossible(const storage::StoredEntryHeader& header, char version,
                uint64_t stored_body) {
  if (header.lifetime() <= 0 || header.cost() < 0) return false;
  if (header.retention() != 0 && header.retention() <= header.lifetime()) {
    return false;
  }
  if (version == kCompressed &&
      (header.body_size() >= Entry::kMaxBytes ||
       header.body_size() > kMaxRatio * stored_body)) {
    return false;
  }
  if (!header.drift().empty() && header.drift().size() != kDriftSize) {
    return false;
  }
  if (!header.has_ttl()) return true;
  const int64_t seconds = header.ttl().seconds();
  const int32_t nanos = header.ttl().nanos();
  return seconds >= 0 && seconds <= kMaxTtlSeconds && nanos >= 0 &&
         nanos <= 999'999'999;
}

EntryInfo ToInfo(const storage::StoredEntryHeader& header,
                 FunctionId function) {
  EntryInfo info;
  info.function = function;
  info.started = absl::FromUnixNanos(header.started());
  info.arrived = absl::FromUnixNanos(header.arrived());
  info.lifetime = absl::Nanoseconds(header.lifetime());
  info.retention = absl::Nanoseconds(header.retention());
  if (header.has_ttl()) {
    info.ttl = absl::Seconds(header.ttl().seconds()) +
               absl::Nanoseconds(header.ttl().nanos());
  }
  info.cost = absl::Nanoseconds(header.cost());
  info.secrets = header.secrets();
  info.pure = header.pure();
  if (!header.drift().empty()) {
    info.drift = key::Key::FromBytes(header.drift());
  }
  return info;
}

bool IsVersion(char version) {
  return version == kPlain || version == kCompressed;
}

// The body as one LZ4 block; empty where that does not save an eighth of it.
std::string Compressed(absl::string_view body) {
  std::string block;
  if (body.size() < kMinCompressed || body.size() > LZ4_MAX_INPUT_SIZE) {
    return block;
  }
  // A block that does not fit into this does not save enough.
  block.resize(body.size() - body.size() / 8);
  const int size = LZ4_compress_default(body.data(), block.data(),
                                        static_cast<int>(body.size()),
                                        static_cast<int>(block.size()));
  block.resize(static_cast<size_t>(size));
  return block;
}

bool Decompress(absl::string_view block, char* body, size_t body_size) {
  return LZ4_decompress_safe(block.data(), body, static_cast<int>(block.size()),
                             static_cast<int>(body_size)) ==
         static_cast<int>(body_size);
}

Stored Miss(StoredMiss why) { return Stored{nullptr, why}; }

}  // namespace

std::string EncodeStored(const key::Key& key, absl::string_view function,
                         absl::string_view generation, const Entry& entry) {
  const EntryInfo info = entry.info();
  storage::StoredEntryHeader header;
  header.set_function(function.data(), function.size());
  header.set_generation(generation.data(), generation.size());
  header.set_started(absl::ToUnixNanos(info.started));
  header.set_arrived(absl::ToUnixNanos(info.arrived));
  header.set_lifetime(absl::ToInt64Nanoseconds(info.lifetime));
  if (info.retention > info.lifetime) {
    header.set_retention(absl::ToInt64Nanoseconds(info.retention));
  }
  if (info.ttl.has_value()) {
    absl::Duration nanos = *info.ttl;
    header.mutable_ttl()->set_seconds(
        absl::IDivDuration(*info.ttl, absl::Seconds(1), &nanos));
    header.mutable_ttl()->set_nanos(
        static_cast<int32_t>(absl::ToInt64Nanoseconds(nanos)));
  }
  header.set_cost(absl::ToInt64Nanoseconds(info.cost));
  header.set_secrets(info.secrets);
  header.set_pure(info.pure);
  if (info.drift.has_value()) header.set_drift(info.drift->Bytes());

  const std::string block = Compressed(entry.body());
  if (!block.empty()) {
    header.set_body_size(static_cast<uint32_t>(entry.body().size()));
  }

  const size_t header_size = header.ByteSizeLong();
  const absl::string_view meta_rest = entry.meta_rest();
  const absl::string_view body = block.empty() ? entry.body() : block;
  std::string bytes;
  bytes.reserve(kPrefixSize + header_size + meta_rest.size() + body.size());
  bytes.append(kMagic.data(), kMagic.size());
  bytes.push_back(block.empty() ? kPlain : kCompressed);
  bytes.resize(kPrefixSize);
  PutLittleEndian(static_cast<uint32_t>(header_size), &bytes[kHeaderSizeAt]);
  PutLittleEndian(static_cast<uint32_t>(meta_rest.size()),
                  &bytes[kMetaRestSizeAt]);
  PutLittleEndian(static_cast<uint32_t>(body.size()), &bytes[kBodySizeAt]);
  header.AppendToString(&bytes);
  bytes.append(meta_rest.data(), meta_rest.size());
  bytes.append(body.data(), body.size());
  PutLittleEndian(Checksum(key, bytes), &bytes[kChecksumAt]);
  return bytes;
}

Stored DecodeStored(const key::Key& key, absl::string_view bytes,
                    StoredScopes scopes) {
  if (bytes.substr(0, kMagic.size()) != kMagic) {
    // It may be the beginning of the magic, cut off.
    const bool start = kMagic.substr(0, bytes.size()) == bytes;
    return Miss(start ? StoredMiss::kTruncated : StoredMiss::kMagic);
  }
  if (bytes.size() <= kVersionAt) return Miss(StoredMiss::kTruncated);
  const char version = bytes[kVersionAt];
  if (!IsVersion(version)) return Miss(StoredMiss::kVersion);
  if (bytes.size() < kPrefixSize) return Miss(StoredMiss::kTruncated);

  const uint64_t header_size = GetLittleEndian<uint32_t>(&bytes[kHeaderSizeAt]);
  const uint64_t meta_rest_size =
      GetLittleEndian<uint32_t>(&bytes[kMetaRestSizeAt]);
  const uint64_t body_size = GetLittleEndian<uint32_t>(&bytes[kBodySizeAt]);
  // The sum of three 32-bit numbers cannot overflow.
  const uint64_t size = kPrefixSize + header_size + meta_rest_size + body_size;
  if (bytes.size() < size) return Miss(StoredMiss::kTruncated);
  if (bytes.size() > size) return Miss(StoredMiss::kTrailing);
  if (GetLittleEndian<uint64_t>(&bytes[kChecksumAt]) != Checksum(key, bytes)) {
    return Miss(StoredMiss::kChecksum);
  }

  storage::StoredEntryHeader header;
  const absl::string_view header_bytes = bytes.substr(kPrefixSize, header_size);
  if (header_size >= Entry::kMaxBytes ||
      !header.ParseFromArray(header_bytes.data(),
                             static_cast<int>(header_bytes.size())) ||
      !IsPossible(header, version, body_size)) {
    return Miss(StoredMiss::kHeader);
  }
  const absl::optional<StoredScope> scope = scopes(header.function());
  if (!scope.has_value()) return Miss(StoredMiss::kFunction);
  if (scope->generation != header.generation() &&
      std::find(scope->earlier.begin(), scope->earlier.end(),
                header.generation()) == scope->earlier.end()) {
    return Miss(StoredMiss::kGeneration);
  }

  const absl::string_view body = bytes.substr(size - body_size);
  const absl::string_view meta_rest =
      bytes.substr(kPrefixSize + header_size, meta_rest_size);
  const EntryInfo info = ToInfo(header, scope->function);
  Stored stored;
  if (version == kPlain) {
    stored.entry = Entry::Create(info, meta_rest, {body});
    if (!stored.entry) stored.miss = StoredMiss::kMemory;
    return stored;
  }
  bool tried = false;
  bool whole = false;
  stored.entry = Entry::CreateInPlace(
      info, meta_rest, header.body_size(),
      [&](char* to) {
        tried = true;
        return Decompress(body, to, header.body_size());
      },
      &whole);
  if (!stored.entry) {
    stored.miss = tried ? StoredMiss::kBody : StoredMiss::kMemory;
  }
  return stored;
}

absl::optional<StoredPeek> PeekStored(absl::string_view bytes) {
  if (bytes.size() < kPrefixSize || bytes.substr(0, kVersionAt) != kMagic ||
      !IsVersion(bytes[kVersionAt])) {
    return absl::nullopt;
  }
  const absl::string_view header_bytes = bytes.substr(
      kPrefixSize, GetLittleEndian<uint32_t>(&bytes[kHeaderSizeAt]));
  storage::StoredEntryHeader header;
  if (header_bytes.size() >= Entry::kMaxBytes ||
      !header.ParseFromArray(header_bytes.data(),
                             static_cast<int>(header_bytes.size()))) {
    return absl::nullopt;
  }
  const absl::Time arrived = absl::FromUnixNanos(header.arrived());
  return StoredPeek{header.function(), header.generation(),
                    absl::FromUnixNanos(header.started()), arrived,
                    arrived + absl::Nanoseconds(std::max(header.lifetime(),
                                                         header.retention()))};
}

bool IsDamage(StoredMiss miss) {
  switch (miss) {
    case StoredMiss::kMagic:
    case StoredMiss::kTruncated:
    case StoredMiss::kTrailing:
    case StoredMiss::kChecksum:
    case StoredMiss::kHeader:
    case StoredMiss::kBody:
      return true;
    case StoredMiss::kNone:
    case StoredMiss::kVersion:
    case StoredMiss::kFunction:
    case StoredMiss::kGeneration:
    case StoredMiss::kPurged:
    case StoredMiss::kMemory:
      return false;
  }
  return false;
}

absl::string_view StoredMissName(StoredMiss miss) {
  switch (miss) {
    case StoredMiss::kNone:
      return "none";
    case StoredMiss::kVersion:
      return "version";
    case StoredMiss::kFunction:
      return "function";
    case StoredMiss::kGeneration:
      return "generation";
    case StoredMiss::kPurged:
      return "purged";
    case StoredMiss::kMagic:
      return "magic";
    case StoredMiss::kTruncated:
      return "truncated";
    case StoredMiss::kTrailing:
      return "trailing";
    case StoredMiss::kChecksum:
      return "checksum";
    case StoredMiss::kHeader:
      return "header";
    case StoredMiss::kBody:
      return "body";
    case StoredMiss::kMemory:
      return "memory";
  }
  return "unknown";
}

}  // namespace fncache::cache::store
