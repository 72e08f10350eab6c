// SPDX-License-Identifier: Apache-2.0
#include "proxy/purge.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cache/key/digest.h"
#include "cache/policy.h"
#include "cache/wire/origin.h"
#include "common/log.h"
#include "common/utf8.h"
#include "proxy/settings/options.h"

namespace fncache::proxy {
namespace {

using cache::store::Bans;

// The time after which no tier has the entry any more.
absl::Time GoneAt(const cache::store::Entry& entry) {
  return entry.kept_until();
}

constexpr char kEverything[] = "everything";

std::string WholeFunction(const std::string& name) {
  return absl::StrCat("function ", WellFormedUtf8(name));
}

// Sets whether the entry would answer a call with its key, under the function's
// settings now. All other fields of the report must be set.
void JudgeServing(const serving::FunctionHandler& function,
                  const cache::key::Key& key, const cache::store::Entry& entry,
                  absl::Time now, EntryReport* report) {
  const serving::FunctionStatePtr state = function.State();
  const auto no = [report](std::string why) {
    report->served_why = std::move(why);
  };
  switch (state->options.policy.mode) {
    case cache::Mode::kOff:
      return no("mode is off");
    case cache::Mode::kShadow:
      return no("mode is shadow, so the function is always asked");
    case cache::Mode::kOn:
      break;
  }
  if (report->ban.has_value() && !report->ban->soft) return no("it is purged");
  if (!report->generation.empty() &&
      report->generation != state->options.generation) {
    return no("the function is of another generation now");
  }
  if (!state->policy.MayServe(entry)) {
    return no("it holds connection details, and store_secrets is none");
  }
  switch (function.FreshnessOf(key, entry, now)) {
    case cache::Freshness::kFresh:
      report->served = true;
      return;
    case cache::Freshness::kWhileRevalidate:
      report->served = true;
      return no("stale, while a refresh calls the function");
    case cache::Freshness::kIfError:
      return no("past its time; only where the function fails");
    case cache::Freshness::kSpent:
      return no(
          entry.superseded()
              ? "the function has given a new answer that may not be stored"
              : "past its time");
  }
}

}  // namespace

const std::string& Purger::NameOf(cache::FunctionId function) const {
  static const auto* const none = new std::string;
  return function < deps_.functions.size() ? deps_.functions[function]->name()
                                           : *none;
}

absl::optional<cache::FunctionId> Purger::OwnerOf(
    const cache::store::Inspection& there) const {
  const cache::FunctionId id = there.entry->function();
  if (id >= deps_.functions.size()) return absl::nullopt;
  // A tier that knows names has no FunctionId for a name that is not in the
  // settings.
  if (!there.function.empty() && there.function != NameOf(id)) {
    return absl::nullopt;
  }
  return id;
}

absl::StatusOr<Purger::Functions> Purger::Named(const std::string& name) const {
  Functions functions;
  std::vector<std::string> names;
  for (size_t i = 0; i < deps_.functions.size(); ++i) {
    const auto id = static_cast<cache::FunctionId>(i);
    names.push_back(NameOf(id));
    if (name.empty() || names.back() == name) functions.push_back(id);
  }
  if (functions.empty()) {
    return absl::NotFoundError(
        absl::StrCat("there is no function ", PrintableStart(name),
                     " here, only ", absl::StrJoin(names, ", ")));
  }
  return functions;
}

absl::Status Purger::CheckSoft(const PurgeOrder& order,
                               const Functions& functions) const {
  if (!order.soft) return absl::OkStatus();
  std::vector<std::string> off;
  for (const cache::FunctionId id : functions) {
    const cache::PolicyOptions& policy =
        deps_.functions[id]->State()->options.policy;
    if (!cache::Policy(policy).serves_stale()) {
      off.push_back(NameOf(id));
    }
  }
  // A key purge does not need to know the owning function.
  const bool refused = order.what == Bans::Kind::kKey
                           ? off.size() == functions.size()
                           : !off.empty();
  if (!refused) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "a soft purge makes entries stale, and stale_while_revalidate and "
      "stale_if_error are both 0 for ",
      absl::StrJoin(off, ", "), ": set one of them, or purge without soft"));
}

