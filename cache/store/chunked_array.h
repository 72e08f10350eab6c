// SPDX-License-Identifier: Apache-2.0
// ChunkedArray: an array that grows and shrinks at its end without ever moving
// what it holds, and whose memory follows its size.
//
// It lies in chunks: the first sixteen have `kFirst` elements, and after them
// come eight of each size, which doubles up to `kMost` elements. So at most an
// eighth of a large array is unused (of a small one at most `kFirst` elements),
// and the list of chunks stays short enough for the processor's caches,
// whatever the array's size: a look-up among millions of elements waits for
// memory once, not twice.
//
// Elements are made when their chunk is, and stay as they are left. Not
// thread-safe.
#ifndef FNCACHE_CACHE_STORE_CHUNKED_ARRAY_H_
#define FNCACHE_CACHE_STORE_CHUNKED_ARRAY_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace fncache::cache::store {

template <typename T, size_t kFirst, size_t kMost>
class ChunkedArray {
 public:
  static_assert((kFirst & (kFirst - 1)) == 0 && (kMost & (kMost - 1)) == 0 &&
                    kFirst <= kMost,
                "powers of two");

  // Precondition: i < room().
  T& operator[](size_t i) const {
    const size_t units = i / kFirst;
    // How many times this chunk's size is twice that of the first.
    const int shift = std::min(60 - __builtin_clzll(units | 8), kMostShift);
    return chunks_[(size_t{8} * shift) + (units >> shift)]
                  [i & ((kFirst << shift) - 1)];
  }

  // How many elements there are.
  size_t room() const { return room_; }

  // Adds a chunk.
  void Grow() {
    const size_t size = ChunkSize(chunks_.size());
    chunks_.push_back(std::make_unique<T[]>(size));
    room_ += size;
  }

  // Gives back chunks at the end that `used` elements leave empty, all but one,
  // which is kept in hand against going back and forth.
  void ShrinkTo(size_t used) {
    while (!chunks_.empty()) {
      const size_t last = ChunkSize(chunks_.size() - 1);
      if (used + last >= room_) return;
      chunks_.pop_back();
      room_ -= last;
    }
  }

  // How many bytes it takes, with `overhead` for each allocation.
  uint64_t Bytes(uint64_t overhead) const {
    return room_ * sizeof(T) + chunks_.size() * overhead +
           chunks_.capacity() * sizeof(chunks_[0]);
  }

  // Returns by how many bytes Grow() makes that more.
  uint64_t Growth(uint64_t overhead) const {
    uint64_t bytes = ChunkSize(chunks_.size()) * sizeof(T) + overhead;
    if (chunks_.size() == chunks_.capacity()) {
      bytes += std::max<size_t>(chunks_.capacity(), 1) * sizeof(chunks_[0]);
    }
    return bytes;
  }

 private:
  static constexpr int kMostShift = __builtin_ctzll(kMost / kFirst);

  static size_t ChunkSize(size_t chunk) {
    if (chunk < 16) return kFirst;
    return kFirst << std::min<size_t>(chunk / 8 - 1, kMostShift);
  }

  std::vector<std::unique_ptr<T[]>> chunks_;
  size_t room_ = 0;
};

}  // namespace fncache::cache::store

#endif  // FNCACHE_CACHE_STORE_CHUNKED_ARRAY_H_
