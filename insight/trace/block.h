// SPDX-License-Identifier: Apache-2.0
// The layout of records in a trace's file (docs/trace-format.md): the file's
// first bytes, then blocks. Each block is complete in itself: magic, sizes,
// checksum, records compressed by LZ4.
//
// Pure functions, thread-safe. Bytes that are read are not trusted.
#ifndef FNCACHE_INSIGHT_TRACE_BLOCK_H_
#define FNCACHE_INSIGHT_TRACE_BLOCK_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace fncache::insight::trace {

// Every file begins with these bytes. The last but one is the version. A reader
// of this version refuses files of a later one.
inline constexpr absl::string_view kFileMagic("fnctrc\x01\n", 8);
inline constexpr size_t kVersionAt = 6;

inline constexpr size_t kBlockHead = 4 + 4 + 4 + 8;
// The most uncompressed bytes of a block.
inline constexpr size_t kMaxBlock = 1u << 30;

// The most bytes in the file of a block of `raw` bytes.
size_t MostBlockSize(size_t raw);

// The block of the records `raw`, at most kMaxBlock bytes.
std::string MakeBlock(absl::string_view raw);

enum class BlockRead {
  kRead,
  kDamaged,  // no whole block here; one may follow
  kEnd,      // no block follows
};
// Reads the block at *at of `file` and moves *at behind it. If it is damaged,
// *at moves to the next one, if any. `raw` gets the records.
BlockRead ReadBlock(absl::string_view file, size_t* at, std::string* raw);

}  // namespace fncache::insight::trace

#endif  // FNCACHE_INSIGHT_TRACE_BLOCK_H_
