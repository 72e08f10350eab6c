// SPDX-License-Identifier: Apache-2.0
#include "insight/explain/miss_memory.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <limits>
#include <list>
#include <map>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "cache/key/field_path.h"
#include "common/mutex.h"
#include "insight/explain/proposed_mask.h"
#include "insight/request/identity.h"
#include "insight/request/nodes.h"
#include "insight/request/outline.h"

namespace fncache::insight::explain {
namespace {

using cache::key::MaskNode;
using request::kNoParent;
using request::Node;
using request::NodeKind;
using request::Section;

constexpr size_t kRequests = 4;  // of one identity
constexpr size_t kCounted = 64;  // of each top list
constexpr size_t kFunctions = 256;
constexpr size_t kReaders = 4;  // kept; as many as there are cores suffice
constexpr uint64_t kAll = std::numeric_limits<uint64_t>::max();
// Composites that are gone leave what they were; it goes first.
constexpr absl::Duration kIdle = absl::Hours(24);
// A hash table has two slots for each entry after it has grown, and a control
// byte for each slot.
constexpr size_t kSlots = 2;

// How often it is seen whether there is CPU time for more composites or only
// for fewer; so many are looked at in any case.
constexpr absl::Duration kBalanced = absl::Milliseconds(100);
constexpr uint64_t kLeastAffordable = kAll / 64;
// A composite that was not looked at for lack of time has come again after
// this, if it is there: runners ask for each every few minutes.
constexpr absl::Duration kLeftOut = absl::Hours(1);

// Stands for the value of nodes that have none to compare.
constexpr uint64_t kNotCompared = 0;

absl::Duration TimeOf(clockid_t clock) {
  return absl::Nanoseconds(ReadClock(clock));
}

uint64_t HashOfPaths(const std::vector<uint64_t>& paths) {
  return absl::HashOf(
      absl::string_view(reinterpret_cast<const char*>(paths.data()),
                        paths.size() * sizeof paths[0]));
}

uint64_t HashOfComposite(const request::CompositeName& name) {
  return absl::HashOf(name.kind, name.object_namespace, name.name, name.uid);
}

// What an outline and the tables took at most, by how long it took: to ask for
// the thread's CPU time takes a quarter of that, and the thread may have
// waited.
absl::Duration LeastOf(absl::Duration wall, uint64_t size) {
  return std::min(wall, absl::Microseconds(10) + absl::Nanoseconds(1) * size);
}

// The paths of a request's nodes, in the order of nodes. Most requests have
// those of the one before, so that they are kept once.
struct Shape {
  struct Name {
    uint32_t parent;  // index in the shape, or kNoParent
    uint32_t at;      // of its text in `text`, to the next one's
  };
  std::vector<uint64_t> paths;
  std::vector<Name> names;
  std::string text;

  uint64_t bytes() const {
    return sizeof *this + paths.capacity() * sizeof paths[0] +
           names.capacity() * sizeof names[0] + text.capacity() +
           kSlots * (sizeof(uint64_t) + sizeof(void*) + 1);
  }
  // As a mask is written.
  std::string Spell(uint32_t index) const {
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
};

enum class Fate : uint8_t { kPending, kStored, kNotStored, kPurged };

struct KeptRequest {
  cache::key::Key key;
  uint64_t generation = 0;
  Fate fate = Fate::kPending;
  bool secrets = false;  // in what is stored
  NotStored why = NotStored::kError;
  absl::Time until = absl::InfinitePast();
  std::array<uint64_t, request::kSections> sums{};
  std::shared_ptr<const Shape> shape;  // null: only the sums are known
  std::vector<uint64_t> values;        // of the shape's nodes

  uint64_t path_bytes() const { return values.capacity() * sizeof values[0]; }
  uint64_t bytes() const {
    return sizeof *this + 2 * sizeof(void*) + path_bytes() +
           kSlots * (sizeof(std::pair<cache::key::Key, uint64_t>) + 1);
  }
};

struct Identity {
  std::string function;
  uint64_t composite = 0;
  absl::Time seen;
  std::list<KeptRequest> requests;  // the newest first

  uint64_t bytes() const {
    return kSlots * (sizeof(std::pair<uint64_t, Identity>) + 1) +
           function.capacity();
  }
};

class SpaceSaving {
 public:
  void Add(const std::string& what) {
    if (what.empty()) return;
    const auto found = counts_.find(what);
    if (found != counts_.end()) {
      ++found->second;
      return;
    }
    uint64_t count = 0;
    if (counts_.size() >= kCounted) {
      const auto rarest = std::min_element(
          counts_.begin(), counts_.end(),
          [](const auto& a, const auto& b) { return a.second < b.second; });
      count = rarest->second;
      counts_.erase(rarest);
    }
    counts_[what] = count + 1;
  }

