// SPDX-License-Identifier: Apache-2.0
// Values of the shared tier: an entry, mark or record comes back as it was, and
// nothing that another hand made or moved is genuine.
#include "cache/store/shared_value.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/cache/store/held_hex.h"

namespace fncache::cache::store {
namespace {

constexpr absl::string_view kSecret = "0123456789abcdef0123456789abcdef";
const key::Key kKey{0x0123456789abcdef, 0xfedcba9876543210};
const absl::Time kStarted = absl::FromUnixNanos(1'750'000'000'000'000'001);

const Seal& TheSeal() {
  static const Seal* const seal = new Seal(kSecret, "fncache");
  return *seal;
}

absl::optional<StoredScope> Scopes(absl::string_view function) {
  if (function == "function-a") return StoredScope{3, "rev-1"};
  return absl::nullopt;
}

// The entry of the document's vector.
EntryInfo SomeInfo() {
  EntryInfo info;
  info.started = kStarted;
  info.arrived = kStarted + absl::Milliseconds(120);
  info.lifetime = absl::Seconds(60);
  info.ttl = absl::Seconds(90) + absl::Nanoseconds(5);
  info.cost = absl::Milliseconds(120);
  info.secrets = true;
  return info;
}
EntryRef SomeEntry() { return Entry::Create(SomeInfo(), "rest", {"body"}); }

std::string SomeValue(const Entry& entry = *SomeEntry()) {
  return EncodeShared(TheSeal(), kKey, "function-a", "rev-1", entry);
}

SharedValue Decode(absl::string_view bytes, const Seal& seal = TheSeal(),
                   const key::Key& key = kKey) {
  const SharedValue value = DecodeShared(seal, key, bytes, Scopes);
  if (!value.genuine) {
    EXPECT_FALSE(value.mark);
    EXPECT_FALSE(value.stored.entry);
    EXPECT_EQ(absl::StrCat(value.function, value.generation), "");
  }
  return value;
}
bool IsGenuine(absl::string_view bytes) { return Decode(bytes).genuine; }

// A value as a hand with the secret would make it: any header, any message.
std::string Made(absl::string_view header, absl::string_view message) {
  return absl::StrCat(
      header,
      TheSeal().Close(message, absl::StrCat("1", kKey.Bytes(), header)));
}

void ExpectSame(const Entry& got, const Entry& want) {
  const EntryInfo a = got.info();
  const EntryInfo b = want.info();
  EXPECT_EQ(a.started, b.started);
  EXPECT_EQ(a.arrived, b.arrived);
  EXPECT_EQ(a.lifetime, b.lifetime);
  EXPECT_EQ(got.kept_until(), want.kept_until());
  EXPECT_EQ(a.ttl, b.ttl);
  EXPECT_EQ(a.cost, b.cost);
  EXPECT_EQ(a.secrets, b.secrets);
  EXPECT_EQ(a.drift, b.drift);
  EXPECT_EQ(got.meta_rest(), want.meta_rest());
  EXPECT_EQ(got.body(), want.body());
}

// ------------------------------------------------------------------- Entries

TEST(SharedValueTest, TheDocumentsEntryOpens) {
  const std::string bytes = testing::HeldHex(
      "storage-format.md", "SharedValueTest.TheDocumentsEntryOpens");
  const SharedValue value = Decode(bytes);
  ASSERT_TRUE(value.genuine);
  EXPECT_FALSE(value.mark);
  EXPECT_EQ(value.started, kStarted);
  EXPECT_EQ(value.function, "function-a");
  EXPECT_EQ(value.generation, "rev-1");
  ASSERT_TRUE(value.stored.entry);
  EXPECT_EQ(value.stored.entry->function(), 3u);
  ExpectSame(*value.stored.entry, *SomeEntry());
  // The code writes another nonce, and so other bytes after it.
  EXPECT_EQ(SomeValue().size(), bytes.size());
  EXPECT_EQ(SomeValue().substr(0, kClearHeader), bytes.substr(0, kClearHeader));
}

TEST(SharedValueTest, EveryFieldOfAnEntryComesBack) {
  std::vector<EntryInfo> infos(5, SomeInfo());
  infos[1].retention = absl::Hours(1);
  infos[2].drift = key::Key{7, 9};
  infos[3].ttl.reset();
  infos[3].secrets = false;
  infos[4].retention = absl::Hours(1);
  infos[4].drift = key::Key{0, 1};
  for (const EntryInfo& info : infos) {
    for (const std::string& body :
         {std::string(), std::string("body"), std::string(100'000, 'x')}) {
      const EntryRef entry = Entry::Create(info, "rest", {body});
      const std::string bytes = SomeValue(*entry);
      const SharedValue value = Decode(bytes);
      ASSERT_TRUE(value.genuine);
      EXPECT_EQ(value.started, info.started);
      ASSERT_TRUE(value.stored.entry);
      ExpectSame(*value.stored.entry, *entry);
      // Compressed, as on disk, and little larger than there.
      EXPECT_LT(bytes.size(), 2000u);
      EXPECT_EQ(bytes.size(),
                EncodeStored(kKey, "function-a", "rev-1", *entry).size() + 61);
    }
  }
}

TEST(SharedValueTest, EntriesForOthersAreGenuineMisses) {
  const auto decode = [](absl::string_view function,
                         absl::string_view generation) {
    return Decode(
        EncodeShared(TheSeal(), kKey, function, generation, *SomeEntry()));
  };
  const SharedValue function = decode("function-z", "rev-9");
  EXPECT_TRUE(function.genuine);
  EXPECT_EQ(function.stored.miss, StoredMiss::kFunction);
  EXPECT_EQ(function.started, kStarted);
  EXPECT_EQ(function.function, "function-z");
  EXPECT_EQ(function.generation, "rev-9");
  const SharedValue generation = decode("function-a", "rev-2");
  EXPECT_TRUE(generation.genuine);
  EXPECT_EQ(generation.stored.miss, StoredMiss::kGeneration);
  EXPECT_EQ(generation.generation, "rev-2");
}

TEST(SharedValueTest, ALaterVersionOfTheStoredFormIsAGenuineMiss) {
  std::string stored = EncodeStored(kKey, "function-a", "rev-1", *SomeEntry());
  stored[7] = 3;
  const SharedValue value =
      Decode(Made(absl::StrCat("1", StartedText(kStarted)), stored));
  EXPECT_TRUE(value.genuine);
  EXPECT_EQ(value.stored.miss, StoredMiss::kVersion);
  EXPECT_FALSE(value.stored.entry);
  EXPECT_EQ(value.started, kStarted);
}

TEST(SharedValueTest, ValuesDifferInTheirBeginnings) {
  const std::string bytes = SomeValue();
  EXPECT_NE(bytes.substr(0, kValueBeginning),
            SomeValue().substr(0, kValueBeginning));
}

// --------------------------------------------------------------------- Marks

TEST(SharedValueTest, TheDocumentsMarkOpens) {
  const std::string bytes = testing::HeldHex(
      "storage-format.md", "SharedValueTest.TheDocumentsMarkOpens");
  for (const std::string& mark :
       {bytes, EncodeMark(TheSeal(), kKey, kStarted)}) {
    const SharedValue value = Decode(mark);
    EXPECT_TRUE(value.genuine);
    EXPECT_TRUE(value.mark);
    EXPECT_EQ(value.started, kStarted);
    EXPECT_FALSE(value.stored.entry);
    EXPECT_EQ(mark.substr(0, kClearHeader), bytes.substr(0, kClearHeader));
  }
}

TEST(SharedValueTest, ClearHeadersCompareAsTimesDo) {
  const absl::Time times[] = {absl::UnixEpoch(),
                              absl::FromUnixNanos(1),
                              absl::FromUnixNanos(9),
                              absl::FromUnixNanos(10),
                              kStarted,
                              kStarted + absl::Nanoseconds(1),
                              absl::FromUnixNanos(INT64_MAX)};
  std::string before;
  for (const absl::Time time : times) {
    const std::string text = StartedText(time);
    EXPECT_EQ(text.size(), kClearHeader - 1);
    EXPECT_LT(before, text);
    before = text;
    EXPECT_EQ(Decode(EncodeMark(TheSeal(), kKey, time)).started, time);
  }
  EXPECT_EQ(StartedText(absl::UnixEpoch()), "00000000000000000000");
  EXPECT_EQ(StartedText(absl::InfinitePast()), StartedText(absl::UnixEpoch()));
  EXPECT_EQ(StartedText(absl::FromUnixNanos(-5)),
            StartedText(absl::UnixEpoch()));
  EXPECT_EQ(StartedText(absl::InfiniteFuture()), "09223372036854775807");
}

// ----------------------------------------------------------- What is rejected

TEST(SharedValueTest, NoChangedBitIsGenuine) {
  const std::string body(2000, 'x');
  for (const std::string& bytes :
       {SomeValue(), SomeValue(*Entry::Create(SomeInfo(), "", {body})),
        EncodeMark(TheSeal(), kKey, kStarted)}) {
    ASSERT_TRUE(IsGenuine(bytes));
    for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
      std::string flipped = bytes;
      flipped[bit / 8] ^= 1 << (bit % 8);
      EXPECT_FALSE(IsGenuine(flipped)) << bit;
    }
  }
}

TEST(SharedValueTest, NothingCutOrExtendedIsGenuine) {
  const std::string bytes = SomeValue();
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(IsGenuine(bytes.substr(0, size))) << size;
    EXPECT_FALSE(IsGenuine(bytes.substr(size + 1))) << size;
  }
  EXPECT_FALSE(IsGenuine(bytes + '\0'));
  EXPECT_FALSE(IsGenuine(bytes + bytes));
}

TEST(SharedValueTest, NothingOfAnotherKeySecretOrPrefixIsGenuine) {
  const key::Key other{kKey.high, kKey.low + 1};
  const Seal secret("fedcba9876543210fedcba9876543210", "fncache");
  const Seal prefix(kSecret, "fncachf");
  for (const std::string& bytes :
       {SomeValue(), EncodeMark(TheSeal(), kKey, kStarted)}) {
    EXPECT_TRUE(Decode(bytes).genuine);
    EXPECT_FALSE(Decode(bytes, TheSeal(), other).genuine);
    EXPECT_FALSE(Decode(bytes, secret).genuine);
    EXPECT_FALSE(Decode(bytes, prefix).genuine);
  }
}

TEST(SharedValueTest, ARaisedOrSwappedClearHeaderIsNotGenuine) {
  const std::string bytes = SomeValue();
  const std::string later =
      absl::StrCat("1", StartedText(kStarted + absl::Seconds(1)));
  EXPECT_FALSE(IsGenuine(later + bytes.substr(kClearHeader)));
  const std::string mark =
      EncodeMark(TheSeal(), kKey, kStarted + absl::Seconds(1));
  EXPECT_FALSE(
      IsGenuine(mark.substr(0, kClearHeader) + bytes.substr(kClearHeader)));
  EXPECT_FALSE(
      IsGenuine(bytes.substr(0, kClearHeader) + mark.substr(kClearHeader)));
  // Not even if the secret's owner sealed the two apart.
  const std::string stored =
      EncodeStored(kKey, "function-a", "rev-1", *SomeEntry());
  EXPECT_FALSE(IsGenuine(Made(later, stored)));
  EXPECT_FALSE(IsGenuine(Made(
      absl::StrCat("1", StartedText(kStarted - absl::Seconds(1))), stored)));
  EXPECT_TRUE(
      IsGenuine(Made(absl::StrCat("1", StartedText(kStarted)), stored)));
}

TEST(SharedValueTest, SealedDamageIsNotGenuine) {
  const std::string header = absl::StrCat("1", StartedText(kStarted));
  const std::string stored =
      EncodeStored(kKey, "function-a", "rev-1", *SomeEntry());
  std::string checksum = stored;
  checksum.back() ^= 1;
  const std::string other_key =
      EncodeStored(key::Key{1, 2}, "function-a", "rev-1", *SomeEntry());
  for (const std::string& message :
       {std::string(), std::string("purge"), std::string("purged "),
        std::string("fncache"), checksum, other_key, stored + '\0',
        stored.substr(0, stored.size() - 1)}) {
    EXPECT_FALSE(IsGenuine(Made(header, message))) << message.size();
  }
}

TEST(SharedValueTest, AHeaderThatNoTimeHasIsNotGenuine) {
  const std::string good = absl::StrCat("1", StartedText(kStarted));
  ASSERT_TRUE(IsGenuine(Made(good, "purged")));
  for (const absl::string_view header :
       {"100000000000000000000x", "1-0000000000000000001",
        "1 0000000000000000001", "1+0000000000000000001",
        "199999999999999999999", "109223372036854775808",
        "10000000000000000001 ", "200000000000000000001",
        "1xxxxxxxxxxxxxxxxxxxx", "1", ""}) {
    EXPECT_FALSE(IsGenuine(Made(header, "purged"))) << header;
  }
}

// ---------------------------------------------------------------- The record

bool Same(const StoredBans& a, const StoredBans& b) {
  return a.all == b.all && a.functions == b.functions &&
         a.generations == b.generations && a.keys.size() == b.keys.size() &&
         std::all_of(a.keys.begin(), a.keys.end(), [&b](const auto& ban) {
           const auto it = b.keys.find(ban.first);
           return it != b.keys.end() && it->second.times == ban.second.times &&
                  it->second.until == ban.second.until;
         });
}

// The bans of the document's vector.
StoredBans SomeBans() {
  StoredBans bans;
  bans.all.purged = 1'750'000'000'000'000'001;
  bans.functions["function-a"].purged = 1'750'000'001'000'000'000;
  bans.generations[{"function-a", "rev-1"}].stale = 1'750'000'002'000'000'000;
  StoredKeyBan& ban = bans.keys[kKey];
  ban.times.purged = 1'750'000'003'000'000'000;
  ban.times.stale = 1'750'000'004'000'000'000;
  ban.until = 1'750'000'005'000'000'000;
  return bans;
}

TEST(SharedValueTest, TheDocumentsRecordOpens) {
  const std::string bytes = testing::HeldHex(
      "storage-format.md", "SharedValueTest.TheDocumentsRecordOpens");
  const auto bans = DecodeRecord(TheSeal(), bytes);
  ASSERT_TRUE(bans.ok()) << bans.status();
  EXPECT_TRUE(Same(*bans, SomeBans()));
  EXPECT_EQ(EncodeRecord(TheSeal(), SomeBans()).size(), bytes.size());
}

TEST(SharedValueTest, RecordsComeBackWithManyKeysAndWithNone) {
  std::mt19937_64 random(5);
  StoredBans many = SomeBans();
  while (many.keys.size() < 10'000) {
    StoredKeyBan& ban = many.keys[key::Key{random(), random()}];
    ban.times.purged = static_cast<int64_t>(random() % INT64_MAX) + 1;
    ban.until = ban.times.purged / 2;
  }
  for (const StoredBans& bans : {StoredBans(), SomeBans(), many}) {
    const std::string bytes = EncodeRecord(TheSeal(), bans);
    const auto read = DecodeRecord(TheSeal(), bytes);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_TRUE(Same(*read, bans));
    EXPECT_LT(bytes.size(), 1u << 20);
    const std::string again = EncodeRecord(TheSeal(), bans);
    EXPECT_NE(bytes.substr(0, kRecordBeginning),
              again.substr(0, kRecordBeginning));
  }
}

TEST(SharedValueTest, NoOtherRecordOpens) {
  const std::string bytes = EncodeRecord(TheSeal(), SomeBans());
  const auto opens = [](absl::string_view record,
                        const Seal& seal = TheSeal()) {
    const auto bans = DecodeRecord(seal, record);
    EXPECT_TRUE(bans.ok() || absl::IsDataLoss(bans.status()));
    return bans.ok();
  };
  ASSERT_TRUE(opens(bytes));
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] ^= 1 << (bit % 8);
    EXPECT_FALSE(opens(flipped)) << bit;
  }
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(opens(bytes.substr(0, size))) << size;
  }
  EXPECT_FALSE(opens(bytes + '\0'));
  EXPECT_FALSE(opens(bytes, Seal(std::string(32, 'x'), "fncache")));
  EXPECT_FALSE(opens(bytes, Seal(kSecret, "other")));
  // An entry, a mark, and bans of a file, sealed and plain.
  EXPECT_FALSE(opens(SomeValue()));
  EXPECT_FALSE(opens(EncodeMark(TheSeal(), kKey, kStarted)));
  EXPECT_FALSE(opens(EncodeBans(SomeBans())));
  EXPECT_FALSE(opens("1" + TheSeal().Close(EncodeBans(SomeBans()), "")));
  EXPECT_FALSE(opens("1" + TheSeal().Close("no bans", "1bans")));
  EXPECT_FALSE(IsGenuine(bytes));
}

