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

std::vector<int> Part(const std::vector<int>& items, size_t from, size_t to) {
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
    const Way alter = {Way::Kind::kAlter, seed_};
    found = Sift(alter, Left(alter));
    while (!ended_ && Sift({Way::Kind::kRemove, seed_}, WholeLeft())) {
      found = true;
    }
    for (uint64_t value = 0; value < kMostLikely && !ended_; ++value) {
      const Way way = {Way::Kind::kSet, value};
      while (!ended_ && Sift(way, Left(way))) found = true;
    }
    for (int i = 1; i <= kRandomRounds && !ended_; ++i) {
      uint64_t state = seed_ + static_cast<uint64_t>(i);
      const Way way = {Way::Kind::kMixed, NextRandom(&state)};
      if (Sift(way, Left(way))) found = true;
    }
  }
  complete_ = !ended_;
  guessing_ = true;
  for (uint64_t value = 0; value < kMostLikely && !ended_; ++value) {
    const Way way = {Way::Kind::kSet, value};
    while (!ended_ && Sift(way, Left(way, /*guessed=*/true))) {
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

Search::Items Search::Left(const Way& way, bool guessed) const {
  Items left;
  for (size_t i = 0; i < fields_.size(); ++i) {
    if (fields_[i].guessed != guessed) continue;
    const auto likely = static_cast<uint64_t>(fields_[i].likely);
    const bool can_change = way.kind == Way::Kind::kSet ? likely > way.seed
                            : way.kind == Way::Kind::kMixed
                                ? fields_[i].held || likely > 0
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

std::vector<Change> Search::ChangesOf(const Way& way,
                                      const Items& items) const {
  std::vector<Change> changes(fields_.size(), Change::kKeep);
  for (const int item : items) {
    switch (way.kind) {
      case Way::Kind::kAlter:
        changes[item] = Change::kAlter;
        break;
      case Way::Kind::kRemove:
        changes[item] = Change::kRemove;
        break;
      case Way::Kind::kSet:
        changes[item] = Change::kSet;
        break;
      case Way::Kind::kMixed: {
        uint64_t state = way.seed ^ (static_cast<uint64_t>(item) << 20);
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

bool Search::Differs(const Way& way, const Items& items) {
  if (ended_ || items.empty()) return false;
  switch (ask_(ChangesOf(way, items), way.seed)) {
    case Verdict::kSame:
      Settle(way, items, true);
      return false;
    case Verdict::kDiffers:
      return true;
    case Verdict::kEnd:
      ended_ = true;
      return false;
  }
  return false;
}

void Search::Settle(const Way& way, const Items& items, bool settled) {
  for (const int item : items) {
    switch (way.kind) {
      case Way::Kind::kAlter:
        altered_[item] = settled;
        break;
      case Way::Kind::kRemove:
        // A field is left out with all its children.
        std::fill(removed_.begin() + item, removed_.begin() + fields_[item].end,
                  settled);
        break;
      case Way::Kind::kSet: {
        const int bit = 1 << way.seed;
        set_[item] = static_cast<uint8_t>(settled ? set_[item] | bit
                                                  : set_[item] & ~bit);
        break;
      }
      case Way::Kind::kMixed:
        mixed_[item] = settled;
        break;
    }
  }
}

bool Search::Sift(const Way& way, const Items& items) {
  if (!Differs(way, items)) return false;
  return Narrow(way, items, /*known=*/true);
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

bool Search::Narrow(const Way& way, const Items& items, bool known) {
  if (ended_ || items.empty()) return false;
  if (known) Settle(way, items, false);
  if (items.size() == 1) return NarrowOne(way, items[0], known);
  const size_t middle = Middle(items);
  const Items first = Part(items, 0, middle);
  const Items second = Part(items, middle, items.size());
  if (Differs(way, first)) {
    Narrow(way, first, /*known=*/true);
    if (Differs(way, second)) Narrow(way, second, /*known=*/true);
    return true;
  }
  // Then it is in the second half, unless fields matter together only.
  if (Narrow(way, second, /*known=*/false)) return true;
  if (ended_ || (!known && !Differs(way, items))) return false;
  // Each of these matters together with those of the other half.
  const Items together = Fewest(way, {}, /*grown=*/false, items);
  if (ended_) return true;
  for (const int item : together) NarrowOne(way, item, /*known=*/true);
  Items rest;
  for (const int item : items) {
    if (std::find(together.begin(), together.end(), item) == together.end()) {
      rest.push_back(item);
    }
  }
  if (Differs(way, rest)) Narrow(way, rest, /*known=*/true);
  return true;
}

bool Search::NarrowOne(const Way& way, int item, bool known) {
  if (!known && !Differs(way, {item})) return false;
  if (way.kind == Way::Kind::kRemove) {
    // Is it what is in it, or that it is there at all?
    Items inside;
    for (int i = item + 1; i < fields_[item].end; i = fields_[i].end) {
      inside.push_back(i);
    }
    if (Differs(way, inside)) return Narrow(way, inside, /*known=*/true);
  }
  if (ended_) return true;
  MarkRead(item);
  found_.push_back({item, ChangesOf(way, {item})[item], way.seed});
  if (guessing_ && ++guesses_read_ >= kMostGuessesRead) ended_ = true;
  return true;
}

Search::Items Search::Fewest(const Way& way, const Items& kept, bool grown,
                             const Items& items) {
  if (ended_ || (grown && Differs(way, kept))) return {};
  if (items.size() == 1) return items;
  const size_t middle = items.size() / 2;
  const Items first = Part(items, 0, middle);
  const Items second = Part(items, middle, items.size());
  const Items of_second =
      Fewest(way, Join(kept, first), /*grown=*/true, second);
  const Items of_first =
      Fewest(way, Join(kept, of_second), !of_second.empty(), first);
  return Join(of_second, of_first);
}

void Search::MarkRead(int field) {
  read_[field] = true;
  for (int at = field; at >= 0; at = fields_[at].parent) {
    holds_read_[at] = true;
  }
}

}  // namespace fncache::runner::probe