  MissMemory::Top Most(size_t most) const {
    MissMemory::Top top(counts_.begin(), counts_.end());
    std::stable_sort(top.begin(), top.end(), [](const auto& a, const auto& b) {
      return a.second > b.second;
    });
    if (top.size() > most) top.resize(most);
    return top;
  }

 private:
  std::map<std::string, uint64_t> counts_;
};

struct Function {
  SpaceSaving paths;
  SpaceSaving writers;
  SpaceSaving masks;
};

// Names of Kubernetes are shorter; paths of masks mostly, too.
constexpr size_t kLongestText = 512;

// A text that is kept, cut where a character ends.
std::string Cut(const std::string& text) {
  if (text.size() <= kLongestText) return text;
  size_t end = kLongestText;
  while (end > 0 && (text[end] & 0xc0) == 0x80) --end;
  return text.substr(0, end);
}

// The last misses, oldest first.
class LastMisses {
 public:
  void Add(MissMemory::Miss miss, uint64_t bound) {
    bytes_ += BytesOf(miss);
    misses_.push_back(std::move(miss));
    while (bytes_ > bound || misses_.size() > MissMemory::kLastMisses) {
      bytes_ -= BytesOf(misses_.front());
      misses_.pop_front();
    }
  }

  std::vector<MissMemory::Miss> Last(size_t most,
                                     absl::string_view function) const {
    std::vector<MissMemory::Miss> last;
    for (auto at = misses_.rbegin(); at != misses_.rend(); ++at) {
      if (last.size() >= most) break;
      if (function.empty() || at->function == function) last.push_back(*at);
    }
    return last;
  }

  uint64_t bytes() const { return bytes_; }

 private:
  static uint64_t BytesOf(const MissMemory::Miss& miss) {
    uint64_t bytes = sizeof miss;
    for (const std::string* text :
         {&miss.function, &miss.composite.api_version, &miss.composite.kind,
          &miss.composite.object_namespace, &miss.composite.name,
          &miss.composite.uid, &miss.why.detail, &miss.why.section,
          &miss.why.writer}) {
      // Short ones lie in the text itself.
      if (text->capacity() > std::string().capacity()) {
        bytes += text->capacity() + 1;
      }
    }
    for (const std::string& mask : miss.why.masks) {
      bytes += sizeof(std::string) + mask.capacity() + 1;
    }
    return bytes;
  }

  std::deque<MissMemory::Miss> misses_;
  uint64_t bytes_ = 0;
};

// What is read of a request before anything is locked, with the memory that
// this takes.
struct Reader {
  explicit Reader(const request::FingerprintSecret& secret) : nodes(secret) {}

  request::RequestNodes nodes;
  // Of the nodes that no mask hides: where they stand, paths and values.
  std::vector<uint32_t> at;
  std::vector<uint64_t> paths;
  std::vector<uint64_t> values;
  uint64_t shape = 0;  // hash of the paths
  // For each node, where the masks' walk stands, null where no mask goes, and
  // whether a mask hides it.
  std::vector<const MaskNode*> walk;
  std::vector<bool> hidden;

  bool Read(const cache::key::MaskSet& masks,
            absl::Span<const absl::string_view> slices) {
    if (!nodes.Read(slices)) return false;
    const absl::Span<const Node> all = nodes.nodes();
    at.clear();
    paths.clear();
    values.clear();
    walk.assign(masks.empty() ? 0 : all.size(), nullptr);
    hidden.assign(masks.empty() ? 0 : all.size(), false);
    for (size_t i = 0; i < all.size(); ++i) {
      if (!masks.empty() && Hidden(masks, i)) continue;
      at.push_back(static_cast<uint32_t>(i));
      paths.push_back(all[i].path);
      values.push_back(ValueOf(all[i]));
    }
    shape = HashOfPaths(paths);
    return true;
  }

 private:
  static uint64_t ValueOf(const Node& node) {
    if (node.kind == NodeKind::kMap) return kNotCompared;
    const uint64_t value =
        absl::HashOf(static_cast<int>(node.kind), node.value);
    return value == kNotCompared ? 1 : value;
  }

