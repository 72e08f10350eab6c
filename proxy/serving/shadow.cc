// SPDX-License-Identifier: Apache-2.0
// It is one thing: the trial and its calls count into one set of figures.
#include "proxy/serving/shadow.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cache/key/canonicalizer.h"
#include "cache/key/digest.h"
#include "cache/key/mask.h"
#include "cache/response_digest.h"
#include "common/log.h"
#include "common/log_limiter.h"
#include "common/mutex.h"
#include "insight/request/identity.h"
#include "insight/request/masked_values.h"
#include "insight/request/nodes.h"
#include "insight/request/outline.h"
#include "insight/request/response_difference.h"
#include "openssl/rand.h"
#include "proxy/serving/distinct_count.h"
#include "xxhash.h"

namespace fncache::proxy::serving {
namespace {

using cache::key::Key;
using insight::request::ResponseDifference;
using telemetry::ShadowBy;
using telemetry::ShadowReport;

constexpr size_t kMostDifferences = 32;  // read in one pair of answers
constexpr size_t kMostLogged = 8;        // of these differences
constexpr size_t kMostPaths = 64;        // counted
constexpr size_t kMostComposites = 1 << 14;
constexpr uint64_t kMostTableBytes = 16 << 20;
// The budget for reading answers to find their differences. It takes some
// milliseconds of each second.
constexpr double kBytesPerSecond = 1 << 20;
constexpr double kMostBytes = 4 << 20;
constexpr absl::Duration kLogInterval = absl::Seconds(10);

cache::key::Seed RandomSeed() {
  cache::key::Seed seed;
  RAND_bytes(seed.data(), static_cast<int>(seed.size()));
  return seed;
}

uint64_t HashOf(const void* data, size_t size) {
  return XXH3_64bits(data, size);
}

// Paths contain names that users chose, which may be long.
std::string Cut(const std::string& path) {
  constexpr size_t kMost = 512;
  return path.size() <= kMost ? path
                              : absl::StrCat(path.substr(0, kMost), "...");
}

// `kind namespace/name`.
std::string Spell(const insight::request::CompositeName& name) {
  return absl::StrCat(name.kind, " ", name.object_namespace,
                      name.object_namespace.empty() ? "" : "/", name.name);
}

// At most 64 paths with counts. Beyond that a new path replaces the rarest one
// and inherits its counts. So counts may be too high, but never too low
// (Metwally et al., Space-Saving, 2005).
class PathCounts {
 public:
  // `alone`: the only one of the `masks` masks that hid a change.
  void Add(const std::string& path, ShadowBy by, absl::optional<size_t> alone,
           size_t masks, absl::Time now) {
    auto found = counts_.find(path);
    if (found == counts_.end()) {
      ShadowReport::Path counted;
      if (counts_.size() >= kMostPaths) {
        const auto rarest = std::min_element(
            counts_.begin(), counts_.end(), [](const auto& a, const auto& b) {
              return a.second.sum() < b.second.sum();
            });
        counted.differences = counted.inherited = rarest->second.differences;
        counts_.erase(rarest);
      }
      counted.path = path;
      counted.first = now;
      found = counts_.emplace(path, counted).first;
    }
    ShadowReport::Path& counted = found->second;
    ++counted.differences[static_cast<size_t>(by)];
    counted.last = now;
    if (!alone.has_value()) return;
    counted.alone.resize(masks);
    ++counted.alone[*alone];
  }

  std::vector<ShadowReport::Path> Most() const {
    std::vector<ShadowReport::Path> paths;
    for (const auto& counted : counts_) paths.push_back(counted.second);
    std::stable_sort(
        paths.begin(), paths.end(),
        [](const auto& a, const auto& b) { return a.sum() > b.sum(); });
    return paths;
  }

