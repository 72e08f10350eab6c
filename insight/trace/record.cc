// SPDX-License-Identifier: Apache-2.0
#include "insight/trace/record.h"

#include <algorithm>

#include "absl/base/internal/endian.h"
#include "absl/strings/string_view.h"
#include "xxhash.h"

namespace fncache::insight::trace {
namespace {

namespace proto = ::fncache::trace;

proto::Outcome ProtoOutcome(Outcome outcome) {
  switch (outcome) {
    case Outcome::kHit:
      return proto::OUTCOME_HIT;
    case Outcome::kMiss:
      return proto::OUTCOME_MISS;
    case Outcome::kStale:
      return proto::OUTCOME_STALE;
    case Outcome::kCollapsed:
      return proto::OUTCOME_COLLAPSED;
    case Outcome::kBypass:
      return proto::OUTCOME_BYPASS;
    case Outcome::kNone:
      return proto::OUTCOME_NONE;
    case Outcome::kUnknown:
      break;
  }
  return proto::OUTCOME_UNSPECIFIED;
}

Outcome OutcomeOf(proto::Outcome outcome) {
  for (const Outcome one :
       {Outcome::kHit, Outcome::kMiss, Outcome::kStale, Outcome::kCollapsed,
        Outcome::kBypass, Outcome::kNone}) {
    if (ProtoOutcome(one) == outcome) return one;
  }
  return Outcome::kUnknown;
}

proto::Reason ProtoReason(Reason reason) {
  switch (reason) {
    case Reason::kNew:
      return proto::REASON_NEW;
    case Reason::kExpired:
      return proto::REASON_EXPIRED;
    case Reason::kEvicted:
      return proto::REASON_EVICTED;
    case Reason::kPurged:
      return proto::REASON_PURGED;
    case Reason::kGeneration:
      return proto::REASON_GENERATION;
    case Reason::kNotStored:
      return proto::REASON_NOT_STORED;
    case Reason::kUnknown:
      return proto::REASON_UNKNOWN;
    case Reason::kChanged:
      return proto::REASON_CHANGED;
    case Reason::kNone:
      break;
  }
  return proto::REASON_UNSPECIFIED;
}

Reason ReasonOf(proto::Reason reason) {
  for (const Reason one :
       {Reason::kNew, Reason::kExpired, Reason::kEvicted, Reason::kPurged,
        Reason::kGeneration, Reason::kNotStored, Reason::kChanged}) {
    if (ProtoReason(one) == reason) return one;
  }
  return reason == proto::REASON_UNSPECIFIED ? Reason::kNone : Reason::kUnknown;
}

// The 16 bytes of a key, big-endian.
cache::key::Key KeyOf(absl::string_view bytes) {
  return cache::key::Key{absl::big_endian::Load64(bytes.data()),
                         absl::big_endian::Load64(bytes.data() + 8)};
}

absl::optional<absl::Duration> DurationOf(bool has, int64_t nanoseconds) {
  if (!has) return absl::nullopt;
  return absl::Nanoseconds(nanoseconds);
}

// Readers' sums of durations do not overflow, whatever a file says.
constexpr int64_t kLongest = int64_t{1} << 60;
absl::Duration Bounded(int64_t nanoseconds) {
  return absl::Nanoseconds(
      std::max<int64_t>(0, std::min(nanoseconds, kLongest)));
}

}  // namespace

void ToRecord(const TracedCall& call, proto::Call* record) {
  record->set_arrived(absl::ToUnixNanos(call.arrived));
  record->set_function(call.function);
  record->set_method(call.method);
  record->set_generation(call.generation);
  record->set_outcome(ProtoOutcome(call.outcome));
  record->set_reason(ProtoReason(call.reason));
  record->set_detail(call.detail);
  if (call.key) record->set_key(call.key->Bytes());
  if (call.composite.known()) {
    proto::Composite* const composite = record->mutable_composite();
    composite->set_api_version(call.composite.api_version);
    composite->set_kind(call.composite.kind);
    composite->set_namespace_(call.composite.object_namespace);
    composite->set_name(call.composite.name);
    composite->set_uid(call.composite.uid);
  }
  record->set_request_bytes(call.request_bytes);
  record->set_response_bytes(call.response_bytes);
  if (call.function_ttl) {
    record->set_function_ttl(absl::ToInt64Nanoseconds(*call.function_ttl));
  }
  if (call.told_ttl) {
    record->set_told_ttl(absl::ToInt64Nanoseconds(*call.told_ttl));
  }
  if (call.lifetime) {
    record->set_lifetime(absl::ToInt64Nanoseconds(*call.lifetime));
  }
  record->set_stored(call.stored);
  record->set_fatal(call.fatal);
  record->set_secrets(call.secrets);
  record->set_cost(absl::ToInt64Nanoseconds(call.cost));
  record->set_latency(absl::ToInt64Nanoseconds(call.latency));
  record->set_age(absl::ToInt64Nanoseconds(call.age));
  record->set_status(static_cast<uint32_t>(call.status));
  record->set_phase(call.phase);
  record->set_step(call.step);
  record->set_call_of_step(static_cast<uint32_t>(call.call_of_step));
  record->set_trigger(call.trigger);
  record->set_pipeline(call.pipeline);
}

TracedCall FromRecord(const proto::Call& record) {
  TracedCall call;
  call.arrived = absl::FromUnixNanos(record.arrived());
  call.function = record.function();
  call.method = record.method();
  call.generation = record.generation();
  call.outcome = OutcomeOf(record.outcome());
  call.reason = ReasonOf(record.reason());
  call.detail = record.detail();
  if (record.key().size() == 16) call.key = KeyOf(record.key());
  call.composite.api_version = record.composite().api_version();
  call.composite.kind = record.composite().kind();
  call.composite.object_namespace = record.composite().namespace_();
  call.composite.name = record.composite().name();
  call.composite.uid = record.composite().uid();
  call.request_bytes = record.request_bytes();
  call.response_bytes = record.response_bytes();
  call.function_ttl =
      DurationOf(record.has_function_ttl(), record.function_ttl());
  call.told_ttl = DurationOf(record.has_told_ttl(), record.told_ttl());
  call.lifetime = DurationOf(record.has_lifetime(), record.lifetime());
  call.stored = record.stored();
  call.fatal = record.fatal();
  call.secrets = record.secrets();
  call.cost = Bounded(record.cost());
  call.latency = Bounded(record.latency());
  call.age = Bounded(record.age());
  call.status = static_cast<int>(record.status());
  call.phase = record.phase();
  call.step = record.step();
  call.call_of_step = static_cast<int>(record.call_of_step());
  call.trigger = record.trigger();
  call.pipeline = record.pipeline();
  return call;
}

uint64_t CheckOf(const proto::Node& node) {
  char bytes[16];
  absl::little_endian::Store32(bytes, node.path());
  absl::little_endian::Store32(bytes + 4, node.kind());
  absl::little_endian::Store64(bytes + 8, node.digest());
  return XXH3_64bits(bytes, sizeof bytes);
}

}  // namespace fncache::insight::trace
