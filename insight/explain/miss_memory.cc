// SPDX-License-Identifier: Apache-2.0
#include "insight/explain/miss_memory.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <utility>

#include "absl/hash/hash.h"
#include "cache/key/canonicalizer.h"
#include "cache/response_digest.h"
#include "common/mutex.h"
#include "insight/explain/kept_requests.h"
#include "insight/explain/nearest_request.h"
#include "insight/explain/proposed_mask.h"
#include "insight/explain/request_reader.h"
#include "insight/request/nodes.h"
#include "insight/request/outline.h"

namespace fncache::insight::explain {
namespace {

constexpr size_t kFunctions = 256;
constexpr size_t kReaders = 4;  // kept; as many as there are cores suffice

uint64_t HashOfComposite(const request::CompositeName& name) {
  return absl::HashOf(name.kind, name.object_namespace, name.name, name.uid);
}

// CPU time of this thread.
absl::Duration ThreadTime() {
  return absl::Nanoseconds(ReadClock(CLOCK_THREAD_CPUTIME_ID));
}

struct Function {
  SpaceSaving paths;
  SpaceSaving writers;
  SpaceSaving masks;
  SpaceSaving unread;  // paths that have a mask to propose
};

thread_local cache::key::Canonicalizer canonicalizer;

uint64_t SizeOf(absl::Span<const absl::string_view> slices) {
  uint64_t size = 0;
  for (const absl::string_view slice : slices) size += slice.size();
  return size;
}

double FractionOf(uint64_t threshold) {
  return static_cast<double>(threshold) / static_cast<double>(kAll);
}

}  // namespace

struct MissMemory::Impl {
  Impl(const MissMemoryOptions& options, Clock* clock)
      : options(options),
        clock(clock),
        secret(request::FingerprintSecret::Random()),
        requests(options.bytes),
        budget(options, clock->Now()) {}

  const MissMemoryOptions options;
  Clock* const clock;
  const request::FingerprintSecret secret;
  const cache::ResponseDigester digester;

  mutable Mutex mutex;
  std::vector<std::unique_ptr<RequestReader>> readers ABSL_GUARDED_BY(mutex);
  KeptRequests requests ABSL_GUARDED_BY(mutex);
  ByteBudget budget ABSL_GUARDED_BY(mutex);
  absl::Duration cpu ABSL_GUARDED_BY(mutex);
  std::map<std::string, Function> functions ABSL_GUARDED_BY(mutex);
  LastMisses last ABSL_GUARDED_BY(mutex);  // counted by `requests`
  // Composites above this hash are not looked at: the lower one of the limits
  // by memory and by time. Written under the lock.
  std::atomic<uint64_t> looked_at{kAll};

  // Explains a miss by the key's own fate; false if the fate explains nothing.
  bool OfKey(const cache::key::Key& key, absl::Time now, Explanation* said)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    const KeptRequest* kept = requests.Find(key);
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

  // An answer that is still pending is not stored after a purge either.
  static void Purge(KeptRequest* kept) {
    if (kept->fate == Fate::kStored || kept->fate == Fate::kPending) {
      kept->fate = Fate::kPurged;
    }
  }

  std::unique_ptr<RequestReader> TakeReader()
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    if (readers.empty()) return std::make_unique<RequestReader>(secret);
    std::unique_ptr<RequestReader> reader = std::move(readers.back());
    readers.pop_back();
    return reader;
  }

