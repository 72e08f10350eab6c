// SPDX-License-Identifier: Apache-2.0
#include "insight/trace/record.h"

#include <algorithm>

#include "absl/base/internal/endian.h"
#include "absl/strings/string_view.h"
#include "cache/wire/wire.h"
#include "common/utf8.h"
#include "xxhash.h"

namespace fncache::insight::trace {
namespace {

namespace proto = ::fncache::trace;
namespace wire = ::fncache::cache::wire;

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

void AppendText(int field, absl::string_view text, std::string* bytes) {
  if (text.empty()) return;
  if (IsUtf8(text)) return wire::AppendBytesField(bytes, field, text);
  wire::AppendBytesField(bytes, field, WellFormedUtf8(text));
}

void AppendComposite(const request::CompositeName& name, std::string* bytes) {
  using Field = proto::Composite;
  // Its length comes first; few are longer than a byte can say.
  wire::AppendVarint(bytes, wire::MakeTag(proto::Call::kCompositeFieldNumber,
                                          wire::WireType::kBytes));
  const size_t at = bytes->size();
  bytes->push_back('\0');
  AppendText(Field::kApiVersionFieldNumber, name.api_version, bytes);
  AppendText(Field::kKindFieldNumber, name.kind, bytes);
  AppendText(Field::kNamespaceFieldNumber, name.object_namespace, bytes);
  AppendText(Field::kNameFieldNumber, name.name, bytes);
  AppendText(Field::kUidFieldNumber, name.uid, bytes);
  char size[10];
  const size_t digits = wire::WriteVarint(size, bytes->size() - at - 1) - size;
  bytes->replace(at, 1, size, digits);
}

}  // namespace

void AppendCall(const TracedCall& call, std::string* bytes) {
  // As protobuf writes them: by number, and nothing of what is zero or empty,
  // but for the optional ones.
  using Field = proto::Call;
  const auto number = [bytes](int field, int64_t value) {
    if (value == 0) return;
    wire::AppendVarintField(bytes, field, static_cast<uint64_t>(value));
  };
  const auto duration = [bytes](int field,
                                const absl::optional<absl::Duration>& value) {
    if (!value) return;
    wire::AppendVarintField(
        bytes, field, static_cast<uint64_t>(absl::ToInt64Nanoseconds(*value)));
  };
  number(Field::kArrivedFieldNumber, absl::ToUnixNanos(call.arrived));
  AppendText(Field::kFunctionFieldNumber, call.function, bytes);
  AppendText(Field::kMethodFieldNumber, call.method, bytes);
  AppendText(Field::kGenerationFieldNumber, call.generation, bytes);
  number(Field::kOutcomeFieldNumber, ProtoOutcome(call.outcome));
  number(Field::kReasonFieldNumber, ProtoReason(call.reason));
  AppendText(Field::kDetailFieldNumber, call.detail, bytes);
  if (call.key) {
    char key[16];
    absl::big_endian::Store64(key, call.key->high);
    absl::big_endian::Store64(key + 8, call.key->low);
    wire::AppendBytesField(bytes, Field::kKeyFieldNumber, {key, sizeof key});
  }
  if (call.composite.known()) AppendComposite(call.composite, bytes);
  number(Field::kRequestBytesFieldNumber,
         static_cast<int64_t>(call.request_bytes));
  number(Field::kResponseBytesFieldNumber,
         static_cast<int64_t>(call.response_bytes));
  duration(Field::kFunctionTtlFieldNumber, call.function_ttl);
  duration(Field::kToldTtlFieldNumber, call.told_ttl);
  duration(Field::kLifetimeFieldNumber, call.lifetime);
  number(Field::kStoredFieldNumber, call.stored ? 1 : 0);
  number(Field::kFatalFieldNumber, call.fatal ? 1 : 0);
  number(Field::kSecretsFieldNumber, call.secrets ? 1 : 0);
  number(Field::kCostFieldNumber, absl::ToInt64Nanoseconds(call.cost));
  number(Field::kLatencyFieldNumber, absl::ToInt64Nanoseconds(call.latency));
  number(Field::kStatusFieldNumber, call.status);
  number(Field::kAgeFieldNumber, absl::ToInt64Nanoseconds(call.age));
  AppendText(Field::kPhaseFieldNumber, call.phase, bytes);
  AppendText(Field::kStepFieldNumber, call.step, bytes);
  number(Field::kCallOfStepFieldNumber, call.call_of_step);
  AppendText(Field::kTriggerFieldNumber, call.trigger, bytes);
  number(Field::kPipelineFieldNumber, static_cast<int64_t>(call.pipeline));
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
  return CheckOf(node.path(), node.kind(), node.digest());
}

uint64_t CheckOf(uint32_t path, uint32_t kind, uint64_t digest) {
  char bytes[16];
  absl::little_endian::Store32(bytes, path);
  absl::little_endian::Store32(bytes + 4, kind);
  absl::little_endian::Store64(bytes + 8, digest);
  return XXH3_64bits(bytes, sizeof bytes);
}

}  // namespace fncache::insight::trace
