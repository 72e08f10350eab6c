// StructWalk: the canonical form (docs/key-format.md) of a google.protobuf
// Struct or ListValue with all that it holds, from its wire bytes. This is
// where nearly all bytes of a request are.
//
// It goes through the bytes twice. First it gathers: one Struct or list after
// the other, level by level, its entries or elements become items, and those of
// a Struct are put in order. Then the items are copied, again level by level,
// now in order. Neither step waits for what the other has to find out, and
// within each almost nothing depends on a branch that could be guessed wrong:
// entries in the form that encoders emit are read, ordered, checked and copied
// by the same instructions whatever they hold.
//
// It takes the plain form only (plain_wire.h), never reads outside of the
// request, and needs no stack, however deep messages are nested. A StructWalk
// belongs to one thread and keeps its buffers from one use to the next.
#ifndef FNCACHE_CACHE_STRUCT_WALK_H_
#define FNCACHE_CACHE_STRUCT_WALK_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "cache/schema.h"

namespace fncache::cache {

class StructWalk {
 public:
  enum class Kind { kStruct, kList };

  StructWalk();

  // Writes the canonical form of the message `bytes` to `out`, which has room
  // for that many and 64 more. Returns its end, or null if it is not plain.
  // `depth` is how many messages may be nested below it. Up to `readable_end`
  // there are bytes that may be read.
  char* Run(Kind kind, absl::string_view bytes, int depth,
            const char* readable_end, char* out);

  // Frees what an unusually large one needed.
  void Shrink();

 private:
  // What is written in one piece: an entry of a Struct, elements of a list, or
  // unknown fields.
  struct Item {
    const char* start;
    uint32_t size;  // what is copied; kOdd is set if not as one block
    uint32_t shift;
    // Of what its value holds: first the size; then, once it is gathered, the
    // sequence of items.
    uint64_t below;
  };

  // In an item's size: it cannot be copied as a block of 64 bytes.
  static constexpr uint32_t kOdd = 0x80000000;
  // In an item's shift. The lower bits: by how much to shift the bits that tell
  // its non-ASCII bytes so that those of its text remain.
  static constexpr uint32_t kIsList = 0x100;   // it holds a ListValue
  static constexpr uint32_t kChecked = 0x200;  // its text is known to be UTF-8
  static constexpr uint32_t kSplit = 0x400;  // more of it follows what it holds
  static constexpr uint32_t kNoText = 63 | kChecked;  // nothing to look at

  // In an item's `below`, in holders_ and in sequences_: two numbers.
  static uint64_t Pair(uint64_t low, uint64_t high) { return low | high << 32; }

  // The same, by instructions that not every machine has.
  char* RunPlainly(Kind kind, absl::string_view bytes, int depth);
  char* RunWithAvx2(Kind kind, absl::string_view bytes, int depth);
  bool Gather(Kind kind, absl::string_view bytes, int depth);
  bool GatherStruct(const char* p, const char* end, int depth);
  bool GatherList(const char* p, const char* end, int depth);
  // Of the Value from `p` on, introduced by what begins at `start`.
  bool AddItem(const char* start, const char* p, const char* end, int depth);
  bool AddUnknown(const MessageType& type, const char* p, const char* end,
                  int depth);
  bool Order(size_t first);
  bool OrderByKeys(size_t first);
  bool CopyItems();
  bool CopyItemsAvx2();
  bool CopyItemsAvx512();
  template <typename Copy>
  bool CopyItemsBy(Copy copy);
  const char* FastEnd(const char* p, const char* end) const;
  char* CopyOdd(const Item& item, char* out) const;
  void Grow();

  const char* readable_end_ = nullptr;
  char* out_ = nullptr;
  // All of one size, but for what may be written behind their ends.
  std::vector<Item> items_;
  std::vector<int32_t> orders_;      // of items_
  std::vector<uint32_t> ranked_;     // places in items_, in order
  std::vector<uint64_t> holders_;    // items that hold a message; its depth
  std::vector<uint64_t> sequences_;  // of items, in the order of copying
  size_t item_count_ = 0;
  size_t holder_count_ = 0;
};

}  // namespace fncache::cache

#endif  // FNCACHE_CACHE_STRUCT_WALK_H_