// -------------------------------------------------------------------- Random

TEST(SharedValueTest, AnyEntryComesBackAndNoOtherBytesDo) {
  std::mt19937_64 random(37);
  const auto draw = [&random](uint64_t n) { return random() % n; };
  const auto text = [&](size_t most) {
    std::string text(draw(most), '\0');
    const uint64_t letters = 1 + draw(256);
    for (char& c : text) c = static_cast<char>(draw(letters));
    return text;
  };
  for (int round = 0; round < 1000; ++round) {
    EntryInfo info;
    info.started = absl::FromUnixNanos(draw(INT64_MAX / 2));
    info.arrived = info.started + absl::Nanoseconds(draw(1'000'000'000'000));
    info.lifetime = absl::Nanoseconds(1 + draw(1'000'000'000'000));
    if (draw(2) == 0) info.retention = absl::Nanoseconds(draw(INT64_MAX / 4));
    if (draw(2) == 0) info.ttl = absl::Nanoseconds(draw(INT64_MAX));
    if (draw(2) == 0) info.drift = key::Key{random(), random()};
    info.cost = absl::Microseconds(draw(1'000'000));
    info.secrets = draw(2) == 0;
    const EntryRef entry = Entry::Create(info, text(20), {text(5000)});
    const key::Key key{random(), random()};
    const std::string function = text(30);
    const std::string generation = text(30);
    const auto scopes = [&](absl::string_view name) {
      EXPECT_EQ(name, function);
      return absl::make_optional(StoredScope{9, generation});
    };
    const std::string bytes =
        EncodeShared(TheSeal(), key, function, generation, *entry);
    EXPECT_LE(bytes.size(),
              EncodeStored(key, function, generation, *entry).size() + 128);
    const SharedValue value = DecodeShared(TheSeal(), key, bytes, scopes);
    ASSERT_TRUE(value.genuine) << round;
    ASSERT_TRUE(value.stored.entry) << round;
    EXPECT_EQ(value.started, info.started);
    EXPECT_EQ(value.function, function);
    EXPECT_EQ(value.generation, generation);
    ExpectSame(*value.stored.entry, *entry);
    std::string bad = bytes;
    bad[draw(bad.size())] ^= static_cast<char>(1 + draw(255));
    EXPECT_FALSE(DecodeShared(TheSeal(), key, bad, scopes).genuine) << round;
    EXPECT_FALSE(
        DecodeShared(TheSeal(), key::Key{random(), random()}, bytes, scopes)
            .genuine);
  }
}

}  // namespace
}  // namespace fncache::cache::store
