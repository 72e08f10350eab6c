// SPDX-License-Identifier: Apache-2.0
#include "cache/store/chunked_array.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "gtest/gtest.h"

namespace fncache::cache::store {
namespace {

using Array = ChunkedArray<uint32_t, 4, 32>;
constexpr uint64_t kOverhead = 16;

TEST(ChunkedArrayTest, WhatItHoldsStaysWhereItIsAsItGrows) {
  Array array;
  std::vector<uint32_t*> places;
  for (uint32_t i = 0; i < 5000; ++i) {
    if (i == array.room()) array.Grow();
    ASSERT_LT(i, array.room());
    array[i] = i;
    places.push_back(&array[i]);
  }
  for (uint32_t i = 0; i < 5000; ++i) {
    ASSERT_EQ(&array[i], places[i]);
    ASSERT_EQ(array[i], i) << "no two have one place";
  }
}

TEST(ChunkedArrayTest, AtMostAnEighthOrOneOfTheFirstChunksIsUnused) {
  Array array;
  for (size_t used = 1; used < 5000; ++used) {
    if (used > array.room()) array.Grow();
    ASSERT_LE(array.room() - used, std::max<size_t>(4, used / 8)) << used;
  }
}

TEST(ChunkedArrayTest, GrowthIsWhatGrowingAdds) {
  Array array;
  EXPECT_EQ(array.Bytes(kOverhead), 0);
  for (int i = 0; i < 200; ++i) {
    const uint64_t expected = array.Bytes(kOverhead) + array.Growth(kOverhead);
    array.Grow();
    ASSERT_EQ(array.Bytes(kOverhead), expected);
  }
}

TEST(ChunkedArrayTest, ShrinkingGivesBackAllButOneChunkAndKeepsTheRest) {
  Array array;
  for (uint32_t i = 0; i < 5000; ++i) {
    if (i == array.room()) array.Grow();
    array[i] = i;
  }
  const uint64_t most = array.Bytes(kOverhead);
  for (size_t used = 5000; used-- > 0;) {
    array.ShrinkTo(used);
    ASSERT_GT(array.room(), used);
    ASSERT_LE(array.room() - used, 2 * std::max<size_t>(4, used / 8 + 4))
        << used;
    if (used > 0) {
      ASSERT_EQ(array[used - 1], used - 1);
    }
  }
  EXPECT_LT(array.Bytes(kOverhead), most / 4);
}

TEST(ChunkedArrayTest, ElementsAreMadeWithTheirChunkAndGoWithIt) {
  auto counted = std::make_shared<int>(0);
  ChunkedArray<std::shared_ptr<int>, 2, 8> array;
  for (size_t i = 0; i < 100; ++i) {
    if (i == array.room()) array.Grow();
    ASSERT_EQ(array[i], nullptr);
    array[i] = counted;
  }
  EXPECT_EQ(counted.use_count(), 101);
  array.ShrinkTo(0);
  EXPECT_LE(counted.use_count(), 1 + 2);
}

}  // namespace
}  // namespace fncache::cache::store
