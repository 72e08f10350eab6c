// SPDX-License-Identifier: Apache-2.0
#include "http2/session_memory.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "http2/recycler.h"

namespace fncache::http2 {
namespace {

// A block as it was asked for, and what was written there.
struct Block {
  char* memory;
  std::string bytes;
};

void Fill(Block* block, size_t size, char with) {
  block->bytes.assign(size, with);
  std::memcpy(block->memory, block->bytes.data(), size);
}

bool IsAsItWas(const Block& block, size_t size) {
  return std::memcmp(block.memory, block.bytes.data(), size) == 0;
}

// Small blocks, more of them than lie in the session itself, and large ones.
TEST(SessionMemoryTest, NoBlockTouchesAnother) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    const auto memory = std::make_unique<SessionMemory>();
    const int set_up = static_cast<int>(random() % 3000);
    std::vector<Block> blocks;
    for (int i = 0; i < 3000; ++i) {
      if (i == set_up) memory->EndSetUp();
      const size_t size = random() % 8 == 0 ? random() % 20000 : random() % 160;
      const char with = static_cast<char>(random());
      const size_t at = blocks.empty() ? 0 : random() % blocks.size();
      if (blocks.empty() || (random() % 2 == 0 && blocks.size() < 100)) {
        blocks.push_back({static_cast<char*>(memory->Allocate(size)), ""});
        Fill(&blocks.back(), size, with);
        EXPECT_EQ(reinterpret_cast<uintptr_t>(blocks.back().memory) %
                      alignof(std::max_align_t),
                  0U);
        continue;
      }
      Block& block = blocks[at];
      ASSERT_TRUE(IsAsItWas(block, block.bytes.size())) << seed << " " << i;
      if (random() % 3 == 0) {
        block.memory =
            static_cast<char*>(memory->Reallocate(block.memory, size));
        ASSERT_TRUE(IsAsItWas(block, std::min(size, block.bytes.size())));
        Fill(&block, size, with);
        continue;
      }
      memory->Free(block.memory);
      block = std::move(blocks.back());
      blocks.pop_back();
    }
    for (const Block& block : blocks) {
      EXPECT_TRUE(IsAsItWas(block, block.bytes.size()));
      memory->Free(block.memory);
    }
  }
}

TEST(SessionMemoryTest, NoneIsABlockToBeginWith) {
  SessionMemory memory;
  memory.Free(nullptr);
  void* const block = memory.Reallocate(nullptr, 10);
  std::memset(block, 1, 10);
  memory.Free(block);
}

// Also after much has come and gone, in any order.
TEST(SessionMemoryTest, SmallBlocksLieTogether) {
  if (!Recycler::kRecycles) GTEST_SKIP() << "a sanitizer watches each block";
  SessionMemory memory;
  std::mt19937 random(1);
  std::vector<char*> blocks;
  const auto drop_all = [&] {
    std::shuffle(blocks.begin(), blocks.end(), random);
    for (char* const block : blocks) memory.Free(block);
    blocks.clear();
  };
  for (int round = 0; round < 1000; ++round) {
    for (int i = 0; i < 40; ++i) {
      blocks.push_back(static_cast<char*>(memory.Allocate(random() % 200)));
    }
    drop_all();
    for (int i = 0; i < 32; ++i) {
      blocks.push_back(static_cast<char*>(memory.Allocate(80)));
      EXPECT_LT(
          static_cast<size_t>(blocks.back() - reinterpret_cast<char*>(&memory)),
          sizeof memory);
    }
    drop_all();
  }
}

}  // namespace
}  // namespace fncache::http2
