// SPDX-License-Identifier: Apache-2.0
#include "http2/slice.h"

#include <algorithm>

#include "http2/recycler.h"

namespace fncache::http2 {

const Slice::Keeper Buffer::kKeeper = {&Buffer::Keep, &Buffer::Drop, nullptr};

Slice Slice::Copy(absl::string_view bytes) {
  Buffer buffer;
  buffer.Reserve(bytes.size());
  buffer.Append(bytes);
  return buffer.Share();
}

void Buffer::Drop(void* block) {
  auto* const dropped = static_cast<Block*>(block);
  if (dropped->shares.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  const size_t size = sizeof(Block) + dropped->capacity;
  dropped->~Block();
  Recycler::Free(dropped, size);
}

void Buffer::Reserve(size_t capacity) {
  if (capacity <= this->capacity()) return;
  // All of the block that there is.
  capacity = Recycler::Rounded(sizeof(Block) + capacity) - sizeof(Block);
  auto* const block = new (Recycler::Allocate(sizeof(Block) + capacity)) Block;
  block->capacity = capacity;
  if (block_ != nullptr) {
    block->size = block_->size;
    std::memcpy(block->data(), block_->data(), block_->size);
    Drop(block_);
  }
  block_ = block;
}

void Buffer::Grow(size_t more) {
  Reserve(std::max(size() + more, 2 * capacity()));
}

}  // namespace fncache::http2
