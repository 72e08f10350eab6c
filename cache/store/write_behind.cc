// SPDX-License-Identifier: Apache-2.0
#include "cache/store/write_behind.h"

#include <vector>

#include "absl/time/clock.h"
#include "cache/store/store.h"

namespace fncache::cache::store {

WriteBehind::WriteBehind(
    const Options& options, std::function<void(const Operation&)> write,
    std::function<void()> tick,
    std::function<void(const Operation&)> dropped_at_shutdown)
    : options_(options),
      write_(std::move(write)),
      tick_(std::move(tick)),
      dropped_at_shutdown_(std::move(dropped_at_shutdown)),
      thread_([this] { Run(); }) {}

WriteBehind::~WriteBehind() { Stop(); }

void WriteBehind::Stop() {
  if (!thread_.joinable()) return;
  {
    MutexLock lock(&mutex_);
    stop_ = true;
    stop_at_ = absl::Now() + options_.drain;
    work_.SignalAll();
  }
  thread_.join();
}

bool WriteBehind::Enqueue(Operation operation) {
  EntryRef replaced;  // freed after the unlock
  MutexLock lock(&mutex_);
  const key::Key key = operation.key;
  const uint64_t bytes = operation.entry->charge();
  const auto it = waiting_.find(key);
  if (it != waiting_.end()) {
    if (it->second.entry->started() > operation.entry->started()) return true;
    waiting_bytes_ -= it->second.entry->charge();
    replaced = std::move(it->second.entry);
    waiting_.erase(it);
  }
  if (waiting_.size() >= options_.max_entries ||
      (waiting_bytes_ + bytes > options_.max_bytes && !waiting_.empty())) {
    return false;
  }
  waiting_bytes_ += bytes;
  waiting_.emplace(key, std::move(operation));
  // A key that waited already keeps its queue position.
  if (!replaced) order_.emplace_back(++enqueued_, key);
  work_.Signal();
  return true;
}

absl::optional<WriteBehind::Operation> WriteBehind::Pending(
    const key::Key& key) const {
  MutexLock lock(&mutex_);
  const auto it = waiting_.find(key);
  if (it != waiting_.end()) return it->second;
  if (current_.has_value() && current_->key == key) return current_;
  return absl::nullopt;
}

bool WriteBehind::Remove(const key::Key& key, absl::Time until,
                         absl::Time now) {
  Operation removed;
  MutexLock lock(&mutex_);
  bool found = false;
  const auto it = waiting_.find(key);
  if (it != waiting_.end() && (it->second.entry->started() <= until ||
                               IsFromTheFuture(*it->second.entry, now))) {
    waiting_bytes_ -= it->second.entry->charge();
    removed = std::move(it->second);
    waiting_.erase(it);
    found = removed.write;
  }
  while (current_.has_value() && current_->key == key) {
    progress_.Wait(&mutex_);
  }
  return found;
}

uint64_t WriteBehind::Sweep(FunctionId function, absl::Time until) {
  std::vector<Operation> removed;  // freed after the unlock
  uint64_t count = 0;
  MutexLock lock(&mutex_);
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    const Entry& entry = *it->second.entry;
    if ((function != kNoFunction && entry.function() != function) ||
        entry.started() > until) {
      ++it;
      continue;
    }
    waiting_bytes_ -= entry.charge();
    if (it->second.write) ++count;
    removed.push_back(std::move(it->second));
    waiting_.erase(it++);
  }
  return count;
}

void WriteBehind::Flush() {
  MutexLock lock(&mutex_);
  const uint64_t until = enqueued_;
  while (done_ < until) progress_.Wait(&mutex_);
}

size_t WriteBehind::depth() const {
  MutexLock lock(&mutex_);
  return waiting_.size() + (current_.has_value() ? 1 : 0);
}

void WriteBehind::Run() {
  mutex_.Lock();
  while (true) {
    while (order_.empty() && !stop_) {
      if (!work_.WaitWithTimeout(&mutex_, options_.tick)) continue;
      mutex_.Unlock();
      tick_();
      mutex_.Lock();
    }
    if (order_.empty()) break;
    const auto [sequence, key] = order_.front();
    order_.pop_front();
    const auto it = waiting_.find(key);
    if (it != waiting_.end()) {
      current_ = std::move(it->second);
      waiting_bytes_ -= current_->entry->charge();
      waiting_.erase(it);
      const bool late = stop_ && absl::Now() >= stop_at_;
      // Only this thread changes it.
      const Operation operation = *current_;
      mutex_.Unlock();
      if (late) {
        dropped_at_shutdown_(operation);
      } else {
        write_(operation);
      }
      mutex_.Lock();
      current_.reset();
    }
    done_ = sequence;
    progress_.SignalAll();
  }
  mutex_.Unlock();
}

}  // namespace fncache::cache::store
