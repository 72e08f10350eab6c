// SPDX-License-Identifier: Apache-2.0
#include "proxy/transport/read_room.h"

#include <algorithm>

namespace fncache::proxy::transport {
namespace {

// How often room is looked for, where other workers may have made it.
constexpr absl::Duration kLookAgain = absl::Milliseconds(20);

}  // namespace

void ReadRoom::Wait(int change) {
  waiting_ += change;
  if (inflight_ != nullptr) inflight_->ReadersWait(change);
}

void ReadRoom::Ask(Reader* reader, const void* connection, size_t remainder) {
  reader->connection_ = connection;
  reader->remainder_ = remainder;
  reader->granted_ = false;
  reader->listed_ = true;
  readers_.push_back(reader);
  Wait(1);
  if (inflight_ == nullptr ||
      (waiting_ == 1 &&
       inflight_->HasRoom(Inflight::Share::kReading, remainder))) {
    return Grant(reader);
  }
  Look();
}

void ReadRoom::Grant(Reader* reader) {
  reader->granted_ = true;
  Wait(-1);
  reader->OnRoom();
}

void ReadRoom::Forget(Reader* reader) {
  if (!reader->listed_) return;
  reader->listed_ = false;
  if (!reader->granted_) Wait(-1);
  readers_.erase(std::find(readers_.begin(), readers_.end(), reader));
  if (inflight_ != nullptr) {
    inflight_->Yield(Inflight::Share::kReading, reader);
  }
  if (waiting_ > 0) ArmTimer();
}

ReadRoom::Reader* ReadRoom::Next(const Granted& granted) const {
  const size_t part = inflight_->limit(Inflight::Share::kReading) / 4;
  Reader* smallest = nullptr;
  bool smallest_over = false;
  for (Reader* reader : readers_) {
    if (reader->granted_) continue;
    const auto found = granted.find(reader->connection_);
    const bool over =
        found != granted.end() && found->second + reader->remainder_ > part;
    if (smallest == nullptr || over < smallest_over ||
        (over == smallest_over && reader->remainder_ < smallest->remainder_)) {
      smallest = reader;
      smallest_over = over;
    }
  }
  return smallest;
}

void ReadRoom::Look() {
  Granted granted;
  for (const Reader* reader : readers_) {
    if (reader->granted_) granted[reader->connection_] += reader->remainder_;
  }
  while (waiting_ > 0) {
    Reader* const next = Next(granted);
    if (inflight_->HasRoom(Inflight::Share::kReading, next->remainder_)) {
      granted[next->connection_] += next->remainder_;
      Grant(next);
      continue;
    }
    Reader* const oldest =
        *std::find_if(readers_.begin(), readers_.end(),
                      [](const Reader* one) { return !one->granted_; });
    // One is enough: it counts as its bytes come.
    if (inflight_->GoBeyond(Inflight::Share::kReading, oldest)) Grant(oldest);
    break;
  }
  if (waiting_ > 0) ArmTimer();
}

void ReadRoom::ArmTimer() {
  if (timer_.has_value()) return;
  timer_ = worker_->After(kLookAgain, [this] {
    timer_.reset();
    if (waiting_ > 0) Look();
  });
}

}  // namespace fncache::proxy::transport
