// SPDX-License-Identifier: Apache-2.0
#include "common/huge_heap.h"

#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace fncache {
namespace {

// Bytes of the process's heap that huge pages were asked for, from the kernel's
// own account.
size_t AskedFor() {
  std::ifstream maps("/proc/self/smaps");
  size_t bytes = 0;
  size_t size = 0;
  bool heap = false;
  for (std::string line; std::getline(maps, line);) {
    uintptr_t from = 0;
    uintptr_t to = 0;
    char dash = 0;
    std::istringstream range(line);
    if (range >> std::hex >> from >> dash >> to && dash == '-') {
      heap = line.find("[heap]") != std::string::npos;
      size = to - from;
    } else if (heap && line.rfind("VmFlags:", 0) == 0 &&
               line.find(" hg") != std::string::npos) {
      bytes += size;
    }
  }
  return bytes;
}

// Blocks that a heap must grow for; `following` as fills do.
std::vector<void*> Fill(size_t bytes, bool following) {
  constexpr size_t kBlock = 16 << 10;
  std::vector<void*> blocks;
  blocks.reserve(bytes / kBlock);  // before them, not behind some
  for (size_t made = 0; made < bytes; made += kBlock) {
    blocks.push_back(std::malloc(kBlock));
    std::memset(blocks.back(), 1, kBlock);
    if (following) FollowHeap();
  }
  return blocks;
}

void Free(std::vector<void*>* blocks) {
  for (void* block : *blocks) std::free(block);
  blocks->clear();
}

// In a process of its own: what is asked for cannot be taken back.
class HugeHeapTest : public ::testing::Test {
 protected:
  void SetUp() override {
#if defined(FNCACHE_ASAN) || defined(FNCACHE_TSAN)
    GTEST_SKIP() << "the sanitizers have an allocator of their own";
#endif
    if (access("/sys/kernel/mm/transparent_hugepage", F_OK) != 0) {
      GTEST_SKIP() << "this kernel has no huge pages";
    }
  }

  // Runs `check` in a process of its own, since it changes the heap, and
  // returns its complaint.
  static std::string Apart(const std::function<std::string()>& check) {
    int ends[2];
    if (pipe(ends) != 0) return "no pipe";
    const pid_t child = fork();
    if (child == 0) {
      unsetenv("GLIBC_TUNABLES");
      // As the daemon has it.
      mallopt(M_ARENA_MAX, 1);
      mallopt(M_TRIM_THRESHOLD, 16 << 20);
      const std::string complaint = check();
      const ssize_t wrote = write(ends[1], complaint.data(), complaint.size());
      _exit(wrote == static_cast<ssize_t>(complaint.size()) ? 0 : 1);
    }
    close(ends[1]);
    std::string complaint;
    char part[256];
    for (ssize_t n; (n = read(ends[0], part, sizeof(part))) > 0;) {
      complaint.append(part, static_cast<size_t>(n));
    }
    close(ends[0]);
    int status = 0;
    if (waitpid(child, &status, 0) != child || status != 0) {
      complaint += " and it died";
    }
    return complaint;
  }
};

constexpr size_t kMore = size_t{64} << 20;

TEST_F(HugeHeapTest, ALargeHeapIsAskedForAsItGrows) {
  EXPECT_EQ(Apart([]() -> std::string {
              UseHugeHeap();
              Fill(kHugeHeapFrom + kMore, /*following=*/true);
              const size_t once = AskedFor();
              if (once < kHugeHeapFrom + kMore) return "some is not";
              Fill(kMore, /*following=*/true);
              if (AskedFor() < once + kMore) return "its growth is not";
              return "";
            }),
            "");
}

TEST_F(HugeHeapTest, ASmallHeapIsLeftAlone) {
  EXPECT_EQ(Apart([]() -> std::string {
              UseHugeHeap();
              Fill(kHugeHeapFrom / 2, /*following=*/true);
              return AskedFor() == 0 ? "" : "it is asked for";
            }),
            "");
}

TEST_F(HugeHeapTest, WhatWasGivenBackAndTakenAgainIsAskedForAgain) {
  EXPECT_EQ(Apart([]() -> std::string {
              UseHugeHeap();
              // Buffers that reading keeps for the next time do not lie last.
              AskedFor();
              std::vector<void*> kept =
                  Fill(kHugeHeapFrom + kMore, /*following=*/true);
              std::vector<void*> given = Fill(4 * kMore, /*following=*/true);
              const size_t most = AskedFor();
              Free(&given);
              malloc_trim(0);
              if (AskedFor() + 3 * kMore > most) return "none was given back";
              Fill(4 * kMore, /*following=*/true);
              return AskedFor() + kMore > most ? "" : "some is not";
            }),
            "");
}

TEST_F(HugeHeapTest, NothingIsAskedForUnlessItIsUsed) {
  EXPECT_EQ(Apart([]() -> std::string {
              Fill(kHugeHeapFrom + kMore, /*following=*/true);
              return AskedFor() == 0 ? "" : "it is asked for";
            }),
            "");
}

TEST_F(HugeHeapTest, WhoDecidesByTheEnvironmentHasDecided) {
  EXPECT_EQ(Apart([]() -> std::string {
              setenv("GLIBC_TUNABLES", "glibc.malloc.hugetlb=0", 1);
              UseHugeHeap();
              Fill(kHugeHeapFrom + kMore, /*following=*/true);
              return AskedFor() == 0 ? "" : "it is asked for";
            }),
            "");
}

}  // namespace
}  // namespace fncache
