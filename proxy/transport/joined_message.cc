// SPDX-License-Identifier: Apache-2.0
#include "proxy/transport/joined_message.h"

#include <cstring>

namespace fncache::proxy::transport {
namespace {

// A buffer of at most so many bytes is kept between messages.
constexpr size_t kKept = 256 << 10;

}  // namespace

absl::optional<absl::string_view> JoinedMessage::Join(
    const grpc::ByteBuffer& message) {
  Clear();
  if (!message.Dump(&slices_).ok()) return absl::nullopt;
  if (slices_.size() == 1) {
    return absl::string_view(reinterpret_cast<const char*>(slices_[0].begin()),
                             slices_[0].size());
  }
  size_t size = 0;
  for (const grpc::Slice& slice : slices_) size += slice.size();
  if (size > capacity_) {
    // make_unique would write zeroes to all of it first.
    buffer_.reset(new char[size]);
    capacity_ = size;
  }
  char* to = buffer_.get();
  for (const grpc::Slice& slice : slices_) {
    if (slice.size() == 0) continue;
    std::memcpy(to, slice.begin(), slice.size());
    to += slice.size();
  }
  slices_.clear();
  return absl::string_view(buffer_.get(), size);
}

void JoinedMessage::Clear() {
  slices_.clear();
  if (capacity_ <= kKept) return;
  buffer_ = nullptr;
  capacity_ = 0;
}

}  // namespace fncache::proxy::transport