void Purger::PurgeWide(const PurgeOrder& order, const Functions& functions,
                       absl::Time before, PurgeResult* result) {
  Bans& bans = deps_.store->bans();
  const bool all = order.what == Bans::Kind::kAll;
  if (all) bans.Ban(order.what, "", "", before, order.soft);
  for (const cache::FunctionId id : functions) {
    if (all) break;
    const Bans::Kind banned =
        bans.Ban(order.what, NameOf(id), order.generation, before, order.soft);
    if (banned != order.what) {
      result->widened_to.push_back(WholeFunction(NameOf(id)));
    }
  }
  for (const cache::FunctionId id : functions) {
    result->flights += deps_.functions[id]->DetachFlights();
  }
  result->covered = 0;
  for (const cache::FunctionId id : functions) {
    result->covered += deps_.store->LowerEntriesOf(id);
  }
  if (order.soft) return;
  if (all) {
    result->removed += deps_.store->Sweep(cache::kNoFunction, before);
    if (deps_.misses != nullptr) deps_.misses->OnPurgedFunction("");
    return;
  }
  const bool generation = order.what == Bans::Kind::kGeneration;
  for (const cache::FunctionId id : functions) {
    result->removed +=
        Sweep(id, generation ? &order.generation : nullptr, before);
  }
}

uint64_t Purger::Sweep(cache::FunctionId function,
                       const std::string* generation, absl::Time before) {
  const std::string& name = NameOf(function);
  if (deps_.misses != nullptr && generation != nullptr) {
    deps_.misses->OnPurgedGeneration(name, *generation);
  } else if (deps_.misses != nullptr) {
    deps_.misses->OnPurgedFunction(name);
  }
  // Entries in memory do not have their generation. If there was another
  // generation, they stay, banned, until they are evicted.
  if (generation != nullptr &&
      (deps_.functions[function]->State()->options.generation != *generation ||
       deps_.store->bans().Generations(name) > 1)) {
    return 0;
  }
  return deps_.store->Sweep(function, before);
}

void Purger::OnLearned(const Bans::Learned& learned) {
  uint64_t flights = 0;
  uint64_t removed = 0;
  for (size_t i = 0; i < deps_.functions.size(); ++i) {
    const auto id = static_cast<cache::FunctionId>(i);
    bool whole = learned.all;
    const std::string* generation = nullptr;
    for (const std::string& function : learned.functions) {
      whole |= function == NameOf(id);
    }
    for (const auto& [function, of] : learned.generations) {
      if (function == NameOf(id)) generation = &of;
    }
    if (!whole && generation == nullptr) continue;
    flights += deps_.functions[i]->DetachFlights();
    if (learned.hard) {
      removed += Sweep(id, whole ? nullptr : generation, learned.before);
    }
  }
  // Entries of functions that are not in the settings.
  if (learned.all && learned.hard) {
    removed += deps_.store->Sweep(cache::kNoFunction, learned.before);
  }
  for (serving::FunctionHandler* const function : deps_.functions) {
    for (const auto& [key, until] : learned.keys) {
      flights += function->DetachFlight(key);
    }
    for (const cache::key::Key& key : learned.soft_keys) {
      flights += function->DetachFlight(key);
    }
  }
  const absl::Time now = deps_.clock->Now();
  for (const cache::key::Key& key : learned.soft_keys) {
    const auto here = deps_.store->GetMemory(key, now).entry;
    // The other replica did not know how long this entry is kept. (The ban's
    // other time stays.)
    if (here) {
      deps_.store->bans().BanKey(key, absl::InfinitePast(), /*soft=*/true,
                                 GoneAt(*here));
    }
  }
  for (const auto& [key, until] : learned.keys) {
    deps_.store->Forget(key, until, now);
    if (deps_.misses != nullptr) deps_.misses->OnPurged(key);
  }
  uint64_t unlogged;
  if (!learned_lines_.Allows(now, &unlogged)) return;
  Log(LogLevel::kInfo, "purged, as another replica was",
      {{"more", unlogged},
       {"everything", learned.all ? "yes" : "no"},
       {"functions", absl::StrJoin(learned.functions, ", ")},
       {"generations", learned.generations.size()},
       {"keys", learned.keys.size() + learned.soft_keys.size()},
       {"removed", removed},
       {"flights", flights}});
}

absl::Status Purger::CheckOwner(const PurgeOrder& order) const {
  if (order.what != Bans::Kind::kKey || order.function.empty()) {
    return absl::OkStatus();
  }
  for (const cache::store::Inspection& there :
       deps_.store->Inspect(order.key)) {
    const std::string& owner = there.function.empty()
                                   ? NameOf(there.entry->function())
                                   : there.function;
    if (owner == order.function) continue;
    return absl::NotFoundError(
        absl::StrCat("key ", order.key.Hex(), " is of the function ", owner,
                     ", not of ", PrintableStart(order.function)));
  }
  return absl::OkStatus();
}

