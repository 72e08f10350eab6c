// SPDX-License-Identifier: Apache-2.0
#include "http2/output.h"

#include <algorithm>
#include <utility>

namespace fncache::http2 {
namespace {

constexpr size_t kChunk = 4 << 10;
// The number of written slices that are removed at a time.
constexpr size_t kDropTogether = 64;

}  // namespace

void Output::Copy(absl::string_view bytes) {
  size_ += bytes.size();
  total_ += bytes.size();
  while (!bytes.empty()) {
    if (chunk_.capacity() == chunk_.size()) {
      chunk_ = Buffer();
      chunk_.Reserve(kChunk);
      chunk_open_ = false;
    }
    const absl::string_view now =
        bytes.substr(0, chunk_.capacity() - chunk_.size());
    const size_t begin = chunk_.size();
    chunk_.Append(now);
    if (chunk_open_ && !slices_.empty()) {
      slices_.back().Extend(now.size());
    } else {
      slices_.push_back(chunk_.Share(begin));
      chunk_open_ = true;
    }
    bytes.remove_prefix(now.size());
  }
}

void Output::Add(Slice bytes) {
  size_ += bytes.size();
  total_ += bytes.size();
  slices_.push_back(std::move(bytes));
  chunk_open_ = false;
}

size_t Output::FillVectors(absl::Span<iovec> vectors) const {
  const size_t count = std::min(slices_.size() - first_, vectors.size());
  for (size_t i = 0; i < count; ++i) {
    const Slice& slice = slices_[first_ + i];
    vectors[i].iov_base = const_cast<char*>(slice.data());
    vectors[i].iov_len = slice.size();
  }
  return count;
}

void Output::FillRecord(size_t size, std::string* record) const {
  for (size_t i = first_; i < slices_.size(); ++i) {
    const Slice& slice = slices_[i];
    const size_t capacity = size - record->size();
    record->append(slice.data(), std::min(capacity, slice.size()));
    if (record->size() == size) break;
  }
}

bool Output::Written(size_t bytes) {
  size_ -= bytes;
  while (bytes > 0) {
    Slice& front = slices_[first_];
    if (bytes < front.size()) {
      front.RemovePrefix(bytes);
      break;
    }
    bytes -= front.size();
    front = Slice();
    ++first_;
  }
  if (first_ < slices_.size()) {
    if (first_ < kDropTogether) return false;
    slices_.erase(slices_.begin(),
                  slices_.begin() + static_cast<ptrdiff_t>(first_));
    first_ = 0;
    return false;
  }
  slices_.clear();
  first_ = 0;
  chunk_open_ = false;
  return true;
}

void Output::GiveBack() {
  chunk_.Clear();
  std::vector<Slice>().swap(slices_);
}

}  // namespace fncache::http2