  // Null: there are too many.
  Function* FunctionOf(absl::string_view name)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    const auto found = functions.find(std::string(name));
    if (found != functions.end()) return &found->second;
    if (functions.size() >= kFunctions) return nullptr;
    return &functions[std::string(name)];
  }

  void CountChange(absl::string_view function, const Explanation& said)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    if (said.reason != trace::Reason::kChanged) return;
    Function* const found = FunctionOf(function);
    if (found == nullptr) return;
    found->paths.Add(said.detail.empty() ? said.section : said.detail);
    found->writers.Add(said.writer);
    for (const std::string& mask : said.masks) found->masks.Add(mask);
  }

  // A hash of the answer, and of the function's TTL. 0: it cannot be read.
  uint64_t HashOfAnswer(absl::Span<const absl::string_view> body,
                        absl::optional<absl::Duration> ttl) const {
    const cache::ResponseDigest digest = digester.Compute(body, &canonicalizer);
    if (!digest.readable) return 0;
    const uint64_t hash = absl::HashOf(digest.digest, ttl.has_value(),
                                       ttl.value_or(absl::ZeroDuration()));
    return std::max<uint64_t>(hash, 1);
  }

  void KeepLast(absl::string_view function,
                const request::CompositeName& composite,
                const cache::key::Key& key, const Explanation& said,
                absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    Miss miss;
    miss.time = now;
    miss.function = std::string(function);
    miss.composite.kind = composite.kind;
    miss.composite.object_namespace = composite.object_namespace;
    miss.composite.name = composite.name;
    miss.key = key;
    miss.why = {said.reason, said.detail, said.section, said.writer, {}};
    if (!said.masks.empty()) miss.why.masks = {said.masks[0]};
    last.Add(std::move(miss), options.bytes / 16);
    requests.SetOther(last.bytes(), now);
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
                                const Lookup& lookup) {
  Explanation said;
  const absl::Duration start = ThreadTime();
  const absl::Time now = impl_->clock->Now();
  const uint64_t size = SizeOf(slices);
  request::Outline outline;
  bool outlined = size <= kMaxRead;
  // The others are not remembered, so there is nothing to compare.
  const uint64_t looked_at = impl_->looked_at.load(std::memory_order_relaxed);
  if (outlined && looked_at != kAll) {
    request::ReadComposite(slices, &outline.composite);
    outlined = HashOfComposite(outline.composite) <= looked_at;
  }
  outlined = outlined && request::ReadOutline(slices, &outline);
  const uint64_t composite = HashOfComposite(outline.composite);
  const uint64_t identity = absl::HashOf(function, method, outline.identity);
  bool known = false;
  std::unique_ptr<RequestReader> reader;
  {
    const MutexLock lock(&impl_->mutex);
    known = impl_->OfKey(key, now, &said);
    if (outlined && size <= kMaxNodesRead &&
        composite <= impl_->requests.paths_threshold() &&
        impl_->budget.PathsAffordable(now)) {
      reader = impl_->TakeReader();
    }
  }
  if (lookup.found != trace::Reason::kUnknown) {
    known = true;
    said = {lookup.found, lookup.detail, "", "", {}};
  }
  const bool read =
      reader != nullptr && reader->Read(masks, slices, lookup.tuned);

  const MutexLock lock(&impl_->mutex);
  // Any miss may do this, since all other composites may be left out.
  impl_->requests.Grow();
  if (outlined) {
    const RequestReader* const nodes = read ? reader.get() : nullptr;
    const auto* const past = impl_->requests.OfIdentity(identity);
    AnswerBefore before;
    if (past != nullptr && read) {
      before = NewestAnswer(*past, key, generation, *nodes,
                            lookup.found == trace::Reason::kExpired, now);
    }
    if (!known) {
      if (past != nullptr) {
        std::vector<std::string> unread;
        const KeptRequest* const nearest =
            ExplainByNearest(*past, generation, outline, masks, lookup.hint,
                             nodes, &said, read ? &unread : nullptr);
        if (before.answer == 0) {
          before = {nearest->answer, RepeatOver::kOther, std::move(unread)};
        }
      } else if (composite <= std::min(impl_->requests.threshold(),
                                       impl_->budget.always_seen())) {
        said.reason = trace::Reason::kNew;
      } else {
        // It may be of a composite that is not remembered, or was left out.
        said.reason = trace::Reason::kUnknown;
      }
    }
    impl_->requests.Remember(function, generation, key, outline, identity,
                             composite, nodes, std::move(before),
                             /*counts=*/!lookup.tuned, now);
  }
  impl_->CountChange(function, said);
  impl_->KeepLast(function, outline.composite, key, said, now);
  const bool had_reader = reader != nullptr;
  if (had_reader && impl_->readers.size() < kReaders) {
    impl_->readers.push_back(std::move(reader));
  }
  if (outlined) impl_->budget.Spend(size, /*with_paths=*/had_reader);
  impl_->budget.Balance(now);
  impl_->looked_at.store(
      std::min(impl_->requests.threshold(), impl_->budget.affordable()),
      std::memory_order_relaxed);
  impl_->cpu += ThreadTime() - start;
  return said;
}

