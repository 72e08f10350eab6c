// SPDX-License-Identifier: Apache-2.0
#include "cache/key/digest.h"

#include <algorithm>
#include <memory>
#include <utility>

#define XXH_STATIC_LINKING_ONLY  // XXH3_generateSecret
#include "cache/key/canonicalizer.h"
#include "cache/key/drift.h"
#include "cache/key/read_fields.h"
#include "cache/key/reencode.h"
#include "cache/key/seeded_sha256.h"
#include "cache/key/tag_fields.h"
#include "cache/wire/wire.h"
#include "xxhash.h"
#if defined(__x86_64__)
// The widest vectors that the machine has.
#include "xxh_x86dispatch.h"
#endif

namespace fncache::cache::key {
namespace {

// docs/key-format.md. Another order or framing is another version.
constexpr char kVersion = 2;

// A byte of the scope that says what a key is made of.
enum class MadeOf : char {
  kContent = 0,  // all of the request
  kTag = 1,      // its tag, and the fields that the tag does not cover
  // All of it, since `key: tag` is set and it has no tag that would do.
  kContentForTag = 2,
  kByHint = 3,  // what a hint says that counts
  kInput = 4,   // its input alone: a digest that is no key
};
constexpr char kWithXxh3 = 0;
constexpr char kWithSha256 = 1;

constexpr size_t kSecretSize = 192;
constexpr size_t kSeedSize = std::tuple_size<Seed>::value;

void AppendText(std::string* out, absl::string_view text) {
  wire::AppendVarint(out, text.size());
  out->append(text.data(), text.size());
}

std::string Prefix(MadeOf made_of, const KeyScope& scope,
                   const MaskSet& masks) {
  std::string prefix = {
      kVersion, static_cast<char>(made_of),
      scope.hash == KeyHash::kSha256 ? kWithSha256 : kWithXxh3};
  AppendText(&prefix, scope.function);
  AppendText(&prefix, scope.method);
  AppendText(&prefix, scope.generation);
  // It precedes all paths, in the order of their bytes, too.
  wire::AppendVarint(&prefix, masks.canonical().size() + (scope.drift ? 1 : 0));
  if (scope.drift) AppendText(&prefix, kDriftScope);
  for (const std::string& mask : masks.canonical()) AppendText(&prefix, mask);
  return prefix;
}

KeyScope WithoutDrift(KeyScope scope) {
  scope.drift = false;
  return scope;
}

}  // namespace

struct DigestScratch::Impl {
  Canonicalizer canonicalizer;
  std::string part;              // what `key: tag` reads of a request
  Canonicalizer::Buffer fields;  // what a hint reads
  std::string plain;             // the request, encoded anew
  std::string tag;               // of requests whose bytes are not kept
  SeededSha256::Scratch sha256;

  // After a request of this size: gives back what is too much to keep. The
  // tag, which may be in it, stays; its drift does not.
  void Shrink(size_t size, Digest* digest) {
    constexpr size_t kKeptBytes = Canonicalizer::kKeptBytes;
    if (size <= kKeptBytes / 2) return;
    tag.assign(digest->tag.data(), digest->tag.size());
    digest->tag = tag;
    digest->drifts = absl::string_view();
    canonicalizer.Shrink();
    if (part.capacity() > kKeptBytes) std::string().swap(part);
    fields.Shrink();
    if (plain.capacity() > kKeptBytes) std::string().swap(plain);
  }
};

DigestScratch::DigestScratch() : impl_(std::make_unique<Impl>()) {}
DigestScratch::~DigestScratch() = default;

struct Digester::Impl {
  Impl(const Seed& seed, const KeyScope& scope, MaskSet mask_set)
      : by_tag(scope.source == KeySource::kTag),
        with_sha256(scope.hash == KeyHash::kSha256),
        drift(scope.drift),
        sha256(seed),
        content_prefix(
            Prefix(by_tag ? MadeOf::kContentForTag : MadeOf::kContent, scope,
                   mask_set)),
        // Where the tag will be, its size, follows at once.
        tag_prefix(Prefix(MadeOf::kTag, scope, mask_set) +
                   std::string(kHexTagSize, '\0')),
        hint_prefix(Prefix(MadeOf::kByHint, WithoutDrift(scope), mask_set)),
        input_prefix(Prefix(MadeOf::kInput, WithoutDrift(scope), mask_set)),
        masks(std::move(mask_set)) {
    XXH3_generateSecret(secret, kSecretSize, seed.data(), kSeedSize);
  }

