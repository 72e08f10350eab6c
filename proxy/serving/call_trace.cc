// SPDX-License-Identifier: Apache-2.0
#include "proxy/serving/call_trace.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/string_view.h"
#include "insight/request/outline.h"
#include "proxy/serving/context.h"

namespace fncache::proxy::serving {
namespace {

using insight::trace::Level;

constexpr absl::string_view kPhase = "fncache-phase";
constexpr size_t kMaxPhase = 16;

std::string Joined(const transport::Message& message) {
  std::string out;
  out.reserve(message.size());
  for (const http2::Slice& piece : message.pieces()) {
    out.append(piece.data(), piece.size());
  }
  return out;
}

}  // namespace

void CallTrace::SetMetadata(const http2::Fields& fields) {
  for (const http2::Field field : fields) {
    if (field.name != kPhase) continue;
    // The phase is written to a file that others read: only a word is accepted.
    const absl::string_view phase = field.value;
    if (phase.size() <= kMaxPhase &&
        std::all_of(phase.begin(), phase.end(), absl::ascii_islower)) {
      phase_ = std::string(phase);
    }
  }
}

void CallTrace::SetHit(const cache::store::EntryInfo& entry, size_t bytes,
                       absl::optional<absl::Duration> told_ttl,
                       absl::Time now) {
  answered_.cost = entry.cost;
  answered_.function_ttl = entry.ttl;
  answered_.told_ttl = told_ttl;
  answered_.lifetime = entry.lifetime;
  answered_.secrets = entry.secrets;
  answered_.age = std::max(now - entry.arrived, absl::ZeroDuration());
  answered_.response_bytes = bytes;
}

void CallTrace::SetAnswer(const transport::Message& answer) {
  if (writer_->level() == Level::kFull) answer_ = answer;
}

void CallTrace::SetRun(const UpstreamRun& run, absl::Duration cost) {
  const UpstreamRun::TraceFacts& traced = run.trace_facts();
  answered_.cost = cost;
  answered_.function_ttl = traced.facts.ttl;
  answered_.told_ttl =
      traced.told_ttl.has_value() ? traced.told_ttl : traced.facts.ttl;
  answered_.stored = run.stored();
  if (run.stored()) answered_.lifetime = run.entry()->info().lifetime;
  answered_.fatal = traced.facts.fatal;
  answered_.secrets = traced.facts.secrets;
  answered_.response_bytes = traced.bytes;
}

void CallTrace::Write(telemetry::Outcome outcome, int code,
                      absl::Duration latency,
                      const insight::explain::Explanation& why,
                      absl::string_view generation,
                      const transport::Message* request) {
  insight::trace::TraceWriter& writer = *writer_;
  if (request_.valid()) request = &request_;
  // The object and its texts keep their memory from one call to the next.
  // Fields that are not set here are never set.
  thread_local insight::trace::TracedCall call;
  call.arrived = arrived_;
  call.function = context_.name;
  call.method = method_ == Method::kV1beta1 ? "v1beta1" : "v1";
  call.generation = std::string(generation);
  call.outcome = outcome;
  call.reason = why.reason;
  call.detail = why.detail;
  call.key = key_;
  call.request_bytes = request->valid() ? request->size() : 0;
  static_cast<insight::trace::TracedAnswer&>(call) = answered_;
  call.latency = latency;
  call.status = code;
  call.phase = phase_;
  thread_local std::vector<absl::string_view> pieces;
  pieces.clear();
  for (const http2::Slice& piece : request->pieces()) {
    pieces.push_back(piece.bytes());
  }
  insight::request::ReadComposite(pieces, &call.composite);
  insight::trace::TraceWriter::Messages messages;
  if (request->valid() && writer.Reads(call.composite)) {
    messages.held = request->size();
    messages.tuned = tuned_;
    messages.request = [request = *request] { return Joined(request); };
  }
  if (answer_.valid()) {
    messages.held += answer_.size();
    messages.response = [answer = answer_] { return Joined(answer); };
  }
  writer.Write(std::move(call), std::move(messages));
}

}  // namespace fncache::proxy::serving
