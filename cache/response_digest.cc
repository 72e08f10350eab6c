// SPDX-License-Identifier: Apache-2.0
#include "cache/response_digest.h"

#include "cache/key/plain_wire.h"
#include "cache/wire/schema.h"
#include "cache/wire/wire.h"
#include "openssl/rand.h"
#include "xxhash.h"

namespace fncache::cache {
namespace {

constexpr uint32_t kMostFields =
    std::tuple_size<decltype(ResponseDigest::fields)>::value;

}  // namespace

ResponseDigester::ResponseDigester() {
  RAND_bytes(secret_.data(), static_cast<int>(secret_.size()));
}

ResponseDigest ResponseDigester::Compute(
    absl::Span<const absl::string_view> body,
    key::Canonicalizer* canonicalizer) const {
  ResponseDigest response;
  absl::string_view form;
  if (!canonicalizer->Response(canonicalizer->Join(body), &form)) {
    return response;
  }
  const XXH128_hash_t hash = XXH3_128bits_withSecret(
      form.data(), form.size(), secret_.data(), secret_.size());
  response.digest = key::Key{hash.high64, hash.low64};
  // In the canonical form fields of one number lie together, in order, and the
  // unknown ones come last.
  wire::Cursor in(form);
  const char* start = form.data();
  uint32_t last = 0;
  const auto close = [&](uint32_t field, const char* end) {
    if (end == start) return;
    response.fields[field] = XXH3_64bits_withSecret(
        start, end - start, secret_.data(), secret_.size());
    start = end;
  };
  while (!in.done()) {
    const char* const at = in.position();
    uint32_t tag;
    if (!in.ReadTag(&tag)) return response;
    const uint32_t field = key::IsKnown(wire::kRunFunctionResponseType, tag)
                               ? wire::TagNumber(tag)
                               : 0;
    if (field != last) close(last, at);
    last = field;
    if (!in.Skip(tag, key::kMaxPlainDepth)) return response;
  }
  close(last, in.position());
  response.readable = true;
  return response;
}

std::vector<std::string> ResponseDigester::FieldsDiffering(
    const ResponseDigest& a, const ResponseDigest& b) {
  std::vector<std::string> names;
  for (uint32_t field = 1; field < kMostFields; ++field) {
    if (a.fields[field] == b.fields[field]) continue;
    const auto* const type = wire::kRunFunctionResponseType.Find(field);
    names.emplace_back(type->name);
  }
  if (a.fields[0] != b.fields[0]) names.emplace_back("?");
  return names;
}

}  // namespace fncache::cache
