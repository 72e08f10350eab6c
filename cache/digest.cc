#include "cache/digest.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#define XXH_INLINE_ALL
#include "cache/canonical.h"
#include "cache/plain_walk.h"
#include "cache/wire.h"
#include "xxhash.h"

namespace fncache::cache {
namespace {

// docs/key-format.md. Another order or framing is another version.
constexpr char kVersion = 1;
// Keys made of the whole request, with XXH3; other ways have other bytes.
constexpr char kOfContent = 0;
constexpr char kWithXxh3 = 0;

constexpr size_t kSecretSize = 192;
constexpr size_t kSeedSize = std::tuple_size<Seed>::value;

// Buffers larger than this do not outlive a Compute.
constexpr size_t kKeptBytes = 4 << 20;

// Bytes of no particular value.
class Buffer {
 public:
  char* Reserve(size_t size) {
    if (size > capacity_) {
      capacity_ = std::max(size, std::min(2 * capacity_, kKeptBytes));
      data_.reset(new char[capacity_]);
    }
    return data_.get();
  }
  void Shrink() {
    if (capacity_ <= kKeptBytes) return;
    data_.reset();
    capacity_ = 0;
  }

 private:
  std::unique_ptr<char[]> data_;
  size_t capacity_ = 0;
};

void AppendText(std::string* out, absl::string_view text) {
  AppendVarint(out, text.size());
  out->append(text.data(), text.size());
}

}  // namespace

struct DigestScratch::Impl {
  PlainWalk walk;
  Buffer joined;      // a request of several slices
  Buffer canonical;   // what is hashed
  std::string plain;  // what the slow path makes
  std::string tag;    // of requests whose bytes are not kept

  void Shrink() {
    walk.Shrink();
    joined.Shrink();
    canonical.Shrink();
    if (plain.capacity() > kKeptBytes) std::string().swap(plain);
  }
};

DigestScratch::DigestScratch() : impl_(std::make_unique<Impl>()) {}
DigestScratch::~DigestScratch() = default;

struct Digester::Impl {
  alignas(64) unsigned char secret[kSecretSize];
  std::string prefix;  // of every canonical form: version and scope
  MaskSet masks;

  Key Hash(const char* begin, const char* end) const {
    const XXH128_hash_t hash =
        XXH3_128bits_withSecret(begin, end - begin, secret, kSecretSize);
    return Key{hash.high64, hash.low64};
  }
};

Digester::Digester(const Seed& seed, const KeyScope& scope, MaskSet masks) {
  auto impl = std::make_unique<Impl>();
  XXH3_generateSecret(impl->secret, kSecretSize, seed.data(), kSeedSize);
  impl->prefix = {kVersion, kOfContent, kWithXxh3};
  AppendText(&impl->prefix, scope.function);
  AppendText(&impl->prefix, scope.method);
  AppendText(&impl->prefix, scope.generation);
  AppendVarint(&impl->prefix, masks.canonical().size());
  for (const std::string& mask : masks.canonical()) {
    AppendText(&impl->prefix, mask);
  }
  impl->masks = std::move(masks);
  impl_ = std::move(impl);
}

Digester::~Digester() = default;

Digest Digester::Compute(absl::Span<const absl::string_view> slices,
                         DigestScratch* scratch) const {
  DigestScratch::Impl& own = *scratch->impl_;
  absl::string_view bytes;
  if (slices.size() == 1) {
    bytes = slices[0];
  } else if (!slices.empty()) {
    size_t size = 0;
    for (const absl::string_view slice : slices) size += slice.size();
    char* const joined = own.joined.Reserve(size);
    size = 0;
    for (const absl::string_view slice : slices) {
      if (slice.empty()) continue;
      std::memcpy(joined + size, slice.data(), slice.size());
      size += slice.size();
    }
    bytes = absl::string_view(joined, size);
  }

  Digest digest;
  const std::string& prefix = impl_->prefix;
  const auto walk = [&](absl::string_view plain, int depth) {
    char* const begin =
        own.canonical.Reserve(prefix.size() + plain.size() + PlainWalk::kSlack);
    std::copy(prefix.begin(), prefix.end(), begin);
    char* const end = own.walk.Run(plain, impl_->masks.root(), depth,
                                   begin + prefix.size(), &digest.tag);
    if (end == nullptr) return false;
    digest.key = impl_->Hash(begin, end);
    return true;
  };
  digest.keyed = walk(bytes, kMaxDepth) || (MakePlain(bytes, &own.plain) &&
                                            walk(own.plain, kMaxPlainDepth));
  if (!digest.keyed) digest.tag = absl::string_view();
  if (bytes.size() > kKeptBytes / 2) {
    // What is freed now may hold the tag.
    own.tag.assign(digest.tag.data(), digest.tag.size());
    digest.tag = own.tag;
    own.Shrink();
  }
  return digest;
}

}  // namespace fncache::cache
