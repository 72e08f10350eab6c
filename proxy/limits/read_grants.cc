// SPDX-License-Identifier: Apache-2.0
#include "proxy/limits/read_grants.h"

#include <algorithm>
#include <utility>

namespace fncache::proxy::limits {
namespace {

// Interval of the poll for memory that other workers may have freed.
constexpr absl::Duration kLookAgain = absl::Milliseconds(20);

// After a request that was larger than the usual window, and was granted, new
// streams of its connection begin with the large window. So the next requests
// of that size need not wait a round trip for a grant. The connection returns
// to the usual window if others wait for memory, or if it has many calls.
constexpr uint32_t kLargeWindow = 256 << 10;
constexpr size_t kFewStreams = 16;

}  // namespace

void ReadGrants::SetGranted(Reader* reader, size_t bytes) {
  if (bytes == reader->granted_) return;
  size_t& granted = granted_[reader->connection_];
  granted += bytes - reader->granted_;
  reader->granted_ = bytes;
  if (granted == 0) granted_.erase(reader->connection_);
}

bool ReadGrants::Fits(const Reader& reader, size_t bytes) const {
  if (bytes <= reader.granted_) return true;
  const auto found = granted_.find(reader.connection_);
  return cap_.MayGrant(found == granted_.end() ? 0 : found->second,
                       bytes - reader.granted_);
}

void ReadGrants::Ask(Reader* reader, const void* connection, size_t bytes) {
  reader->connection_ = connection;
  reader->bytes_ = bytes;
  // Those that wait did not fit at the last look.
  if (Fits(*reader, bytes)) return Grant(reader, Budget::Quota::kReading);
  reader->state_ = Reader::State::kWaits;
  waiting_.push_back(reader);
  budget_->CountWaiting(1);
  if (waiting_.size() == 1) return Look();
  LookIn(kLookAgain);
}

bool ReadGrants::Hold(Reader* reader, const void* connection, size_t bytes) {
  reader->connection_ = connection;
  if (!Fits(*reader, bytes)) return false;
  SetGranted(reader, bytes);
  return true;
}

void ReadGrants::Grant(Reader* reader, Budget::Quota quota) {
  reader->state_ = Reader::State::kArrives;
  if (quota == Budget::Quota::kReading) SetGranted(reader, reader->bytes_);
  reader->OnGranted(quota);
}

void ReadGrants::StopWaiting(Reader* reader) {
  waiting_.erase(std::find(waiting_.begin(), waiting_.end(), reader));
  budget_->CountWaiting(-1);
}

void ReadGrants::Complete(Reader* reader) {
  if (reader->state_ == Reader::State::kNone) return;
  if (reader->state_ == Reader::State::kWaits) StopWaiting(reader);
  reader->state_ = Reader::State::kNone;
  if (budget_ != nullptr) budget_->Yield(Budget::Quota::kBeyond, reader);
  if (!waiting_.empty()) LookIn(absl::ZeroDuration());
}

void ReadGrants::Forget(Reader* reader) {
  Complete(reader);
  if (reader->granted_ > 0 && !waiting_.empty()) LookIn(absl::ZeroDuration());
  SetGranted(reader, 0);
}

void ReadGrants::Look() {
  // The oldest one that does not fit goes beyond, so that reading never stands
  // still.
  bool oldest = true;
  for (size_t i = 0; i < waiting_.size();) {
    Reader* const reader = waiting_[i];
    Budget::Quota quota = Budget::Quota::kReading;
    if (!Fits(*reader, reader->bytes_)) {
      const bool beyond = std::exchange(oldest, false) &&
                          budget_->GoBeyond(Budget::Quota::kBeyond, reader);
      if (!beyond) {
        ++i;
        continue;
      }
      quota = Budget::Quota::kBeyond;
    }
    StopWaiting(reader);
    Grant(reader, quota);
  }
  if (!waiting_.empty()) LookIn(kLookAgain);
}

void ReadGrants::LookIn(absl::Duration delay) {
  const bool soon = delay == absl::ZeroDuration();
  if (timer_.has_value()) {
    if (soon_ || !soon) return;
    loop_->Cancel(*timer_);
  }
  soon_ = soon;
  timer_ = loop_->After(delay, [this] {
    timer_.reset();
    Look();
  });
}

void ReadGrants::GrowWindow(http2::Connection& connection) const {
  if (connection.streams() <= kFewStreams &&
      cap_.MayKeep(kFewStreams * kLargeWindow) &&
      (budget_ == nullptr || !budget_->OthersWait(Budget::Quota::kReading))) {
    connection.SetStreamWindow(kLargeWindow);
  }
}

void ReadGrants::ShrinkWindow(http2::Connection& connection) const {
  if (connection.stream_window() <= http2::kUsualWindow) return;
  if (connection.streams() > 2 * kFewStreams ||
      (budget_ != nullptr && budget_->OthersWait(Budget::Quota::kReading))) {
    connection.SetStreamWindow(http2::kUsualWindow);
  }
}

}  // namespace fncache::proxy::limits
