// SPDX-License-Identifier: Apache-2.0
#include "text/key_order.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace fncache::text {
namespace {

// Every key of the list is written before all that follow.
void ExpectInOrder(const std::vector<std::string>& keys) {
  for (size_t i = 0; i < keys.size(); ++i) {
    EXPECT_FALSE(KeyLess(keys[i], keys[i]));
    for (size_t j = i + 1; j < keys.size(); ++j) {
      EXPECT_TRUE(KeyLess(keys[i], keys[j])) << keys[i] << " " << keys[j];
      EXPECT_FALSE(KeyLess(keys[j], keys[i])) << keys[i] << " " << keys[j];
    }
  }
}

TEST(KeyOrderTest, RunsOfDigitsGoByTheirValue) {
  ExpectInOrder({"a", "a1", "a2", "a10", "a100", "aa"});
  ExpectInOrder({"a1-b", "a1b", "a2-b"});
  ExpectInOrder({"1", "2", "10"});
}

TEST(KeyOrderTest, OfEqualValuesTheShorterRunIsFirst) {
  ExpectInOrder({"a1", "a01", "a001"});
  ExpectInOrder({"a1.0", "a1.00", "a01.0"});
}

TEST(KeyOrderTest, AZeroWithinANumberIsNoLeadingOne) {
  ExpectInOrder({"a1", "a10", "a11", "a100", "a101", "a110"});
  ExpectInOrder({"a00", "a01"});
}

TEST(KeyOrderTest, ThreeKeysCanMakeACircle) {
  EXPECT_TRUE(KeyLess("a1b", "a2b"));
  EXPECT_TRUE(KeyLess("a2b", "a10b"));
  EXPECT_TRUE(KeyLess("a10b", "a1b"));  // a letter follows what is none
}

TEST(KeyOrderTest, LettersFollowAllElse) {
  ExpectInOrder({"", "-", "0", "A", "Z", "a", "b"});
  ExpectInOrder({"app-name", "appName", "appname"});
  ExpectInOrder({"example.org/a", "exampleorg"});
}

TEST(KeyOrderTest, LettersAndDigitsOutsideAsciiAreSuch) {
  ExpectInOrder({"_", "z", "\xC3\xA9", "\xE4\xB8\xAD"});  // z é 中
  ExpectInOrder({"a\xE2\x80\x94", "ab"});                 // a—
  // Arabic digits are digits, but count by their distance from '0'.
  ExpectInOrder({"a5", "a\xD9\xA3"});
  ExpectInOrder({"\xC3\xA8", "\xC3\xA9"});  // è é differ in their second byte
}

}  // namespace
}  // namespace fncache::text
