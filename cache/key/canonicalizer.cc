// SPDX-License-Identifier: Apache-2.0
#include "cache/key/canonicalizer.h"

#include <cstring>

#include "cache/key/plain_wire.h"
#include "cache/key/reencode.h"
#include "cache/wire/schema.h"

namespace fncache::cache::key {

absl::string_view Canonicalizer::Join(
    absl::Span<const absl::string_view> slices) {
  if (slices.empty()) return absl::string_view();
  if (slices.size() == 1) return slices[0];
  size_t size = 0;
  for (const absl::string_view slice : slices) size += slice.size();
  char* const bytes = joined_.Reserve(size);
  size = 0;
  for (const absl::string_view slice : slices) {
    if (slice.empty()) continue;
    std::memcpy(bytes + size, slice.data(), slice.size());
    size += slice.size();
  }
  return absl::string_view(bytes, size);
}

bool Canonicalizer::Request(absl::string_view request, absl::string_view prefix,
                            const MaskNode* masks, bool drift, Form* form) {
  const auto run = [&](absl::string_view bytes, int depth) {
    char* const begin = canonical_.Reserve(
        prefix.size() + CanonicalWalk::Capacity(bytes.size()));
    std::copy(prefix.begin(), prefix.end(), begin);
    char* const message = begin + prefix.size();
    drifts_.clear();
    char* const end = walk_.Run(bytes, masks, depth, drift ? &drifts_ : nullptr,
                                message, &form->tag);
    if (end == nullptr) return false;
    form->bytes = absl::string_view(begin, end - begin);
    form->drifts = drifts_;
    return true;
  };
  form->reencoded = false;
  if (run(request, wire::kMaxDepth)) return true;
  form->reencoded = true;
  return Reencode(request, &plain_) && run(plain_, kMaxPlainDepth);
}

bool Canonicalizer::Response(absl::string_view response,
                             absl::string_view* form) {
  const auto run = [&](absl::string_view bytes, int depth) {
    char* const begin =
        canonical_.Reserve(CanonicalWalk::Capacity(bytes.size()));
    char* const end = walk_.RunResponse(bytes, depth, begin);
    if (end == nullptr) return false;
    *form = absl::string_view(begin, end - begin);
    return true;
  };
  return run(response, wire::kMaxDepth) ||
         (ReencodeResponse(response, &plain_) && run(plain_, kMaxPlainDepth));
}

void Canonicalizer::Shrink() {
  walk_.Shrink();
  if (drifts_.capacity() > kKeptBytes) std::string().swap(drifts_);
  joined_.Shrink();
  canonical_.Shrink();
  if (plain_.capacity() > kKeptBytes) std::string().swap(plain_);
}

}  // namespace fncache::cache::key