  bool Hidden(const cache::key::MaskSet& masks, size_t i) {
    const Node& node = nodes.nodes()[i];
    const bool top = node.parent == kNoParent;
    if (!top && hidden[node.parent]) {
      hidden[i] = true;
      return true;
    }
    const MaskNode* const above = top ? masks.root() : walk[node.parent];
    // No mask names unknown fields: they go with what they are in.
    if (above == nullptr || node.kind == NodeKind::kUnknown) return false;
    walk[i] = node.index >= 0 ? above->element() : above->Find(node.name);
    hidden[i] = walk[i] != nullptr && walk[i]->masked;
    return hidden[i];
  }
};

// How a request differs from a kept one.
struct Difference {
  size_t count = 0;
  // The first of the request's own nodes that is new or another, an index in
  // Reader::at; else the first in order of those that it has no more, an index
  // in the kept one's shape.
  absl::optional<uint32_t> first;
  std::vector<uint32_t> gone;
  // All of the request's own nodes that are new or another, up to
  // MissMemory::kMostChanged; and of each whether it is new.
  std::vector<uint32_t> changed;
  std::vector<bool> is_new;
};

Difference Compare(const Reader& now, const KeptRequest& before) {
  Difference difference;
  const std::vector<uint64_t>& old_paths = before.shape->paths;
  const auto differs = [&](size_t i, bool is_new) {
    ++difference.count;
    if (!difference.first.has_value()) {
      difference.first = static_cast<uint32_t>(i);
    }
    if (difference.changed.size() < MissMemory::kMostChanged) {
      difference.changed.push_back(static_cast<uint32_t>(i));
      difference.is_new.push_back(is_new);
    }
  };
  const size_t shared = std::min(now.paths.size(), old_paths.size());
  size_t same = 0;
  for (; same < shared && now.paths[same] == old_paths[same]; ++same) {
    if (now.values[same] != before.values[same])
      differs(same, /*is_new=*/false);
  }
  if (same == now.paths.size() && same == old_paths.size()) return difference;
  // From here on they have other nodes, or the same ones in another order.
  absl::flat_hash_map<uint64_t, uint32_t> rest;
  rest.reserve(old_paths.size() - same);
  for (size_t i = same; i < old_paths.size(); ++i) {
    rest.emplace(old_paths[i], static_cast<uint32_t>(i));
  }
  for (size_t i = same; i < now.paths.size(); ++i) {
    const auto old = rest.find(now.paths[i]);
    if (old == rest.end()) {
      if (now.values[i] != kNotCompared) differs(i, /*is_new=*/true);
      continue;
    }
    if (now.values[i] != before.values[old->second]) {
      differs(i, /*is_new=*/false);
    }
    rest.erase(old);
  }
  for (const auto& old : rest) {
    if (before.values[old.second] == kNotCompared) continue;
    ++difference.count;
    difference.gone.push_back(old.second);
  }
  return difference;
}

// The sections that a mask leads into.
std::array<bool, request::kSections> MaskedSections(
    const cache::key::MaskSet& masks) {
  std::array<bool, request::kSections> masked{};
  const auto mark = [&masked](Section section) {
    masked[static_cast<size_t>(section)] = true;
  };
  for (const cache::key::MaskPath& path : masks.paths()) {
    if (path[0].name == "context") {
      mark(Section::kContext);
    } else if (path[0].name == "observed") {
      mark(path.size() > 1 && path[1].name == "composite"
               ? Section::kComposite
               : Section::kObservedResource);
    } else {
      mark(Section::kRequiredResource);
    }
  }
  return masked;
}

// The section that changed. None if it could be one of several that masks lead
// into, or if the bytes are the same ones in another order.
absl::optional<Section> ChangedSection(
    const std::array<uint64_t, request::kSections>& now,
    const std::array<uint64_t, request::kSections>& before,
    const cache::key::MaskSet& masks) {
  const auto masked = MaskedSections(masks);
  absl::optional<Section> only_masked;
  size_t masked_count = 0;
  for (size_t i = 0; i < request::kSections; ++i) {
    if (now[i] == before[i]) continue;
    if (!masked[i]) return static_cast<Section>(i);
    only_masked = static_cast<Section>(i);
    ++masked_count;
  }
  return masked_count == 1 ? only_masked : absl::nullopt;
}

size_t SectionsDiffering(const std::array<uint64_t, request::kSections>& a,
                         const std::array<uint64_t, request::kSections>& b) {
  size_t differing = 0;
  for (size_t i = 0; i < request::kSections; ++i) differing += a[i] != b[i];
  return differing;
}

uint64_t Twice(uint64_t threshold) {
  return threshold > kAll / 2 ? kAll : threshold * 2 + 1;
}

double ShareOf(uint64_t threshold) {
  return static_cast<double>(threshold) / static_cast<double>(kAll);
}

}  // namespace

const char* NotStoredName(NotStored why) {
  switch (why) {
    case NotStored::kNoTtl:
      return "no-ttl";
    case NotStored::kFatal:
      return "fatal";
    case NotStored::kSecrets:
      return "secrets";
    case NotStored::kTooLarge:
      return "too-large";
    case NotStored::kModeOff:
      return "mode-off";
    case NotStored::kError:
      return "error";
    case NotStored::kAbandoned:
      break;
  }
  return "abandoned";
}

struct MissMemory::Impl {
  Impl(const MissMemoryOptions& options, Clock* clock)
      : options(options),
        clock(clock),
        secret(request::FingerprintSecret::Random()),
        paths_left(options.cpu_start),
        left(options.cpu_start),
        process(TimeOf(CLOCK_PROCESS_CPUTIME_ID)),
        process_read(clock->Now()) {}

