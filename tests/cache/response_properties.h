// SPDX-License-Identifier: Apache-2.0
// Checks what must hold of ReadResponse and MakeMeta for any bytes at all, with
// protobuf itself as the judge. For the property test and the fuzzer.
#ifndef FNCACHE_TESTS_CACHE_RESPONSE_PROPERTIES_H_
#define FNCACHE_TESTS_CACHE_RESPONSE_PROPERTIES_H_

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/stubs/logging.h>

#include <cstdint>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "cache/response.h"
#include "cache/wire/schema.h"
#include "cache/wire/wire.h"
#include "proto/function_v1.pb.h"

namespace fncache::cache {

namespace v1 = ::apiextensions::fn::proto::v1;

// As ReadResponse is meant to read: protobuf C++, nested up to 1,000 deep.
inline bool ParseAsProtobufDoes(absl::string_view bytes,
                                v1::RunFunctionResponse* message) {
  google::protobuf::LogSilencer silence;  // of strings that are not UTF-8
  google::protobuf::io::CodedInputStream in(
      reinterpret_cast<const uint8_t*>(bytes.data()),
      static_cast<int>(bytes.size()));
  in.SetRecursionLimit(wire::kMaxDepth);
  return message->ParseFromCodedStream(&in) && in.ConsumedEntireMessage();
}

// Equal bytes of these are equal messages, doubles by bits and unknown fields
// in order; the other way round too, in one process.
inline std::string Deterministic(const google::protobuf::Message& message) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream out(&stream);
  out.SetSerializationDeterministic(true);
  message.SerializeWithCachedSizes(&out);
  return bytes;
}
inline std::string Deterministic(google::protobuf::Message* message) {
  message->ByteSizeLong();
  return Deterministic(const_cast<const google::protobuf::Message&>(*message));
}

inline absl::optional<absl::Duration> TtlOf(
    const v1::RunFunctionResponse& message) {
  if (!message.meta().has_ttl()) return absl::nullopt;
  const google::protobuf::Duration& ttl = message.meta().ttl();
  if (ttl.seconds() < 0 || ttl.nanos() < 0 || ttl.nanos() > 999'999'999) {
    return absl::nullopt;
  }
  const absl::Duration duration =
      absl::Seconds(ttl.seconds()) + absl::Nanoseconds(ttl.nanos());
  if (duration > absl::Nanoseconds(std::numeric_limits<int64_t>::max())) {
    return absl::nullopt;
  }
  return duration;
}

inline bool HasSecrets(const v1::RunFunctionResponse& message) {
  const v1::State& desired = message.desired();
  if (!desired.composite().connection_details().empty()) return true;
  for (const auto& resource : desired.resources()) {
    if (!resource.second.connection_details().empty()) return true;
  }
  return false;
}

inline bool HasFatal(const v1::RunFunctionResponse& message) {
  for (const v1::Result& result : message.results()) {
    if (result.severity() == v1::SEVERITY_FATAL) return true;
  }
  return false;
}

// The body's parts are the bytes' own, in order, without gaps between fields
// that are not meta: each gap is whole occurrences of meta.
inline std::string CheckBody(absl::string_view bytes,
                             const ResponseView& view) {
  wire::Cursor in(bytes);
  std::string want;
  while (!in.done()) {
    const char* start = in.position();
    uint32_t tag;
    if (!in.ReadTag(&tag) || !in.Skip(tag, wire::kMaxDepth))
      return "unreadable";
    if (tag != wire::MakeTag(1, wire::WireType::kBytes)) {
      want.append(start, in.position() - start);
    }
  }
  std::string body;
  for (absl::string_view part : view.body) {
    if (part.empty()) return "empty part";
    if (part.data() < bytes.data() || part.end() > bytes.end()) {
      return "part from elsewhere";
    }
    absl::StrAppend(&body, part);
  }
  return body == want ? "" : "body is not the bytes without meta";
}

// Rewrites `view`'s response and compares with protobuf's own rewriting.
inline std::string CheckRewrite(const v1::RunFunctionResponse& original,
                                const ResponseView& view, absl::string_view tag,
                                const absl::optional<absl::Duration>& ttl,
                                absl::string_view made) {
  std::string bytes(made);
  for (absl::string_view part : view.body) absl::StrAppend(&bytes, part);
  v1::RunFunctionResponse got;
  if (!ParseAsProtobufDoes(bytes, &got)) return "rewritten bytes do not parse";
  v1::RunFunctionResponse want = original;
  want.mutable_meta()->set_tag(std::string(tag));
  if (ttl.has_value()) {
    absl::Duration nanos;
    want.mutable_meta()->mutable_ttl()->set_seconds(
        absl::IDivDuration(*ttl, absl::Seconds(1), &nanos));
    want.mutable_meta()->mutable_ttl()->set_nanos(
        static_cast<int32_t>(absl::ToInt64Nanoseconds(nanos)));
  }
  if (Deterministic(&got) != Deterministic(&want)) {
    return absl::StrCat("rewritten ", got.meta().ShortDebugString(), " wanted ",
                        want.meta().ShortDebugString());
  }
  // One meta, and it comes first.
  absl::StatusOr<ResponseView> again = ReadResponse(bytes);
  if (!again.ok()) return "rewritten bytes are refused";
  const size_t size = bytes.size() - made.size();
  if (again->body.size() != (size > 0 ? 1u : 0u)) return "more than one meta";
  if (again->tag != tag || again->meta_rest != view.meta_rest) {
    return "rewriting is not stable";
  }
  return "";
}

struct ResponseOutcome {
  bool readable = false;
  // Empty, or what is wrong.
  std::string wrong;
};

// `duplicates`: map keys may repeat in `bytes`, where ReadResponse may see
// secrets that a later entry replaces.
inline ResponseOutcome CheckResponse(
    absl::string_view bytes, bool duplicates, absl::string_view tag = "tag-2",
    absl::Duration ttl = absl::Seconds(37) + absl::Nanoseconds(5)) {
  v1::RunFunctionResponse message;
  const bool readable = ParseAsProtobufDoes(bytes, &message);
  const absl::StatusOr<ResponseView> view = ReadResponse(bytes);
  ResponseOutcome outcome;
  outcome.readable = readable;
  const auto wrong = [&](absl::string_view what) {
    outcome.wrong = std::string(what);
    return outcome;
  };
  if (view.ok() != readable) {
    return wrong(readable ? "refused what protobuf reads"
                          : "read what protobuf refuses");
  }
  if (!readable) return outcome;

  if (view->facts.ttl != TtlOf(message)) return wrong("ttl");
  if (view->facts.fatal != HasFatal(message)) return wrong("fatal");
  if (view->tag != message.meta().tag()) return wrong("tag");
  if (HasSecrets(message) && !view->facts.secrets) return wrong("no secrets");
  if (!duplicates && view->facts.secrets && !HasSecrets(message)) {
    return wrong("secrets");
  }
  outcome.wrong = CheckBody(bytes, *view);
  if (!outcome.wrong.empty()) return outcome;

  // As hits are made: a TTL where there was a valid one.
  absl::optional<absl::Duration> told;
  if (view->facts.ttl.has_value()) told = ttl;
  outcome.wrong = CheckRewrite(message, *view, tag, told,
                               MakeMeta(tag, told, view->meta_rest));
  if (!outcome.wrong.empty() || !told.has_value()) return outcome;
  outcome.wrong =
      CheckRewrite(message, *view, view->tag, told, MetaWithTtl(*view, ttl));
  return outcome;
}

}  // namespace fncache::cache

#endif  // FNCACHE_TESTS_CACHE_RESPONSE_PROPERTIES_H_
