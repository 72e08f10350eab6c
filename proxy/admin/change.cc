// SPDX-License-Identifier: Apache-2.0
#include "proxy/admin/change.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "google/protobuf/util/time_util.h"
#include "proxy/admin/units.h"

namespace fncache::proxy::admin {
namespace {

using google::protobuf::util::TimeUtil;

// Counters of one daemon only rise, but a reading may have read one thread
// early.
uint64_t Less(uint64_t now, uint64_t before) {
  return now > before ? now - before : 0;
}

void Subtract(const Counts& before, Counts* now) {
  for (v1::Count& count : *now) {
    count.set_count(Less(count.count(), CountOf(before, count.name())));
  }
}

void Subtract(const v1::Latency& before, v1::Latency* now) {
  std::map<uint32_t, const v1::Latency::Part*> parts;
  for (const v1::Latency::Part& part : before.parts()) {
    parts[part.number()] = &part;
  }
  v1::Latency left;
  for (const v1::Latency::Part& part : now->parts()) {
    v1::Latency::Part rest = part;
    const auto found = parts.find(part.number());
    if (found != parts.end()) {
      rest.set_count(Less(part.count(), found->second->count()));
      rest.set_nanoseconds(
          Less(part.nanoseconds(), found->second->nanoseconds()));
    }
    if (rest.count() > 0) *left.add_parts() = rest;
  }
  *now = left;
}

void Subtract(const v1::FunctionStats& before, v1::FunctionStats* now) {
  Subtract(before.calls_by_outcome(), now->mutable_calls_by_outcome());
  Subtract(before.misses_by_reason(), now->mutable_misses_by_reason());
  Subtract(before.bypasses_by_reason(), now->mutable_bypasses_by_reason());
  now->set_hits(Less(now->hits(), before.hits()));
  now->set_misses(Less(now->misses(), before.misses()));
  now->set_fills(Less(now->fills(), before.fills()));
  now->set_fills_dropped(Less(now->fills_dropped(), before.fills_dropped()));
  now->set_cache_errors(Less(now->cache_errors(), before.cache_errors()));
  *now->mutable_function_time_saved() = TimeUtil::NanosecondsToDuration(
      absl::ToInt64Nanoseconds(FromProto(now->function_time_saved()) -
                               FromProto(before.function_time_saved())));
  Subtract(before.upstream_calls_by_code(),
           now->mutable_upstream_calls_by_code());
  now->set_upstream_errors(
      Less(now->upstream_errors(), before.upstream_errors()));
  for (auto& latency : *now->mutable_latency_by_outcome()) {
    const v1::Latency* const earlier = LatencyOf(before, latency.outcome());
    if (earlier != nullptr) Subtract(*earlier, latency.mutable_latency());
  }
  Subtract(before.upstream_latency(), now->mutable_upstream_latency());
  now->set_refreshes(Less(now->refreshes(), before.refreshes()));
  now->set_refreshes_failed(
      Less(now->refreshes_failed(), before.refreshes_failed()));
  now->set_refreshes_refused(
      Less(now->refreshes_refused(), before.refreshes_refused()));
  Subtract(before.errors_served_over_by_code(),
           now->mutable_errors_served_over_by_code());
  now->set_entries_superseded(
      Less(now->entries_superseded(), before.entries_superseded()));
  now->set_abandoned_calls(
      Less(now->abandoned_calls(), before.abandoned_calls()));
  now->set_abandoned_calls_finished(
      Less(now->abandoned_calls_finished(), before.abandoned_calls_finished()));
  now->set_abandoned_calls_refused(
      Less(now->abandoned_calls_refused(), before.abandoned_calls_refused()));
}

void Subtract(const v1::TierStats& before, v1::TierStats* now) {
  Subtract(before.removed(), now->mutable_removed());
  Subtract(before.errors(), now->mutable_errors());
}

}  // namespace

Change ChangeBetween(const absl::optional<v1::StatsResponse>& before,
                     const v1::StatsResponse& now) {
  Change change;
  change.counted = now;
  const absl::Duration uptime = FromProto(now.uptime());
  if (!before.has_value() || FromProto(before->uptime()) >= uptime) {
    change.since_start = true;
    change.length = std::max(uptime, absl::Milliseconds(1));
    return change;
  }
  change.length = uptime - FromProto(before->uptime());
  v1::StatsResponse& counted = change.counted;
  *counted.mutable_process()->mutable_cpu() =
      TimeUtil::NanosecondsToDuration(absl::ToInt64Nanoseconds(
          FromProto(now.process().cpu()) - FromProto(before->process().cpu())));
  for (v1::FunctionStats& function : *counted.mutable_functions()) {
    for (const v1::FunctionStats& earlier : before->functions()) {
      if (earlier.name() == function.name()) Subtract(earlier, &function);
    }
  }
  for (v1::TierStats& tier : *counted.mutable_tiers()) {
    for (const v1::TierStats& earlier : before->tiers()) {
      if (earlier.tier() == tier.tier()) Subtract(earlier, &tier);
    }
  }
  Subtract(before->fills_dropped(), counted.mutable_fills_dropped());
  counted.set_access_log_lines_written(
      Less(now.access_log_lines_written(), before->access_log_lines_written()));
  counted.set_access_log_lines_dropped(
      Less(now.access_log_lines_dropped(), before->access_log_lines_dropped()));
  counted.mutable_inflight()->set_refused(
      Less(now.inflight().refused(), before->inflight().refused()));
  return change;
}

uint64_t Sum(const Counts& counts) {
  uint64_t sum = 0;
  for (const v1::Count& count : counts) sum += count.count();
  return sum;
}

uint64_t CountOf(const Counts& counts, absl::string_view name) {
  for (const v1::Count& count : counts) {
    if (count.name() == name) return count.count();
  }
  return 0;
}

absl::optional<double> HitRate(const v1::FunctionStats& function) {
  const uint64_t lookups = function.hits() + function.misses();
  if (lookups == 0) return absl::nullopt;
  return static_cast<double>(function.hits()) / static_cast<double>(lookups);
}

uint64_t CountIn(const v1::Latency& latency) {
  uint64_t count = 0;
  for (const v1::Latency::Part& part : latency.parts()) count += part.count();
  return count;
}

absl::Duration Mean(const v1::Latency& latency) {
  const uint64_t count = CountIn(latency);
  if (count == 0) return absl::ZeroDuration();
  double sum = 0;
  for (const v1::Latency::Part& part : latency.parts()) {
    sum += static_cast<double>(part.nanoseconds());
  }
  return absl::Nanoseconds(sum / static_cast<double>(count));
}

absl::Duration Quantile(const v1::Latency& latency, double q) {
  const uint64_t count = CountIn(latency);
  const auto rank = static_cast<uint64_t>(
      std::max(1.0, std::ceil(q * static_cast<double>(count))));
  uint64_t passed = 0;
  for (const v1::Latency::Part& part : latency.parts()) {
    passed += part.count();
    if (part.count() == 0 || passed < rank) continue;
    return absl::Nanoseconds(static_cast<double>(part.nanoseconds()) /
                             static_cast<double>(part.count()));
  }
  return absl::ZeroDuration();
}

const v1::Latency* LatencyOf(const v1::FunctionStats& function,
                             absl::string_view outcome) {
  for (const auto& one : function.latency_by_outcome()) {
    if (one.outcome() == outcome) return &one.latency();
  }
  return nullptr;
}

}  // namespace fncache::proxy::admin