 private:
  std::map<std::string, ShadowReport::Path> counts_;
};

// Counts differences by masks of composites without an exact repeat. Only an
// exact repeat can show that the function varies for the same request.
class CompositeControls {
 public:
  // A hit of this composite was compared. Beyond kMostComposites nothing is
  // known about new composites.
  void Add(uint64_t composite, ShadowBy by, bool differs) {
    const bool difference = differs && by == ShadowBy::kMask;
    if (by != ShadowBy::kExact && !difference) return;
    auto found = composites_.find(composite);
    if (found == composites_.end()) {
      if (composites_.size() >= kMostComposites) {
        unknown_ += difference ? 1 : 0;
        return;
      }
      found = composites_.emplace(composite, Composite()).first;
    }
    found->second.repeated |= by == ShadowBy::kExact;
    found->second.differences += difference ? 1 : 0;
  }

  // Differences by masks of composites without an exact repeat.
  uint64_t Unrepeated() const {
    uint64_t sum = unknown_;
    for (const auto& composite : composites_) {
      if (!composite.second.repeated) sum += composite.second.differences;
    }
    return sum;
  }

 private:
  struct Composite {
    uint32_t differences = 0;
    bool repeated = false;
  };
  absl::flat_hash_map<uint64_t, Composite> composites_;
  uint64_t unknown_ = 0;
};

// The request that filled an entry.
struct Filler {
  int64_t started = 0;  // when its call did, Unix nanoseconds
  Key exact;
  // A hash for each mask; empty if the request was not read.
  std::vector<uint32_t> masked;
};

// The fillers of the newest entries, by key.
class Fillers {
 public:
  explicit Fillers(size_t masks)
      : most_(std::min<uint64_t>(
            ShadowTrial::kMostRemembered,
            // A hash table has two slots for each entry after it has grown, and
            // the allocator its own.
            kMostTableBytes /
                (2 * sizeof(std::pair<Key, Filler>) + sizeof(Order) + 32 +
                 sizeof(uint32_t) * masks))) {}

  void Add(const Key& key, Filler filler) {
    Filler& kept = fillers_[key];
    // As with entries, the one with the later start stays.
    if (kept.started > filler.started) return;
    order_.push_back({key, filler.started});
    kept = std::move(filler);
    while (fillers_.size() > most_ || order_.size() > 2 * most_) {
      const auto found = fillers_.find(order_.front().key);
      // Not if the key was filled again since.
      if (found != fillers_.end() &&
          found->second.started == order_.front().started) {
        fillers_.erase(found);
      }
      order_.pop_front();
    }
  }

  // Null: not known.
  const Filler* Find(const Key& key, int64_t started) const {
    const auto found = fillers_.find(key);
    return found != fillers_.end() && found->second.started == started
               ? &found->second
               : nullptr;
  }

 private:
  struct Order {
    Key key;
    int64_t started;
  };

  const size_t most_;
  absl::flat_hash_map<Key, Filler> fillers_;
  std::deque<Order> order_;
};

// The memory in which requests and answers are read. At most kReadings of them
// are kept, about one for each core.
constexpr size_t kReadings = 4;
constexpr size_t kMostKept = 256 << 10;
struct Reading {
  Reading(const insight::request::FingerprintSecret& secret,
          const cache::key::Seed& seed)
      : masked(secret), comparer(secret, seed) {}

  cache::key::DigestScratch digest;
  cache::key::Canonicalizer canonicalizer;
  insight::request::MaskedValues masked;
  insight::request::ResponseComparer comparer;
};

}  // namespace

struct ShadowTrial::Impl {
  explicit Impl(const settings::FunctionOptions& options)
      : function(options.name),
        generation(options.generation),
        source(options.key),
        hash(options.key_hash),
        masks(options.masks),
        secret(insight::request::FingerprintSecret::Random()),
        seed(RandomSeed()),
        fillers(options.masks.canonical().size()),
        of_masks(options.masks.canonical().size()) {
    // Without masks, and with `key: content`, the key is the exact digest.
    if (!masks.empty() || source != cache::key::KeySource::kContent) {
      exact.emplace(RandomSeed(), cache::key::KeyScope{},
                    cache::key::MaskSet());
    }
  }

