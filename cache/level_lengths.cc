#include "cache/level_lengths.h"

#include <cstring>

#include "cache/wire/wire.h"

namespace fncache::cache {
namespace {

// The lengths in a head, the outermost first.
class Head {
 public:
  // `in_list`: it is that of a list's element and not of a map's entry.
  Head(char* at, bool in_list) {
    Read(&at);  // of the entry or element
    if (!in_list) {
      Read(&at);  // of the key, which stays
      at += lengths_[--count_].value;
      Read(&at);  // of the Value
    }
    Read(&at);  // of the Struct or list
  }

  // How many bytes more the head takes if what it is the head of takes `by`
  // bytes more.
  uint64_t Widening(uint64_t by) const {
    const uint64_t inner = by;
    for (size_t i = count_; i > 0; --i) by += lengths_[i - 1].Widening(by);
    return by - inner;
  }

  // Moves what is between the head's start and *from (what is behind is where
  // it belongs) up to *to, and corrects the lengths in it. *from and *to are
  // then where the first length begins, before and now.
  void Widen(uint64_t by, char** from, char** to) const {
    for (size_t i = count_; i > 0; --i) {
      const Length& length = lengths_[i - 1];
      const uint64_t widening = length.Widening(by);
      char* const behind = length.at + wire::VarintSize(length.value);
      const size_t size = *from - behind;
      *to -= size;
      if (*to != behind) std::memmove(*to, behind, size);
      *to -= wire::VarintSize(length.value + by);
      wire::WriteVarint(*to, length.value + by);
      *from = length.at;
      by += widening;
    }
  }

 private:
  struct Length {
    char* at;
    uint64_t value;

    uint64_t Widening(uint64_t by) const {
      return wire::VarintSize(value + by) - wire::VarintSize(value);
    }
  };

  // A tag of one byte and the length behind it.
  void Read(char** at) {
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
};

// Calls `visit` with the number of each place that has grown, the last one
// first, and that of the place it is in.
template <typename Visit>
void VisitGrown(const std::vector<LevelPlace>& places,
                const std::vector<uint64_t>& grown, Visit visit) {
  size_t parent = places.size() - 1;
  for (size_t i = places.size() - 1; i > 0; --i) {
    if (grown[i] == 0) continue;
    // Heads and contents lie in the order of their places.
    while (places[parent].contents > places[i].head) --parent;
    visit(i, parent);
  }
}

}  // namespace

char* WidenLengths(const std::vector<LevelPlace>& places, size_t room,
                   std::vector<uint64_t>* grown, char* end) {
  uint64_t widening = 0;
  VisitGrown(places, *grown, [&](size_t i, size_t parent) {
    const uint64_t by = (*grown)[i];
    const Head head(places[i].head, places[parent].is_list);
    const uint64_t wider = head.Widening(by);
    (*grown)[parent] += by + wider;
    widening += wider;
  });
  if (widening > room) return nullptr;
  char* from = end;
  char* to = end + widening;
  VisitGrown(places, *grown, [&](size_t i, size_t parent) {
    const Head head(places[i].head, places[parent].is_list);
    head.Widen((*grown)[i], &from, &to);
  });
  return end + widening;
}

}  // namespace fncache::cache