  const MissMemoryOptions options;
  Clock* const clock;
  const request::FingerprintSecret secret;

  mutable Mutex mutex;
  absl::Duration spent ABSL_GUARDED_BY(mutex);
  // CPU time that there is for paths, and for anything at all.
  absl::Duration paths_left ABSL_GUARDED_BY(mutex);
  absl::Duration left ABSL_GUARDED_BY(mutex);
  // As last read, and when.
  absl::Duration process ABSL_GUARDED_BY(mutex);
  absl::Time process_read ABSL_GUARDED_BY(mutex);
  std::vector<std::unique_ptr<Reader>> readers ABSL_GUARDED_BY(mutex);
  absl::flat_hash_map<uint64_t, Identity> identities ABSL_GUARDED_BY(mutex);
  absl::flat_hash_map<cache::key::Key, uint64_t> keys ABSL_GUARDED_BY(mutex);
  absl::flat_hash_map<uint64_t, std::shared_ptr<const Shape>> shapes
      ABSL_GUARDED_BY(mutex);
  uint64_t used ABSL_GUARDED_BY(mutex) = 0;
  uint64_t used_for_paths ABSL_GUARDED_BY(mutex) = 0;  // of `used`
  // Composites whose hash is at most this are remembered, and their paths.
  uint64_t threshold ABSL_GUARDED_BY(mutex) = kAll;
  uint64_t paths_threshold ABSL_GUARDED_BY(mutex) = kAll;
  std::map<std::string, Function> functions ABSL_GUARDED_BY(mutex);
  LastMisses last ABSL_GUARDED_BY(mutex);  // counted in `used`
  // There is CPU time for composites whose hash is at most this.
  uint64_t affordable ABSL_GUARDED_BY(mutex) = kAll;
  absl::Time balanced ABSL_GUARDED_BY(mutex) = absl::InfinitePast();
  // The least that `affordable` was of late, and when it last was not all.
  uint64_t always_seen ABSL_GUARDED_BY(mutex) = kAll;
  absl::Time left_out ABSL_GUARDED_BY(mutex) = absl::InfinitePast();
  // The least of `threshold` and `affordable`: others are not looked at.
  // Written under the lock.
  std::atomic<uint64_t> looked_at{kAll};

  KeptRequest* Find(const cache::key::Key& key)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    const auto found = keys.find(key);
    if (found == keys.end()) return nullptr;
    const auto identity = identities.find(found->second);
    if (identity == identities.end()) return nullptr;
    for (KeptRequest& kept : identity->second.requests) {
      if (kept.key == key) return &kept;
    }
    return nullptr;
  }

