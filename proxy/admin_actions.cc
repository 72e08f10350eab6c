// SPDX-License-Identifier: Apache-2.0
#include "proxy/admin_actions.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/internal/endian.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/log_level.h"
#include "common/utf8.h"
#include "common/version.h"
#include "proto/admin.pb.h"
#include "proxy/admin/units.h"
#include "proxy/admin_stats.h"
#include "proxy/telemetry/labels.h"
#include "proxy/telemetry/process_metrics.h"
#include "proxy/telemetry/purge_metrics.h"
#include "proxy/telemetry/shadow_text.h"

namespace fncache::proxy {
namespace {

namespace v1 = admin::v1;
using admin::ToProto;

// The longest time after which a level or a trace ends automatically.
constexpr absl::Duration kLongest = absl::Hours(24 * 365);

// The time for which an order applies; infinite if the request has none.
template <typename Request>
absl::StatusOr<absl::Duration> For(const Request& request) {
  if (!request.has_for_time()) return absl::InfiniteDuration();
  const absl::Duration during = absl::Seconds(request.for_time().seconds()) +
                                absl::Nanoseconds(request.for_time().nanos());
  if (during <= absl::ZeroDuration() || during > kLongest) {
    return absl::InvalidArgumentError(
        "for: must be a duration above 0, at most 8760h");
  }
  return during;
}

absl::StatusOr<cache::key::Key> KeyOf(const std::string& bytes) {
  constexpr size_t kKeyBytes = 16;
  if (bytes.size() != kKeyBytes) {
    return absl::InvalidArgumentError("key: must be 16 bytes");
  }
  return cache::key::Key{absl::big_endian::Load64(bytes.data()),
                         absl::big_endian::Load64(bytes.data() + 8)};
}

constexpr std::pair<const char*, insight::trace::Level> kTraceLevels[] = {
    {"keys", insight::trace::Level::kKeys},
    {"paths", insight::trace::Level::kPaths},
    {"full", insight::trace::Level::kFull}};

v1::EntryReport Message(const EntryReport& report) {
  v1::EntryReport entry;
  entry.set_tier(telemetry::TierName(report.tier));
  entry.set_function(report.function);
  entry.set_generation(report.generation);
  *entry.mutable_age() = ToProto(report.age);
  *entry.mutable_remaining() = ToProto(report.remaining);
  entry.set_size_bytes(report.size);
  if (report.ttl.has_value()) {
    *entry.mutable_function_ttl() = ToProto(*report.ttl);
  }
  *entry.mutable_lifetime() = ToProto(report.lifetime);
  if (report.told_ttl.has_value()) {
    *entry.mutable_told_ttl() = ToProto(*report.told_ttl);
  }
  // Only memory counts hits.
  if (report.tier == cache::Tier::kMemory) {
    entry.set_recent_hits(static_cast<uint32_t>(report.hits));
  }
  entry.set_secrets(report.secrets);
  if (report.ban.has_value()) {
    entry.set_ban(
        absl::StrCat(report.ban->soft ? "a soft purge of " : "a purge of ",
                     telemetry::PurgeScopeName(report.ban->kind), ", ",
                     absl::FormatTime(absl::RFC3339_sec, report.ban->before,
                                      absl::UTCTimeZone())));
  }
  entry.set_served(report.served);
  entry.set_served_why(report.served_why);
  return entry;
}

void AddChanges(
    const std::vector<settings::SettingChange>& changes,
    google::protobuf::RepeatedPtrField<v1::ReloadResponse::SettingChange>*
        out) {
  for (const settings::SettingChange& change : changes) {
    v1::ReloadResponse::SettingChange* const added = out->Add();
    added->set_key(change.key);
    added->set_function(change.function);
    added->set_old_value(change.before);
    added->set_new_value(change.after);
  }
}

void AddStep(const telemetry::TuneReport::Step& step, absl::Time now,
             v1::TuneResponse::FunctionTuning* to) {
  v1::TuneResponse::Step* const added = to->add_steps();
  added->set_input_kind(WellFormedUtf8(step.input_kind));
  added->set_input_digest(step.input_digest);
  added->set_composite_api_version(WellFormedUtf8(step.api_version));
  added->set_composite_kind(WellFormedUtf8(step.kind));
  added->set_seen(WellFormedUtf8(step.seen));
  added->set_reads(step.reads);
  if (!step.reads.empty()) {
    *added->mutable_reads_since() = ToProto(step.read_since);
  }
  if (step.varies_since != absl::InfiniteFuture()) {
    *added->mutable_varies_since() = ToProto(step.varies_since);
  }
  if (step.no_questions_until > now) {
    *added->mutable_no_questions_until() = ToProto(step.no_questions_until);
  }
}

void AddTuning(const telemetry::TuneReport& report,
               const std::vector<insight::explain::UnreadPath>& unread,
               absl::Time now, v1::TuneResponse* to) {
  v1::TuneResponse::FunctionTuning* const added = to->add_functions();
  added->set_function(WellFormedUtf8(report.function));
  added->set_state(report.state);
  added->set_hits(report.figures.hits);
  *added->mutable_saved() = ToProto(report.saved);
  added->set_revoked_hits(report.figures.revoked_hits);
  for (size_t i = 0; i < telemetry::kTuneAnswers; ++i) {
    v1::Count* const count = added->add_questions_by_answer();
    count->set_name(telemetry::TuneAnswerName(i));
    count->set_count(report.figures.questions[i]);
  }
  *added->mutable_question_time() = ToProto(report.question_time);
  for (size_t i = 0; i < telemetry::kTuneResults; ++i) {
    v1::Count* const count = added->add_proofs_by_result();
    count->set_name(telemetry::TuneResultName(i));
    count->set_count(report.figures.proofs[i]);
  }
  added->set_keys_repeating(report.figures.keys_repeating);
  added->set_keys_proven(report.figures.keys_proven);
  added->set_budget(report.figures.budget);
  for (const auto& step : report.steps) AddStep(step, now, added);
  for (const insight::explain::UnreadPath& one : unread) {
    auto* const path = added->add_unread();
    path->set_path(WellFormedUtf8(one.path));
    path->set_mask(WellFormedUtf8(one.mask));
    path->set_count(one.count);
  }
}

}  // namespace

DaemonActions::DaemonActions(Sources sources)
    : sources_(std::move(sources)), started_(sources_.clock->Now()) {}

absl::StatusOr<v1::StatsResponse> DaemonActions::Stats(
    const v1::StatsRequest& /*request*/) {
  v1::StatsResponse stats =
      ReadStats(*sources_.instruments, *sources_.inflight, sources_.upstreams);
  const absl::Time now = sources_.clock->Now();
  stats.set_version(Version());
  stats.set_state(sources_.state());
  *stats.mutable_now() = ToProto(now);
  *stats.mutable_uptime() = ToProto(now - started_);
  const telemetry::ProcessFigures process = telemetry::ReadProcess();
  *stats.mutable_process()->mutable_cpu() = ToProto(process.cpu);
  stats.mutable_process()->set_resident_bytes(process.resident_bytes);
  stats.mutable_process()->set_open_files(process.open_fds);
  stats.mutable_process()->set_max_open_files(process.max_fds);
  return stats;
}

absl::StatusOr<v1::ExplainResponse> DaemonActions::Explain(
    const v1::ExplainRequest& request) {
  return ReadMisses(*sources_.instruments, sources_.misses, request);
}

absl::StatusOr<v1::ConfigResponse> DaemonActions::Config(
    const v1::ConfigRequest& /*request*/) {
  v1::ConfigResponse response;
  response.set_yaml(sources_.settings());
  return response;
}

absl::StatusOr<v1::LookUpResponse> DaemonActions::LookUp(
    const v1::LookUpRequest& request) {
  LookUpOrder order;
  order.function = request.function();
  if (request.method() == "v1beta1") {
    order.method = Method::kV1beta1;
  } else if (!request.method().empty() && request.method() != "v1") {
    return absl::InvalidArgumentError("method: must be v1 or v1beta1");
  }
  switch (request.what_case()) {
    case v1::LookUpRequest::kKey: {
      auto key = KeyOf(request.key());
      if (!key.ok()) return key.status();
      order.key = *key;
      break;
    }
    case v1::LookUpRequest::kRequest:
      order.request = request.request();
      break;
    default:
      return absl::InvalidArgumentError("a key or a request is needed");
  }
  const auto key = sources_.purger->KeyOf(order);
  if (!key.ok()) return key.status();
  order.key = *key;
  const auto reports = sources_.purger->LookUp(order);
  if (!reports.ok()) return reports.status();
  v1::LookUpResponse response;
  response.set_key(key->Bytes());
  for (const EntryReport& report : *reports) {
    *response.add_entries() = Message(report);
  }
  const auto shared = sources_.instruments->ReadShared();
  if (shared.has_value() && !shared->up) {
    response.set_shared_down(WellFormedUtf8(shared->why));
  }
  return response;
}

absl::StatusOr<v1::PurgeResponse> DaemonActions::Purge(
    const v1::PurgeRequest& request) {
  using Kind = cache::store::Bans::Kind;
  PurgeOrder order;
  order.soft = request.soft();
  switch (request.what_case()) {
    case v1::PurgeRequest::kKey: {
      const auto key = KeyOf(request.key());
      if (!key.ok()) return key.status();
      order.what = Kind::kKey;
      order.key = *key;
      order.function = request.function();
      break;
    }
    case v1::PurgeRequest::kOfFunction:
      if (request.of_function().function().empty()) {
        return absl::InvalidArgumentError("function: must not be empty");
      }
      order.what = request.of_function().has_generation() ? Kind::kGeneration
                                                          : Kind::kFunction;
      order.function = request.of_function().function();
      order.generation = request.of_function().generation();
      break;
    case v1::PurgeRequest::kAll:
      order.what = Kind::kAll;
      break;
    default:
      return absl::InvalidArgumentError(
          "what to purge is not said: a key, a function or all");
  }
  const auto result = sources_.purger->Purge(order);
  if (!result.ok()) return result.status();
  v1::PurgeResponse response;
  response.set_removed(result->removed);
  response.set_covered(result->covered);
  response.set_flights(result->flights);
  response.set_durable(result->durable);
  response.set_widened(!result->widened_to.empty());
  for (const std::string& wider : result->widened_to) {
    response.add_widened_to(wider);
  }
  response.set_unknown_generation(result->unknown_generation);
  response.set_shared(result->shared);
  return response;
}

absl::StatusOr<v1::ReloadResponse> DaemonActions::Reload(
    const v1::ReloadRequest& /*request*/) {
  const auto result = sources_.reload();
  if (!result.ok()) {
    return absl::FailedPreconditionError(result.status().message());
  }
  v1::ReloadResponse response;
  AddChanges(result->changed, response.mutable_changed());
  AddChanges(result->restart, response.mutable_needs_restart());
  for (const settings::SettingChange& change : result->changed) {
    const std::string hidden = sources_.live->HiddenBy(change.key);
    const auto& notes = response.notes();
    if (!hidden.empty() &&
        std::find(notes.begin(), notes.end(), hidden) == notes.end()) {
      response.add_notes(hidden);
    }
  }
  return response;
}

absl::StatusOr<v1::StartTraceResponse> DaemonActions::StartTrace(
    const v1::StartTraceRequest& request) {
  const auto during = For(request);
  if (!during.ok()) return during.status();
  TraceOrder order;
  if (!request.dir().empty()) order.dir = request.dir();
  for (const auto& [name, level] : kTraceLevels) {
    if (request.level() == name) order.level = level;
  }
  if (!request.level().empty() && !order.level.has_value()) {
    return absl::InvalidArgumentError("level: must be keys, paths or full");
  }
  const auto begun = sources_.live->StartTrace(order, *during);
  if (!begun.ok()) return begun.status();
  v1::StartTraceResponse response;
  response.set_dir(begun->dir);
  for (const auto& [name, level] : kTraceLevels) {
    if (begun->level == level) response.set_level(name);
  }
  if (*during != absl::InfiniteDuration()) {
    *response.mutable_until() = ToProto(sources_.clock->Now() + *during);
  }
  return response;
}

absl::StatusOr<v1::StopTraceResponse> DaemonActions::StopTrace(
    const v1::StopTraceRequest& /*request*/) {
  EndedTrace ended = sources_.live->StopTrace(absl::InfiniteDuration());
  const insight::trace::TraceStats& stats = ended.stats;
  v1::StopTraceResponse response;
  response.set_dir(std::move(ended.dir));
  response.set_records(stats.written);
  response.set_dropped(stats.dropped_queue + stats.dropped_disk);
  response.set_bytes(stats.bytes);
  return response;
}

absl::StatusOr<v1::SetLogLevelResponse> DaemonActions::SetLogLevel(
    const v1::SetLogLevelRequest& request) {
  const auto during = For(request);
  if (!during.ok()) return during.status();
  for (const auto& [name, level] : kLogLevels) {
    if (request.level() != name) continue;
    v1::SetLogLevelResponse response;
    response.set_old_level(
        LogLevelName(sources_.live->SetLogLevel(level, *during)));
    response.set_level(name);
    if (*during != absl::InfiniteDuration()) {
      *response.mutable_until() = ToProto(sources_.clock->Now() + *during);
    }
    return response;
  }
  return absl::InvalidArgumentError(
      "level: must be debug, info, warn or error");
}

absl::StatusOr<v1::ShadowResponse> DaemonActions::Shadow(
    const v1::ShadowRequest& /*request*/) {
  const std::vector<telemetry::ShadowReport> reports = sources_.shadow();
  v1::ShadowResponse response;
  response.set_text(telemetry::ShadowText(reports));
  response.set_json(telemetry::ShadowJson(reports));
  return response;
}

absl::StatusOr<v1::TuneResponse> DaemonActions::Tune(
    const v1::TuneRequest& request) {
  const absl::Time now = sources_.clock->Now();
  v1::TuneResponse response;
  *response.mutable_since() = ToProto(started_);
  std::map<std::string, std::vector<insight::explain::UnreadPath>> unread;
  if (sources_.misses != nullptr) {
    for (auto& top :
         sources_.misses->Tops(std::numeric_limits<size_t>::max())) {
      unread[top.function] = std::move(top.unread);
    }
  }
  std::vector<std::string> names;
  bool found = request.function().empty();
  for (const telemetry::TuneReport& report : sources_.tune()) {
    names.push_back(report.function);
    const bool named = request.function() == report.function;
    found = found || named;
    // Without a name: those that have something to report.
    const bool shown = request.function().empty() &&
                       (report.state != "off" || report.figures.asked() > 0 ||
                        report.figures.hits > 0);
    if (named || shown) {
      AddTuning(report, unread[report.function], now, &response);
    }
  }
  if (found) return response;
  return absl::NotFoundError(absl::StrCat(
      "no function is called \"", PrintableStart(request.function()),
      "\"; there are: ", absl::StrJoin(names, ", ")));
}

}  // namespace fncache::proxy
