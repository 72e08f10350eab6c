// SPDX-License-Identifier: Apache-2.0
#include "runner/load/load_trace.h"

#include <utility>

#include "absl/strings/match.h"
#include "common/method.h"
#include "google/protobuf/io/coded_stream.h"

namespace fncache::runner::load {
namespace {

namespace trace = insight::trace;

// The bytes that a cache stores: all but meta.
uint64_t BytesWithoutMeta(
    const apiextensions::fn::proto::v1::RunFunctionResponse& response) {
  if (!response.has_meta()) return response.ByteSizeLong();
  const size_t meta = response.meta().ByteSizeLong();
  return response.ByteSizeLong() - 1 - meta -
         google::protobuf::io::CodedOutputStream::VarintSize64(meta);
}

cache::key::DigestScratch& Scratch() {
  thread_local cache::key::DigestScratch scratch;
  return scratch;
}

}  // namespace

const char* PhaseName(Phase phase) {
  switch (phase) {
    case Phase::kSettle:
      return "settle";
    case Phase::kWarmup:
      return "warmup";
    case Phase::kMeasure:
      break;
  }
  return "measure";
}

absl::Duration LatencyOf(const engine::CallReport& report) {
  return report.result.round_trip > absl::ZeroDuration()
             ? report.result.round_trip
             : report.took;
}

const cache::key::Digester* LoadTrace::DigesterOf(const std::string& function) {
  MutexLock lock(&mutex_);
  auto& digester = digesters_[function];
  if (digester == nullptr) {
    digester = std::make_unique<const cache::key::Digester>(
        cache::key::Seed{}, cache::key::KeyScope{function, kRunFunctionV1, ""},
        cache::key::MaskSet{});
  }
  return digester.get();
}

void LoadTrace::Add(const model::PipelineStart& start,
                    const engine::CallReport& report, Outcome outcome,
                    Phase phase) {
  trace::TracedCall call;
  const auto& composite = report.request.observed().composite().resource();
  const auto text = [](const google::protobuf::Struct& object,
                       const char* field) {
    const auto found = object.fields().find(field);
    return found == object.fields().end() ? std::string()
                                          : found->second.string_value();
  };
  call.composite.api_version = text(composite, "apiVersion");
  call.composite.kind = text(composite, "kind");
  const auto metadata = composite.fields().find("metadata");
  if (metadata != composite.fields().end()) {
    const auto& fields = metadata->second.struct_value();
    call.composite.object_namespace = text(fields, "namespace");
    call.composite.name = text(fields, "name");
    call.composite.uid = text(fields, "uid");
  }
  if (!writer_.Samples(call.composite)) return;
  call.arrived = report.started;
  call.function = std::string(report.function);
  call.outcome = outcome;
  call.stored = outcome == Outcome::kMiss &&
                absl::StrContains(report.result.cache_status, "; stored");
  std::string bytes;
  report.request.SerializeToString(&bytes);
  call.request_bytes = bytes.size();
  call.response_bytes = BytesWithoutMeta(report.result.response);
  const auto digest = DigesterOf(call.function)->Compute({bytes}, &Scratch());
  if (digest.keyed) call.key = digest.key;
  if (report.result.status.ok() && report.result.response.meta().has_ttl()) {
    const auto& ttl = report.result.response.meta().ttl();
    const absl::Duration told =
        absl::Seconds(ttl.seconds()) + absl::Nanoseconds(ttl.nanos());
    call.told_ttl = told;
    if (outcome != Outcome::kHit && outcome != Outcome::kStaleHit) {
      call.function_ttl = told;
    }
  }
  for (const auto& result : report.result.response.results()) {
    if (result.severity() == apiextensions::fn::proto::v1::SEVERITY_FATAL) {
      call.fatal = true;
    }
  }
  call.latency = LatencyOf(report);
  if (outcome != Outcome::kHit) call.cost = call.latency;
  call.status = static_cast<int>(report.result.status.code());
  call.phase = PhaseName(start.settling ? Phase::kSettle : phase);
  call.step = std::string(report.step);
  call.call_of_step = report.call;
  call.trigger = start.trigger == model::Trigger::kDriver ? "schedule"
                 : start.trigger == model::Trigger::kBackoff
                     ? "retry"
                     : model::TriggerName(start.trigger);
  call.pipeline =
      static_cast<uint64_t>(absl::ToUnixNanos(start.started)) * 1000003u ^
      static_cast<uint64_t>(start.composite);
  trace::TraceWriter::Messages messages;
  if (writer_.level() != trace::Level::kKeys) {
    messages.held = bytes.size();
    messages.request = [bytes = std::move(bytes)] { return bytes; };
  }
  if (writer_.level() == trace::Level::kFull) {
    std::string response;
    report.result.response.SerializeToString(&response);
    messages.held += response.size();
    messages.response = [response = std::move(response)] { return response; };
  }
  writer_.Write(std::move(call), std::move(messages));
}

}  // namespace fncache::runner::load