  void Charge(uint64_t bytes, bool paths) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    used += bytes;
    if (paths) used_for_paths += bytes;
  }
  void Refund(uint64_t bytes, bool paths) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    used -= bytes;
    if (paths) used_for_paths -= bytes;
  }

  void ForgetPaths(KeptRequest* kept) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    if (kept->shape == nullptr) return;
    Refund(kept->path_bytes(), /*paths=*/true);
    std::vector<uint64_t>().swap(kept->values);
    // One is held by the table.
    if (kept->shape.use_count() == 2) {
      Refund(kept->shape->bytes(), /*paths=*/true);
      shapes.erase(HashOfPaths(kept->shape->paths));
    }
    kept->shape = nullptr;
  }
  void Forget(KeptRequest* kept) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    ForgetPaths(kept);
    Refund(kept->bytes(), /*paths=*/false);
    keys.erase(kept->key);
  }
  void Forget(Identity* identity) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    for (KeptRequest& kept : identity->requests) Forget(&kept);
    Refund(identity->bytes(), /*paths=*/false);
  }
  template <typename Which>
  void ForgetIdentities(Which which) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    for (auto at = identities.begin(); at != identities.end();) {
      const auto one = at++;
      if (!which(one->second)) continue;
      Forget(&one->second);
      identities.erase(one);
    }
  }

  void Shrink(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    if (used <= options.bytes) return;
    ForgetIdentities(
        [now](const Identity& one) { return now - one.seen >= kIdle; });
    while (used > options.bytes && !identities.empty()) {
      if (used_for_paths > options.bytes / 2) {
        paths_threshold /= 2;
        for (auto& identity : identities) {
          if (identity.second.composite <= paths_threshold) continue;
          for (KeptRequest& kept : identity.second.requests) {
            ForgetPaths(&kept);
          }
        }
      } else {
        threshold /= 2;
        paths_threshold = std::min(paths_threshold, threshold);
        ForgetIdentities([this](const Identity& one)
                             ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
                               return one.composite > threshold;
                             });
      }
    }
    // Tables keep the room that they once needed.
    identities.rehash(0);
    keys.rehash(0);
    shapes.rehash(0);
  }

  void Grow() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    if (used - last.bytes() >= options.bytes / 4) return;
    uint64_t* const least = threshold < kAll ? &threshold : &paths_threshold;
    *least = Twice(*least);
  }

  std::shared_ptr<const Shape> ShapeOf(const Reader& reader)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    std::shared_ptr<const Shape>& known = shapes[reader.shape];
    if (known != nullptr) {
      // Two that share a hash take turns.
      if (known->paths == reader.paths) return known;
      return nullptr;
    }
    auto shape = std::make_shared<Shape>();
    const absl::Span<const Node> nodes = reader.nodes.nodes();
    shape->paths = reader.paths;
    shape->names.reserve(reader.at.size());
    // Where the nodes are in the shape. What no mask hides has parents that
    // none hides.
    std::vector<uint32_t> index(nodes.size(), kNoParent);
    for (size_t i = 0; i < reader.at.size(); ++i) {
      const Node& node = nodes[reader.at[i]];
      index[reader.at[i]] = static_cast<uint32_t>(i);
      shape->names.push_back(
          {node.parent == kNoParent ? kNoParent : index[node.parent],
           static_cast<uint32_t>(shape->text.size())});
      absl::StrAppend(&shape->text,
                      node.index >= 0 ? "*" : cache::key::SpellKey(node.name));
    }
    shape->text.shrink_to_fit();
    known = shape;
    Charge(shape->bytes(), /*paths=*/true);
    return known;
  }

  // `reader`: null where only the outline was read.
  void Remember(absl::string_view function, absl::string_view generation,
                const cache::key::Key& key, const request::Outline& outline,
                uint64_t identity_hash, uint64_t composite,
                const Reader* reader, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    if (composite > threshold) return;
    // Under `key: tag`, or by chance, it may be of another identity.
    const auto known = keys.find(key);
    if (known != keys.end()) {
      const auto other = identities.find(known->second);
      for (auto at = other->second.requests.begin();
           at != other->second.requests.end(); ++at) {
        if (at->key != key) continue;
        Forget(&*at);
        other->second.requests.erase(at);
        break;
      }
    }
    const auto inserted = identities.try_emplace(identity_hash);
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
    keys[key] = identity_hash;
    Charge(kept.bytes(), /*paths=*/false);
    if (reader != nullptr && composite <= paths_threshold) {
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

  // What the key's own fate says; false where it says nothing.
  bool OfKey(const cache::key::Key& key, absl::Time now, Explanation* said)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    const KeptRequest* kept = Find(key);
    if (kept == nullptr) return false;
    switch (kept->fate) {
      case Fate::kPending:
        said->reason = trace::Reason::kUnknown;
        break;
      case Fate::kStored:
        said->reason = kept->until <= now ? trace::Reason::kExpired
                                          : trace::Reason::kEvicted;
        break;
      case Fate::kNotStored:
        said->reason = trace::Reason::kNotStored;
        said->detail = NotStoredName(kept->why);
        break;
      case Fate::kPurged:
        said->reason = trace::Reason::kPurged;
        break;
    }
    return true;
  }

  // The first path's first.
  static std::vector<std::string> MasksFor(const Reader& reader,
                                           const KeptRequest& nearest,
                                           const Difference& difference) {
    std::vector<std::string> masks;
    // Whether one is proposed; known ones are not told twice.
    const auto add = [&masks](const std::string& path, bool leaf) {
      std::string mask = ProposedMask(path, leaf);
      if (mask.empty()) return false;
      if (std::find(masks.begin(), masks.end(), mask) == masks.end()) {
        masks.push_back(std::move(mask));
      }
      return true;
    };
    if (difference.count > kMostChanged) return {};
    // What came or went is what functions wait for.
    for (size_t i = 0; i < difference.changed.size(); ++i) {
      const uint32_t at = reader.at[difference.changed[i]];
      const bool leaf =
          !difference.is_new[i] && IsLeaf(reader.nodes.nodes()[at].kind);
      if (!add(reader.nodes.Spell(at), leaf)) return {};
    }
    for (const uint32_t gone : difference.gone) {
      if (!add(nearest.shape->Spell(gone), /*leaf=*/false)) return {};
    }
    return masks;
  }

  void ExplainChange(const Reader& reader, const KeptRequest& nearest,
                     const Difference& difference, Explanation* said) {
    said->reason = trace::Reason::kChanged;
    said->masks = MasksFor(reader, nearest, difference);
    if (difference.first.has_value()) {
      const uint32_t at = reader.at[*difference.first];
      const std::string path = reader.nodes.Spell(at);
      said->detail = reader.nodes.SpellMask(at);
      said->section = request::SectionOf(path);
      const std::string object = request::ObjectOf(path);
      if (object.empty()) return;
      for (const request::ObjectWriter& writer :
           request::WritersOf(reader.nodes.nodes())) {
        if (writer.object == object) said->writer = writer.manager;
      }
      return;
    }
    // The first by name of what is gone: its parents are.
    for (const uint32_t gone : difference.gone) {
      std::string path = nearest.shape->Spell(gone);
      if (said->detail.empty() || path < said->detail) {
        said->detail = std::move(path);
      }
    }
    said->section = request::SectionOf(said->detail);
  }

  void ExplainByNearest(absl::string_view generation,
                        const request::Outline& outline, uint64_t identity,
                        uint64_t composite, const cache::key::MaskSet& masks,
                        const Reader* reader, Explanation* said)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    const auto found = identities.find(identity);
    if (found == identities.end() || found->second.requests.empty()) {
      // Of a composite that is not remembered, or was not looked at, nobody
      // knows.
      said->reason = composite <= std::min(threshold, always_seen)
                         ? trace::Reason::kNew
                         : trace::Reason::kUnknown;
      return;
    }
    const std::list<KeptRequest>& all = found->second.requests;
    const KeptRequest* nearest = nullptr;
    Difference fewest;
    for (const KeptRequest& kept : all) {
      if (reader == nullptr || kept.shape == nullptr) continue;
      Difference difference = Compare(*reader, kept);
      if (nearest != nullptr && difference.count >= fewest.count) continue;
      nearest = &kept;
      fewest = std::move(difference);
    }
    if (nearest != nullptr && fewest.count > 0) {
      return ExplainChange(*reader, *nearest, fewest, said);
    }
    if (nearest != nullptr) {
      // The same in all that counts: it has another key for another reason.
      said->reason = nearest->generation != absl::HashOf(generation)
                         ? trace::Reason::kGeneration
                         : trace::Reason::kUnknown;
      return;
    }
    nearest = &*std::min_element(
        all.begin(), all.end(),
        [&outline](const KeptRequest& a, const KeptRequest& b) {
          return SectionsDiffering(a.sums, outline.sums) <
                 SectionsDiffering(b.sums, outline.sums);
        });
    if (nearest->generation != absl::HashOf(generation) &&
        nearest->sums == outline.sums) {
      said->reason = trace::Reason::kGeneration;
      return;
    }
    said->reason = trace::Reason::kChanged;
    const auto section = ChangedSection(outline.sums, nearest->sums, masks);
    if (section.has_value()) said->section = request::SectionName(*section);
  }

  // Of a function; of all where that is "".
  template <typename Do>
  void ForEach(absl::string_view function, Do change)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    for (auto& identity : identities) {
      if (!function.empty() && identity.second.function != function) continue;
      for (KeptRequest& kept : identity.second.requests) change(&kept);
    }
  }
  // What is under way is not stored after a purge either.
  static void Purge(KeptRequest* kept) {
    if (kept->fate == Fate::kStored || kept->fate == Fate::kPending) {
      kept->fate = Fate::kPurged;
    }
  }

  // What the time since the last look adds to both accounts. To look takes
  // microseconds, of which each thread has its share.
  void Earn(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    // The clock may be set back.
    const absl::Duration elapsed =
        std::max(now - process_read, absl::ZeroDuration());
    if (now >= process_read && elapsed < absl::Milliseconds(20)) return;
    process_read = now;
    const absl::Duration before = process;
    process = TimeOf(CLOCK_PROCESS_CPUTIME_ID);
    const absl::Duration earned = std::max(
        (process - before) * options.cpu_share, elapsed * options.core_share);
    left += earned;
    if (options.cpu_share > 0) {
      paths_left += earned * (options.paths_cpu_share / options.cpu_share);
    }
    // What was saved does not last for ever. Nor does what outlines took too
    // much, of which some are read in any case; paths are read only of what is
    // there, so that not more is owed than what was under way took.
    paths_left = std::min(paths_left, options.cpu_start);
    left = std::clamp(left, -options.cpu_start, options.cpu_start);
  }
  void Spend(absl::Duration paths, absl::Duration rest)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    spent += paths + rest;
    paths_left -= paths;
    left -= paths + rest;
  }
  bool PathsAffordable(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    if (options.paths_cpu_share >= 1) return true;
    Earn(now);
    return paths_left > absl::ZeroDuration();
  }
  // Half as many composites where too much was spent, twice as many where there
  // is time: those that stay know their past.
  void Balance(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    if (options.cpu_share >= 1) return;
    if (now >= balanced && now - balanced < kBalanced) return;
    balanced = now;
    Earn(now);
    if (left <= absl::ZeroDuration()) {
      affordable = std::max(affordable / 2, kLeastAffordable);
    } else if (left > options.cpu_start / 2) {
      affordable = Twice(affordable);
    }
    if (now - left_out > kLeftOut) always_seen = kAll;
    if (affordable == kAll) return;
    left_out = now;
    always_seen = std::min(always_seen, affordable);
  }

  std::unique_ptr<Reader> TakeReader() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    if (readers.empty()) return std::make_unique<Reader>(secret);
    std::unique_ptr<Reader> reader = std::move(readers.back());
    readers.pop_back();
    return reader;
  }

  void CountChange(absl::string_view function, const Explanation& said)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    if (said.reason != trace::Reason::kChanged) return;
    auto found = functions.find(std::string(function));
    if (found == functions.end()) {
      if (functions.size() >= kFunctions) return;
      found = functions.try_emplace(std::string(function)).first;
    }
    found->second.paths.Add(said.detail.empty() ? said.section : said.detail);
    found->second.writers.Add(said.writer);
    for (const std::string& mask : said.masks) found->second.masks.Add(mask);
  }

  void KeepLast(absl::string_view function,
                const request::CompositeName& composite,
                const cache::key::Key& key, const Explanation& said,
                absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    Miss miss;
    miss.time = now;
    miss.function = std::string(function);
    miss.composite.kind = Cut(composite.kind);
    miss.composite.object_namespace = Cut(composite.object_namespace);
    miss.composite.name = Cut(composite.name);
    miss.key = key;
    miss.why = {
        said.reason, Cut(said.detail), said.section, Cut(said.writer), {}};
    if (!said.masks.empty() && said.masks[0].size() <= kLongestText) {
      miss.why.masks = {said.masks[0]};
    }
    used -= last.bytes();
    last.Add(std::move(miss), options.bytes / 16);
    used += last.bytes();
    Shrink(now);
  }
};

