// SPDX-License-Identifier: Apache-2.0
#include "proxy/telemetry/labels.h"

#include "insight/trace/traced_call.h"

namespace fncache::proxy::telemetry {
namespace {

constexpr int kUnknown = 2;

template <typename Enum, size_t kCount>
const char* NameOf(Enum value, const char* const (&names)[kCount]) {
  return names[static_cast<size_t>(value)];
}

}  // namespace

const char* OutcomeName(Outcome outcome) {
  static constexpr const char* kNames[kOutcomes] = {
      "hit", "stale_hit", "miss", "stale", "collapsed", "bypass", "request"};
  return NameOf(outcome, kNames);
}

size_t BypassReasonIndex(cache::Reason reason) {
  using cache::Reason;
  constexpr auto kFirst = static_cast<size_t>(Reason::kAuthorization);
  return static_cast<size_t>(reason < Reason::kAuthorization ? Reason::kMethod
                                                             : reason) -
         kFirst;
}

const char* BypassReasonName(size_t index) {
  static constexpr const char* kNames[kBypassReasons] = {
      "authorization", "metadata", "mode-off", "operation",
      "unreadable",    "shadow",   "method"};
  return kNames[index];
}

size_t MissReasonIndex(cache::Reason reason) {
  using cache::Reason;
  const bool missed = reason >= Reason::kNew && reason <= Reason::kDrift;
  return static_cast<size_t>(missed ? reason : Reason::kUnknown) - 1;
}

const char* MissReasonName(size_t index) {
  return insight::trace::ReasonName(static_cast<cache::Reason>(index + 1));
}

const char* ShadowByName(ShadowBy by) {
  static constexpr const char* kNames[kShadowBys] = {"mask", "exact",
                                                     "unknown"};
  return NameOf(by, kNames);
}

const char* TuneAnswerName(size_t index) {
  static constexpr const char* kNames[kTuneAnswers] = {"same", "differs",
                                                       "none"};
  return kNames[index];
}

const char* TuneResultName(size_t index) {
  static constexpr const char* kNames[kTuneResults] = {"proven", "read",
                                                       "varies", "failed"};
  return kNames[index];
}

size_t StatusCodeIndex(int code) {
  return code >= 0 && code < static_cast<int>(kStatusCodes) ? code : kUnknown;
}

const char* StatusCodeName(int code) {
  static constexpr const char* kNames[kStatusCodes] = {"OK",
                                                       "CANCELLED",
                                                       "UNKNOWN",
                                                       "INVALID_ARGUMENT",
                                                       "DEADLINE_EXCEEDED",
                                                       "NOT_FOUND",
                                                       "ALREADY_EXISTS",
                                                       "PERMISSION_DENIED",
                                                       "RESOURCE_EXHAUSTED",
                                                       "FAILED_PRECONDITION",
                                                       "ABORTED",
                                                       "OUT_OF_RANGE",
                                                       "UNIMPLEMENTED",
                                                       "INTERNAL",
                                                       "UNAVAILABLE",
                                                       "DATA_LOSS",
                                                       "UNAUTHENTICATED"};
  return kNames[StatusCodeIndex(code)];
}

const char* TierName(cache::Tier tier) {
  static constexpr const char* kNames[kTiers] = {"memory", "disk", "shared"};
  return NameOf(tier, kNames);
}

const char* SharedLookupName(size_t index) {
  static constexpr const char* kNames[kSharedLookups] = {
      "hit", "miss", "timeout", "down", "rejected", "purged"};
  return kNames[index];
}

const char* SharedWriteName(size_t index) {
  static constexpr const char* kNames[kSharedWrites] = {"stored", "older",
                                                        "refused", "dropped"};
  return kNames[index];
}

const char* NodeStateName(resp::Node::State state) {
  static constexpr const char* kNames[] = {"connecting", "up", "down"};
  return NameOf(state, kNames);
}

const char* RemovalName(cache::Removal why) {
  static constexpr const char* kNames[kRemovals] = {
      "expired", "evicted", "replaced", "dropped", "purged"};
  return NameOf(why, kNames);
}

const char* DroppedName(cache::Dropped why) {
  static constexpr const char* kNames[kDroppedReasons] = {
      "queue_full", "too_large", "error", "shutdown"};
  return NameOf(why, kNames);
}

const char* TierErrorName(cache::TierError what) {
  static constexpr const char* kNames[kTierErrors] = {"read", "write",
                                                      "corrupt", "other"};
  return NameOf(what, kNames);
}

const char* ConnectionEndName(size_t index) {
  static constexpr const char* kNames[kConnectionEnds] = {
      "done",    "peer_left", "error",    "handshake", "not_http2",
      "timeout", "protocol",  "too_much", "idle",      "closed"};
  return kNames[index];
}

const char* RefusalName(size_t index) {
  static constexpr const char* kNames[kRefusals] = {"metadata", "size", "room",
                                                    "stalled", "loop"};
  return kNames[index];
}

const char* TlsSideName(TlsSide side) {
  static constexpr const char* kNames[kTlsSides] = {"listener", "upstream"};
  return NameOf(side, kNames);
}

}  // namespace fncache::proxy::telemetry
