// SPDX-License-Identifier: Apache-2.0
#include "insight/trace/block.h"

#include <lz4.h>

#include "absl/base/internal/endian.h"
#include "xxhash.h"

namespace fncache::insight::trace {
namespace {

constexpr absl::string_view kBlockMagic = "\xf1TBK";

// LZ4 never compresses better than this.
constexpr size_t kMostRatio = 255;

}  // namespace

size_t MostBlockSize(size_t raw) {
  return kBlockHead + LZ4_compressBound(static_cast<int>(raw));
}

std::string MakeBlock(absl::string_view raw) {
  std::string block(MostBlockSize(raw.size()), '\0');
  const int stored = LZ4_compress_default(
      raw.data(), block.data() + kBlockHead, static_cast<int>(raw.size()),
      static_cast<int>(block.size() - kBlockHead));
  block.resize(kBlockHead + stored);
  kBlockMagic.copy(block.data(), kBlockMagic.size());
  absl::little_endian::Store32(block.data() + 4, stored);
  absl::little_endian::Store32(block.data() + 8,
                               static_cast<uint32_t>(raw.size()));
  absl::little_endian::Store64(block.data() + 12,
                               XXH3_64bits(block.data() + kBlockHead, stored));
  return block;
}

BlockRead ReadBlock(absl::string_view file, size_t* at, std::string* raw) {
  if (*at >= file.size()) return BlockRead::kEnd;
  const absl::string_view rest = file.substr(*at);
  const auto whole = [&] {
    if (rest.size() < kBlockHead || rest.substr(0, 4) != kBlockMagic) {
      return false;
    }
    const size_t stored = absl::little_endian::Load32(rest.data() + 4);
    const size_t size = absl::little_endian::Load32(rest.data() + 8);
    if (stored > rest.size() - kBlockHead || size > kMaxBlock ||
        size > (stored + 1) * kMostRatio) {
      return false;
    }
    const absl::string_view bytes = rest.substr(kBlockHead, stored);
    if (absl::little_endian::Load64(rest.data() + 12) !=
        XXH3_64bits(bytes.data(), bytes.size())) {
      return false;
    }
    raw->resize(size);
    if (LZ4_decompress_safe(bytes.data(), &(*raw)[0], static_cast<int>(stored),
                            static_cast<int>(size)) != static_cast<int>(size)) {
      return false;
    }
    *at += kBlockHead + stored;
    return true;
  };
  if (whole()) return BlockRead::kRead;
  const size_t next = rest.find(kBlockMagic, 1);
  *at = next == absl::string_view::npos ? file.size() : *at + next;
  return BlockRead::kDamaged;
}

}  // namespace fncache::insight::trace