MissMemory::MissMemory(const MissMemoryOptions& options, Clock* clock)
    : impl_(std::make_unique<Impl>(options, clock)) {}
MissMemory::~MissMemory() = default;

Explanation MissMemory::Explain(absl::string_view function, Method method,
                                absl::string_view generation,
                                const cache::key::Key& key,
                                const cache::key::MaskSet& masks,
                                absl::Span<const absl::string_view> slices,
                                bool expired) {
  Explanation said;
  const absl::Duration start = TimeOf(CLOCK_MONOTONIC);
  const absl::Time now = impl_->clock->Now();
  uint64_t size = 0;
  for (const absl::string_view slice : slices) size += slice.size();
  request::Outline outline;
  bool outlined = size <= kMaxRead;
  // Nothing is remembered of the others, so that there is nothing to compare.
  const uint64_t looked_at = impl_->looked_at.load(std::memory_order_relaxed);
  if (outlined && looked_at != kAll) {
    request::ReadComposite(slices, &outline.composite);
    outlined = HashOfComposite(outline.composite) <= looked_at;
  }
  outlined = outlined && request::ReadOutline(slices, &outline);
  const uint64_t composite = HashOfComposite(outline.composite);
  const uint64_t identity = absl::HashOf(function, method, outline.identity);
  bool known = false;
  std::unique_ptr<Reader> reader;
  {
    const MutexLock lock(&impl_->mutex);
    known = impl_->OfKey(key, now, &said) || expired;
    if (outlined && size <= kMaxNodesRead &&
        composite <= impl_->paths_threshold && impl_->PathsAffordable(now)) {
      reader = impl_->TakeReader();
    }
  }
  if (expired) said = {trace::Reason::kExpired, "", "", "", {}};
  bool read = false;
  absl::Duration reading, reading_wall;
  if (reader != nullptr) {
    const absl::Duration before_wall = TimeOf(CLOCK_MONOTONIC);
    const absl::Duration before = TimeOf(CLOCK_THREAD_CPUTIME_ID);
    read = reader->Read(masks, slices);
    reading = TimeOf(CLOCK_THREAD_CPUTIME_ID) - before;
    reading_wall = TimeOf(CLOCK_MONOTONIC) - before_wall;
  }

  const MutexLock lock(&impl_->mutex);
  // Whoever asks: of those that are left out there may be nobody else.
  impl_->Grow();
  if (outlined) {
    const Reader* const nodes = read ? reader.get() : nullptr;
    if (!known) {
      impl_->ExplainByNearest(generation, outline, identity, composite, masks,
                              nodes, &said);
    }
    impl_->Remember(function, generation, key, outline, identity, composite,
                    nodes, now);
  }
  impl_->CountChange(function, said);
  impl_->KeepLast(function, outline.composite, key, said, now);
  if (reader != nullptr && impl_->readers.size() < kReaders) {
    impl_->readers.push_back(std::move(reader));
  }
  impl_->Spend(reading, LeastOf(TimeOf(CLOCK_MONOTONIC) - start - reading_wall,
                                outlined ? size : 0));
  impl_->Balance(now);
  impl_->looked_at.store(std::min(impl_->threshold, impl_->affordable),
                         std::memory_order_relaxed);
  return said;
}

