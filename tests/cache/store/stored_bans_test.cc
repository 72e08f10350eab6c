// SPDX-License-Identifier: Apache-2.0
// The file of bans: what is written is what is read, and nothing else is.
#include "cache/store/stored_bans.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"
#include "tests/cache/store/held_hex.h"

namespace fncache::cache::store {
namespace {

StoredBans Example() {
  StoredBans bans;
  bans.all.purged = 1'750'000'000'000'000'001;
  bans.functions["function-a"].purged = 1'750'000'001'000'000'000;
  bans.generations[{"function-a", "rev-1"}].stale = 1'750'000'002'000'000'000;
  StoredKeyBan& ban =
      bans.keys[key::Key{0x0123456789abcdef, 0xfedcba9876543210}];
  ban.times.purged = 1'750'000'003'000'000'000;
  ban.times.stale = 1'750'000'004'000'000'000;
  ban.until = 1'750'000'005'000'000'000;
  return bans;
}

TEST(StoredBansTest, NothingIsWrittenAndRead) {
  const auto read = DecodeBans(EncodeBans(StoredBans()));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(*read == StoredBans());
}

TEST(StoredBansTest, WhatIsWrittenIsRead) {
  const auto read = DecodeBans(EncodeBans(Example()));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(*read == Example());
}

TEST(StoredBansTest, TheDocumentsTestVectorIsWhatTheCodeWrites) {
  EXPECT_EQ(absl::BytesToHexString(testing::HeldHex(
                "storage-format.md",
                "StoredBansTest.TheDocumentsTestVectorIsWhatTheCodeWrites")),
            absl::BytesToHexString(EncodeBans(Example())));
}

// Every change of a single bit, every cut and every longer file is damage, so
// that it is taken for a ban of everything.
TEST(StoredBansTest, NothingElseIsRead) {
  const std::string good = EncodeBans(Example());
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_TRUE(absl::IsDataLoss(DecodeBans(bad).status())) << bit;
  }
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(DecodeBans(good.substr(0, size)).ok()) << size;
  }
  EXPECT_FALSE(DecodeBans(good + '\0').ok());
  EXPECT_FALSE(DecodeBans(std::string(good.size(), '\0')).ok());
}

TEST(StoredBansTest, AnyBansComeBack) {
  std::mt19937_64 random(7);
  const auto draw = [&random](uint64_t n) { return random() % n; };
  for (int round = 0; round < 2000; ++round) {
    const auto time = [&]() -> int64_t {
      return draw(3) == 0 ? kNeverBanned
                          : static_cast<int64_t>(1 + random() % INT64_MAX);
    };
    const auto text = [&] {
      std::string text;
      for (uint64_t n = draw(6); n > 0; --n) {
        text.push_back(static_cast<char>(random()));
      }
      return text;
    };
    StoredBans bans;
    if (draw(2) == 0) bans.all = {time(), time()};
    for (uint64_t n = draw(4); n > 0; --n) {
      const BanTimes times = {time(), time()};
      if (!times.empty()) bans.functions[text()] = times;
    }
    for (uint64_t n = draw(4); n > 0; --n) {
      const BanTimes times = {time(), time()};
      if (!times.empty()) bans.generations[{text(), text()}] = times;
    }
    for (uint64_t n = draw(4); n > 0; --n) {
      StoredKeyBan ban;
      ban.times = {time(), time()};
      ban.until = static_cast<int64_t>(draw(INT64_MAX));
      if (!ban.times.empty()) bans.keys[key::Key{random(), random()}] = ban;
    }
    const std::string bytes = EncodeBans(bans);
    const auto read = DecodeBans(bytes);
    ASSERT_TRUE(read.ok()) << round << read.status();
    ASSERT_TRUE(*read == bans) << round;
    std::string bad = bytes;
    bad[draw(bad.size())] ^= static_cast<char>(1 + draw(255));
    ASSERT_FALSE(DecodeBans(bad).ok()) << round;
  }
}

}  // namespace
}  // namespace fncache::cache::store
