// SPDX-License-Identifier: Apache-2.0
#include "proxy/transport/read_room.h"

#include <algorithm>

namespace fncache::proxy::transport {
namespace {

// How often room is looked for, where other workers may have made it.
constexpr absl::Duration kLookAgain = absl::Milliseconds(20);

}  // namespace

size_t ReadRoom::PartOf(const void* connection) const {
  const auto found = parts_.find(connection);
  return found == parts_.end() ? 0 : found->second;
}

void ReadRoom::Have(Reader* reader, size_t bytes) {
  if (bytes == reader->has_) return;
  size_t& part = parts_[reader->connection_];
  part += bytes - reader->has_;
  reader->has_ = bytes;
  if (part == 0) parts_.erase(reader->connection_);
}

bool ReadRoom::HasRoom(const Reader& reader, size_t bytes) const {
  if (inflight_ == nullptr || bytes <= reader.has_) return true;
  return inflight_->HasRoom(
      Inflight::Share::kReading,
      PartOf(reader.connection_) + 2 * (bytes - reader.has_));
}

void ReadRoom::Ask(Reader* reader, const void* connection, size_t remainder) {
  reader->connection_ = connection;
  reader->remainder_ = remainder;
  if (waiting_.empty() && HasRoom(*reader, remainder)) {
    return Grant(reader, Inflight::Share::kReading);
  }
  reader->state_ = Reader::State::kWaits;
  waiting_.push_back(reader);
  inflight_->ReadersWait(1);
  Look();
}

bool ReadRoom::Hold(Reader* reader, const void* connection, size_t bytes) {
  reader->connection_ = connection;
  if (!HasRoom(*reader, bytes)) return false;
  Have(reader, bytes);
  return true;
}

void ReadRoom::Grant(Reader* reader, Inflight::Share share) {
  reader->state_ = Reader::State::kComes;
  if (share == Inflight::Share::kReading) Have(reader, reader->remainder_);
  reader->OnRoom(share);
}

void ReadRoom::StopWaiting(Reader* reader) {
  waiting_.erase(std::find(waiting_.begin(), waiting_.end(), reader));
  inflight_->ReadersWait(-1);
}

void ReadRoom::Complete(Reader* reader) {
  if (reader->state_ == Reader::State::kNone) return;
  if (reader->state_ == Reader::State::kWaits) StopWaiting(reader);
  reader->state_ = Reader::State::kNone;
  if (inflight_ != nullptr) {
    inflight_->Yield(Inflight::Share::kReading, reader);
  }
  if (!waiting_.empty()) ArmTimer();
}

void ReadRoom::Forget(Reader* reader) {
  Complete(reader);
  Have(reader, 0);
}

ReadRoom::Reader* ReadRoom::Next() const {
  const size_t part = inflight_->limit(Inflight::Share::kReading) / 4;
  Reader* smallest = nullptr;
  bool smallest_over = false;
  for (Reader* reader : waiting_) {
    const size_t has = PartOf(reader->connection_);
    const bool over = has > 0 && has + reader->remainder_ > part;
    if (smallest == nullptr || over < smallest_over ||
        (over == smallest_over && reader->remainder_ < smallest->remainder_)) {
      smallest = reader;
      smallest_over = over;
    }
  }
  return smallest;
}

void ReadRoom::Look() {
  while (!waiting_.empty()) {
    Reader* next = Next();
    Inflight::Share share = Inflight::Share::kReading;
    if (!HasRoom(*next, next->remainder_)) {
      // One is enough.
      next = waiting_.front();
      share = Inflight::Share::kBeyond;
      if (!inflight_->ReadBeyond(next, next->remainder_)) return ArmTimer();
    }
    StopWaiting(next);
    Grant(next, share);
  }
}

void ReadRoom::ArmTimer() {
  if (timer_.has_value()) return;
  timer_ = worker_->After(kLookAgain, [this] {
    timer_.reset();
    Look();
  });
}

}  // namespace fncache::proxy::transport