  bool SameKeys(const settings::FunctionOptions& options) const {
    return options.generation == generation && options.key == source &&
           options.key_hash == hash &&
           options.masks.canonical() == masks.canonical();
  }

  // A Reading that no other call uses until it is put back.
  std::unique_ptr<Reading> Take() {
    {
      MutexLock lock(&mutex);
      if (!readings.empty()) {
        std::unique_ptr<Reading> reading = std::move(readings.back());
        readings.pop_back();
        return reading;
      }
    }
    return std::make_unique<Reading>(secret, seed);
  }
  // `read`: bytes of the messages that were read.
  void PutBack(std::unique_ptr<Reading> reading, size_t read) {
    // After a large message its memory may be many times `read`.
    if (read > kMostKept) return;
    MutexLock lock(&mutex);
    if (readings.size() < kReadings) readings.push_back(std::move(reading));
  }

  // Whether the budget allows to read answers of this many bytes now.
  bool Afford(size_t bytes, absl::Time now) {
    MutexLock lock(&mutex);
    if (now > budget_at) {
      budget = std::min(
          kMostBytes,
          budget + kBytesPerSecond * absl::ToDoubleSeconds(now - budget_at));
      budget_at = now;
    }
    if (budget < static_cast<double>(bytes)) return false;
    budget -= static_cast<double>(bytes);
    return true;
  }

  const std::string function;
  const std::string generation;
  const cache::key::KeySource source;
  const cache::key::KeyHash hash;
  const cache::key::MaskSet masks;
  const insight::request::FingerprintSecret secret;
  const cache::key::Seed seed;
  absl::optional<cache::key::Digester> exact;
  const cache::ResponseDigester digester;
  LogLimiter log_limiter{kLogInterval};

  struct OfMask {
    DistinctCount values;
    ShadowReport::Count changed;
    ShadowReport::Count alone;
  };

  mutable Mutex mutex;
  std::vector<std::unique_ptr<Reading>> readings ABSL_GUARDED_BY(mutex);
  absl::Time since ABSL_GUARDED_BY(mutex) = absl::InfiniteFuture();
  Fillers fillers ABSL_GUARDED_BY(mutex);
  uint64_t lookups ABSL_GUARDED_BY(mutex) = 0;
  std::array<ShadowReport::Count, telemetry::kShadowBys> by
      ABSL_GUARDED_BY(mutex){};
  uint64_t uncompared ABSL_GUARDED_BY(mutex) = 0;
  uint64_t unread ABSL_GUARDED_BY(mutex) = 0;
  std::array<uint64_t, telemetry::kShadowBys> unexamined
      ABSL_GUARDED_BY(mutex){};
  CompositeControls controls ABSL_GUARDED_BY(mutex);
  // Requests that were read. There are at most this many composites or values.
  uint64_t requests ABSL_GUARDED_BY(mutex) = 0;
  DistinctCount composites ABSL_GUARDED_BY(mutex);
  DistinctCount mask_composites ABSL_GUARDED_BY(mutex);
  DistinctCount masked_values ABSL_GUARDED_BY(mutex);
  DistinctCount mask_masked_values ABSL_GUARDED_BY(mutex);
  std::vector<OfMask> of_masks ABSL_GUARDED_BY(mutex);
  PathCounts paths ABSL_GUARDED_BY(mutex);
  double budget ABSL_GUARDED_BY(mutex) = kMostBytes;
  absl::Time budget_at ABSL_GUARDED_BY(mutex) = absl::InfinitePast();
};

struct ShadowCall::RequestValues {
  std::shared_ptr<ShadowTrial> trial;
  const telemetry::FunctionInstruments* instruments;
  // With `key: tag` a request may have a key although it cannot be fully read.
  bool exact_known = true;
  absl::optional<Key> exact;     // absent: the key is the exact digest
  std::vector<uint64_t> masked;  // a hash for each mask; empty: not read
  uint64_t all_masked = 0;
  uint64_t composite_hash = 0;
  std::string composite;