bool Purger::PurgeKey(const PurgeOrder& order, const Functions& functions,
                      absl::Time before, PurgeResult* result) {
  Bans& bans = deps_.store->bans();
  absl::Time until = before;
  Functions owners = functions;
  for (const cache::store::Inspection& there :
       deps_.store->Inspect(order.key)) {
    until = std::max(until, GoneAt(*there.entry));
    // A soft purge leaves the entry in the tier.
    if (order.soft && there.tier != cache::Tier::kMemory) ++result->covered;
    if (const auto owner = OwnerOf(there); owner.has_value()) {
      owners = {*owner};
    }
  }
  // A request with this key may have entries under keys by hint, of which only
  // the ban tells.
  const bool varies =
      std::any_of(owners.begin(), owners.end(), [this](cache::FunctionId id) {
        return deps_.functions[id]->State()->options.varies();
      });
  if (varies) {
    until = absl::InfiniteFuture();
  } else if (!order.soft) {
    until = before;
  }
  // `banned` lives until the key is deleted in every tier.
  const absl::optional<Bans::Entered> banned =
      bans.BanKey(order.key, before, order.soft, until);
  if (!banned.has_value()) {
    PurgeOrder wide = order;
    wide.what = owners.size() == deps_.functions.size() ? Bans::Kind::kAll
                                                        : Bans::Kind::kFunction;
    result->widened_to.push_back(wide.what == Bans::Kind::kAll
                                     ? kEverything
                                     : WholeFunction(NameOf(owners.front())));
    PurgeWide(wide, owners, before, result);
    return true;
  }
  for (serving::FunctionHandler* const function : deps_.functions) {
    result->flights += function->DetachFlight(order.key);
  }
  if (order.soft) return true;
  const cache::store::PurgedKey purged =
      deps_.store->Purge(order.key, before, deps_.clock->Now());
  result->removed += static_cast<uint64_t>(purged.removed);
  if (!purged.lasting) bans.KeepKey(order.key);
  if (deps_.misses != nullptr) deps_.misses->OnPurged(order.key);
  return varies || !purged.lasting || deps_.store->MayBeYoungerBelow();
}

absl::StatusOr<PurgeResult> Purger::Purge(const PurgeOrder& given) {
  PurgeOrder order = given;
  // Entries may be of functions that are not in the settings any more.
  if (order.what == Bans::Kind::kFunction && order.function.empty()) {
    order.what = Bans::Kind::kAll;
  }
  if (order.what == Bans::Kind::kAll && !order.function.empty()) {
    return absl::InvalidArgumentError(
        "a purge of all takes no function: purge the function");
  }
  if (order.what == Bans::Kind::kGeneration &&
      order.generation.size() > settings::kMaxGenerationBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("generation: has ", order.generation.size(),
                     " bytes; accepted: a text of at most ",
                     settings::kMaxGenerationBytes, " bytes"));
  }
  const auto functions = Named(order.function);
  if (!functions.ok()) return functions.status();
  if (absl::Status soft = CheckSoft(order, *functions); !soft.ok()) return soft;
  if (absl::Status whose = CheckOwner(order); !whose.ok()) return whose;

  MutexLock lock(&mutex_);
  Bans& bans = deps_.store->bans();
  // The time is after every stored entry, even from a process whose clock was
  // ahead.
  const absl::Time before =
      std::max(deps_.clock->Now(), deps_.store->LatestTime());
  PurgeResult result;
  bool write = true;
  if (order.what == Bans::Kind::kKey) {
    write = PurgeKey(order, *functions, before, &result);
  } else {
    PurgeWide(order, *functions, before, &result);
  }
  result.unknown_generation =
      order.what == Bans::Kind::kGeneration &&
      std::none_of(functions->begin(), functions->end(),
                   [&](cache::FunctionId id) {
                     return bans.Knows(NameOf(id), order.generation);
                   });
  result.durable = bans.lasting();
  result.shared = deps_.store->MayBeYoungerBelow();
  const absl::Status saved = write ? bans.Save() : absl::OkStatus();
  if (deps_.metrics != nullptr) deps_.metrics->Purged(order.what);

  std::vector<LogField> fields = {
      {"what", telemetry::PurgeScopeName(order.what)}};
  if (order.what == Bans::Kind::kKey) {
    fields.emplace_back("key", order.key.Hex());
  }
  if (!order.function.empty()) {
    fields.emplace_back("function", order.function);
  }
  if (order.what == Bans::Kind::kGeneration) {
    fields.emplace_back("generation", order.generation);
  }
  if (order.soft) fields.emplace_back("soft", "yes");
  if (!result.widened_to.empty()) {
    fields.emplace_back("instead", absl::StrJoin(result.widened_to, ", "));
  }
  fields.emplace_back("removed", result.removed);
  fields.emplace_back("flights", result.flights);
  if (result.durable) fields.emplace_back("saved", saved.ok() ? "yes" : "no");
  Log(LogLevel::kInfo, "purged", fields);
  if (saved.ok()) return result;
  if (result.shared) {
    return absl::UnavailableError(
        absl::StrCat("purged here, but not in the record of the fleet: the "
                     "other replicas do not know it until it is written, which "
                     "is retried: ",
                     saved.message()));
  }
  return absl::UnavailableError(
      absl::StrCat("purged, but a restart would forget it until it is saved, "
                   "which is retried: ",
                   saved.message()));
}

