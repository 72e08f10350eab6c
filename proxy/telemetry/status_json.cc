// SPDX-License-Identifier: Apache-2.0
#include "proxy/telemetry/status_json.h"

#include "common/json_tree.h"

namespace fncache::proxy::telemetry {
namespace {

using Json = JsonTree;

double Seconds(absl::Duration duration) {
  return absl::ToDoubleSeconds(duration);
}

double UnixSeconds(absl::Time time) {
  return absl::ToDoubleSeconds(time - absl::UnixEpoch());
}

Json Latency(const metrics::Distribution& latency) {
  return {{"count", latency.Count()},
          {"mean_seconds", Seconds(latency.Mean())},
          {"p50_seconds", Seconds(latency.Quantile(0.5))},
          {"p99_seconds", Seconds(latency.Quantile(0.99))}};
}

// Why calls missed.
Json Missed(const FunctionCounts& counts) {
  Json object = Json::Object();
  for (size_t why = 0; why < kMissReasons; ++why) {
    object.Set(MissReasonName(why), counts.missed[why]);
  }
  return object;
}

// Why calls were not looked up.
Json Bypassed(const FunctionCounts& counts) {
  Json object = Json::Object();
  for (size_t why = 0; why < kBypassReasons; ++why) {
    object.Set(BypassReasonName(why), counts.bypassed[why]);
  }
  return object;
}

// Runs that got the answer of before.
Json Repeats(const FunctionCounts& counts) {
  Json object = Json::Object();
  for (size_t over = 0; over < insight::explain::kRepeatOvers; ++over) {
    object.Set(insight::explain::RepeatOverName(over), counts.repeats[over]);
  }
  return object;
}

Json ByCode(const uint64_t (&counts)[kStatusCodes]) {
  Json object = Json::Object();
  for (size_t code = 0; code < kStatusCodes; ++code) {
    object.Set(StatusCodeName(static_cast<int>(code)), counts[code]);
  }
  return object;
}

Json ByShadowBy(const uint64_t (&counts)[kShadowBys]) {
  Json object = Json::Object();
  for (size_t by = 0; by < kShadowBys; ++by) {
    object.Set(ShadowByName(static_cast<ShadowBy>(by)), counts[by]);
  }
  return object;
}

Json Counts(const FunctionCounts& counts, absl::Duration length) {
  Json by_outcome = Json::Object();
  Json latency = Json::Object();
  for (size_t o = 0; o < kOutcomes; ++o) {
    const auto outcome = static_cast<Outcome>(o);
    by_outcome.Set(OutcomeName(outcome), counts.Calls(outcome));
    latency.Set(OutcomeName(outcome), Latency(counts.latency[o]));
  }
  uint64_t upstream = 0;
  for (const uint64_t of_code : counts.upstream) upstream += of_code;
  const absl::optional<double> hit_rate = HitRate(counts);
  const double seconds = Seconds(length);
  return {
      {"calls", counts.Calls()},
      {"calls_per_second",
       seconds > 0 ? static_cast<double>(counts.Calls()) / seconds : 0.0},
      {"calls_by_outcome", by_outcome},
      {"hits", counts.hits},
      {"misses", counts.misses},
      {"misses_by_reason", Missed(counts)},
      {"runs_examined", counts.examined},
      {"repeats_by_over", Repeats(counts)},
      {"bypasses_by_reason", Bypassed(counts)},
      {"hit_rate", hit_rate.has_value() ? Json(*hit_rate) : Json()},
      {"fills", counts.fills},
      {"fills_dropped", counts.fills_dropped},
      {"cache_errors", counts.cache_errors},
      {"function_seconds_saved", Seconds(counts.saved)},
      {"upstream_calls", upstream},
      {"upstream_errors", counts.UpstreamErrors()},
      {"upstream_calls_by_code", ByCode(counts.upstream)},
      {"latency_by_outcome", latency},
      {"upstream_latency", Latency(counts.upstream_latency)},
      {"refreshes", counts.refreshes},
      {"refreshes_failed", counts.refreshes_failed},
      {"refreshes_refused", counts.refreshes_refused},
      {"errors_served_over", counts.ServedOver()},
      {"errors_served_over_by_code", ByCode(counts.served_over)},
      {"entries_superseded", counts.superseded},
      {"abandoned_calls", counts.abandoned},
      {"abandoned_calls_finished", counts.abandoned_finished},
      {"abandoned_calls_refused", counts.abandoned_refused},
      {"shadow",
       {{"lookups", counts.shadow_lookups},
        {"hits_by", ByShadowBy(counts.shadow_hits)},
        {"differences_by", ByShadowBy(counts.shadow_differences)},
        {"uncompared", counts.shadow_uncompared}}},
  };
}

Json MostOf(const insight::explain::MissMemory::Top& top, const char* what) {
  Json list = Json::Array();
  for (const auto& [name, count] : top) {
    list.Append({{what, name}, {"count", count}});
  }
  return list;
}

Json UnreadPaths(const Status::Function& function) {
  Json list = Json::Array();
  for (const insight::explain::UnreadPath& one : function.unread) {
    list.Append({{"path", one.path}, {"mask", one.mask}, {"count", one.count}});
  }
  return list;
}

// Calls of each minute, the oldest first.
Json LastHour(const OutcomeHour::Hour& hour, size_t id) {
  Json by_outcome = Json::Object();
  for (size_t o = 0; o < kOutcomes; ++o) {
    Json minutes = Json::Array();
    for (const auto& minute : hour.functions[id]) minutes.Append(minute[o]);
    by_outcome.Set(OutcomeName(static_cast<Outcome>(o)), minutes);
  }
  return {{"last_minute_unix_seconds", UnixSeconds(hour.last_minute)},
          {"calls_by_outcome", by_outcome}};
}

Json Masks(const FunctionFacts& facts) {
  Json list = Json::Array();
  for (const MaskUse& use : facts.masks) {
    list.Append({{"mask", use.mask},
                 {"paths", use.paths},
                 {"paths_matched", use.matched}});
  }
  return list;
}

Json Bans(const FunctionFacts& facts) {
  Json list = Json::Array();
  for (const BanInForce& ban : facts.bans) {
    list.Append({{"of", ban.of},
                 {"before_unix_seconds", UnixSeconds(ban.before)},
                 {"soft", ban.soft}});
  }
  return list;
}

Json More(const FunctionFacts& facts) {
  Json list = Json::Array();
  for (const FunctionFacts::Row& row : facts.more) {
    list.Append({{"what", row.what}, {"text", row.text}, {"bad", row.bad}});
  }
  return list;
}

// With `tune: on`.
Json Tuning(const TuneReport& tune) {
  const TuneFigures& figures = tune.figures;
  Json questions = Json::Object();
  for (size_t i = 0; i < kTuneAnswers; ++i) {
    questions.Set(TuneAnswerName(i), figures.questions[i]);
  }
  Json proofs = Json::Object();
  for (size_t i = 0; i < kTuneResults; ++i) {
    proofs.Set(TuneResultName(i), figures.proofs[i]);
  }
  return {{"hits_across_drift", figures.hits},
          {"seconds_saved", Seconds(tune.saved)},
          {"revoked_hits", figures.revoked_hits},
          {"questions_by_answer", questions},
          {"question_seconds", Seconds(tune.question_time)},
          {"proofs_by_result", proofs},
          {"keys_proven", figures.keys_proven},
          {"keys_repeating", figures.keys_repeating},
          {"steps_reading", figures.steps_read},
          {"steps_varying", figures.steps_vary}};
}

// With `vary: on`.
Json Varying(const VaryFigures& vary) {
  return {{"hits_by_hint", vary.hits},
          {"hints", vary.hints},
          {"hints_refused", vary.refused}};
}

Json Functions(const Status& status) {
  Json list = Json::Array();
  for (size_t id = 0; id < status.functions.size(); ++id) {
    const Status::Function& function = status.functions[id];
    const Reachability& reach = function.reachability;
    const LastError& error = function.last_error;
    const bool there = function.facts.has_value();
    const FunctionFacts facts = function.facts.value_or(FunctionFacts());
    list.Append({
        {"name", function.name},
        {"upstream", function.upstream},
        {"reachable", reach.reachable},
        {"unreachable_since_unix_seconds",
         reach.reachable ? Json() : Json(UnixSeconds(reach.since))},
        {"unreachable_why", reach.reachable ? Json() : Json(reach.why)},
        {"calls_in_flight", function.gauges.in_flight},
        {"flights", function.gauges.flights},
        {"serves_stale", there ? Json(facts.serves_stale) : Json()},
        {"refreshes_behind", there ? Json(facts.refreshes_behind) : Json()},
        {"finishes_abandoned", there ? Json(facts.finishes_abandoned) : Json()},
        {"refreshes_running", function.gauges.refreshes},
        {"refreshes_backing_off", there ? Json(facts.backing_off) : Json()},
        {"abandoned_calls_running", function.gauges.abandoned},
        {"callers_waiting", function.gauges.joined_waiting},
        {"released_waiting", function.gauges.released_waiting},
        {"released_running", function.gauges.released_running},
        {"last_error_code",
         error.code == 0 ? Json() : Json(StatusCodeName(error.code))},
        {"last_error_unix_seconds",
         error.code == 0 ? Json() : Json(UnixSeconds(error.when))},
        {"callers_connections",
         there ? Json(facts.callers_connections) : Json()},
        {"upstream_connections",
         there ? Json(facts.upstream_connections) : Json()},
        {"tuning", facts.tune.has_value() ? Tuning(*facts.tune) : Json()},
        {"varying", facts.vary.has_value() ? Varying(*facts.vary) : Json()},
        {"masks", Masks(facts)},
        {"bans", Bans(facts)},
        {"more", More(facts)},
        {"changed_paths", MostOf(function.miss_paths, "path")},
        {"changed_by", MostOf(function.miss_writers, "writer")},
        {"changed_in_repeats", UnreadPaths(function)},
        {"last_minute", Counts(status.reading.recent.functions[id],
                               status.reading.recent_length)},
        {"last_hour", LastHour(status.reading.hour, id)},
        {"since_start",
         Counts(status.reading.total.functions[id], status.uptime)},
    });
  }
  return list;
}

Json TierErrors(const uint64_t (&errors)[kTierErrors]) {
  Json object = Json::Object();
  for (size_t what = 0; what < kTierErrors; ++what) {
    object.Set(TierErrorName(static_cast<cache::TierError>(what)),
               errors[what]);
  }
  return object;
}

Json Tiers(const History::Reading& reading) {
  Json list = Json::Array();
  for (size_t i = 0; i < reading.tiers.size(); ++i) {
    const Instruments::TierReading& tier = reading.tiers[i];
    const auto index = static_cast<size_t>(tier.tier);
    Json removed = Json::Object();
    for (size_t why = 0; why < kRemovals; ++why) {
      removed.Set(RemovalName(static_cast<cache::Removal>(why)),
                  tier.removed[why]);
    }
    const auto& down = reading.down_since[i];
    list.Append({
        {"tier", TierName(tier.tier)},
        {"up", !down.has_value()},
        {"down_since_unix_seconds",
         down.has_value() ? Json(UnixSeconds(*down)) : Json()},
        {"entries", tier.stats.entries},
        {"bytes", tier.stats.bytes},
        {"capacity_bytes", tier.stats.capacity},
        {"entries_removed", removed},
        {"errors",
         {{"last_minute", TierErrors(reading.recent.tier_errors[index])},
          {"since_start", TierErrors(reading.total.tier_errors[index])}}},
    });
  }
  return list;
}

Json Shared(const absl::optional<cache::store::SharedFigures>& shared) {
  if (!shared.has_value()) return Json();
  Json nodes = Json::Array();
  for (const resp::Node& node : shared->server.nodes) {
    nodes.Append({{"address", node.address},
                  {"state", NodeStateName(node.state)},
                  {"since_unix_seconds", UnixSeconds(node.since)},
                  {"why", node.why}});
  }
  Json lookups = Json::Object();
  for (size_t i = 0; i < kSharedLookups; ++i) {
    lookups.Set(SharedLookupName(i), shared->lookups[i]);
  }
  Json writes = Json::Object();
  for (size_t i = 0; i < kSharedWrites; ++i) {
    writes.Set(SharedWriteName(i), shared->writes[i]);
  }
  // An infinite age is null.
  return {{"up", shared->up},
          {"since_unix_seconds", UnixSeconds(shared->since)},
          {"why", shared->why},
          {"cluster", shared->server.cluster},
          {"nodes", nodes},
          {"version", shared->version},
          {"round_trip_seconds", Seconds(shared->round_trip)},
          {"clock_difference_seconds", Seconds(shared->clock_difference)},
          {"bans_age_seconds", Seconds(shared->bans_age)},
          {"bans_written", shared->bans_written},
          {"lookups", lookups},
          {"writes", writes}};
}

Json FillsDropped(const DaemonCounts& counts) {
  Json object = Json::Object();
  for (size_t why = 0; why < kDroppedReasons; ++why) {
    object.Set(DroppedName(static_cast<cache::Dropped>(why)),
               counts.fills_dropped[why]);
  }
  return object;
}

Json HandshakesFailed(const DaemonCounts& counts) {
  Json sides = Json::Object();
  for (size_t side = 0; side < kTlsSides; ++side) {
    Json reasons = Json::Object();
    for (size_t fault = 0; fault < kHandshakeFaults; ++fault) {
      reasons.Set(HandshakeFaultName(static_cast<HandshakeFault>(fault)),
                  counts.handshakes_failed[side][fault]);
    }
    sides.Set(TlsSideName(static_cast<TlsSide>(side)), reasons);
  }
  return sides;
}

Json AccessLogLines(const DaemonCounts& counts) {
  return {{"written", counts.access_log_written},
          {"dropped", counts.access_log_dropped}};
}

Json Certificates(const Status& status) {
  Json list = Json::Array();
  for (const Instruments::CertificateReading& certificate :
       status.certificates) {
    list.Append({
        {"side", TlsSideName(certificate.side)},
        {"expires_unix_seconds", UnixSeconds(certificate.expiry)},
        {"reloads", certificate.reloads},
        {"reload_failures", certificate.reload_failures},
        {"last_reload_failed", certificate.last_reload_failed},
    });
  }
  return list;
}

Json Problems(const Status& status) {
  Json list = Json::Array();
  for (const Problem& problem : FindProblems(status)) {
    list.Append({
        {"severity", SeverityName(problem.severity)},
        {"kind", problem.kind},
        {"subject", problem.subject},
        {"text", problem.text},
    });
  }
  return list;
}

Json Reload(const ReloadFigures& reload) {
  return {
      {"file", reload.file.empty() ? Json() : Json(reload.file)},
      {"last_successful", reload.last_successful},
      {"last_success_unix_seconds", UnixSeconds(reload.last_success)},
      {"error", reload.error.empty() ? Json() : Json(reload.error)},
      {"successes", reload.successes},
      {"failures", reload.failures},
      {"restart_needed", reload.restart},
  };
}

Json Settings(const Status& status) {
  Json list = Json::Array();
  for (const ListedSetting& setting : status.settings) {
    Json value;
    if (setting.is_list) {
      value = setting.values;
    } else if (setting.set) {
      value = setting.values.front();
    }
    list.Append({
        {"function",
         setting.function.empty() ? Json() : Json(setting.function)},
        {"key", setting.key},
        {"value", value},
        {"given", setting.given},
        {"where", setting.where},
        {"notes", setting.notes},
    });
  }
  return list;
}

}  // namespace

std::string RenderStatusJson(const Status& status) {
  const History::Reading& reading = status.reading;
  const Json json = {
      {"version", status.version},
      {"state", status.state},
      {"time_unix_seconds", UnixSeconds(reading.now)},
      {"uptime_seconds", Seconds(status.uptime)},
      {"last_minute_seconds", Seconds(reading.recent_length)},
      {"process",
       {{"cpu_seconds", Seconds(status.process.cpu)},
        {"resident_bytes", status.process.resident_bytes},
        {"open_files", status.process.open_fds},
        {"max_open_files", status.process.max_fds}}},
      {"problems", Problems(status)},
      {"functions", Functions(status)},
      {"tiers", Tiers(reading)},
      {"shared", Shared(status.shared)},
      {"fills_dropped",
       {{"last_minute", FillsDropped(reading.recent)},
        {"since_start", FillsDropped(reading.total)}}},
      {"access_log_lines",
       {{"last_minute", AccessLogLines(reading.recent)},
        {"since_start", AccessLogLines(reading.total)}}},
      {"certificates", Certificates(status)},
      {"handshakes_failed",
       {{"last_minute", HandshakesFailed(reading.recent)},
        {"since_start", HandshakesFailed(reading.total)}}},
      {"reload", Reload(status.reload)},
      {"settings", Settings(status)},
  };
  return json.Dump(2) + "\n";
}

}  // namespace fncache::proxy::telemetry
