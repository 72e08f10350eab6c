// SPDX-License-Identifier: Apache-2.0
#include "cache/key/level_lengths.h"

#include <cstring>

#include "absl/container/inlined_vector.h"
#include "cache/key/plain_wire.h"
#include "cache/wire/wire.h"

namespace fncache::cache::key {
namespace {

using wire::VarintSize;
using wire::WriteVarint;

// An entry of a Struct or an element of a list in the output: its lengths, the
// outermost first, and where the next one begins.
class Head {
 public:
  // Reads it at `at`, where one was written.
  Head(char* at, bool in_list) {
    ReadLength(&at);
    if (!in_list) {
      ReadLength(&at);
      at += lengths_[--count_].value;  // that of the key stays
      ReadLength(&at);
    }
    char* const value = at;
    next_ = value + lengths_[count_ - 1].value;
    if (value == next_ || (*value != kStructValue && *value != kListValue)) {
      return;
    }
    ReadLength(&at);
    // Its contents lie elsewhere.
    next_ -= lengths_[count_ - 1].value;
    is_holder_ = lengths_[count_ - 1].value != 0;
  }

  // Whether it holds a Struct or list that is not empty.
  bool is_holder() const { return is_holder_; }
  char* next() const { return next_; }

  // How many bytes its lengths take more if what it holds takes `by` more.
  uint64_t Widening(uint64_t by) const {
    const uint64_t inner = by;
    for (size_t i = count_; i > 0; --i) by += lengths_[i - 1].Widening(by);
    return by - inner;
  }

  // Corrects the lengths for `by` more bytes. The bytes from *from on have
  // moved to *to, and the bytes between the lengths move, too. On return, *from
  // and *to are the old and the new start of the first length.
  void Widen(uint64_t by, char** from, char** to) const {
    for (size_t i = count_; i > 0; --i) {
      const Length& length = lengths_[i - 1];
      char* const behind = length.at + VarintSize(length.value);
      const size_t size = *from - behind;
      *to -= size;
      if (*to != behind) std::memmove(*to, behind, size);
      *to -= VarintSize(length.value + by);
      WriteVarint(*to, length.value + by);
      *from = length.at;
      by += length.Widening(by);
    }
  }

 private:
  struct Length {
    char* at;
    uint64_t value;

    uint64_t Widening(uint64_t by) const {
      return VarintSize(value + by) - VarintSize(value);
    }
  };

  // A tag of one byte and the length behind it.
  void ReadLength(char** at) {
    Length& length = lengths_[count_++];
    length = {++*at, 0};
    int shift = 0;
    uint64_t byte;
    do {
      byte = static_cast<uint8_t>(*(*at)++);
      length.value |= (byte & 0x7f) << shift;
      shift += 7;
    } while (byte >= 0x80);
  }

  Length lengths_[3];
  size_t count_ = 0;
  char* next_;
  bool is_holder_ = false;
};

// A Struct or list of which a length has to be corrected.
struct Correction {
  Head head;
  uint64_t by;
};

}  // namespace

char* WidenLengths(absl::Span<const Level> levels, size_t room,
                   absl::Span<uint64_t> grown, char* end) {
  // From the inside to the outside, which is from the end to the start of what
  // was written.
  absl::InlinedVector<Correction, 16> corrections;
  absl::InlinedVector<Head, 16> heads;  // of what is in one level
  uint64_t widening = 0;
  size_t inner_end = levels.size();
  for (size_t outer = levels.size(); outer-- > 0;) {
    const size_t inner_begin = levels[outer].first_inner;
    size_t first_grown = inner_begin;
    while (first_grown < inner_end && grown[first_grown] == 0) ++first_grown;
    if (first_grown < inner_end) {
      heads.clear();
      for (char* at = levels[outer].contents;
           heads.size() < inner_end - inner_begin;) {
        const Head head(at, levels[outer].is_list);
        if (head.is_holder()) heads.push_back(head);
        at = head.next();
      }
      for (size_t i = inner_end; i-- > first_grown;) {
        if (grown[i] == 0) continue;
        const Head& head = heads[i - inner_begin];
        const uint64_t wider = head.Widening(grown[i]);
        corrections.push_back({head, grown[i]});
        grown[outer] += grown[i] + wider;
        widening += wider;
      }
    }
    inner_end = inner_begin;
  }
  if (widening > room) return nullptr;
  char* from = end;
  char* to = end + widening;
  for (const Correction& correction : corrections) {
    correction.head.Widen(correction.by, &from, &to);
  }
  return end + widening;
}

}  // namespace fncache::cache::key
