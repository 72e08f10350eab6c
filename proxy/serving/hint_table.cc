// SPDX-License-Identifier: Apache-2.0
#include "proxy/serving/hint_table.h"

#include <algorithm>
#include <utility>

namespace fncache::proxy::serving {

size_t HintTable::BytesOf(const KnownHint& hint) {
  return sizeof(hint) + hint.hint.memory() + hint.text.size() +
         hint.prefix.size();
}

HintTable::Hints HintTable::Of(const cache::key::Key& input) const {
  MutexLock lock(&mutex_);
  const auto it = inputs_.find(input);
  if (it == inputs_.end()) return {};
  it->second.used = true;
  return it->second.hints;
}

void HintTable::Learn(const cache::key::Key& input, KnownHintPtr hint,
                      absl::Time now) {
  KnownHintPtr gone;  // freed after the unlock
  MutexLock lock(&mutex_);
  const auto [it, is_new] = inputs_.try_emplace(input);
  Input& known = it->second;
  if (is_new) {
    // Perhaps it was known before.
    known.dropped = inputs_dropped_;
    known.place = order_.insert(order_.begin(), input);
  } else {
    order_.splice(order_.begin(), order_, known.place);
  }
  Hints& hints = known.hints;
  const auto same = std::find_if(
      hints.begin(), hints.end(),
      [&](const KnownHintPtr& one) { return one->hint == hint->hint; });
  if (same != hints.end()) {
    std::rotate(hints.begin(), same, same + 1);
    return;
  }
  if (known.dropped > hint->since) {
    auto later = std::make_shared<KnownHint>(*hint);
    later->since = known.dropped;
    hint = std::move(later);
  }
  if (hints.size() == kHintsOfInput) {
    gone = std::move(hints.back());
    hints.pop_back();
    known.dropped = now;
    --hints_;
    bytes_ -= BytesOf(*gone);
  }
  ++hints_;
  bytes_ += BytesOf(*hint);
  hints.insert(hints.begin(), std::move(hint));
  DropInputs(now);
}

void HintTable::DropInputs(absl::Time now) {
  size_t spared = 0;
  while (order_.size() > 1 &&
         (inputs_.size() > kMostInputs || bytes_ > kMostBytes)) {
    const auto it = inputs_.find(order_.back());
    if (it->second.used && spared++ < kMostInputs) {
      it->second.used = false;
      order_.splice(order_.begin(), order_, it->second.place);
      continue;
    }
    for (const KnownHintPtr& hint : it->second.hints) {
      --hints_;
      bytes_ -= BytesOf(*hint);
    }
    inputs_dropped_ = std::max(inputs_dropped_, now);
    order_.pop_back();
    inputs_.erase(it);
  }
}

void HintTable::Drop(absl::Time now) {
  MutexLock lock(&mutex_);
  inputs_.clear();
  order_.clear();
  hints_ = bytes_ = 0;
  inputs_dropped_ = std::max(inputs_dropped_, now);
}

telemetry::VaryFigures HintTable::Read() const {
  telemetry::VaryFigures figures;
  {
    MutexLock lock(&mutex_);
    figures.hints = hints_;
  }
  figures.hits = hits_.load(std::memory_order_relaxed);
  figures.refused = refused_.load(std::memory_order_relaxed);
  return figures;
}

}  // namespace fncache::proxy::serving
