// SPDX-License-Identifier: Apache-2.0
#include "proxy/serving/tuning.h"

#include "absl/strings/str_cat.h"
#include "cache/key/canonicalizer.h"
#include "cache/wire/schema.h"
#include "cache/wire/wire.h"
#include "insight/request/outline.h"
#include "xxhash.h"

namespace fncache::proxy::serving {
namespace {

using cache::wire::MakeTag;
using cache::wire::WireType;

// RunFunctionRequest.input.
constexpr uint32_t kInput = 4;

// A function that gave no TTL. Others are not negative.
constexpr absl::Duration kNoTtl = absl::Seconds(-1);

thread_local cache::key::Canonicalizer canonicalizer;

}  // namespace

absl::optional<TunedEntry> Tuning::AnswerOf(
    absl::Span<const absl::string_view> body,
    absl::optional<absl::Duration> ttl) const {
  const cache::ResponseDigest digest = digester.Compute(body, &canonicalizer);
  if (!digest.readable) return absl::nullopt;
  TunedEntry answer = {};
  answer.answer = digest.digest;
  answer.ttl = ttl.value_or(kNoTtl);
  return answer;
}

cache::key::Key StepOf(absl::string_view function, absl::string_view generation,
                       absl::string_view request, std::string* seen) {
  insight::request::CompositeName composite;
  insight::request::ReadComposite({request}, &composite);
  *seen = absl::StrCat(composite.kind, " ", composite.object_namespace,
                       composite.object_namespace.empty() ? "" : "/",
                       composite.name);
  // The input alone, in canonical form: encoders order its maps at random.
  std::string input;
  cache::wire::Cursor cursor(request);
  while (!cursor.done()) {
    uint32_t tag;
    if (!cursor.ReadTag(&tag)) break;
    absl::string_view piece;
    if (tag != MakeTag(kInput, WireType::kBytes)) {
      if (!cursor.Skip(tag, cache::wire::kMaxDepth)) break;
    } else if (cursor.ReadBytes(&piece)) {
      cache::wire::AppendBytesField(&input, kInput, piece);
    }
  }
  std::string all;
  for (const absl::string_view text :
       {function, generation, absl::string_view(composite.api_version),
        absl::string_view(composite.kind)}) {
    absl::StrAppend(&all, text.size(), ":", text);
  }
  cache::key::Canonicalizer::Form form;
  if (canonicalizer.Request(input, all, nullptr, /*drift=*/false, &form)) {
    all = std::string(form.bytes);
  }
  const XXH128_hash_t hash = XXH3_128bits(all.data(), all.size());
  return {hash.high64, hash.low64};
}

const char* VerdictName(DriftVerdict verdict) {
  switch (verdict) {
    case DriftVerdict::kHit:
      return "hit";
    case DriftVerdict::kRead:
      return "read";
    case DriftVerdict::kUnproven:
      return "unproven";
    case DriftVerdict::kOld:
      return "old";
    case DriftVerdict::kMoved:
      return "moved";
  }
  return "";
}

}  // namespace fncache::proxy::serving
