// SPDX-License-Identifier: Apache-2.0
#include "proxy/heap_keeper.h"

#include <cstddef>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "tests/common/eventually.h"
#include "tests/common/resident_size.h"

namespace fncache::proxy {
namespace {

size_t ResidentMegabytes() { return ResidentSize() >> 20; }

TEST(HeapKeeperTest, FreeMemoryBelowMemoryInUseIsReturned) {
#if defined(FNCACHE_ASAN) || defined(FNCACHE_TSAN)
  GTEST_SKIP() << "the sanitizers have an allocator of their own";
#endif
  constexpr size_t kBlock = 64 << 10;
  const size_t before = ResidentMegabytes();
  std::vector<std::unique_ptr<char[]>> blocks;
  for (size_t i = 0; i < 2400; ++i) {
    blocks.push_back(std::make_unique<char[]>(kBlock));
  }
  // The last of these stays, so that the C library returns nothing.
  for (size_t i = 0; i + 1 < blocks.size(); ++i) blocks[i].reset();
  ASSERT_GT(ResidentMegabytes(), before + 120);
  const HeapKeeper keeper;
  EXPECT_TRUE(Eventually([&] { return ResidentMegabytes() < before + 40; }))
      << before << " and then " << ResidentMegabytes() << " MB";
}

}  // namespace
}  // namespace fncache::proxy
