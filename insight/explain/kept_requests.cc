// SPDX-License-Identifier: Apache-2.0
#include "insight/explain/kept_requests.h"

#include <algorithm>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/field_path.h"
#include "insight/request/nodes.h"

namespace fncache::insight::explain {
using request::kNoParent;
using request::Node;

namespace {

constexpr size_t kRequests = 4;  // of one identity
// Composites that no longer exist leave their requests. These go first.
constexpr absl::Duration kIdle = absl::Hours(24);

}  // namespace

uint64_t Twice(uint64_t threshold) {
  return threshold > kAll / 2 ? kAll : threshold * 2 + 1;
}

std::string Shape::Spell(uint32_t index) const {
  std::vector<uint32_t> chain;
  for (; index != kNoParent; index = names[index].parent) {
    chain.push_back(index);
  }
  std::string path;
  for (size_t i = chain.size(); i-- > 0;) {
    const uint32_t at = chain[i];
    const size_t end = at + 1 < names.size() ? names[at + 1].at : text.size();
    absl::StrAppend(
        &path, path.empty() ? "" : ".",
        absl::string_view(text).substr(names[at].at, end - names[at].at));
  }
  return path;
}

KeptRequest* KeptRequests::Find(const cache::key::Key& key) {
  const auto found = keys_.find(key);
  if (found == keys_.end()) return nullptr;
  const auto identity = identities_.find(found->second);
  if (identity == identities_.end()) return nullptr;
  for (KeptRequest& kept : identity->second.requests) {
    if (kept.key == key) return &kept;
  }
  return nullptr;
}

void KeptRequests::ForgetPaths(KeptRequest* kept) {
  if (kept->shape == nullptr) return;
  Refund(kept->path_bytes(), /*paths=*/true);
  std::vector<uint64_t>().swap(kept->values);
  // The table has one of the two references.
  if (kept->shape.use_count() == 2) {
    Refund(kept->shape->bytes(), /*paths=*/true);
    shapes_.erase(HashOfPaths(kept->shape->paths));
  }
  kept->shape = nullptr;
}

void KeptRequests::Forget(KeptRequest* kept) {
  ForgetPaths(kept);
  Refund(kept->bytes(), /*paths=*/false);
  keys_.erase(kept->key);
}

void KeptRequests::Forget(Identity* identity) {
  for (KeptRequest& kept : identity->requests) Forget(&kept);
  Refund(identity->bytes(), /*paths=*/false);
}

template <typename Which>
void KeptRequests::ForgetIdentities(Which which) {
  for (auto at = identities_.begin(); at != identities_.end();) {
    const auto one = at++;
    if (!which(one->second)) continue;
    Forget(&one->second);
    identities_.erase(one);
  }
}

void KeptRequests::Shrink(absl::Time now) {
  if (used_ <= bound_) return;
  ForgetIdentities(
      [now](const Identity& one) { return now - one.seen >= kIdle; });
  while (used_ > bound_ && !identities_.empty()) {
    if (used_for_paths_ > bound_ / 2) {
      paths_threshold_ /= 2;
      for (auto& identity : identities_) {
        if (identity.second.composite <= paths_threshold_) continue;
        for (KeptRequest& kept : identity.second.requests) {
          ForgetPaths(&kept);
        }
      }
    } else {
      threshold_ /= 2;
      paths_threshold_ = std::min(paths_threshold_, threshold_);
      ForgetIdentities(
          [this](const Identity& one) { return one.composite > threshold_; });
    }
  }
  // Tables never shrink without a rehash.
  identities_.rehash(0);
  keys_.rehash(0);
  shapes_.rehash(0);
}

void KeptRequests::Grow() {
  if (used_ - other_ >= bound_ / 4) return;
  uint64_t* const least = threshold_ < kAll ? &threshold_ : &paths_threshold_;
  *least = Twice(*least);
}

std::shared_ptr<const Shape> KeptRequests::ShapeOf(
    const RequestReader& reader) {
  std::shared_ptr<const Shape>& known = shapes_[reader.shape];
  if (known != nullptr) {
    // A second shape with the same hash is not kept.
    if (known->paths == reader.paths) return known;
    return nullptr;
  }
  auto shape = std::make_shared<Shape>();
  const absl::Span<const Node> nodes = reader.nodes.nodes();
  shape->paths = reader.paths;
  shape->names.reserve(reader.at.size());
  // The indices of the nodes in the shape. A node that no mask hides has
  // parents that no mask hides.
  std::vector<uint32_t> index(nodes.size(), kNoParent);
  for (size_t i = 0; i < reader.at.size(); ++i) {
    const Node& node = nodes[reader.at[i]];
    index[reader.at[i]] = static_cast<uint32_t>(i);
    shape->names.push_back(
        {node.parent == kNoParent ? kNoParent : index[node.parent],
         static_cast<uint32_t>(shape->text.size())});
    absl::StrAppend(&shape->text, node.index >= 0 ? "*" : SpellKey(node.name));
  }
  shape->text.shrink_to_fit();
  known = shape;
  Charge(shape->bytes(), /*paths=*/true);
  return known;
}

void KeptRequests::Remember(absl::string_view function,
                            absl::string_view generation,
                            const cache::key::Key& key,
                            const request::Outline& outline,
                            uint64_t identity_hash, uint64_t composite,
                            const RequestReader* reader, AnswerBefore before,
                            bool counts, absl::Time now) {
  if (composite > threshold_) return;
  // Under `key: tag`, or by chance, the key may be of another identity.
  const auto known = keys_.find(key);
  if (known != keys_.end()) {
    const auto other = identities_.find(known->second);
    for (auto at = other->second.requests.begin();
         at != other->second.requests.end(); ++at) {
      if (at->key != key) continue;
      Forget(&*at);
      other->second.requests.erase(at);
      break;
    }
  }
  const auto inserted = identities_.try_emplace(identity_hash);
  Identity& identity = inserted.first->second;
  if (inserted.second) {
    identity.function = std::string(function);
    identity.composite = composite;
    Charge(identity.bytes(), /*paths=*/false);
  }
  identity.seen = now;
  KeptRequest& kept = identity.requests.emplace_front();
  kept.key = key;
  kept.generation = absl::HashOf(generation);
  kept.sums = outline.sums;
  if (reader != nullptr) {
    kept.driftless = reader->driftless;
    kept.awaited = true;
    kept.counts = counts;
    kept.before = std::move(before);
  }
  keys_[key] = identity_hash;
  Charge(kept.bytes(), /*paths=*/false);
  if (reader != nullptr && composite <= paths_threshold_) {
    kept.shape = ShapeOf(*reader);
    if (kept.shape != nullptr) {
      kept.values = reader->values;
      Charge(kept.path_bytes(), /*paths=*/true);
    }
  }
  while (identity.requests.size() > kRequests) {
    Forget(&identity.requests.back());
    identity.requests.pop_back();
  }
  Shrink(now);
}

AnswerBefore KeptRequests::TakeBefore(KeptRequest* kept) {
  kept->awaited = false;
  Refund(kept->unread_bytes(), /*paths=*/false);
  return std::exchange(kept->before, AnswerBefore());
}

}  // namespace fncache::insight::explain