  bool Hash(absl::string_view form, DigestScratch::Impl* own, Key* key) const {
    if (with_sha256) return sha256.Hash(form, &own->sha256, key);
    const XXH128_hash_t hash =
        XXH3_128bits_withSecret(form.data(), form.size(), secret, kSecretSize);
    *key = Key{hash.high64, hash.low64};
    return true;
  }

  // `form` is of a request of `size` bytes, if it is `keyed`.
  Digest Finish(const Canonicalizer::Form& form, size_t size, bool keyed,
                bool with_drift, DigestScratch::Impl* own) const {
    Digest digest;
    digest.keyed = keyed && Hash(form.bytes, own, &digest.key) &&
                   (!with_drift || Hash(form.drifts, own, &digest.drift));
    if (digest.keyed) {
      digest.tag = form.tag;
      digest.drifts = form.drifts;
      digest.reencoded = form.reencoded;
    }
    own->Shrink(size, &digest);
    return digest;
  }

  // `write` writes the fields that count of the request that it gets, and
  // returns their end; null for unusual forms.
  template <typename Write>
  Digest ComputePart(absl::string_view request, absl::string_view prefix,
                     Write write, DigestScratch::Impl* own) const {
    Canonicalizer::Form form;
    char* begin = own->fields.Reserve(request.size());
    const char* end = write(request, begin);
    if (end == nullptr && Reencode(request, &own->plain)) {
      begin = own->fields.Reserve(own->plain.size());
      end = write(own->plain, begin);
    }
    const bool keyed =
        end != nullptr &&
        own->canonicalizer.Request(
            absl::string_view(begin, static_cast<size_t>(end - begin)), prefix,
            masks.root(), /*drift=*/false, &form);
    return Finish(form, request.size(), keyed, /*with_drift=*/false, own);
  }

  alignas(64) unsigned char secret[kSecretSize];
  const bool by_tag;
  const bool with_sha256;
  const bool drift;
  const SeededSha256 sha256;
  // Every canonical form begins with one of these: version and scope.
  const std::string content_prefix;
  const std::string tag_prefix;
  const std::string hint_prefix;
  const std::string input_prefix;
  const MaskSet masks;
};

Digester::Digester(const Seed& seed, const KeyScope& scope, MaskSet masks)
    : impl_(std::make_unique<const Impl>(seed, scope, std::move(masks))) {}

Digester::~Digester() = default;

Digest Digester::Compute(absl::Span<const absl::string_view> slices,
                         DigestScratch* scratch) const {
  DigestScratch::Impl& own = *scratch->impl_;
  if (impl_->by_tag) {
    own.part.clear();
    Canonicalizer::Form form;
    // If these fields cannot be read, the whole request cannot be read either.
    const bool keyed =
        AppendTagFields(slices, &own.part) &&
        own.canonicalizer.Request(own.part, impl_->tag_prefix, nullptr,
                                  /*drift=*/false, &form);
    if (!keyed || IsHexTag(form.tag)) {
      if (keyed) {
        std::copy(
            form.tag.begin(), form.tag.end(),
            own.canonicalizer.data() + impl_->tag_prefix.size() - kHexTagSize);
      }
      return impl_->Finish(form, own.part.size(), keyed, /*with_drift=*/false,
                           &own);
    }
  }
  const absl::string_view request = own.canonicalizer.Join(slices);
  Canonicalizer::Form form;
  const bool keyed = own.canonicalizer.Request(
      request, impl_->content_prefix,
      impl_->drift ? impl_->masks.drift_root() : impl_->masks.root(),
      impl_->drift, &form);
  return impl_->Finish(form, request.size(), keyed, impl_->drift, &own);
}

std::string Digester::HintPrefix(const Hint& hint) const {
  std::string prefix = impl_->hint_prefix;
  prefix.push_back(hint.pure() ? 1 : 0);
  wire::AppendVarint(&prefix, hint.reads().size());
  for (const std::string& path : hint.reads()) AppendText(&prefix, path);
  return prefix;
}

Digest Digester::ComputeByHint(absl::string_view request, const Hint& hint,
                               absl::string_view prefix,
                               DigestScratch* scratch) const {
  return impl_->ComputePart(
      request, prefix,
      [&hint](absl::string_view bytes, char* out) {
        return WriteReadFields(bytes, hint.root(), out);
      },
      scratch->impl_.get());
}

Digest Digester::ComputeInput(absl::string_view request,
                              DigestScratch* scratch) const {
  return impl_->ComputePart(request, impl_->input_prefix, WriteInput,
                            scratch->impl_.get());
}

}  // namespace fncache::cache::key
