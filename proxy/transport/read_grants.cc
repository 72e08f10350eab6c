// SPDX-License-Identifier: Apache-2.0
#include "proxy/transport/read_grants.h"

#include <algorithm>

namespace fncache::proxy::transport {
namespace {

// Interval of the poll for memory that other workers may have freed.
constexpr absl::Duration kLookAgain = absl::Milliseconds(20);

// A request that has waited for 500 ms may exceed the quota, because granted
// requests may wait for it: a proxy in front may send its streams' bytes in
// order (haproxy does, beyond its buffers). Or granted requests arrive slowly,
// and smaller ones get the memory that becomes free. Nanoseconds.
constexpr int64_t kWaitsLong = 500'000'000;

// Grants in one event-loop iteration. Each grant scans all waiting requests,
// and other work of the worker must run in between.
constexpr int kGrantsPerIteration = 32;

// After a request that was larger than the usual window, and was granted, new
// streams of its connection begin with the large window. So the next requests
// of that size need not wait a round trip for a grant. The connection returns
// to the usual window if others wait for memory, or if it has many calls.
constexpr uint32_t kLargeWindow = 256 << 10;
constexpr size_t kFewStreams = 16;
constexpr size_t kManyStreams = 32;
// A window grows only if this many large ones fit into the quota for reading.
constexpr size_t kLargeWindows = 16;

}  // namespace

size_t ReadGrants::GrantedTo(const void* connection) const {
  const auto found = granted_.find(connection);
  return found == granted_.end() ? 0 : found->second;
}

void ReadGrants::Have(Reader* reader, size_t bytes) {
  if (bytes == reader->has_) return;
  size_t& part = granted_[reader->connection_];
  part += bytes - reader->has_;
  reader->has_ = bytes;
  if (part == 0) granted_.erase(reader->connection_);
}

bool ReadGrants::Fits(const Reader& reader, size_t bytes,
                      size_t capacity) const {
  return bytes <= reader.has_ ||
         GrantedTo(reader.connection_) + 2 * (bytes - reader.has_) <= capacity;
}

void ReadGrants::Ask(Reader* reader, const void* connection, size_t remainder,
                     size_t bytes) {
  reader->connection_ = connection;
  reader->remainder_ = remainder;
  reader->bytes_ = bytes;
  // No overtaking: waiting requests did not fit at the last look.
  if (inflight_ == nullptr ||
      Fits(*reader, bytes, inflight_->CapacityToRead())) {
    return Grant(reader, Inflight::Quota::kReading);
  }
  reader->state_ = Reader::State::kWaits;
  reader->since_ = worker_->loop()->now();
  waiting_.push_back(reader);
  inflight_->ReadersWait(1);
  if (waiting_.size() == 1) return Look();
  LookIn(kLookAgain);
}

bool ReadGrants::Hold(Reader* reader, const void* connection, size_t bytes) {
  reader->connection_ = connection;
  if (inflight_ != nullptr &&
      !Fits(*reader, bytes, inflight_->CapacityToRead())) {
    return false;
  }
  Have(reader, bytes);
  return true;
}

void ReadGrants::Grant(Reader* reader, Inflight::Quota quota) {
  reader->state_ = Reader::State::kComes;
  if (quota == Inflight::Quota::kReading) Have(reader, reader->bytes_);
  reader->OnGranted(quota);
}

void ReadGrants::StopWaiting(Reader* reader) {
  waiting_.erase(std::find(waiting_.begin(), waiting_.end(), reader));
  inflight_->ReadersWait(-1);
}

void ReadGrants::Complete(Reader* reader) {
  if (reader->state_ == Reader::State::kNone) return;
  if (reader->state_ == Reader::State::kWaits) StopWaiting(reader);
  reader->state_ = Reader::State::kNone;
  if (inflight_ != nullptr) {
    inflight_->Yield(Inflight::Quota::kBeyond, reader);
  }
  if (!waiting_.empty()) LookIn(absl::ZeroDuration());
}

void ReadGrants::Forget(Reader* reader) {
  Complete(reader);
  if (reader->has_ > 0 && !waiting_.empty()) LookIn(absl::ZeroDuration());
  Have(reader, 0);
}

ReadGrants::Reader* ReadGrants::Next() const {
  const size_t part = inflight_->limit(Inflight::Quota::kReading) / 4;
  const size_t capacity = inflight_->CapacityToRead();
  Reader* smallest = nullptr;
  bool smallest_over = false;
  for (Reader* reader : waiting_) {
    if (!Fits(*reader, reader->bytes_, capacity)) continue;
    const size_t has = GrantedTo(reader->connection_);
    const bool over = has > 0 && has + reader->bytes_ > part;
    if (smallest == nullptr || over < smallest_over ||
        (over == smallest_over && reader->remainder_ < smallest->remainder_)) {
      smallest = reader;
      smallest_over = over;
    }
  }
  return smallest;
}

void ReadGrants::Look() {
  absl::Duration again = absl::ZeroDuration();
  const int64_t now = worker_->loop()->now();
  for (int i = 0; i < kGrantsPerIteration && !waiting_.empty(); ++i) {
    Reader* next = Next();
    Inflight::Quota quota = Inflight::Quota::kReading;
    if (next == nullptr) {
      // No request fits. One that exceeds the quota keeps reading moving.
      next = waiting_.front();
      quota = Inflight::Quota::kBeyond;
      const bool long_enough = now - next->since_ >= kWaitsLong &&
                               inflight_->FitsBeyond(next->bytes_);
      if (!long_enough && !inflight_->ReadBeyond(next, next->bytes_)) {
        again = kLookAgain;
        break;
      }
    }
    StopWaiting(next);
    Grant(next, quota);
  }
  if (!waiting_.empty()) LookIn(again);
}

void ReadGrants::LookIn(absl::Duration delay) {
  const bool soon = delay == absl::ZeroDuration();
  if (timer_.has_value()) {
    if (soon_ || !soon) return;
    worker_->Cancel(*timer_);
  }
  soon_ = soon;
  timer_ = worker_->After(delay, [this] {
    timer_.reset();
    Look();
  });
}

void ReadGrants::GrowWindow(http2::Connection& connection) const {
  if (connection.streams() > kFewStreams) return;
  if (inflight_ == nullptr || (!inflight_->readers_wait() &&
                               inflight_->Fits(Inflight::Quota::kReading,
                                               kLargeWindows * kLargeWindow))) {
    connection.SetStreamWindow(kLargeWindow);
  }
}

void ReadGrants::ShrinkWindow(http2::Connection& connection) const {
  if (connection.stream_window() <= http2::kUsualWindow) return;
  if (connection.streams() > kManyStreams ||
      (inflight_ != nullptr && inflight_->readers_wait())) {
    connection.SetStreamWindow(http2::kUsualWindow);
  }
}

bool ReadGrants::MayHold(http2::Connection& connection, size_t more) const {
  const size_t held = connection.held() + more;
  const size_t most = size_t{connection.max_streams()} * http2::kUsualWindow +
                      kManyStreams * kLargeWindow;
  return held <= most &&
         (inflight_ == nullptr || inflight_->LeavesCapacity(held));
}

}  // namespace fncache::proxy::transport
