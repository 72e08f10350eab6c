// SPDX-License-Identifier: Apache-2.0
#include "cache/store/bans.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/log.h"

namespace fncache::cache::store {
namespace {

BanTimes TimesAt(absl::Time before, bool soft) {
  BanTimes times;
  (soft ? times.stale : times.purged) = absl::ToUnixNanos(before);
  return times;
}

}  // namespace

Bans::Bans() {
  for (std::atomic<int64_t>& newest : newest_key_) newest = kNeverBanned;
}

Bans::~Bans() = default;

// ----------------------------------------------------------------- Scopes

BanTimes Bans::TimesOf(const Generation& generation) const {
  BanTimes times = all_;
  const auto function = functions_.find(generation.first);
  if (function != functions_.end()) times.Add(function->second);
  const auto it = generations_.find(generation);
  if (it != generations_.end()) times.Add(it->second);
  return times;
}

const BanScope& Bans::Of(absl::string_view function,
                         absl::string_view generation) {
  Generation name{std::string(function), std::string(generation)};
  MutexLock lock(&mutex_);
  std::unique_ptr<BanScope>& scope = scopes_[name];
  if (scope == nullptr) {
    scope.reset(new BanScope(this));
    const BanTimes times = TimesOf(name);
    scope->purged_.store(times.purged, std::memory_order_release);
    scope->stale_.store(times.stale, std::memory_order_release);
  }
  return *scope;
}

size_t Bans::Generations(absl::string_view function) const {
  MutexLock lock(&mutex_);
  size_t count = 0;
  for (const auto& [name, scope] : scopes_) count += name.first == function;
  return count;
}

bool Bans::Knows(absl::string_view function,
                 absl::string_view generation) const {
  MutexLock lock(&mutex_);
  return scopes_.find({std::string(function), std::string(generation)}) !=
         scopes_.end();
}

void Bans::Spread() {
  for (auto it = generations_.begin(); it != generations_.end();) {
    BanTimes wider = all_;
    const auto function = functions_.find(it->first.first);
    if (function != functions_.end()) wider.Add(function->second);
    it->second.Reduce(wider);
    it = it->second.empty() ? generations_.erase(it) : std::next(it);
  }
  for (auto it = functions_.begin(); it != functions_.end();) {
    it->second.Reduce(all_);
    it = it->second.empty() ? functions_.erase(it) : std::next(it);
  }
  int64_t newest = all_.purged;
  for (const auto& [name, times] : functions_) {
    newest = std::max(newest, times.purged);
  }
  for (const auto& [name, times] : generations_) {
    newest = std::max(newest, times.purged);
  }
  newest_.store(newest, std::memory_order_release);
  for (const auto& [name, scope] : scopes_) {
    const BanTimes times = TimesOf(name);
    scope->purged_.store(times.purged, std::memory_order_release);
    scope->stale_.store(times.stale, std::memory_order_release);
  }
}

void Bans::Saw(absl::Time time) {
  const int64_t at = absl::ToUnixNanos(time);
  int64_t seen = seen_.load(std::memory_order_relaxed);
  while (seen < at && !seen_.compare_exchange_weak(seen, at)) {
  }
}

// ---------------------------------------------------------------- Purging

Bans::Kind Bans::Ban(Kind kind, absl::string_view function,
                     absl::string_view generation, absl::Time before,
                     bool soft) {
  const BanTimes times = TimesAt(before, soft);
  Saw(before);
  {
    MutexLock lock(&mutex_);
    std::string name(function);
    Generation of{name, std::string(generation)};
    const bool crowded = generations_.size() >= kMostGenerations &&
                         generations_.find(of) == generations_.end();
    if (kind == Kind::kGeneration && crowded) kind = Kind::kFunction;
    if (kind == Kind::kAll) {
      all_.Add(times);
    } else if (kind == Kind::kFunction) {
      functions_[name].Add(times);
    } else {
      generations_[of].Add(times);
    }
    Spread();
  }
  changes_.fetch_add(1, std::memory_order_acq_rel);
  AwaitFills();
  if (kind == Kind::kAll) EndKeys(OldestEpoch());
  return kind;
}

void Bans::AwaitFills() {
  for (Stripe& stripe : stripes_) {
    MutexLock lock(&stripe.mutex);
  }
}

absl::optional<Bans::Entered> Bans::BanKey(const key::Key& key,
                                           absl::Time before, bool soft,
                                           absl::Time until) {
  Saw(before);
  const auto crowded = [this, &key] {
    if (keys_.load(std::memory_order_relaxed) < kMostKeys) return false;
    const Stripe& stripe = StripeOf(key);
    ReaderMutexLock lock(&stripe.mutex);
    return !stripe.keys.contains(key);
  };
  if (crowded()) {
    EndKeys(OldestEpoch());
    if (crowded()) return absl::nullopt;
  }
  Entered entered = Enter();
  KeyBan ban;
  ban.times = TimesAt(before, soft);
  ban.until = absl::ToUnixNanos(until);
  if (shared()) {
    // Memory of other replicas may keep the entry for longer.
    ban.until = std::max(ban.until, absl::ToUnixNanos(before) + keys_last_);
  }
  ban.epoch = NextEpoch();
  AddKey(key, ban);
  if (soft || shared() || until > before) {
    changes_.fetch_add(1, std::memory_order_acq_rel);
  }
  return entered;
}

BanTimes Bans::AddKey(const key::Key& key, const KeyBan& ban) {
  const size_t at = StripeAt(key);
  Stripe& stripe = stripes_[at];
  MutexLock lock(&stripe.mutex);
  const auto [it, added] = stripe.keys.emplace(key, ban);
  const BanTimes before = added ? BanTimes() : it->second.times;
  if (added) {
    keys_.fetch_add(1, std::memory_order_relaxed);
  } else {
    it->second.times.Add(ban.times);
    it->second.until = std::max(it->second.until, ban.until);
    it->second.epoch = std::max(it->second.epoch, ban.epoch);
    it->second.kept |= ban.kept;
  }
  newest_key_[at].store(
      std::max({newest_key_[at].load(std::memory_order_relaxed),
                ban.times.purged, ban.times.stale}),
      std::memory_order_release);
  return before;
}

void Bans::SetNewest(size_t stripe) {
  int64_t newest = kNeverBanned;
  for (const auto& [key, ban] : stripes_[stripe].keys) {
    newest = std::max({newest, ban.times.purged, ban.times.stale});
  }
  newest_key_[stripe].store(newest, std::memory_order_release);
}

BanTimes Bans::KeyTimes(const key::Key& key) const {
  const Stripe& stripe = StripeOf(key);
  ReaderMutexLock lock(&stripe.mutex);
  const auto it = stripe.keys.find(key);
  return it == stripe.keys.end() ? BanTimes() : it->second.times;
}

bool BanScope::FillUnlessBanned(const key::Key& key, absl::Time started,
                                absl::FunctionRef<void()> fill) const {
  const int64_t at = absl::ToUnixNanos(started);
  Bans::Stripe& stripe = bans_->StripeOf(key);
  MutexLock lock(&stripe.mutex);
  if (at <= purged_.load(std::memory_order_acquire)) return false;
  if (bans_->MayCover(key, at)) {
    const auto it = stripe.keys.find(key);
    if (it != stripe.keys.end() &&
        (at <= it->second.times.purged || at <= it->second.times.stale)) {
      return false;
    }
  }
  fill();
  return true;
}

void Bans::KeepKey(const key::Key& key) {
  {
    Stripe& stripe = StripeOf(key);
    MutexLock lock(&stripe.mutex);
    const auto it = stripe.keys.find(key);
    if (it == stripe.keys.end()) return;
    it->second.kept = true;
  }
  changes_.fetch_add(1, std::memory_order_acq_rel);
}

void Bans::Deleted(const key::Key& key, absl::Time before) {
  {
    Stripe& stripe = StripeOf(key);
    MutexLock lock(&stripe.mutex);
    const auto it = stripe.keys.find(key);
    if (it == stripe.keys.end() || !it->second.kept ||
        it->second.times.purged > absl::ToUnixNanos(before)) {
      return;
    }
    it->second.kept = false;
  }
  changes_.fetch_add(1, std::memory_order_acq_rel);
  EndKeys(OldestEpoch());
}

std::vector<std::pair<key::Key, absl::Time>> Bans::Kept() const {
  std::vector<std::pair<key::Key, absl::Time>> kept;
  if (keys_.load(std::memory_order_relaxed) == 0) return kept;
  for (const Stripe& stripe : stripes_) {
    ReaderMutexLock lock(&stripe.mutex);
    for (const auto& [key, ban] : stripe.keys) {
      if (!ban.kept) continue;
      kept.emplace_back(key, absl::FromUnixNanos(ban.times.purged));
    }
  }
  return kept;
}

// -------------------------------------------------------- Running operations

Bans::Entered Bans::Enter() {
  MutexLock lock(&entered_mutex_);
  ++entered_[epoch_];
  return Entered(this, epoch_);
}

uint64_t Bans::NextEpoch() {
  MutexLock lock(&entered_mutex_);
  return epoch_++;
}

void Bans::Leave(uint64_t epoch) {
  {
    MutexLock lock(&entered_mutex_);
    const auto it = entered_.find(epoch);
    if (--it->second > 0) return;
    const bool oldest = it == entered_.begin();
    entered_.erase(it);
    if (!oldest) return;
  }
  if (keys_.load(std::memory_order_relaxed) == 0) return;
  const uint64_t oldest = OldestEpoch();
  // There may be many bans that do not end with an operation.
  if (oldest > ended_.load(std::memory_order_acquire)) EndKeys(oldest);
}

uint64_t Bans::OldestEpoch() const {
  MutexLock lock(&entered_mutex_);
  return entered_.empty() ? epoch_ : entered_.begin()->first;
}

void Bans::EndKeys(uint64_t oldest) {
  const int64_t seen = seen_.load(std::memory_order_relaxed);
  // A ban of everything makes those of keys needless. (A replica would learn
  // them again from the record of the fleet.)
  const int64_t all = [this] {
    ReaderMutexLock lock(&mutex_);
    return shared() ? kNeverBanned : all_.purged;
  }();
  for (size_t at = 0; at < kStripes; ++at) {
    if (newest_key_[at].load(std::memory_order_relaxed) == kNeverBanned) {
      continue;
    }
    Stripe& stripe = stripes_[at];
    MutexLock lock(&stripe.mutex);
    for (auto it = stripe.keys.begin(); it != stripe.keys.end();) {
      KeyBan& ban = it->second;
      const bool over = ban.epoch < oldest &&
                        (ban.until <= seen ||
                         std::max(ban.times.purged, ban.times.stale) <= all);
      if (over && !ban.kept) ban.times.purged = kNeverBanned;
      if (over) ban.times.stale = kNeverBanned;
      if (!ban.times.empty()) {
        ++it;
        continue;
      }
      stripe.keys.erase(it++);
      keys_.fetch_sub(1, std::memory_order_relaxed);
    }
    SetNewest(at);
  }
  uint64_t ended = ended_.load(std::memory_order_relaxed);
  while (ended < oldest && !ended_.compare_exchange_weak(ended, oldest)) {
  }
}

// --------------------------------------------------------------- Outliving

void Bans::Await() {
  MutexLock lock(&save_mutex_);
  lasting_ = true;
}

void Bans::Merge(const StoredBans& bans) {
  all_.Add(bans.all);
  for (const auto& [name, times] : bans.functions) functions_[name].Add(times);
  for (const auto& [name, times] : bans.generations) {
    generations_[name].Add(times);
  }
  Spread();
}

void Bans::Attach(const absl::StatusOr<absl::optional<std::string>>& content,
                  Writer write, absl::Time latest) {
  {
    MutexLock lock(&save_mutex_);
    lasting_ = true;
    write_ = std::move(write);
  }
  absl::StatusOr<StoredBans> stored = StoredBans();
  if (!content.ok()) {
    stored = content.status();
  } else if (content->has_value()) {
    stored = DecodeBans(**content);
  }
  if (!stored.ok()) {
    Log(LogLevel::kError,
        "what was purged cannot be read: all that is stored counts as purged",
        {{"error", stored.status().message()}});
    Ban(Kind::kAll, "", "", latest, /*soft=*/false);
  } else {
    Saw(latest);
    StoredBans bans = *std::move(stored);
    // An entry from the future counts as none.
    Clamp(absl::ToUnixNanos(latest), &bans);
    {
      MutexLock lock(&mutex_);
      Merge(bans);
    }
    for (const auto& [key, of_key] : bans.keys) {
      KeyBan ban;
      ban.times = of_key.times;
      ban.until = of_key.until;
      ban.kept = of_key.times.purged != kNeverBanned;
      AddKey(key, ban);
    }
  }
  Retry();
}

void Bans::Detach() {
  MutexLock lock(&save_mutex_);
  write_ = nullptr;
}

bool Bans::lasting() const {
  MutexLock lock(&save_mutex_);
  return lasting_;
}

StoredBans Bans::ToStore(int64_t now) const {
  StoredBans bans;
  {
    MutexLock lock(&mutex_);
    bans.all = all_;
    bans.functions = functions_;
    bans.generations = generations_;
  }
  for (const Stripe& stripe : stripes_) {
    ReaderMutexLock lock(&stripe.mutex);
    for (const auto& [key, ban] : stripe.keys) {
      StoredKeyBan of_key;
      // Beside a disk, a hard ban outlives the process only while the disk may
      // still have the entry.
      of_key.times = ban.times;
      if (!shared() && !ban.kept && ban.until <= now) {
        of_key.times.purged = kNeverBanned;
      }
      if (shared() && ban.until <= now) continue;
      of_key.until = std::max<int64_t>(ban.until, 0);
      if (!of_key.times.empty()) bans.keys.emplace(key, of_key);
    }
  }
  return bans;
}

absl::Status Bans::Save() {
  MutexLock lock(&save_mutex_);
  const uint64_t changes = changes_.load(std::memory_order_acquire);
  if (changes == written_.load(std::memory_order_relaxed)) {
    return absl::OkStatus();
  }
  absl::Status status;
  if (lasting_) {
    status = write_ == nullptr
                 ? absl::UnavailableError("the cache on disk is not open")
                 : write_(shared() ? "" : EncodeBans(ToStore(seen_)));
  }
  if (status.ok()) {
    written_.store(changes, std::memory_order_release);
    if (std::exchange(logged_, false)) {
      Log(LogLevel::kInfo, "saved the purge after a failure");
    }
    return status;
  }
  if (!std::exchange(logged_, true)) {
    Log(LogLevel::kError,
        shared() ? "cannot write the purge into the record of the fleet: other "
                   "replicas do not have it, retrying"
                 : "cannot save the purge: a restart would forget it",
        {{"error", status.message()}});
  }
  return absl::UnavailableError(status.message());
}

void Bans::Retry() {
  if (!saved()) Save().IgnoreError();
}

bool Bans::saved() const {
  return changes_.load(std::memory_order_acquire) ==
         written_.load(std::memory_order_acquire);
}

// ----------------------------------------------------------------- Sharing

void Bans::Share(std::function<absl::Status()> write,
                 absl::Duration keys_last) {
  keys_last_.store(absl::ToInt64Nanoseconds(keys_last));
  MutexLock lock(&save_mutex_);
  lasting_ = true;
  write_ = [write = std::move(write)](absl::string_view) { return write(); };
}

Bans::Learned Bans::Learn(const StoredBans& record, absl::Time now) {
  Learned learned;
  const auto add = [&learned](const BanTimes& times, const BanTimes& wider,
                              BanTimes* known) {
    if (times.IsWithin(wider)) return false;
    if (times.purged > wider.purged) {
      learned.hard = true;
      learned.before =
          std::max(learned.before, absl::FromUnixNanos(times.purged));
    }
    known->Add(times);
    return true;
  };
  {
    MutexLock lock(&mutex_);
    learned.all = add(record.all, all_, &all_);
    for (const auto& [name, times] : record.functions) {
      BanTimes& known = functions_[name];
      BanTimes wider = all_;
      wider.Add(known);
      if (add(times, wider, &known)) learned.functions.push_back(name);
    }
    for (const auto& [name, times] : record.generations) {
      const BanTimes wider = TimesOf(name);
      if (!times.IsWithin(wider) && add(times, wider, &generations_[name])) {
        learned.generations.push_back(name);
      }
    }
    Spread();
  }
  if (!learned.empty()) AwaitFills();

  Saw(now);
  EndKeys(OldestEpoch());
  if (record.keys.empty()) return learned;
  // No ban added here ends before the operations in progress have left.
  const Entered entered = Enter();
  KeyBan ban;
  ban.epoch = NextEpoch();
  for (const auto& [key, of_key] : record.keys) {
    if (of_key.until <= absl::ToUnixNanos(now)) continue;
    ban.times = of_key.times;
    ban.until = of_key.until;
    const BanTimes before = AddKey(key, ban);
    if (ban.times.purged > before.purged) {
      learned.keys.emplace_back(key, absl::FromUnixNanos(ban.times.purged));
    }
    if (ban.times.stale > before.stale) learned.soft_keys.push_back(key);
  }
  return learned;
}

StoredBans Bans::Shared(absl::Time now) {
  Saw(now);
  EndKeys(OldestEpoch());
  return ToStore(absl::ToUnixNanos(now));
}

// ----------------------------------------------------------------- Looking

bool Bans::CoversStored(absl::string_view function,
                        absl::string_view generation, const key::Key& key,
                        absl::Time started) const {
  const int64_t at = absl::ToUnixNanos(started);
  if (at <= newest_.load(std::memory_order_acquire)) {
    const Generation name{std::string(function), std::string(generation)};
    ReaderMutexLock lock(&mutex_);
    if (at <= TimesOf(name).purged) return true;
  }
  return MayCover(key, at) && at <= KeyTimes(key).purged;
}

absl::optional<Bans::Covering> Bans::Find(absl::string_view function,
                                          absl::string_view generation,
                                          const key::Key& key,
                                          absl::Time started) const {
  const int64_t at = absl::ToUnixNanos(started);
  std::vector<std::pair<Kind, BanTimes>> bans;
  {
    ReaderMutexLock lock(&mutex_);
    bans.emplace_back(Kind::kAll, all_);
    const auto of_function = functions_.find(std::string(function));
    if (of_function != functions_.end()) {
      bans.emplace_back(Kind::kFunction, of_function->second);
    }
    const auto of_generation =
        generations_.find({std::string(function), std::string(generation)});
    if (of_generation != generations_.end()) {
      bans.emplace_back(Kind::kGeneration, of_generation->second);
    }
  }
  bans.emplace_back(Kind::kKey, KeyTimes(key));
  for (const bool soft : {false, true}) {
    for (const auto& [kind, times] : bans) {
      const int64_t before = soft ? times.stale : times.purged;
      if (at <= before)
        return Covering{kind, soft, absl::FromUnixNanos(before)};
    }
  }
  return absl::nullopt;
}

std::vector<Bans::Listed> Bans::List(absl::string_view function,
                                     size_t most) const {
  std::vector<Listed> listed;
  const auto add = [&](Kind kind, const std::string& generation,
                       const BanTimes& times) {
    for (const bool soft : {false, true}) {
      const int64_t before = soft ? times.stale : times.purged;
      if (before == kNeverBanned || listed.size() == most) continue;
      listed.push_back({kind, generation, soft, absl::FromUnixNanos(before)});
    }
  };
  ReaderMutexLock lock(&mutex_);
  add(Kind::kAll, "", all_);
  const auto found = functions_.find(std::string(function));
  if (found != functions_.end()) add(Kind::kFunction, "", found->second);
  for (auto it = generations_.lower_bound({std::string(function), ""});
       it != generations_.end() && it->first.first == function; ++it) {
    add(Kind::kGeneration, it->first.second, it->second);
  }
  return listed;
}

Bans::Figures Bans::figures() const {
  Figures figures;
  ReaderMutexLock lock(&mutex_);
  figures.all = all_.empty() ? 0 : 1;
  figures.functions = functions_.size();
  figures.generations = generations_.size();
  figures.keys = keys_.load(std::memory_order_relaxed);
  return figures;
}

}  // namespace fncache::cache::store