absl::StatusOr<cache::key::Key> Purger::KeyOf(const LookUpOrder& order) const {
  if (order.key.has_value()) {
    const auto named = Named(order.function);
    if (!named.ok()) return named.status();
    return *order.key;
  }
  if (order.method == Method::kOther) {
    return absl::InvalidArgumentError("only RunFunction's requests have a key");
  }
  const auto functions = Named(order.function);
  if (!functions.ok()) return functions.status();
  if (functions->size() > 1) {
    std::vector<std::string> names;
    for (const cache::FunctionId id : *functions) names.push_back(NameOf(id));
    return absl::InvalidArgumentError(
        absl::StrCat("say whose request it is: there are the functions ",
                     absl::StrJoin(names, ", ")));
  }
  const serving::FunctionStatePtr state =
      deps_.functions[functions->front()]->State();
  const std::vector<absl::string_view> pieces = {order.request};
  cache::key::DigestScratch scratch;
  const cache::key::Digest digest =
      state->digester(order.method).Compute(pieces, &scratch);
  if (!digest.keyed) {
    return absl::InvalidArgumentError(
        "this is no request that can be keyed, so it is never cached");
  }
  return deps_.functions[functions->front()]->KeyOfHit(
      order.method, order.request, digest.key);
}

absl::StatusOr<std::vector<EntryReport>> Purger::LookUp(
    const LookUpOrder& order) const {
  const auto key = KeyOf(order);
  if (!key.ok()) return key.status();
  // Such requests may have been looked up earlier, and their entries may be
  // left.
  const bool of_operation =
      !order.request.empty() &&
      cache::wire::OriginOf(order.request) == cache::wire::Origin::kOperation;
  const Bans& bans = deps_.store->bans();
  const absl::Time now = deps_.clock->Now();
  const std::vector<cache::store::Inspection> all = deps_.store->Inspect(*key);
  std::vector<EntryReport> reports;
  for (const cache::store::Inspection& there : all) {
    const cache::store::Entry& entry = *there.entry;
    const cache::store::EntryInfo info = entry.info();
    EntryReport report;
    report.key = *key;
    report.tier = there.tier;
    report.function =
        there.function.empty() ? NameOf(entry.function()) : there.function;
    report.generation = there.generation;
    report.age = now - info.arrived;
    report.remaining = info.deadline() - now;
    report.size = there.bytes;
    report.ttl = info.ttl;
    report.lifetime = info.lifetime;
    report.told_ttl = info.ttl;
    report.hits = there.reads;
    report.secrets = info.secrets;
    const auto owner = OwnerOf(there);
    if (owner.has_value()) {
      const serving::FunctionStatePtr state = deps_.functions[*owner]->State();
      // A key belongs to one generation. It is the function's, if the key was
      // made now or there was no other generation. Else another tier may know
      // it.
      if (report.generation.empty() &&
          (!order.key.has_value() || bans.Generations(report.function) == 1)) {
        report.generation = state->options.generation;
      }
      for (const cache::store::Inspection& other : all) {
        if (report.generation.empty()) report.generation = other.generation;
      }
      report.remaining = state->policy.ServedFor(info, now);
    }
    report.ban =
        bans.Find(report.function, report.generation, *key, info.started);
    if (report.ban.has_value()) {
      report.remaining =
          std::min(report.remaining,
                   std::min(report.ban->before - now, absl::ZeroDuration()));
    }
    if (owner.has_value()) {
      const serving::FunctionStatePtr state = deps_.functions[*owner]->State();
      const cache::Policy& policy = state->policy;
      report.told_ttl = report.remaining > absl::ZeroDuration()
                            ? policy.HitTtl(info, now)
                            : policy.StaleTtl(info, /*random=*/0);
      JudgeServing(*deps_.functions[*owner], *key, entry, now, &report);
      if (of_operation && !state->options.cache_operations) {
        report.served = false;
        report.served_why = "the request is an operation's, which is a bypass";
      }
    } else {
      report.served_why = "its function is not in the settings";
    }
    reports.push_back(std::move(report));
  }
  return reports;
}

}  // namespace fncache::proxy
