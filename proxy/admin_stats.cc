// SPDX-License-Identifier: Apache-2.0
#include "proxy/admin_stats.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/utf8.h"
#include "insight/explain/proposed_mask.h"
#include "proto/admin.pb.h"
#include "proxy/admin/units.h"
#include "proxy/telemetry/labels.h"

namespace fncache::proxy {
namespace {

namespace v1 = admin::v1;
using admin::ToProto;
using insight::explain::MissMemory;
using CountList = google::protobuf::RepeatedPtrField<v1::Count>;

void Add(const std::string& name, uint64_t count, CountList* list) {
  v1::Count* const added = list->Add();
  added->set_name(WellFormedUtf8(name));
  added->set_count(count);
}

void SetLatency(const metrics::Distribution& from, v1::Latency* to) {
  for (const metrics::Distribution::SubBucket& part : from.sub_buckets) {
    v1::Latency::Part* const added = to->add_parts();
    added->set_number(static_cast<uint32_t>(part.number));
    added->set_count(part.count);
    added->set_nanoseconds(part.nanoseconds);
  }
}

void SetCounts(const telemetry::FunctionCounts& counts, v1::FunctionStats* to) {
  for (size_t o = 0; o < telemetry::kOutcomes; ++o) {
    const auto outcome = static_cast<telemetry::Outcome>(o);
    const char* const name = telemetry::OutcomeName(outcome);
    Add(name, counts.Calls(outcome), to->mutable_calls_by_outcome());
    auto* const latency = to->add_latency_by_outcome();
    latency->set_outcome(name);
    SetLatency(counts.latency[o], latency->mutable_latency());
  }
  for (size_t why = 0; why < telemetry::kMissReasons; ++why) {
    Add(telemetry::MissReasonName(why), counts.missed[why],
        to->mutable_misses_by_reason());
  }
  for (size_t why = 0; why < telemetry::kBypassReasons; ++why) {
    Add(telemetry::BypassReasonName(why), counts.bypassed[why],
        to->mutable_bypasses_by_reason());
  }
  to->set_hits(counts.hits);
  to->set_misses(counts.misses);
  to->set_fills(counts.fills);
  to->set_fills_dropped(counts.fills_dropped);
  to->set_cache_errors(counts.cache_errors);
  *to->mutable_function_time_saved() = ToProto(counts.saved);
  for (size_t code = 0; code < telemetry::kStatusCodes; ++code) {
    Add(telemetry::StatusCodeName(static_cast<int>(code)),
        counts.upstream[code], to->mutable_upstream_calls_by_code());
  }
  to->set_upstream_errors(counts.UpstreamErrors());
  SetLatency(counts.upstream_latency, to->mutable_upstream_latency());
  to->set_refreshes(counts.refreshes);
  to->set_refreshes_failed(counts.refreshes_failed);
  to->set_refreshes_refused(counts.refreshes_refused);
  for (size_t code = 0; code < telemetry::kStatusCodes; ++code) {
    Add(telemetry::StatusCodeName(static_cast<int>(code)),
        counts.served_over[code], to->mutable_errors_served_over_by_code());
  }
  to->set_entries_superseded(counts.superseded);
  to->set_abandoned_calls(counts.abandoned);
  to->set_abandoned_calls_finished(counts.abandoned_finished);
  to->set_abandoned_calls_refused(counts.abandoned_refused);
}

void SetTiers(const telemetry::Instruments& instruments,
              const telemetry::DaemonCounts& counts, v1::StatsResponse* to) {
  for (const auto& tier : instruments.ReadTiers()) {
    v1::TierStats* const added = to->add_tiers();
    added->set_tier(telemetry::TierName(tier.tier));
    added->set_up(tier.stats.up);
    added->set_entries(tier.stats.entries);
    added->set_bytes(tier.stats.bytes);
    added->set_capacity_bytes(tier.stats.capacity);
    for (size_t why = 0; why < telemetry::kRemovals; ++why) {
      Add(telemetry::RemovalName(static_cast<cache::Removal>(why)),
          tier.removed[why], added->mutable_removed());
    }
    const auto& errors = counts.tier_errors[static_cast<size_t>(tier.tier)];
    for (size_t what = 0; what < telemetry::kTierErrors; ++what) {
      Add(telemetry::TierErrorName(static_cast<cache::TierError>(what)),
          errors[what], added->mutable_errors());
    }
  }
}

void SetShared(const telemetry::Instruments& instruments,
               v1::StatsResponse* to) {
  const auto shared = instruments.ReadShared();
  if (!shared.has_value()) return;
  v1::SharedStats* const set = to->mutable_shared();
  set->set_up(shared->up);
  *set->mutable_since() = ToProto(shared->since);
  set->set_why(WellFormedUtf8(shared->why));
  set->set_cluster(shared->server.cluster);
  for (const resp::Node& node : shared->server.nodes) {
    v1::SharedStats::Node* const added = set->add_nodes();
    added->set_address(WellFormedUtf8(node.address));
    added->set_state(telemetry::NodeStateName(node.state));
    *added->mutable_since() = ToProto(node.since);
    added->set_why(WellFormedUtf8(node.why));
  }
  set->set_version(WellFormedUtf8(shared->version));
  *set->mutable_round_trip() = ToProto(shared->round_trip);
  *set->mutable_clock_difference() = ToProto(shared->clock_difference);
  if (shared->bans_age != absl::InfiniteDuration()) {
    *set->mutable_bans_age() = ToProto(shared->bans_age);
  }
  set->set_bans_written(shared->bans_written);
  for (size_t i = 0; i < telemetry::kSharedLookups; ++i) {
    Add(telemetry::SharedLookupName(i), shared->lookups[i],
        set->mutable_lookups());
  }
  for (size_t i = 0; i < telemetry::kSharedWrites; ++i) {
    Add(telemetry::SharedWriteName(i), shared->writes[i],
        set->mutable_writes());
  }
}

// The masks that hide the changed fields, the most frequent first.
void AddMasks(const MissMemory::Top& proposed,
              v1::ExplainResponse::FunctionMisses* to) {
  // One miss mostly has both of the masks that are proposed together.
  std::map<std::string, uint64_t> counts;
  for (const auto& [mask, count] : proposed) {
    for (const std::string& one : insight::explain::ProposedTogether(mask)) {
      counts[one] = std::max(counts[one], count);
    }
  }
  std::vector<v1::ExplainResponse::Mask> masks;
  for (const auto& [name, count] : counts) {
    v1::ExplainResponse::Mask mask;
    mask.set_mask(WellFormedUtf8(name));
    mask.set_count(count);
    masks.push_back(std::move(mask));
  }
  std::stable_sort(
      masks.begin(), masks.end(),
      [](const v1::ExplainResponse::Mask& a,
         const v1::ExplainResponse::Mask& b) { return a.count() > b.count(); });
  for (v1::ExplainResponse::Mask& mask : masks) {
    *to->add_masks() = std::move(mask);
  }
}

// The name as kubectl writes it: XBucket team-a/bucket.
std::string NameOf(const insight::request::CompositeName& composite) {
  if (!composite.known()) return "";
  std::vector<std::string> name;
  for (const std::string& part : {composite.object_namespace, composite.name}) {
    if (!part.empty()) name.push_back(part);
  }
  return absl::StrCat(composite.kind, composite.kind.empty() ? "" : " ",
                      absl::StrJoin(name, "/"));
}

void AddMiss(const MissMemory::Miss& miss, v1::ExplainResponse* to) {
  v1::ExplainResponse::Miss* const added = to->add_last();
  *added->mutable_time() = ToProto(miss.time);
  added->set_function(WellFormedUtf8(miss.function));
  added->set_composite(WellFormedUtf8(NameOf(miss.composite)));
  added->set_reason(insight::trace::ReasonName(miss.why.reason));
  const bool section = miss.why.detail.empty() &&
                       miss.why.reason == insight::trace::Reason::kChanged;
  added->set_detail(
      WellFormedUtf8(section ? miss.why.section : miss.why.detail));
  added->set_writer(WellFormedUtf8(miss.why.writer));
  if (!miss.why.masks.empty()) {
    added->set_mask(WellFormedUtf8(miss.why.masks[0]));
  }
  added->set_key(miss.key.Bytes());
}

}  // namespace

v1::StatsResponse ReadStats(const telemetry::Instruments& instruments,
                            const limits::Budget& inflight,
                            const std::vector<std::string>& upstreams) {
  v1::StatsResponse stats;
  const telemetry::DaemonCounts counts = instruments.Read();
  for (size_t i = 0; i < instruments.functions(); ++i) {
    const telemetry::FunctionInstruments& function =
        instruments.function(static_cast<cache::FunctionId>(i));
    v1::FunctionStats* const added = stats.add_functions();
    added->set_name(WellFormedUtf8(function.name()));
    if (i < upstreams.size()) added->set_upstream(upstreams[i]);
    const telemetry::Reachability reach = function.reachability();
    added->set_reachable(reach.reachable);
    if (!reach.reachable) {
      *added->mutable_unreachable_since() = ToProto(reach.since);
      added->set_unreachable_why(WellFormedUtf8(reach.why));
    }
    const telemetry::FunctionGauges gauges = function.ReadGauges();
    added->set_calls_in_flight(gauges.in_flight);
    added->set_flights(gauges.flights);
    added->set_refreshes_running(gauges.refreshes);
    added->set_abandoned_calls_running(gauges.abandoned);
    added->set_keys_backing_off(gauges.backing_off);
    SetCounts(counts.functions[i], added);
  }
  SetTiers(instruments, counts, &stats);
  SetShared(instruments, &stats);
  for (size_t why = 0; why < telemetry::kDroppedReasons; ++why) {
    Add(telemetry::DroppedName(static_cast<cache::Dropped>(why)),
        counts.fills_dropped[why], stats.mutable_fills_dropped());
  }
  stats.set_access_log_lines_written(counts.access_log_written);
  stats.set_access_log_lines_dropped(counts.access_log_dropped);
  auto* const held = stats.mutable_inflight();
  held->set_reading_bytes(inflight.reading());
  held->set_waiting_bytes(inflight.waiting());
  held->set_running_bytes(inflight.running());
  held->set_limit_bytes(inflight.bound());
  held->set_refused(inflight.refused());
  for (const auto& certificate : instruments.ReadCertificates()) {
    auto* const added = stats.add_certificates();
    added->set_side(telemetry::TlsSideName(certificate.side));
    *added->mutable_expires() = ToProto(certificate.expiry);
    added->set_last_reload_failed(certificate.last_reload_failed);
  }
  return stats;
}

absl::StatusOr<v1::ExplainResponse> ReadMisses(
    const telemetry::Instruments& instruments, const MissMemory* misses,
    const v1::ExplainRequest& request) {
  v1::ExplainResponse response;
  response.set_explained(misses != nullptr);
  std::map<std::string, MissMemory::FunctionTop> tops;
  if (misses != nullptr) {
    response.set_share(misses->share());
    response.set_paths_share(misses->paths_share());
    for (auto& top : misses->Tops(std::numeric_limits<size_t>::max())) {
      std::string name = top.function;
      tops.emplace(std::move(name), std::move(top));
    }
  }
  std::vector<std::string> names;
  for (size_t i = 0; i < instruments.functions(); ++i) {
    const telemetry::FunctionInstruments& function =
        instruments.function(static_cast<cache::FunctionId>(i));
    names.push_back(function.name());
    if (!request.function().empty() && request.function() != function.name()) {
      continue;
    }
    auto* const added = response.add_functions();
    added->set_function(WellFormedUtf8(function.name()));
    const telemetry::FunctionCounts counts = function.Read();
    for (size_t why = 0; why < telemetry::kMissReasons; ++why) {
      if (counts.missed[why] == 0) continue;
      Add(telemetry::MissReasonName(why), counts.missed[why],
          added->mutable_reasons());
    }
    const MissMemory::FunctionTop& top = tops[function.name()];
    for (const auto& [path, count] : top.paths) {
      Add(path, count, added->mutable_paths());
    }
    for (const auto& [writer, count] : top.writers) {
      Add(writer, count, added->mutable_writers());
    }
    AddMasks(top.masks, added);
  }
  if (response.functions().empty()) {
    return absl::NotFoundError(absl::StrCat(
        "no function is called \"", PrintableStart(request.function()),
        "\"; there are: ", absl::StrJoin(names, ", ")));
  }
  if (misses != nullptr && request.last() > 0) {
    for (const auto& miss : misses->Last(request.last(), request.function())) {
      AddMiss(miss, &response);
    }
  }
  return response;
}

}  // namespace fncache::proxy