  ShadowTrial::Impl& impl() const { return *trial->impl_; }
  const Key& ExactOf(const Key& key) const {
    return exact.has_value() ? *exact : key;
  }

  // The result of comparing the entry and the answer.
  struct Comparison {
    bool differs = false;
    std::vector<ResponseDifference> differences;
    bool examined = false;
  };
  Comparison Compare(const cache::ResponseView& answer, absl::string_view entry,
                     uint64_t most, absl::Time now) const;
  // Returns how the call was a hit, and in `changed` the masks that hide a
  // change.
  ShadowBy Classify(const Key& key, int64_t started,
                    std::vector<size_t>* changed) const;
  void Count(ShadowBy by, const std::vector<size_t>& changed,
             const Comparison& comparison, absl::Time now) const;
  void Report(const Key& key, const std::vector<size_t>& changed,
              const Comparison& comparison, absl::Time now) const;
};

ShadowTrial::ShadowTrial(const settings::FunctionOptions& options)
    : impl_(std::make_unique<Impl>(options)) {}

ShadowTrial::~ShadowTrial() = default;

std::shared_ptr<ShadowTrial> ShadowTrial::For(
    const settings::FunctionOptions& options,
    const std::shared_ptr<ShadowTrial>& before) {
  if (options.policy.mode != cache::Mode::kShadow) return nullptr;
  if (before != nullptr && before->impl_->SameKeys(options)) return before;
  return std::make_shared<ShadowTrial>(options);
}

std::unique_ptr<ShadowCall> ShadowTrial::Read(
    absl::Span<const absl::string_view> request,
    const telemetry::FunctionInstruments* instruments, Clock* clock) {
  auto values = std::make_unique<ShadowCall::RequestValues>();
  values->trial = shared_from_this();
  values->instruments = instruments;
  size_t size = 0;
  for (const absl::string_view slice : request) size += slice.size();
  std::unique_ptr<Reading> reading = impl_->Take();
  if (impl_->exact.has_value()) {
    const cache::key::Digest digest =
        impl_->exact->Compute(request, &reading->digest);
    values->exact_known = digest.keyed;
    values->exact = digest.key;
  }
  if (!impl_->masks.empty() && size <= kMostRead &&
      !reading->masked.Read(impl_->masks, request, &values->masked)) {
    values->masked.clear();
  }
  impl_->PutBack(std::move(reading), size);

  const insight::request::CompositeName name =
      insight::request::ReadComposite(request);
  values->composite = Spell(name);
  const std::string identity = absl::StrCat(values->composite, " ", name.uid);
  values->composite_hash = HashOf(identity.data(), identity.size());
  values->all_masked =
      HashOf(values->masked.data(), values->masked.size() * sizeof(uint64_t));
  MutexLock lock(&impl_->mutex);
  if (impl_->since == absl::InfiniteFuture()) impl_->since = clock->Now();
  ++impl_->requests;
  if (name.known()) impl_->composites.Add(values->composite_hash);
  if (!impl_->masks.empty() && size > kMostRead) ++impl_->unread;
  if (!values->masked.empty()) impl_->masked_values.Add(values->all_masked);
  for (size_t i = 0; i < values->masked.size(); ++i) {
    const uint64_t value = values->masked[i];
    // Zero: the mask hides nothing in this request.
    if (value == 0) continue;
    impl_->of_masks[i].values.Add(HashOf(&value, sizeof value));
  }
  return std::make_unique<ShadowCall>(std::move(values));
}

ShadowReport ShadowTrial::Report() const {
  ShadowReport report;
  report.function = impl_->function;
  MutexLock lock(&impl_->mutex);
  report.since = impl_->since;
  report.lookups = impl_->lookups;
  report.by = impl_->by;
  report.uncompared = impl_->uncompared;
  // Estimates may be too high by some percent.
  const uint64_t requests = impl_->requests;
  const uint64_t hits = report.of(ShadowBy::kMask).hits;
  report.composites = std::min(requests, impl_->composites.Estimate());
  report.mask_composites =
      std::min({hits, report.composites, impl_->mask_composites.Estimate()});
  report.masked_values = std::min(requests, impl_->masked_values.Estimate());
  report.mask_masked_values =
      std::min(hits, impl_->mask_masked_values.Estimate());
  report.unread = impl_->unread;
  report.unexamined = impl_->unexamined;
  report.unrepeated = impl_->controls.Unrepeated();
  report.paths = impl_->paths.Most();
  for (size_t i = 0; i < impl_->of_masks.size(); ++i) {
    const Impl::OfMask& of_mask = impl_->of_masks[i];
    report.masks.push_back({impl_->masks.canonical()[i],
                            std::min(requests, of_mask.values.Estimate()),
                            of_mask.changed, of_mask.alone});
  }
  return report;
}

ShadowCall::ShadowCall(std::unique_ptr<RequestValues> values)
    : values_(std::move(values)) {}

ShadowCall::~ShadowCall() {
  if (!served_) return;
  values_->instruments->RecordShadowUncompared();
  MutexLock lock(&values_->impl().mutex);
  ++values_->impl().uncompared;
}

void ShadowCall::LookedUp(cache::store::EntryRef served) {
  looked_up_ = true;
  served_ = std::move(served);
  values_->instruments->RecordShadowLookup();
  MutexLock lock(&values_->impl().mutex);
  ++values_->impl().lookups;
}

void ShadowCall::Remember(const Key& key, absl::Time started) {
  if (!values_->exact_known) return;
  Filler filler;
  filler.started = absl::ToUnixNanos(started);
  filler.exact = values_->ExactOf(key);
  filler.masked.reserve(values_->masked.size());
  for (const uint64_t value : values_->masked) {
    filler.masked.push_back(static_cast<uint32_t>(value));
  }
  MutexLock lock(&values_->impl().mutex);
  values_->impl().fillers.Add(key, std::move(filler));
}

bool ShadowCall::Judge(const cache::ResponseView& answer, const Key& key,
                       uint64_t most_bytes, cache::store::TieredStore* store,
                       IsFresh is_fresh, absl::Time now) {
  // Without a look-up the caller wanted a new answer.
  if (!looked_up_) return true;
  if (!served_) {
    cache::store::Found found = store->GetMemory(key, now);
    if (!found.entry || !is_fresh(*found.entry)) return true;
    served_ = std::move(found.entry);
  }
  const cache::store::EntryRef entry = std::move(served_);
  const RequestValues::Comparison comparison =
      values_->Compare(answer, entry->body(), most_bytes, now);
  std::vector<size_t> changed;
  const ShadowBy by =
      values_->Classify(key, absl::ToUnixNanos(entry->started()), &changed);
  values_->Count(by, changed, comparison, now);
  if (comparison.differs && by == ShadowBy::kMask) {
    values_->Report(key, changed, comparison, now);
  }
  return false;
}

ShadowCall::RequestValues::Comparison ShadowCall::RequestValues::Compare(
    const cache::ResponseView& answer, absl::string_view entry, uint64_t most,
    absl::Time now) const {
  Comparison comparison;
  size_t size = 0;
  bool same_bytes = true;
  for (const absl::string_view piece : answer.body) {
    same_bytes = same_bytes && size <= entry.size() &&
                 entry.substr(size, piece.size()) == piece;
    size += piece.size();
  }
  if (same_bytes && size == entry.size()) return comparison;
  // An answer that is too large to be stored differs from the stored one.
  if (size > std::max<uint64_t>(most, entry.size())) {
    comparison.differs = true;
    return comparison;
  }
  std::unique_ptr<Reading> reading = impl().Take();
  const cache::ResponseDigest ours =
      impl().digester.Compute({entry}, &reading->canonicalizer);
  const cache::ResponseDigest theirs =
      impl().digester.Compute(answer.body, &reading->canonicalizer);
  comparison.differs =
      !ours.readable || !theirs.readable || ours.digest != theirs.digest;
  const size_t both = entry.size() + size;
  if (comparison.differs && both > ShadowTrial::kMostCompared) {
    for (const std::string& field :
         cache::ResponseDigester::FieldsDiffering(ours, theirs)) {
      comparison.differences.push_back({field, field, "", ""});
    }
    comparison.examined = !comparison.differences.empty();
  } else if (comparison.differs && impl().Afford(both, now)) {
    comparison.differences =
        reading->comparer.Compare({entry}, answer.body, kMostDifferences);
    comparison.examined = !comparison.differences.empty();
  }
  impl().PutBack(std::move(reading), both);
  return comparison;
}

ShadowBy ShadowCall::RequestValues::Classify(
    const Key& key, int64_t started, std::vector<size_t>* changed) const {
  MutexLock lock(&impl().mutex);
  const Filler* const filler = impl().fillers.Find(key, started);
  if (filler == nullptr || !exact_known) return ShadowBy::kUnknown;
  if (filler->exact == ExactOf(key)) return ShadowBy::kExact;
  for (size_t i = 0; i < std::min(masked.size(), filler->masked.size()); ++i) {
    if (filler->masked[i] != static_cast<uint32_t>(masked[i])) {
      changed->push_back(i);
    }
  }
  return ShadowBy::kMask;
}

void ShadowCall::RequestValues::Count(ShadowBy by,
                                      const std::vector<size_t>& changed,
                                      const Comparison& comparison,
                                      absl::Time now) const {
  instruments->RecordShadowHit(by, comparison.differs);
  const auto count = [&](ShadowReport::Count* counted) {
    ++counted->hits;
    counted->differences += comparison.differs ? 1 : 0;
  };
  ShadowTrial::Impl& counts = impl();
  MutexLock lock(&counts.mutex);
  count(&counts.by[static_cast<size_t>(by)]);
  if (by == ShadowBy::kMask) {
    counts.mask_composites.Add(composite_hash);
    if (!masked.empty()) counts.mask_masked_values.Add(all_masked);
  }
  for (const size_t mask : changed) {
    count(&counts.of_masks[mask].changed);
    if (changed.size() == 1) count(&counts.of_masks[mask].alone);
  }
  counts.controls.Add(composite_hash, by, comparison.differs);
  if (!comparison.differs) return;
  counts.unexamined[static_cast<size_t>(by)] += comparison.examined ? 0 : 1;
  absl::optional<size_t> alone;
  if (changed.size() == 1) alone = changed.front();
  // The elements of one list have one pattern. It counts once for this hit.
  std::set<std::string> patterns;
  for (const ResponseDifference& difference : comparison.differences) {
    patterns.insert(Cut(difference.pattern));
  }
  for (const std::string& pattern : patterns) {
    counts.paths.Add(pattern, by, alone, counts.of_masks.size(), now);
  }
}

void ShadowCall::RequestValues::Report(const Key& key,
                                       const std::vector<size_t>& changed,
                                       const Comparison& comparison,
                                       absl::Time now) const {
  uint64_t unlogged = 0;
  if (!impl().log_limiter.Allows(now, &unlogged)) return;
  std::vector<std::string> masks;
  for (const size_t mask : changed) {
    masks.push_back(impl().masks.canonical()[mask]);
  }
  std::vector<std::string> paths;
  for (const ResponseDifference& difference : comparison.differences) {
    if (paths.size() == kMostLogged) break;
    paths.push_back(
        absl::StrCat(Cut(difference.path), difference.first.empty() ? "" : " ",
                     difference.first,
                     difference.first.empty() ? "" : "!=", difference.second));
  }
  Log(LogLevel::kWarning,
      "shadow: the cache would have given another answer than the function",
      {{"function", impl().function},
       {"composite", composite},
       {"key", key.Hex()},
       {"masks", absl::StrJoin(masks, ", ")},
       {"paths", absl::StrJoin(paths, ", ")},
       {"unlogged", unlogged}});
}

}  // namespace fncache::proxy::serving
