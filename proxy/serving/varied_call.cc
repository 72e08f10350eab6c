// SPDX-License-Identifier: Apache-2.0
#include "proxy/serving/varied_call.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"

namespace fncache::proxy::serving {
namespace {

using cache::key::Key;
using cache::store::EntryRef;
using cache::store::Found;

// The memory in which a thread makes keys by hint. Plain keys have their own,
// so a tag of theirs stays valid.
thread_local cache::key::DigestScratch scratch;

}  // namespace

std::unique_ptr<VariedCall> VariedCall::Make(HintTable* table,
                                             FunctionStatePtr state,
                                             Method method,
                                             absl::string_view request) {
  const cache::key::Digest input =
      state->digester(method).ComputeInput(request, &scratch);
  if (!input.keyed) return nullptr;
  return std::unique_ptr<VariedCall>(
      new VariedCall(table, std::move(state), method, input.key));
}

const Key* VariedCall::KeyBy(const KnownHintPtr& hint,
                             absl::string_view request) {
  for (const KeyByHint& one : keys_) {
    if (one.hint == hint) return &one.key;
  }
  const cache::key::Digest digest = state_->digester(method_).ComputeByHint(
      request, hint->hint, hint->prefix, &scratch);
  if (!digest.keyed) return nullptr;
  if (keys_.empty()) tag_.assign(digest.tag.begin(), digest.tag.end());
  keys_.push_back({hint, digest.key});
  return &keys_.back().key;
}

void VariedCall::MakeKeys(absl::string_view request) {
  const HintTable::Hints hints = table_.Of(input_);
  for (const KnownHintPtr& hint : hints) KeyBy(hint, request);
  // In the order of the hints.
  const auto rank = [&hints](const KeyByHint& one) {
    return std::find(hints.begin(), hints.end(), one.hint) - hints.begin();
  };
  std::stable_sort(keys_.begin(), keys_.end(),
                   [&rank](const KeyByHint& a, const KeyByHint& b) {
                     return rank(a) < rank(b);
                   });
}

bool VariedCall::Ended(const cache::store::Entry& entry, const Key& key,
                       const KnownHintPtr& hint, const Key& plain) const {
  const absl::Time started = entry.started();
  if (hint != nullptr && started <= hint->since) return true;
  bool purged = false;
  ForEachKey(plain, [&](const Key& other, const KnownHintPtr&) {
    purged = other != key && state_->bans.CoversKey(other, started);
    return purged;
  });
  return purged;
}

EntryRef VariedCall::FindFresh(absl::string_view request, absl::Time now) {
  for (const KnownHintPtr& hint : table_.Of(input_)) {
    const Key* const key = KeyBy(hint, request);
    if (key == nullptr) return nullptr;
    const EntryRef entry = state_->store.GetMemory(*key, now).entry;
    if (!state_->IsFreshForItself(*key, entry, now) ||
        entry->started() <= hint->since) {
      continue;
    }
    if (state_->bans.MayCoverKeys(entry->started())) return nullptr;
    SetFound(*key, hint);
    return entry;
  }
  return nullptr;
}

Found VariedCall::Find(const Key& plain, absl::Time now) {
  Found best;
  ForEachKey(plain, [&](const Key& key, const KnownHintPtr& hint) {
    const Found found = state_->store.GetMemory(key, now);
    best.expired |= found.expired;
    if (!found.entry || Ended(*found.entry, key, hint, plain)) return false;
    const bool fresh = state_->IsFreshForItself(key, found.entry, now);
    if (fresh || !best.entry ||
        found.entry->started() > best.entry->started()) {
      best.entry = found.entry;
      SetFound(key, hint);
    }
    return fresh;
  });
  best.expired &= !best.entry;
  return best;
}

const Key* VariedCall::FirstBelow(const Key& plain) {
  below_ = 0;
  return keys_.empty() ? &plain : &keys_[0].key;
}

const Key* VariedCall::NextBelow(const Key& plain) {
  if (below_ >= keys_.size()) return nullptr;
  return ++below_ == keys_.size() ? &plain : &keys_[below_].key;
}

Found VariedCall::FoundBelow(const Found& found, const Key& plain) {
  const bool is_plain = below_ >= keys_.size();
  const Key& key = is_plain ? plain : keys_[below_].key;
  const KnownHintPtr hint = is_plain ? nullptr : keys_[below_].hint;
  if (!found.entry) return found;
  if (Ended(*found.entry, key, hint, plain)) return {};
  SetFound(key, hint);
  return found;
}

bool VariedCall::ReadHint(const http2::Fields& trailers, absl::Status* why) {
  std::vector<absl::string_view> values;
  for (const http2::Field field : trailers) {
    if (field.name == cache::key::kHintField) values.push_back(field.value);
  }
  if (values.empty()) return false;
  const std::string text = absl::StrJoin(values, ",");
  KnownHintPtr hint;
  for (const KeyByHint& one : keys_) {
    if (one.hint->text == text) hint = one.hint;
  }
  if (hint == nullptr) {
    auto parsed = cache::key::Hint::Parse(values);
    if (!parsed.ok()) {
      *why = parsed.status();
      return false;
    }
    auto made = std::make_shared<KnownHint>();
    made->hint = *std::move(parsed);
    made->text = text;
    made->prefix = state_->digester(method_).HintPrefix(made->hint);
    hint = std::move(made);
    for (const KeyByHint& one : keys_) {
      if (one.hint->hint == hint->hint) hint = one.hint;
    }
  }
  const Key* const key =
      request_.valid() ? KeyBy(hint, request_.bytes()) : nullptr;
  answered_ = std::move(hint);
  if (key == nullptr) {
    // The hint is good for the next request.
    Learn(absl::InfinitePast());
    answered_ = nullptr;
    return false;
  }
  fill_key_ = *key;
  return true;
}

void VariedCall::Learn(absl::Time now) {
  if (answered_ != nullptr) table_.Learn(input_, answered_, now);
}

EntryRef VariedCall::EndOthers(const Key& plain, cache::FunctionId function,
                               absl::Time started, absl::Time now) {
  UpdateKeys();
  const Key& own = FillKey(plain);
  EntryRef later;
  ForEachKey(plain, [&](const Key& key, const KnownHintPtr& hint) {
    if (key == own) return false;
    const EntryRef entry = state_->store.GetMemory(key, now).entry;
    if (entry && entry->started() > started &&
        !Ended(*entry, key, hint, plain)) {
      later = entry;
      return false;
    }
    state_->store.Displace(key, started, function, now);
    return false;
  });
  return later;
}

void VariedCall::SupersedeOthers(cache::FunctionId function, bool found,
                                 absl::Time started, absl::Time now) {
  UpdateKeys();
  for (const KeyByHint& one : keys_) {
    const EntryRef entry = state_->store.GetMemory(one.key, now).entry;
    if (found && !entry) continue;
    state_->store.Supersede(one.key, started, function, now);
  }
}

bool VariedCall::IsFresh(const Key& plain, absl::Time now) const {
  bool fresh = false;
  ForEachKey(plain, [&](const Key& key, const KnownHintPtr& hint) {
    const EntryRef entry = state_->store.GetMemory(key, now).entry;
    fresh = state_->IsFreshForItself(key, entry, now) &&
            !Ended(*entry, key, hint, plain);
    return fresh;
  });
  return fresh;
}

Key VariedCall::KeyOfHit(const Key& plain, absl::Time now) const {
  Key best = plain;
  absl::Time latest = absl::InfinitePast();
  ForEachKey(plain, [&](const Key& key, const KnownHintPtr& hint) {
    for (const cache::store::Inspection& there : state_->store.Inspect(key)) {
      const cache::store::Entry& entry = *there.entry;
      if (Ended(entry, key, hint, plain)) continue;
      const bool fresh = state_->FreshnessForItself(key, entry, now) ==
                         cache::Freshness::kFresh;
      if (fresh || entry.started() > latest) {
        latest = entry.started();
        best = key;
      }
      if (fresh) return true;
    }
    return false;
  });
  return best;
}

}  // namespace fncache::proxy::serving
