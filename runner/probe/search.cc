// SPDX-License-Identifier: Apache-2.0
#include "runner/probe/search.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "runner/probe/alter.h"

namespace fncache::runner::probe {
namespace {

constexpr int kRandomRounds = 3;
// A function that reads this number of guessed fields reacts to any new field:
// no further ones are tried.
constexpr int kMostGuessesRead = 20;

std::vector<int> Slice(const std::vector<int>& items, size_t from, size_t to) {
  return {items.begin() + static_cast<std::ptrdiff_t>(from),
          items.begin() + static_cast<std::ptrdiff_t>(to)};
}

std::vector<int> Join(const std::vector<int>& a, const std::vector<int>& b) {
  std::vector<int> both = a;
  both.insert(both.end(), b.begin(), b.end());
  return both;
}

}  // namespace

Search::Search(const std::vector<Field>& fields, std::vector<int> groups,
               const std::vector<bool>& read, uint64_t seed, Ask ask)
    : fields_(fields),
      groups_(std::move(groups)),
      seed_(seed),
      ask_(std::move(ask)),
      read_(fields.size()),
      altered_(fields.size()),
      removed_(fields.size()),
      mixed_(fields.size(), true),
      set_(fields.size()),
      holds_read_(fields.size()) {
  for (size_t i = 0; i < read.size(); ++i) {
    if (read[i]) MarkRead(static_cast<int>(i));
  }
}

void Search::Run() {
  // Something that is found in one round may have hidden what another round
  // would have shown: until all of them find nothing.
  for (bool found = true; found && !ended_;) {
    const Method alter = {Method::Kind::kAlter, seed_};
    found = Sift(alter, Left(alter));
    while (!ended_ && Sift({Method::Kind::kRemove, seed_}, WholeLeft())) {
      found = true;
    }
    for (uint64_t value = 0; value < kMostLikely && !ended_; ++value) {
      const Method method = {Method::Kind::kSet, value};
      while (!ended_ && Sift(method, Left(method))) found = true;
    }
    for (int i = 1; i <= kRandomRounds && !ended_; ++i) {
      uint64_t state = seed_ + static_cast<uint64_t>(i);
      const Method method = {Method::Kind::kMixed, NextRandom(&state)};
      if (Sift(method, Left(method))) found = true;
    }
  }
  complete_ = !ended_;
  guessing_ = true;
  for (uint64_t value = 0; value < kMostLikely && !ended_; ++value) {
    const Method method = {Method::Kind::kSet, value};
    while (!ended_ && Sift(method, Left(method, /*guessed=*/true))) {
    }
  }
  guesses_complete_ = !ended_;
}

Search::Result Search::ResultOf(int field) const {
  if (read_[field]) return Result::kRead;
  const Field& one = fields_[field];
  // A field with a read child is left out only with that child, which proves
  // nothing.
  const bool removed = removed_[field] || holds_read_[field];
  const bool changed = !one.held || (altered_[field] && removed);
  const int every_value = (1 << one.likely) - 1;
  return changed && set_[field] == every_value && mixed_[field]
             ? Result::kUnread
             : Result::kUntried;
}

Search::Items Search::Left(const Method& method, bool guessed) const {
  Items left;
  for (size_t i = 0; i < fields_.size(); ++i) {
    if (fields_[i].guessed != guessed) continue;
    const auto likely = static_cast<uint64_t>(fields_[i].likely);
    const bool can_change =
        method.kind == Method::Kind::kSet     ? likely > method.seed
        : method.kind == Method::Kind::kMixed ? fields_[i].held || likely > 0
                                              : fields_[i].held;
    if (can_change && !read_[i]) left.push_back(static_cast<int>(i));
  }
  std::stable_sort(left.begin(), left.end(),
                   [this](int a, int b) { return groups_[a] < groups_[b]; });
  return left;
}

Search::Items Search::WholeLeft() const {
  Items whole;
  for (int i = 0; i < static_cast<int>(fields_.size());) {
    if (!fields_[i].held) {
      i = fields_[i].end;
    } else if (holds_read_[i]) {
      ++i;
    } else {
      whole.push_back(i);
      i = fields_[i].end;
    }
  }
  std::stable_sort(whole.begin(), whole.end(),
                   [this](int a, int b) { return groups_[a] < groups_[b]; });
  return whole;
}

std::vector<Change> Search::ChangesOf(const Method& method,
                                      const Items& items) const {
  std::vector<Change> changes(fields_.size(), Change::kKeep);
  for (const int item : items) {
    switch (method.kind) {
      case Method::Kind::kAlter:
        changes[item] = Change::kAlter;
        break;
      case Method::Kind::kRemove:
        changes[item] = Change::kRemove;
        break;
      case Method::Kind::kSet:
        changes[item] = Change::kSet;
        break;
      case Method::Kind::kMixed: {
        uint64_t state = method.seed ^ (static_cast<uint64_t>(item) << 20);
        const bool coin = NextRandom(&state) % 2 == 0;
        // A field with children is left out by leaving out the children.
        if (!fields_[item].held) {
          changes[item] = coin ? Change::kSet : Change::kKeep;
        } else if (fields_[item].container) {
          changes[item] = coin ? Change::kAlter : Change::kKeep;
        } else {
          changes[item] = coin ? Change::kAlter : Change::kRemove;
        }
        break;
      }
    }
  }
  return changes;
}

bool Search::Differs(const Method& method, const Items& items) {
  if (ended_ || items.empty()) return false;
  switch (ask_(ChangesOf(method, items), method.seed)) {
    case Verdict::kSame:
      Settle(method, items, true);
      return false;
    case Verdict::kDiffers:
      return true;
    case Verdict::kEnd:
      ended_ = true;
      return false;
  }
  return false;
}

void Search::Settle(const Method& method, const Items& items, bool settled) {
  for (const int item : items) {
    switch (method.kind) {
      case Method::Kind::kAlter:
        altered_[item] = settled;
        break;
      case Method::Kind::kRemove:
        // A field is left out with all its children.
        std::fill(removed_.begin() + item, removed_.begin() + fields_[item].end,
                  settled);
        break;
      case Method::Kind::kSet: {
        const int bit = 1 << method.seed;
        set_[item] = static_cast<uint8_t>(settled ? set_[item] | bit
                                                  : set_[item] & ~bit);
        break;
      }
      case Method::Kind::kMixed:
        mixed_[item] = settled;
        break;
    }
  }
}

bool Search::Sift(const Method& method, const Items& items) {
  if (!Differs(method, items)) return false;
  return Narrow(method, items, /*known=*/true);
}

size_t Search::Middle(const Items& items) const {
  const size_t middle = items.size() / 2;
  if (groups_[items.front()] == groups_[items.back()]) return middle;
  // The border of groups that is nearest.
  size_t best = 0;
  for (size_t i = 1; i < items.size(); ++i) {
    if (groups_[items[i]] == groups_[items[i - 1]]) continue;
    const auto away = [middle](size_t at) {
      return at > middle ? at - middle : middle - at;
    };
    if (best == 0 || away(i) < away(best)) best = i;
  }
  return best;
}

bool Search::Narrow(const Method& method, const Items& items, bool known) {
  if (ended_ || items.empty()) return false;
  if (known) Settle(method, items, false);
  if (items.size() == 1) return NarrowOne(method, items[0], known);
  const size_t middle = Middle(items);
  const Items first = Slice(items, 0, middle);
  const Items second = Slice(items, middle, items.size());
  if (Differs(method, first)) {
    Narrow(method, first, /*known=*/true);
    if (Differs(method, second)) Narrow(method, second, /*known=*/true);
    return true;
  }
  // Then it is in the second half, unless fields matter together only.
  if (Narrow(method, second, /*known=*/false)) return true;
  if (ended_ || (!known && !Differs(method, items))) return false;
  // Each of these matters together with those of the other half.
  const Items together = Fewest(method, {}, /*grown=*/false, items);
  if (ended_) return true;
  for (const int item : together) NarrowOne(method, item, /*known=*/true);
  Items rest;
  for (const int item : items) {
    if (std::find(together.begin(), together.end(), item) == together.end()) {
      rest.push_back(item);
    }
  }
  if (Differs(method, rest)) Narrow(method, rest, /*known=*/true);
  return true;
}

bool Search::NarrowOne(const Method& method, int item, bool known) {
  if (!known && !Differs(method, {item})) return false;
  if (method.kind == Method::Kind::kRemove) {
    // Is it what is in it, or that it is there at all?
    Items inside;
    for (int i = item + 1; i < fields_[item].end; i = fields_[i].end) {
      inside.push_back(i);
    }
    if (Differs(method, inside)) return Narrow(method, inside, /*known=*/true);
  }
  if (ended_) return true;
  MarkRead(item);
  found_.push_back({item, ChangesOf(method, {item})[item], method.seed});
  if (guessing_ && ++guesses_read_ >= kMostGuessesRead) ended_ = true;
  return true;
}

Search::Items Search::Fewest(const Method& method, const Items& kept,
                             bool grown, const Items& items) {
  if (ended_ || (grown && Differs(method, kept))) return {};
  if (items.size() == 1) return items;
  const size_t middle = items.size() / 2;
  const Items first = Slice(items, 0, middle);
  const Items second = Slice(items, middle, items.size());
  const Items of_second =
      Fewest(method, Join(kept, first), /*grown=*/true, second);
  const Items of_first =
      Fewest(method, Join(kept, of_second), !of_second.empty(), first);
  return Join(of_second, of_first);
}

void Search::MarkRead(int field) {
  read_[field] = true;
  for (int at = field; at >= 0; at = fields_[at].parent) {
    holds_read_[at] = true;
  }
}

}  // namespace fncache::runner::probe
