// SPDX-License-Identifier: Apache-2.0
// Slice: a run of bytes that is sent by reference, with a reference to the
// owner that keeps the bytes alive. A sub-range of a slice is a slice.
//
// Thread-safety: as the keeper's own counting; those made here count without
// races, so that slices of one buffer may live on different threads.
#ifndef FNCACHE_HTTP2_SLICE_H_
#define FNCACHE_HTTP2_SLICE_H_

#include <atomic>
#include <cstddef>
#include <cstring>
#include <new>
#include <utility>

#include "absl/strings/string_view.h"

namespace fncache::http2 {

class Slice {
 public:
  // How bytes are kept: `keep` adds one reference to `owner`, and `drop`
  // removes one. `kept` says whether the bytes stay in memory for another user
  // anyway (null: they do not). All may be called on any thread.
  struct Keeper {
    void (*keep)(void* owner);
    void (*drop)(void* owner);
    bool (*kept)(void* owner);
  };

  Slice() = default;
  // Takes over one reference to `owner`. A null keeper: the bytes are never
  // freed.
  Slice(absl::string_view bytes, void* owner, const Keeper* keeper)
      : bytes_(bytes), owner_(owner), keeper_(keeper) {}
  // A copy of the bytes.
  static Slice Copy(absl::string_view bytes);
  // Bytes that live as long as the process.
  static Slice Static(absl::string_view bytes) {
    return Slice(bytes, nullptr, nullptr);
  }

  Slice(const Slice& other)
      : bytes_(other.bytes_), owner_(other.owner_), keeper_(other.keeper_) {
    if (keeper_ != nullptr) keeper_->keep(owner_);
  }
  Slice(Slice&& other) noexcept
      : bytes_(std::exchange(other.bytes_, absl::string_view())),
        owner_(other.owner_),
        keeper_(std::exchange(other.keeper_, nullptr)) {}
  Slice& operator=(Slice other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(owner_, other.owner_);
    std::swap(keeper_, other.keeper_);
    return *this;
  }
  ~Slice() {
    if (keeper_ != nullptr) keeper_->drop(owner_);
  }

  absl::string_view bytes() const { return bytes_; }
  const char* data() const { return bytes_.data(); }
  size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  // The bytes stay in memory even without this reference.
  bool kept() const {
    return keeper_ == nullptr ||
           (keeper_->kept != nullptr && keeper_->kept(owner_));
  }

  // Takes the first `size` bytes off, as a slice of the same owner.
  Slice TakeFront(size_t size) {
    Slice front = *this;
    front.bytes_ = bytes_.substr(0, size);
    bytes_.remove_prefix(front.bytes_.size());
    return front;
  }
  void RemovePrefix(size_t size) { bytes_.remove_prefix(size); }
  // Adds the next `size` bytes, which the owner has just appended.
  void Extend(size_t size) {
    bytes_ = absl::string_view(bytes_.data(), bytes_.size() + size);
  }

 private:
  absl::string_view bytes_;
  void* owner_ = nullptr;
  const Keeper* keeper_ = nullptr;
};

// Bytes that grow at their end, in one piece, and are then shared as a Slice.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept
      : block_(std::exchange(other.block_, nullptr)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() {
    if (block_ != nullptr) Drop(block_);
  }

  size_t size() const { return block_ == nullptr ? 0 : block_->size; }
  size_t capacity() const { return block_ == nullptr ? 0 : block_->capacity; }
  absl::string_view bytes() const {
    return block_ == nullptr ? absl::string_view()
                             : absl::string_view(block_->data(), block_->size);
  }
  // Provides memory for `capacity` bytes in all, at least for the present ones.
  void Reserve(size_t capacity);
  // Doubles the capacity if the bytes do not fit.
  void Append(absl::string_view bytes) {
    if (bytes.empty()) return;
    if (block_ == nullptr || bytes.size() > capacity() - size()) {
      Grow(bytes.size());
    }
    std::memcpy(block_->data() + block_->size, bytes.data(), bytes.size());
    block_->size += bytes.size();
  }
  // A slice of all bytes from `begin` on. Later Appends within the capacity do
  // not change it.
  Slice Share(size_t begin = 0) const {
    if (block_ == nullptr) return Slice();
    Keep(block_);
    return Slice(bytes().substr(begin), block_, &kKeeper);
  }
  void Clear() { *this = Buffer(); }

 private:
  struct Block {
    std::atomic<int> shares{1};
    size_t size = 0;
    size_t capacity = 0;
    char* data() { return reinterpret_cast<char*>(this + 1); }
  };
  static void Keep(void* block) {
    static_cast<Block*>(block)->shares.fetch_add(1, std::memory_order_relaxed);
  }
  static void Drop(void* block);
  void Grow(size_t more);

  static const Slice::Keeper kKeeper;
  Block* block_ = nullptr;
};

}  // namespace fncache::http2

#endif  // FNCACHE_HTTP2_SLICE_H_
