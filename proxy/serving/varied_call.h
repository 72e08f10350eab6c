// SPDX-License-Identifier: Apache-2.0
// VariedCall: a request of a function with `vary: on`, under all its keys. A
// request has one key for each of the hints that are known for its input
// (hint_table.h), and its plain key. An entry under any of them answers it.
//
//   look-up: the keys by hint, newest hint first, then the plain key
//   answer:  a hint names the key under which it is stored; entries of earlier
//            calls under the other keys end
//
// So of the answers that this request brought, no look-up finds an earlier one
// after a later one.
//
// Not thread-safe: a call uses one object, and its run a copy.
#ifndef FNCACHE_PROXY_SERVING_VARIED_CALL_H_
#define FNCACHE_PROXY_SERVING_VARIED_CALL_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "cache/key/digest.h"
#include "cache/key/key.h"
#include "cache/key/tag_fields.h"
#include "cache/store/store.h"
#include "http2/fields.h"
#include "proxy/serving/function_state.h"
#include "proxy/serving/hint_table.h"
#include "proxy/transport/message.h"

namespace fncache::proxy::serving {

class VariedCall {
 public:
  // `request` is decompressed and in one piece. Null: its input cannot be read,
  // so it has no keys by hint. `table` outlives this object.
  static std::unique_ptr<VariedCall> Make(HintTable* table,
                                          FunctionStatePtr state, Method method,
                                          absl::string_view request);

  // Returns the entry of the first key by hint under which there is a fresh one
  // in memory, or null. It makes no key after that. Also null if a purge of
  // another key may end that entry: Find tells, with all keys.
  cache::store::EntryRef FindFresh(absl::string_view request, absl::Time now);
  // meta.tag, once FindFresh has returned an entry.
  absl::string_view tag() const { return {tag_.data(), tag_.size()}; }
  // Makes the keys by all hints that are known now.
  void MakeKeys(absl::string_view request);
  // Looks in memory under all keys. Returns the first fresh entry; else the one
  // of the latest call.
  cache::store::Found Find(const cache::key::Key& plain, absl::Time now);

  // Looks in lower tiers: the first key, and then the next one. Null: there is
  // none.
  const cache::key::Key* FirstBelow(const cache::key::Key& plain);
  const cache::key::Key* NextBelow(const cache::key::Key& plain);
  // The look-up under the last one found this. Returns what may be used of it.
  cache::store::Found FoundBelow(const cache::store::Found& found,
                                 const cache::key::Key& plain);

  // The key of the entry that was found last, and its hint. No hint: it is the
  // plain key, or nothing was found.
  const cache::key::Key& entry_key() const { return entry_key_; }
  bool by_hint() const { return by_hint_ != nullptr; }
  void SetPlain() { by_hint_ = nullptr; }

  // The newest hint for its input; null if none is known.
  const cache::key::Hint* newest() const {
    return keys_.empty() ? nullptr : &keys_[0].hint->hint;
  }

  // For the run. The request stays in memory, for a hint that is new.
  void KeepRequest(transport::Message request) {
    request_ = std::move(request);
  }
  // Reads the hint of a response with these trailers. False: it has none that
  // can be used, and is stored under the plain key. `why` is set if it has one.
  bool ReadHint(const http2::Fields& trailers, absl::Status* why);
  bool pure() const { return answered_ && answered_->hint.pure(); }
  // The key under which the response is stored.
  const cache::key::Key& FillKey(const cache::key::Key& plain) const {
    return answered_ == nullptr ? plain : fill_key_;
  }
  // It was stored, by a call that started at `started`: ends the entries of
  // earlier calls under the other keys. Returns that of a later call, if there
  // is one: then the entry that was just stored must go.
  cache::store::EntryRef EndOthers(const cache::key::Key& plain,
                                   cache::FunctionId function,
                                   absl::Time started, absl::Time now);
  // It stays stored: the hint is the newest from now on.
  void Learn(absl::Time now);
  // A response is not stored: marks the entries of earlier calls under all keys
  // by hint (TieredStore::Supersede), or with `found` only of those in memory.
  void SupersedeOthers(cache::FunctionId function, bool found,
                       absl::Time started, absl::Time now);
  // Whether a fresh entry in memory is under a key by hint.
  bool IsFresh(const cache::key::Key& plain, absl::Time now) const;
  // The key whose entry, in any tier, answers the request. The plain key if
  // there is none.
  cache::key::Key KeyOfHit(const cache::key::Key& plain, absl::Time now) const;

 private:
  struct KeyByHint {
    KnownHintPtr hint;
    cache::key::Key key;
  };

  VariedCall(HintTable* table, FunctionStatePtr state, Method method,
             const cache::key::Key& input)
      : table_(*table),
        state_(std::move(state)),
        method_(method),
        input_(input) {}

  // Makes the keys by hints that came while the function ran.
  void UpdateKeys() {
    if (request_.valid()) MakeKeys(request_.bytes());
  }
  // The key by this hint, made if it is new. Null: it cannot be made.
  const cache::key::Key* KeyBy(const KnownHintPtr& hint,
                               absl::string_view request);
  // Calls use(key, hint) for all keys, the plain one last and without a hint,
  // until it returns true.
  template <typename Use>
  void ForEachKey(const cache::key::Key& plain, Use use) const {
    for (const KeyByHint& one : keys_) {
      if (use(one.key, one.hint)) return;
    }
    use(plain, nullptr);
  }
  // The entry counts as none: its hint was lost, or another of the request's
  // keys was purged, after its call started.
  bool Ended(const cache::store::Entry& entry, const cache::key::Key& key,
             const KnownHintPtr& hint, const cache::key::Key& plain) const;
  void SetFound(const cache::key::Key& key, const KnownHintPtr& hint) {
    entry_key_ = key;
    by_hint_ = hint;
  }

  HintTable& table_;
  const FunctionStatePtr state_;
  const Method method_;
  const cache::key::Key input_;
  // The newest hint first. Those that are not known any more follow.
  absl::InlinedVector<KeyByHint, HintTable::kHintsOfInput> keys_;
  absl::InlinedVector<char, cache::key::kHexTagSize> tag_;
  cache::key::Key entry_key_;
  KnownHintPtr by_hint_;
  size_t below_ = 0;
  transport::Message request_;
  KnownHintPtr answered_;  // the response's
  cache::key::Key fill_key_;
};

}  // namespace fncache::proxy::serving

#endif  // FNCACHE_PROXY_SERVING_VARIED_CALL_H_