absl::optional<RepeatOver> MissMemory::OnAnswer(
    const cache::key::Key& key, absl::Span<const absl::string_view> body,
    absl::optional<absl::Duration> ttl) {
  const uint64_t size = SizeOf(body);
  const absl::Duration start = ThreadTime();
  {
    const MutexLock lock(&impl_->mutex);
    KeptRequest* const kept = impl_->requests.Find(key);
    if (kept == nullptr || kept->driftless == 0) return absl::nullopt;
    kept->answer = 0;
    if (size > kMaxNodesRead) {
      impl_->requests.TakeBefore(kept);
      return absl::nullopt;
    }
    impl_->budget.Spend(size, /*with_paths=*/false);
  }
  const uint64_t answer = impl_->HashOfAnswer(body, ttl);

  const MutexLock lock(&impl_->mutex);
  impl_->cpu += ThreadTime() - start;
  KeptRequest* const kept = impl_->requests.Find(key);
  if (kept == nullptr || answer == 0) return absl::nullopt;
  kept->answer = answer;
  // The answer of a refresh is that of no miss.
  if (!kept->awaited) return absl::nullopt;
  const AnswerBefore before = impl_->requests.TakeBefore(kept);
  const bool repeats = before.answer == answer;
  if (repeats && !before.paths.empty()) {
    Function* const function =
        impl_->FunctionOf(impl_->requests.FunctionOf(*kept));
    for (const std::string& path : before.paths) {
      if (function != nullptr) function->unread.Add(path);
    }
  }
  if (!kept->counts) return absl::nullopt;
  return repeats ? before.over : RepeatOver::kNone;
}

void MissMemory::OnStored(const cache::key::Key& key, absl::Time until,
                          bool secrets) {
  const MutexLock lock(&impl_->mutex);
  KeptRequest* const kept = impl_->requests.Find(key);
  if (kept == nullptr) return;
  kept->fate = Fate::kStored;
  kept->secrets = secrets;
  kept->until = until;
}

void MissMemory::OnNotStored(const cache::key::Key& key, NotStored why) {
  const MutexLock lock(&impl_->mutex);
  KeptRequest* const kept = impl_->requests.Find(key);
  if (kept == nullptr) return;
  kept->fate = Fate::kNotStored;
  kept->why = why;
}

void MissMemory::OnPurged(const cache::key::Key& key) {
  const MutexLock lock(&impl_->mutex);
  KeptRequest* const kept = impl_->requests.Find(key);
  if (kept != nullptr) kept->fate = Fate::kPurged;
}

void MissMemory::OnPurgedFunction(absl::string_view function) {
  const MutexLock lock(&impl_->mutex);
  impl_->requests.ForEach(function,
                          [](KeptRequest* kept) { Impl::Purge(kept); });
}

void MissMemory::OnPurgedGeneration(absl::string_view function,
                                    absl::string_view generation) {
  const uint64_t hash = absl::HashOf(generation);
  const MutexLock lock(&impl_->mutex);
  impl_->requests.ForEach(function, [hash](KeptRequest* kept) {
    if (kept->generation == hash) Impl::Purge(kept);
  });
}

void MissMemory::OnSecretsErased(absl::string_view function) {
  const MutexLock lock(&impl_->mutex);
  impl_->requests.ForEach(function, [](KeptRequest* kept) {
    if (kept->fate != Fate::kStored || !kept->secrets) return;
    kept->fate = Fate::kNotStored;
    kept->why = NotStored::kSecrets;
  });
}

std::vector<MissMemory::FunctionTop> MissMemory::Tops(size_t most) const {
  const MutexLock lock(&impl_->mutex);
  std::vector<FunctionTop> tops;
  for (const auto& function : impl_->functions) {
    tops.push_back({function.first,
                    function.second.paths.Most(most),
                    function.second.writers.Most(most),
                    function.second.masks.Most(most),
                    {}});
    for (auto& [path, count] : function.second.unread.Most(most)) {
      std::string mask = ProposedMask(path, /*leaf=*/true);
      tops.back().unread.push_back({std::move(path), std::move(mask), count});
    }
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
  return impl_->requests.used();
}

double MissMemory::paths_share() const {
  const MutexLock lock(&impl_->mutex);
  return FractionOf(
      std::min(impl_->requests.paths_threshold(), impl_->budget.affordable()));
}

double MissMemory::share() const {
  const MutexLock lock(&impl_->mutex);
  return FractionOf(
      std::min(impl_->requests.threshold(), impl_->budget.affordable()));
}

absl::Duration MissMemory::cpu() const {
  const MutexLock lock(&impl_->mutex);
  return impl_->cpu;
}

}  // namespace fncache::insight::explain
