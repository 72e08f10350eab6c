// SPDX-License-Identifier: Apache-2.0
// Output: what a connection has to write, in order: slices, and small bytes,
// which are copied together.
//
// Not thread-safe.
#ifndef FNCACHE_HTTP2_OUTPUT_H_
#define FNCACHE_HTTP2_OUTPUT_H_

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "http2/slice.h"

namespace fncache::http2 {

class Output {
 public:
  // Bodies run so far ahead of the socket.
  static constexpr size_t kMost = 256 << 10;

  void Copy(absl::string_view bytes);
  // By reference. Not empty.
  void Add(Slice bytes);

  // Bytes that wait, and those that ever came.
  size_t size() const { return size_; }
  uint64_t total() const { return total_; }
  bool full() const { return size_ >= kMost; }

  // The first bytes that wait: as many vectors as there are, at most; returns
  // how many were filled.
  size_t FillVectors(absl::Span<iovec> vectors) const;
  // And appended, until `record` has so many.
  void FillRecord(size_t size, std::string* record) const;
  // Removes `bytes` that were written. True: nothing waits any more.
  bool Written(size_t bytes);
  // Releases the memory that is kept for later output. Nothing may wait.
  void GiveBack();

 private:
  std::vector<Slice> slices_;
  size_t first_ = 0;  // of those that were not written
  Buffer chunk_;
  bool chunk_open_ = false;  // the last of `slices_` ends where `chunk_` does
  size_t size_ = 0;
  uint64_t total_ = 0;
};

}  // namespace fncache::http2

#endif  // FNCACHE_HTTP2_OUTPUT_H_
