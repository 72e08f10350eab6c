// SPDX-License-Identifier: Apache-2.0
#include "proxy/serving/tuning.h"

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
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

// A request that has the input alone; empty if there is none.
std::string InputOf(absl::string_view request) {
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
  return input;
}

// A hash of `scope` and the input. That is hashed in canonical form, because
// encoders order its maps at random.
cache::key::Key HashOf(absl::string_view scope, absl::string_view input) {
  cache::key::Canonicalizer::Form form;
  if (!canonicalizer.Request(input, scope, nullptr, /*drift=*/false, &form)) {
    form.bytes = scope;
  }
  const XXH128_hash_t hash = XXH3_128bits(form.bytes.data(), form.bytes.size());
  return {hash.high64, hash.low64};
}

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

Evidence::FunctionFigures Tuning::FiguresOf(FunctionId function,
                                            absl::Time now) {
  constexpr absl::Duration kOldest = absl::Milliseconds(100);
  Evidence::FunctionFigures figures = evidence.CountsOf(function);
  const absl::Time read = absl::Now();  // `now` may be a test's
  MutexLock lock(&mutex_);
  if (read < figures_read_ || read - figures_read_ > kOldest) {
    figures_ = evidence.Figures(now);
    figures_read_ = read;
  }
  const auto found = figures_.find(function);
  if (found == figures_.end()) return figures;
  figures.keys_repeating = found->second.keys_repeating;
  figures.keys_proven = found->second.keys_proven;
  figures.steps_read = found->second.steps_read;
  figures.steps_vary = found->second.steps_vary;
  return figures;
}

cache::key::Key StepOf(absl::string_view function, absl::string_view generation,
                       absl::string_view request) {
  insight::request::CompositeName composite;
  insight::request::ReadComposite({request}, &composite);
  std::string all;
  for (const absl::string_view text :
       {function, generation, absl::string_view(composite.api_version),
        absl::string_view(composite.kind)}) {
    absl::StrAppend(&all, text.size(), ":", text);
  }
  return HashOf(all, InputOf(request));
}

StepNames NamesOf(absl::string_view request) {
  using cache::wire::AppendBytesField;
  constexpr size_t kDigits = 8;
  StepNames names;
  insight::request::CompositeName composite;
  insight::request::ReadComposite({request}, &composite);
  names.api_version = composite.api_version;
  names.kind = composite.kind;
  names.composite = absl::StrCat(
      composite.kind, " ", composite.object_namespace,
      composite.object_namespace.empty() ? "" : "/", composite.name);
  const std::string input = InputOf(request);
  if (input.empty()) return names;
  names.input_digest = HashOf("", input).Hex().substr(0, kDigits);
  // An input is an object, too, so it is read as a composite.
  absl::string_view object;
  cache::wire::Cursor cursor(input);
  uint32_t tag;
  while (!cursor.done() && cursor.ReadTag(&tag) && cursor.ReadBytes(&object)) {
  }
  std::string as_resource, as_composite, as_observed;
  AppendBytesField(&as_resource, 1, object);        // Resource.resource
  AppendBytesField(&as_composite, 1, as_resource);  // State.composite
  AppendBytesField(&as_observed, 2, as_composite);  // observed
  insight::request::ReadComposite({as_observed}, &composite);
  names.input_kind = composite.kind;
  return names;
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
