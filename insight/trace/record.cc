// SPDX-License-Identifier: Apache-2.0
#include "insight/trace/record.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "absl/base/internal/endian.h"
#include "absl/strings/string_view.h"
#include "cache/wire/wire.h"
#include "common/utf8.h"
#include "proto/trace.pb.h"
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
    case Outcome::kStale:
      return proto::OUTCOME_MISS;
    case Outcome::kStaleHit:
      return proto::OUTCOME_STALE;
    case Outcome::kCollapsed:
      return proto::OUTCOME_COLLAPSED;
    case Outcome::kBypass:
    case Outcome::kRequest:
      return proto::OUTCOME_BYPASS;
    case Outcome::kNone:
      return proto::OUTCOME_NONE;
    case Outcome::kUnknown:
      break;
  }
  return proto::OUTCOME_UNSPECIFIED;
}

Outcome ReadOutcome(proto::Outcome outcome) {
  for (const Outcome one :
       {Outcome::kHit, Outcome::kMiss, Outcome::kStaleHit, Outcome::kCollapsed,
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
    case Reason::kDrift:
      return proto::REASON_DRIFT;
    default:
      break;
  }
  return proto::REASON_UNSPECIFIED;
}

Reason ReadReason(proto::Reason reason) {
  for (const Reason one :
       {Reason::kNew, Reason::kExpired, Reason::kEvicted, Reason::kPurged,
        Reason::kGeneration, Reason::kNotStored, Reason::kChanged,
        Reason::kDrift}) {
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

// Writes fields as protobuf does: by number, without zeros and empty fields
// unless they are optional. The output buffer must be large enough.
class FieldWriter {
 public:
  explicit FieldWriter(char* out) : out_(out) {}

  void Number(int field, int64_t value) {
    if (value != 0) Optional(field, value);
  }
  void Optional(int field, int64_t value) {
    Varint(wire::MakeTag(field, wire::WireType::kVarint));
    Varint(static_cast<uint64_t>(value));
  }
  void Optional(int field, const absl::optional<absl::Duration>& value) {
    if (value) Optional(field, absl::ToInt64Nanoseconds(*value));
  }
  void Text(int field, absl::string_view text) {
    if (!text.empty()) Bytes(field, text);
  }
  void Bytes(int field, absl::string_view bytes) {
    Head(field, bytes.size());
    std::memcpy(out_, bytes.data(), bytes.size());
    out_ += bytes.size();
  }
  void Head(int field, size_t size) {
    Varint(wire::MakeTag(field, wire::WireType::kBytes));
    Varint(size);
  }
  char* end() const { return out_; }

 private:
  void Varint(uint64_t value) { out_ = wire::WriteVarint(out_, value); }

  char* out_;
};

// The most that a field takes beside its bytes: a tag, of two bytes here, and a
// varint.
constexpr size_t kMostHead = 12;
constexpr size_t kMostFields = 40;

using Texts = std::array<absl::string_view, 5>;

Texts TextsOf(const request::CompositeName& name) {
  return {name.api_version, name.kind, name.object_namespace, name.name,
          name.uid};
}

// The fields of `texts`, which have the numbers from 1 on.
size_t SizeOf(const Texts& texts) {
  size_t size = 0;
  for (const absl::string_view text : texts) {
    if (text.empty()) continue;
    size += 1 + wire::VarintSize(text.size()) + text.size();
  }
  return size;
}

bool AreUtf8(const TracedCall& call) {
  for (const absl::string_view text : TextsOf(call.composite)) {
    if (!IsUtf8(text)) return false;
  }
  // Names from settings were checked when the settings were read.
  return IsUtf8(call.detail) && IsUtf8(call.step);
}

TracedCall WellFormed(TracedCall call) {
  request::CompositeName& name = call.composite;
  for (std::string* text :
       {&name.api_version, &name.kind, &name.object_namespace, &name.name,
        &name.uid, &call.detail, &call.step}) {
    *text = WellFormedUtf8(*text);
  }
  return call;
}

}  // namespace

void AppendCall(const TracedCall& call, std::string* bytes) {
  if (!AreUtf8(call)) return AppendCall(WellFormed(call), bytes);
  using Field = proto::Call;
  const Texts composite = TextsOf(call.composite);
  const size_t composite_size = SizeOf(composite);
  const size_t start = bytes->size();
  bytes->resize(start + kMostFields * kMostHead + sizeof(cache::key::Key) +
                composite_size + call.function.size() + call.method.size() +
                call.generation.size() + call.detail.size() +
                call.phase.size() + call.step.size() + call.trigger.size());
  FieldWriter out(&(*bytes)[start]);
  out.Number(Field::kArrivedFieldNumber, absl::ToUnixNanos(call.arrived));
  out.Text(Field::kFunctionFieldNumber, call.function);
  out.Text(Field::kMethodFieldNumber, call.method);
  out.Text(Field::kGenerationFieldNumber, call.generation);
  out.Number(Field::kOutcomeFieldNumber, ProtoOutcome(call.outcome));
  out.Number(Field::kReasonFieldNumber, ProtoReason(call.reason));
  out.Text(Field::kDetailFieldNumber, call.detail);
  if (call.key) {
    char key[16];
    absl::big_endian::Store64(key, call.key->high);
    absl::big_endian::Store64(key + 8, call.key->low);
    out.Bytes(Field::kKeyFieldNumber, {key, sizeof key});
  }
  if (call.composite.known()) {
    out.Head(Field::kCompositeFieldNumber, composite_size);
    for (size_t i = 0; i < composite.size(); ++i) {
      out.Text(static_cast<int>(i + 1), composite[i]);
    }
  }
  out.Number(Field::kRequestBytesFieldNumber,
             static_cast<int64_t>(call.request_bytes));
  out.Number(Field::kResponseBytesFieldNumber,
             static_cast<int64_t>(call.response_bytes));
  out.Optional(Field::kFunctionTtlFieldNumber, call.function_ttl);
  out.Optional(Field::kToldTtlFieldNumber, call.told_ttl);
  out.Optional(Field::kLifetimeFieldNumber, call.lifetime);
  out.Number(Field::kStoredFieldNumber, call.stored ? 1 : 0);
  out.Number(Field::kFatalFieldNumber, call.fatal ? 1 : 0);
  out.Number(Field::kSecretsFieldNumber, call.secrets ? 1 : 0);
  out.Number(Field::kCostFieldNumber, absl::ToInt64Nanoseconds(call.cost));
  out.Number(Field::kLatencyFieldNumber,
             absl::ToInt64Nanoseconds(call.latency));
  out.Number(Field::kStatusFieldNumber, call.status);
  out.Number(Field::kAgeFieldNumber, absl::ToInt64Nanoseconds(call.age));
  out.Text(Field::kPhaseFieldNumber, call.phase);
  out.Text(Field::kStepFieldNumber, call.step);
  out.Number(Field::kCallOfStepFieldNumber, call.call_of_step);
  out.Text(Field::kTriggerFieldNumber, call.trigger);
  out.Number(Field::kPipelineFieldNumber, static_cast<int64_t>(call.pipeline));
  bytes->resize(out.end() - bytes->data());
}

TracedCall FromRecord(const proto::Call& record) {
  TracedCall call;
  call.arrived = absl::FromUnixNanos(record.arrived());
  call.function = record.function();
  call.method = record.method();
  call.generation = record.generation();
  call.outcome = ReadOutcome(record.outcome());
  call.reason = ReadReason(record.reason());
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
