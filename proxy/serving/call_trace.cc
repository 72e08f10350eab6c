// SPDX-License-Identifier: Apache-2.0
#include "proxy/serving/call_trace.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/string_view.h"
#include "insight/request/outline.h"
#include "proxy/serving/context.h"
#include "proxy/transport/core_buffer.h"
#include "proxy/transport/incoming_call.h"
#include "proxy/transport/joined_message.h"

namespace fncache::proxy::serving {
namespace {

using insight::trace::Level;
using insight::trace::Outcome;

constexpr absl::string_view kPhase = "fncache-phase";
constexpr size_t kMaxPhase = 16;

Outcome OutcomeOf(telemetry::Outcome outcome) {
  switch (outcome) {
    case telemetry::Outcome::kHit:
      return Outcome::kHit;
    case telemetry::Outcome::kMiss:
    case telemetry::Outcome::kStale:
      return Outcome::kMiss;
    case telemetry::Outcome::kCollapsed:
      return Outcome::kCollapsed;
    default:
      return Outcome::kBypass;
  }
}

std::string Joined(const grpc::ByteBuffer& buffer) {
  transport::JoinedMessage joined;
  const auto bytes = joined.Join(buffer);
  return bytes.has_value() ? std::string(*bytes) : std::string();
}

}  // namespace

void CallTrace::SetMetadata(absl::Span<const grpc_metadata> metadata) {
  for (const grpc_metadata& item : metadata) {
    if (transport::View(item.key) != kPhase) continue;
    // It goes into a file that others read: a word, nothing else.
    const absl::string_view phase = transport::View(item.value);
    if (phase.size() <= kMaxPhase &&
        std::all_of(phase.begin(), phase.end(), absl::ascii_islower)) {
      call_.phase = std::string(phase);
    }
  }
}

void CallTrace::SetHit(const cache::store::EntryInfo& entry, size_t bytes,
                       absl::Time now) {
  call_.cost = entry.cost;
  call_.function_ttl = entry.ttl;
  call_.told_ttl = context_.policy.HitTtl(entry, now);
  call_.lifetime = entry.lifetime;
  call_.secrets = entry.secrets;
  call_.age = std::max(now - entry.arrived, absl::ZeroDuration());
  call_.response_bytes = bytes;
}

void CallTrace::SetRun(const UpstreamRun& run) {
  const UpstreamRun::Told& told = run.told();
  call_.cost = told.cost;
  call_.function_ttl = told.facts.ttl;
  call_.told_ttl = told.told_ttl.has_value() ? told.told_ttl : told.facts.ttl;
  call_.stored = told.stored;
  if (told.stored) call_.lifetime = told.lifetime;
  call_.fatal = told.facts.fatal;
  call_.secrets = told.facts.secrets;
  call_.response_bytes = told.bytes;
}

void CallTrace::Write(telemetry::Outcome outcome, int code,
                      absl::Duration latency) {
  insight::trace::TraceWriter& writer = *context_.trace;
  call_.arrived = arrived_;
  call_.function = context_.options.name;
  call_.method = method_ == Method::kV1beta1 ? "v1beta1" : "v1";
  call_.generation = context_.options.generation;
  call_.outcome = OutcomeOf(outcome);
  call_.key = key_;
  call_.status = code;
  call_.latency = latency;
  call_.request_bytes = request_.Valid() ? request_.Length() : 0;
  thread_local std::vector<absl::string_view> pieces;
  pieces.clear();
  if (request_.Valid() && transport::AppendPieces(&request_, &pieces)) {
    call_.composite = insight::request::ReadComposite(pieces);
  }
  insight::trace::TraceWriter::Messages messages;
  if (writer.level() != Level::kKeys && request_.Valid()) {
    messages.held = request_.Length();
    messages.request = [request = request_] { return Joined(request); };
  }
  if (writer.level() == Level::kFull && answer_.Valid()) {
    messages.held += answer_.Length();
    messages.response = [answer = answer_] { return Joined(answer); };
  }
  writer.Write(std::move(call_), std::move(messages));
}

}  // namespace fncache::proxy::serving
