// SPDX-License-Identifier: Apache-2.0
#include "cache/store/stored_entry.h"

#include <xxhash.h>

#include <random>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "proto/stored_entry.pb.h"
#include "tests/cache/store/held_hex.h"

namespace fncache::cache::store {
namespace {

const key::Key kKey{0x0123456789abcdef, 0xfedcba9876543210};
constexpr size_t kPrefixSize = 28;

EntryRef SomeEntry() {
  EntryInfo info;
  info.function = 7;
  info.started = absl::FromUnixNanos(1'750'000'000'000'000'001);
  info.arrived = absl::FromUnixNanos(1'750'000'000'120'000'001);
  info.lifetime = absl::Seconds(60);
  info.ttl = absl::Seconds(90) + absl::Nanoseconds(5);
  info.cost = absl::Milliseconds(120);
  info.secrets = true;
  return Entry::Create(info, "rest", {"body"});
}

absl::optional<StoredScope> Scopes(absl::string_view function) {
  if (function == "function-a") return StoredScope{3, "rev-1"};
  if (function == "function-b") return StoredScope{4, "rev-2"};
  return absl::nullopt;
}

std::string SomeBytes() {
  return EncodeStored(kKey, "function-a", "rev-1", *SomeEntry());
}

StoredMiss Decode(absl::string_view bytes, const key::Key& key = kKey) {
  const Stored stored = DecodeStored(key, bytes, Scopes);
  EXPECT_EQ(stored.entry ? true : false, stored.miss == StoredMiss::kNone);
  return stored.miss;
}

// Returns what a hostile or mistaken writer would make: any bytes after the
// prefix, with lengths that add up and the right checksum.
std::string Seal(absl::string_view header, absl::string_view rest,
                 absl::string_view body, char version = 1) {
  std::string bytes = SomeBytes().substr(0, 16);
  bytes[7] = version;
  for (const size_t size : {header.size(), rest.size(), body.size()}) {
    for (int i = 0; i < 4; ++i) bytes.push_back(size >> (8 * i));
  }
  absl::StrAppend(&bytes, header, rest, body);
  const std::string start = kKey.Bytes() + bytes.substr(0, 8);
  const uint64_t checksum =
      XXH3_64bits_withSeed(bytes.data() + 16, bytes.size() - 16,
                           XXH3_64bits(start.data(), start.size()));
  for (int i = 0; i < 8; ++i) bytes[8 + i] = checksum >> (8 * i);
  return bytes;
}

storage::StoredEntryHeader HeaderOf(absl::string_view bytes) {
  const size_t size = static_cast<uint8_t>(bytes[16]);
  storage::StoredEntryHeader header;
  EXPECT_TRUE(header.ParseFromArray(bytes.data() + kPrefixSize, size));
  return header;
}

TEST(StoredEntryTest, ComesBackAsItWasUnderThisProcesssFunctionId) {
  const Stored stored = DecodeStored(kKey, SomeBytes(), Scopes);
  ASSERT_TRUE(stored.entry);
  const EntryInfo want = SomeEntry()->info();
  const EntryInfo info = stored.entry->info();
  EXPECT_EQ(info.function, 3u);
  EXPECT_EQ(info.started, want.started);
  EXPECT_EQ(info.arrived, want.arrived);
  EXPECT_EQ(info.lifetime, want.lifetime);
  EXPECT_EQ(info.ttl, want.ttl);
  EXPECT_EQ(info.cost, want.cost);
  EXPECT_TRUE(info.secrets);
  EXPECT_EQ(stored.entry->meta_rest(), "rest");
  EXPECT_EQ(stored.entry->body(), "body");
}

TEST(StoredEntryTest, AbsentZeroAndHugeTtlsComeBack) {
  for (const absl::optional<absl::Duration>& ttl :
       {absl::optional<absl::Duration>(),
        absl::optional<absl::Duration>(absl::ZeroDuration()),
        absl::optional<absl::Duration>(absl::Seconds(315'576'000'000))}) {
    EntryInfo info = SomeEntry()->info();
    info.ttl = ttl;
    const std::string bytes =
        EncodeStored(kKey, "function-a", "rev-1", *Entry::Create(info, "", {}));
    const Stored stored = DecodeStored(kKey, bytes, Scopes);
    ASSERT_TRUE(stored.entry);
    EXPECT_EQ(stored.entry->info().ttl, ttl);
    EXPECT_EQ(stored.entry->body(), "");
  }
}

TEST(StoredEntryTest, ARetentionBeyondTheLifetimeComesBack) {
  for (const absl::Duration retention :
       {absl::ZeroDuration(), absl::Seconds(60),
        absl::Seconds(60) + absl::Nanoseconds(1), absl::Hours(2'562'047)}) {
    EntryInfo info = SomeEntry()->info();
    info.retention = retention;
    const std::string bytes =
        EncodeStored(kKey, "function-a", "rev-1", *Entry::Create(info, "", {}));
    // Others know nothing of it.
    EXPECT_EQ(HeaderOf(bytes).retention() != 0, retention > absl::Seconds(60));
    const Stored stored = DecodeStored(kKey, bytes, Scopes);
    ASSERT_TRUE(stored.entry);
    EXPECT_EQ(stored.entry->kept_until(), info.kept_until());
    EXPECT_EQ(stored.entry->deadline(), info.deadline());
    EXPECT_EQ(PeekStored(bytes)->kept_until, info.kept_until());
  }
}

TEST(StoredEntryTest, ADriftDigestComesBackAndHasSixteenBytes) {
  EntryInfo info = SomeEntry()->info();
  EXPECT_TRUE(HeaderOf(SomeBytes()).drift().empty());
  info.drift = key::Key{0x0123456789abcdef, 3};
  const EntryRef entry = Entry::Create(info, "rest", {"body"});
  const std::string bytes = EncodeStored(kKey, "function-a", "rev-1", *entry);
  EXPECT_EQ(DecodeStored(kKey, bytes, Scopes).entry->info().drift, info.drift);
  storage::StoredEntryHeader header = HeaderOf(bytes);
  for (const size_t size : {1, 15, 17}) {
    header.set_drift(std::string(size, 'x'));
    EXPECT_EQ(Decode(Seal(header.SerializeAsString(), "", "")),
              StoredMiss::kHeader);
  }
}

TEST(StoredEntryTest, NamesNeedNotBeUtf8) {
  const std::string odd = "\xff\xfe";
  const std::string bytes = EncodeStored(kKey, odd, odd, *SomeEntry());
  const Stored stored =
      DecodeStored(kKey, bytes, [&](absl::string_view function) {
        EXPECT_EQ(function, odd);
        return absl::make_optional(StoredScope{9, odd});
      });
  EXPECT_EQ(stored.miss, StoredMiss::kNone);
}

TEST(StoredEntryTest, EveryTruncationIsAMiss) {
  const std::string bytes = SomeBytes();
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(Decode(bytes.substr(0, size)), StoredMiss::kTruncated) << size;
  }
}

TEST(StoredEntryTest, TrailingBytesAreAMiss) {
  EXPECT_EQ(Decode(SomeBytes() + '\0'), StoredMiss::kTrailing);
  EXPECT_EQ(Decode(SomeBytes() + SomeBytes()), StoredMiss::kTrailing);
}

TEST(StoredEntryTest, EveryFlippedBitIsAMiss) {
  const std::string bytes = SomeBytes();
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] ^= 1 << (bit % 8);
    const StoredMiss miss = Decode(flipped);
    const size_t at = bit / 8;
    if (at < 7) {
      EXPECT_EQ(miss, StoredMiss::kMagic) << bit;
    } else if (at == 7) {
      EXPECT_EQ(miss, StoredMiss::kVersion) << bit;
    } else if (at >= 16 && at < kPrefixSize) {
      EXPECT_TRUE(miss == StoredMiss::kTruncated ||
                  miss == StoredMiss::kTrailing)
          << bit;
    } else {
      EXPECT_EQ(miss, StoredMiss::kChecksum) << bit;
    }
  }
}

TEST(StoredEntryTest, BytesMovedBetweenItsPartsAreAMiss) {
  std::string bytes = SomeBytes();
  ++bytes[20];  // one byte more for meta_rest
  --bytes[24];  // and one less for the body
  EXPECT_EQ(Decode(bytes), StoredMiss::kChecksum);
}

TEST(StoredEntryTest, AnotherKeysEntryIsAMiss) {
  EXPECT_EQ(Decode(SomeBytes(), key::Key{kKey.high, kKey.low + 1}),
            StoredMiss::kChecksum);
  EXPECT_EQ(
      Decode(SomeBytes(), key::Key{kKey.high ^ (uint64_t{1} << 63), kKey.low}),
      StoredMiss::kChecksum);
}

TEST(StoredEntryTest, AnotherFunctionsOrBuildsEntryIsForeignNotDamaged) {
  const EntryRef entry = SomeEntry();
  EXPECT_EQ(Decode(EncodeStored(kKey, "function-c", "rev-1", *entry)),
            StoredMiss::kFunction);
  EXPECT_EQ(Decode(EncodeStored(kKey, "function-a", "rev-2", *entry)),
            StoredMiss::kGeneration);
  EXPECT_EQ(Decode(EncodeStored(kKey, "function-a", "", *entry)),
            StoredMiss::kGeneration);
  EXPECT_EQ(Decode(EncodeStored(kKey, "function-b", "rev-2", *entry)),
            StoredMiss::kNone);
}

TEST(StoredEntryTest, ImpossibleHeadersUnderARightChecksumAreAMiss) {
  const storage::StoredEntryHeader good = HeaderOf(SomeBytes());
  ASSERT_EQ(Decode(Seal(good.SerializeAsString(), "", "x")), StoredMiss::kNone);

  const auto expect_refused = [&](auto change) {
    storage::StoredEntryHeader header = good;
    change(&header);
    EXPECT_EQ(Decode(Seal(header.SerializeAsString(), "", "x")),
              StoredMiss::kHeader)
        << header.ShortDebugString();
  };
  expect_refused([](auto* header) { header->set_lifetime(0); });
  expect_refused([](auto* header) { header->set_lifetime(-1); });
  expect_refused([](auto* header) { header->set_cost(-1); });
  expect_refused([](auto* header) { header->set_retention(-1); });
  expect_refused(
      [](auto* header) { header->set_retention(header->lifetime()); });
  expect_refused([](auto* header) { header->mutable_ttl()->set_seconds(-1); });
  expect_refused([](auto* header) {
    header->mutable_ttl()->set_seconds(315'576'000'001);
  });
  expect_refused([](auto* header) { header->mutable_ttl()->set_nanos(-1); });
  expect_refused(
      [](auto* header) { header->mutable_ttl()->set_nanos(1'000'000'000); });
  expect_refused([](auto* header) { header->Clear(); });
  EXPECT_EQ(Decode(Seal("\xff", "", "x")), StoredMiss::kHeader);
}

// A body as functions send them: much of it said before.
std::string LongBody(size_t size) {
  std::string body;
  for (int i = 0; body.size() < size; ++i) {
    absl::StrAppend(&body, "resource-", i * i % 97, " is ready; ");
  }
  body.resize(size);
  return body;
}

std::string BytesOf(absl::string_view body) {
  return EncodeStored(kKey, "function-a", "rev-1",
                      *Entry::Create(SomeEntry()->info(), "rest", {body}));
}

TEST(StoredEntryTest, BodiesThatCompressTakeLessAndComeBackWhole) {
  for (const size_t size : {200u, 1000u, 13'000u, 65'535u, 1'000'000u}) {
    const std::string body = LongBody(size);
    const std::string bytes = BytesOf(body);
    EXPECT_EQ(bytes[7], 2);
    EXPECT_LT(bytes.size(), kPrefixSize + 80 + size * 7 / 8);
    const Stored stored = DecodeStored(kKey, bytes, Scopes);
    ASSERT_TRUE(stored.entry);
    EXPECT_EQ(stored.entry->body(), body);
    EXPECT_EQ(stored.entry->meta_rest(), "rest");
    EXPECT_EQ(stored.entry->info().ttl, SomeEntry()->info().ttl);
    const auto peek = PeekStored(bytes);
    ASSERT_TRUE(peek.has_value());
    EXPECT_EQ(peek->function, "function-a");
  }
}

TEST(StoredEntryTest, BodiesThatDoNotCompressAreStoredAsTheyAre) {
  std::mt19937 random(1);
  for (const size_t size : {0u, 1u, 100u, 13'000u, 100'000u}) {
    std::string body(size, '\0');
    for (char& byte : body) byte = static_cast<char>(random());
    const std::string bytes = BytesOf(body);
    EXPECT_EQ(bytes[7], 1) << size;
    EXPECT_EQ(bytes.substr(bytes.size() - size), body);
    const Stored stored = DecodeStored(kKey, bytes, Scopes);
    ASSERT_TRUE(stored.entry);
    EXPECT_EQ(stored.entry->body(), body);
  }
}

TEST(StoredEntryTest, EveryFlippedBitOfACompressedOneIsAMiss) {
  const std::string bytes = BytesOf(LongBody(1000));
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] ^= 1 << (bit % 8);
    EXPECT_NE(Decode(flipped), StoredMiss::kNone) << bit;
  }
}

TEST(StoredEntryTest, WhatDoesNotDecompressToWhatItSaysIsDamaged) {
  const std::string body = LongBody(1000);
  const std::string bytes = BytesOf(body);
  const storage::StoredEntryHeader good = HeaderOf(bytes);
  const std::string block = bytes.substr(kPrefixSize + good.ByteSizeLong() + 4);
  const auto decode = [&](uint32_t body_size, absl::string_view from) {
    storage::StoredEntryHeader header = good;
    header.set_body_size(body_size);
    return Decode(Seal(header.SerializeAsString(), "rest", from, 2));
  };
  ASSERT_EQ(good.body_size(), 1000u);
  ASSERT_EQ(decode(1000, block), StoredMiss::kNone);
  EXPECT_EQ(decode(999, block), StoredMiss::kBody);
  EXPECT_EQ(decode(1001, block), StoredMiss::kBody);
  EXPECT_EQ(decode(0, block), StoredMiss::kBody);
  EXPECT_EQ(decode(1000, block.substr(1)), StoredMiss::kBody);
  EXPECT_EQ(decode(1000, ""), StoredMiss::kHeader);
  // More than any block of this length can hold is not even made room for.
  EXPECT_EQ(decode(0x7fffffff, block), StoredMiss::kHeader);
  EXPECT_EQ(decode(0xffffffff, block), StoredMiss::kHeader);
}

TEST(StoredEntryTest, LengthsThatPromiseGigabytesAreAMiss) {
  std::string bytes = SomeBytes();
  for (size_t i = 16; i < kPrefixSize; ++i) bytes[i] = '\xff';
  EXPECT_EQ(Decode(bytes), StoredMiss::kTruncated);
}

TEST(StoredEntryTest, NoiseIsAMiss) {
  std::mt19937 random(1);
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes(random() % 100, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    // With the right start, now and then, to get further.
    const std::string start = SomeBytes().substr(0, random() % 30);
    bytes.replace(0, std::min(start.size(), bytes.size()),
                  start.substr(0, bytes.size()));
    EXPECT_NE(Decode(bytes), StoredMiss::kNone);
  }
}

TEST(StoredEntryTest, EveryReasonHasANameAndASide) {
  for (const StoredMiss foreign :
       {StoredMiss::kVersion, StoredMiss::kFunction, StoredMiss::kGeneration,
        StoredMiss::kMemory, StoredMiss::kNone}) {
    EXPECT_FALSE(IsDamage(foreign)) << StoredMissName(foreign);
  }
  for (const StoredMiss damage :
       {StoredMiss::kMagic, StoredMiss::kTruncated, StoredMiss::kTrailing,
        StoredMiss::kChecksum, StoredMiss::kHeader, StoredMiss::kBody}) {
    EXPECT_TRUE(IsDamage(damage)) << StoredMissName(damage);
  }
}

TEST(StoredEntryTest, TheDocumentsTestVectorIsWhatTheCodeWrites) {
  EXPECT_EQ(absl::BytesToHexString(testing::HeldHex(
                "storage-format.md",
                "StoredEntryTest.TheDocumentsTestVectorIsWhatTheCodeWrites")),
            absl::BytesToHexString(SomeBytes()));
}

}  // namespace
}  // namespace fncache::cache::store