void MissMemory::OnStored(const cache::key::Key& key, absl::Time until,
                          bool secrets) {
  const MutexLock lock(&impl_->mutex);
  KeptRequest* const kept = impl_->Find(key);
  if (kept == nullptr) return;
  kept->fate = Fate::kStored;
  kept->secrets = secrets;
  kept->until = until;
}

void MissMemory::OnNotStored(const cache::key::Key& key, NotStored why) {
  const MutexLock lock(&impl_->mutex);
  KeptRequest* const kept = impl_->Find(key);
  if (kept == nullptr) return;
  kept->fate = Fate::kNotStored;
  kept->why = why;
}

void MissMemory::OnPurged(const cache::key::Key& key) {
  const MutexLock lock(&impl_->mutex);
  KeptRequest* const kept = impl_->Find(key);
  if (kept != nullptr) kept->fate = Fate::kPurged;
}

void MissMemory::OnPurgedFunction(absl::string_view function) {
  const MutexLock lock(&impl_->mutex);
  impl_->ForEach(function, [](KeptRequest* kept) { Impl::Purge(kept); });
}

void MissMemory::OnPurgedGeneration(absl::string_view function,
                                    absl::string_view generation) {
  const uint64_t hash = absl::HashOf(generation);
  const MutexLock lock(&impl_->mutex);
  impl_->ForEach(function, [hash](KeptRequest* kept) {
    if (kept->generation == hash) Impl::Purge(kept);
  });
}

