// SPDX-License-Identifier: Apache-2.0
// The walks over a request do some things in different ways on different
// machines: they copy and check 64 bytes, and put map entries in order. Each
// way is a struct with the same functions; code that calls many of them is a
// template over it, and compiled for each (struct_walk.cc).
//
// Pure functions; thread-safe.
#ifndef FNCACHE_CACHE_KEY_WALK_MACHINE_H_
#define FNCACHE_CACHE_KEY_WALK_MACHINE_H_

#include <cstddef>
#include <cstdint>
#include <limits>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "absl/base/internal/endian.h"
#include "absl/base/optimization.h"

namespace fncache::cache::key {

// Above this count, comparing each word with each does not pay.
inline constexpr size_t kMostRanked = 128;
// Rank may write this many words behind the last one.
inline constexpr size_t kRankPadding = 8;

// Every machine has these functions:
// - Copy copies 64 bytes; a bit of what it returns is set if the byte is not
//   ASCII.
// - Low keeps the bits of `bits` below `count`, which is in its low 8 bits.
// - Rank puts at `ranked` where each of the `count` words (up to kMostRanked)
//   belongs by their upper halves. It may write eight more places behind
//   those, and writes eight words behind the last one. It says false if two
//   of the halves are the same, and may if one is the greatest that there is.

// Any machine.
struct AnyMachine {
  static uint64_t Copy(const char* from, char* to) {
#if defined(__x86_64__)
    const auto load = [from](int i) {
      return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from) + i);
    };
    const auto store = [to](int i, __m128i block) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to) + i, block);
    };
    const auto high = [](__m128i block) {
      return uint64_t{static_cast<uint32_t>(_mm_movemask_epi8(block))};
    };
    const __m128i a = load(0);
    const __m128i b = load(1);
    const __m128i c = load(2);
    const __m128i d = load(3);
    store(0, a);
    store(1, b);
    store(2, c);
    store(3, d);
    return high(a) | high(b) << 16 | high(c) << 32 | high(d) << 48;
#else
    uint64_t high = 0;
    for (int i = 0; i < 8; ++i) {
      const uint64_t block = absl::little_endian::Load64(from + 8 * i);
      absl::little_endian::Store64(to + 8 * i, block);
      // The high bit of each byte, gathered in the top byte.
      high |= (((block >> 7) & 0x0101010101010101u) * 0x0102040810204080u) >>
              56 << (8 * i);
    }
    return high;
#endif
  }
  static uint64_t Low(uint64_t bits, uint64_t count) {
    count &= 0xff;
    return count < 64 ? bits & ((uint64_t{1} << count) - 1) : bits;
  }
  static bool Rank(int64_t* words, size_t count, uint32_t* ranked) {
    size_t sum = 0;
    for (size_t i = 0; i < count; ++i) {
      size_t rank = 0;
      for (size_t j = 0; j < count; ++j) {
        rank += words[j] >> 32 < words[i] >> 32 ? 1 : 0;
      }
      ranked[rank] = static_cast<uint32_t>(i);
      sum += rank;
    }
    // Unless two are the same, each rank was there once.
    return sum == count * (count - 1) / 2;
  }
};

#if defined(__x86_64__)
#define FNCACHE_AVX2 __attribute__((target("avx2,bmi,bmi2,popcnt")))

struct Avx2Machine {
  FNCACHE_AVX2 static uint64_t Copy(const char* from, char* to) {
    const auto* const blocks = reinterpret_cast<const __m256i*>(from);
    const __m256i a = _mm256_loadu_si256(blocks);
    const __m256i b = _mm256_loadu_si256(blocks + 1);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), a);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to) + 1, b);
    return static_cast<uint32_t>(_mm256_movemask_epi8(a)) |
           uint64_t{static_cast<uint32_t>(_mm256_movemask_epi8(b))} << 32;
  }
  FNCACHE_AVX2 static uint64_t Low(uint64_t bits, uint64_t count) {
    return _bzhi_u64(bits, static_cast<uint32_t>(count));
  }
  FNCACHE_AVX2 static bool Rank(int64_t* words, size_t count,
                                uint32_t* ranked) {
    constexpr int64_t kAbove = std::numeric_limits<int64_t>::max();
    for (size_t i = 0; i < 8; ++i) words[count + i] = kAbove;
    // Those that fill up the last eight have the rank behind the last.
    const size_t filled = (count + 7) & ~size_t{7};
    size_t sum = 0;
    if (ABSL_PREDICT_TRUE(filled == 8)) {
      const __m256i all = Orders8(words);
      for (size_t i = 0; i < 8; ++i) {
        const size_t rank = Below(all, words[i]);
        ranked[rank] = static_cast<uint32_t>(i);
        sum += rank;
      }
    } else {
      __m256i eights[kMostRanked / 8];
      for (size_t i = 0; i < filled; i += 8) {
        eights[i / 8] = Orders8(words + i);
      }
      for (size_t i = 0; i < count; ++i) {
        size_t rank = 0;
        for (size_t j = 0; j < filled / 8; ++j) {
          rank += Below(eights[j], words[i]);
        }
        ranked[rank] = static_cast<uint32_t>(i);
        sum += rank;
      }
      sum += (filled - count) * count;
    }
    // Unless two are the same, each rank was there once.
    return sum == count * (count - 1) / 2 + (filled - count) * count;
  }

 private:
  typedef int32_t Half __attribute__((may_alias));

  // One by one, as they were just written: until they are in its cache no
  // machine finds more than one at once.
  FNCACHE_AVX2 static __m256i Orders8(const int64_t* words) {
    const auto* const halves =
        reinterpret_cast<const volatile Half*>(words) + 1;
    __m128i low = _mm_cvtsi32_si128(halves[0]);
    low = _mm_insert_epi32(low, halves[2], 1);
    low = _mm_insert_epi32(low, halves[4], 2);
    low = _mm_insert_epi32(low, halves[6], 3);
    __m128i high = _mm_cvtsi32_si128(halves[8]);
    high = _mm_insert_epi32(high, halves[10], 1);
    high = _mm_insert_epi32(high, halves[12], 2);
    high = _mm_insert_epi32(high, halves[14], 3);
    return _mm256_set_m128i(high, low);
  }
  FNCACHE_AVX2 static uint32_t Below(__m256i eight, int64_t word) {
    const __m256i own = _mm256_set1_epi32(static_cast<int32_t>(word >> 32));
    return _mm_popcnt_u32(static_cast<uint32_t>(_mm256_movemask_ps(
        _mm256_castsi256_ps(_mm256_cmpgt_epi32(own, eight)))));
  }
};

#endif

enum class Machine : uint8_t { kAny, kAvx2 };

// Which of them this program runs on.
inline Machine ThisMachine() {
#if defined(__x86_64__)
  static const bool has_avx2 =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
      __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
  return has_avx2 ? Machine::kAvx2 : Machine::kAny;
#else
  return Machine::kAny;
#endif
}

// Calls Rank of this machine.
inline bool RankWords(int64_t* words, size_t count, uint32_t* ranked) {
#if defined(__x86_64__)
  if (ThisMachine() == Machine::kAvx2) {
    return Avx2Machine::Rank(words, count, ranked);
  }
#endif
  return AnyMachine::Rank(words, count, ranked);
}

}  // namespace fncache::cache::key

#endif  // FNCACHE_CACHE_KEY_WALK_MACHINE_H_