void MissMemory::OnSecretsErased(absl::string_view function) {
  const MutexLock lock(&impl_->mutex);
  impl_->ForEach(function, [](KeptRequest* kept) {
    if (kept->fate != Fate::kStored || !kept->secrets) return;
    kept->fate = Fate::kNotStored;
    kept->why = NotStored::kSecrets;
  });
}

std::vector<MissMemory::FunctionTop> MissMemory::Tops(size_t most) const {
  const MutexLock lock(&impl_->mutex);
  std::vector<FunctionTop> tops;
  for (const auto& function : impl_->functions) {
    tops.push_back({function.first, function.second.paths.Most(most),
                    function.second.writers.Most(most),
                    function.second.masks.Most(most)});
  }
  return tops;
}

std::vector<MissMemory::Miss> MissMemory::Last(
    size_t most, absl::string_view function) const {
  const MutexLock lock(&impl_->mutex);
  return impl_->last.Last(most, function);
}

uint64_t MissMemory::bytes() const {
  const MutexLock lock(&impl_->mutex);
  return impl_->used;
}

double MissMemory::paths_share() const {
  const MutexLock lock(&impl_->mutex);
  return ShareOf(std::min(impl_->paths_threshold, impl_->affordable));
}

double MissMemory::share() const {
  const MutexLock lock(&impl_->mutex);
  return ShareOf(std::min(impl_->threshold, impl_->affordable));
}

absl::Duration MissMemory::cpu() const {
  const MutexLock lock(&impl_->mutex);
  return impl_->spent;
}

}  // namespace fncache::insight::explain
