#include "cache/struct_walk.h"

#include <algorithm>
#include <numeric>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "absl/base/internal/endian.h"
#include "absl/base/optimization.h"
#include "cache/plain_wire.h"

namespace fncache::cache {
namespace {

// What a large message may leave behind.
constexpr size_t kKeptItems = 1 << 15;
constexpr size_t kFirstItems = 256;
// Items are put in order by fours.
constexpr size_t kPadding = 4;
// Above so many, comparing each with each does not pay.
constexpr size_t kMostRanked = 128;

// How far an entry is read before it is known where it ends: tags, lengths, a
// key of 127 bytes and 8 bytes; and so much may be copied of one.
constexpr ptrdiff_t kWindow = 192;

// How the value of a map entry of less than 128 bytes begins, by its Value's
// tag: with the entry's tag of the value, its size, the Value's tag, and one
// byte more, its "head". Where that is a length it follows from the size.
struct Shape {
  uint64_t mask = 0;  // of the head, and of the size in bits 32 to 39,
  uint64_t fixed = ~uint64_t{0};  // what is to be there,
  uint64_t per_size = 0;          // and so much more for each of the size
  uint32_t holds = 0;  // 0xff: the head's last byte is the size of a message
  uint32_t shift = 0;  // added to the item's
};

struct Shapes {
  Shape of[256];

  constexpr Shapes() : of() {
    Fixed(kNullValue, 2, 0x80, 0);
    Fixed(kNumberValue, 9, 0, 8);  // which are not text
    Fixed(kBoolValue, 2, 0xfe, 0);
    Long(kStringValue, 0, 0);
    Long(kStructValue, 0xff, 0);
    Long(kListValue, 0xff, 0x100);
  }

  static constexpr uint64_t Head(char tag, uint64_t size) {
    return static_cast<uint64_t>(kMapValue) | size << 8 |
           static_cast<uint64_t>(tag) << 16;
  }
  // `never` are the bits of the byte behind the tag that are never set.
  constexpr void Fixed(char tag, uint64_t size, uint64_t never,
                       uint32_t shift) {
    of[static_cast<uint8_t>(tag)] = {
        uint64_t{0xff} << 32 | never << 24 | 0xffffff,
        size << 32 | Head(tag, size), 0, 0, shift};
  }
  constexpr void Long(char tag, uint32_t holds, uint32_t shift) {
    of[static_cast<uint8_t>(tag)] = {0xffffffff, Head(tag, 0) - (2u << 24),
                                     1u << 24 | 1u << 8, holds, shift};
  }
};
constexpr Shapes kShapes;

// Of a key's size: a mask of what of 8 bytes is of it, and where its last 8
// are.
struct KeyParts {
  uint64_t mask[128];
  uint8_t last[128];

  constexpr KeyParts() : mask(), last() {
    for (int i = 0; i < 128; ++i) {
      mask[i] = i < 8 ? (uint64_t{1} << (8 * i)) - 1 : ~uint64_t{0};
      last[i] = static_cast<uint8_t>(i < 8 ? 0 : i - 8);
    }
  }
};
constexpr KeyParts kKeyParts;

// A length of 128 to 16383 as it is written, in two bytes.
inline uint64_t TwoBytes(uint64_t size) {
  return (size & 0x7f) | 0x80 | size >> 7 << 8;
}

// Whether `head` is that of a Value of `size` bytes (131 or more, in two), with
// a Struct or ListValue in it and nothing else: the size, the Value's tag, and
// the size of what is in it.
inline bool IsLongHolder(uint64_t head, uint64_t size) {
  const uint64_t tag = (head >> 16) & 0xff;
  return (head & 0xffff00ffff) == (TwoBytes(size) | TwoBytes(size - 3) << 24) &&
         (tag == kStructValue || tag == kListValue);
}
// The least size of a Value that IsLongHolder is for, and the most.
constexpr uint64_t kLeastLong = 131;
constexpr uint64_t kMostLong = 0x3fff;

// Copies 64 bytes; a bit of what it returns is set if the byte is not ASCII.
inline uint64_t Copy64(const char* from, char* to) {
#if defined(__x86_64__)
  const auto load = [from](int i) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from) + i);
  };
  const auto store = [to](int i, __m128i block) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to) + i, block);
  };
  const auto high = [](__m128i block) {
    return uint64_t{static_cast<uint32_t>(_mm_movemask_epi8(block))};
  };
  const __m128i a = load(0);
  const __m128i b = load(1);
  const __m128i c = load(2);
  const __m128i d = load(3);
  store(0, a);
  store(1, b);
  store(2, c);
  store(3, d);
  return high(a) | high(b) << 16 | high(c) << 32 | high(d) << 48;
#else
  uint64_t high = 0;
  for (int i = 0; i < 8; ++i) {
    const uint64_t block = absl::little_endian::Load64(from + 8 * i);
    absl::little_endian::Store64(to + 8 * i, block);
    // The high bit of each byte, gathered in the top byte.
    high |= (((block >> 7) & 0x0101010101010101u) * 0x0102040810204080u) >>
            56 << (8 * i);
  }
  return high;
#endif
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) inline uint64_t Copy64Avx2(const char* from,
                                                           char* to) {
  const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  const __m256i b =
      _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from) + 1);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), a);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to) + 1, b);
  return static_cast<uint32_t>(_mm256_movemask_epi8(a)) |
         uint64_t{static_cast<uint32_t>(_mm256_movemask_epi8(b))} << 32;
}

struct Avx2Copy {
  __attribute__((target("avx2"))) uint64_t operator()(const char* from,
                                                      char* to) const {
    return Copy64Avx2(from, to);
  }
};

struct Avx512Copy {
  __attribute__((target("avx512bw"))) uint64_t operator()(const char* from,
                                                          char* to) const {
    const __m512i all = _mm512_loadu_si512(from);
    _mm512_storeu_si512(to, all);
    return _mm512_movepi8_mask(all);
  }
};

const bool kHasAvx512 = __builtin_cpu_supports("avx512bw") != 0;
const bool kHasAvx2 = __builtin_cpu_supports("avx2") != 0 &&
                      __builtin_cpu_supports("bmi") != 0 &&
                      __builtin_cpu_supports("bmi2") != 0;

inline __m128i Load4(const int32_t* from) {
  // Not at once: they were just written one by one.
  return _mm_set_epi32(from[3], from[2], from[1], from[0]);
}

inline uint32_t Sum4(__m128i each) {
  each = _mm_add_epi32(each, _mm_shuffle_epi32(each, 0x4e));
  each = _mm_add_epi32(each, _mm_shuffle_epi32(each, 0xb1));
  return static_cast<uint32_t>(_mm_cvtsi128_si32(each));
}

// How many of `other` are below each of `own`, with the sign changed.
inline __m128i Above4(__m128i own, __m128i other) {
  const __m128i a = _mm_cmpgt_epi32(own, _mm_shuffle_epi32(other, 0x00));
  const __m128i b = _mm_cmpgt_epi32(own, _mm_shuffle_epi32(other, 0x55));
  const __m128i c = _mm_cmpgt_epi32(own, _mm_shuffle_epi32(other, 0xaa));
  const __m128i d = _mm_cmpgt_epi32(own, _mm_shuffle_epi32(other, 0xff));
  return _mm_add_epi32(_mm_add_epi32(a, b), _mm_add_epi32(c, d));
}

// What the ranks of 0 to 4 different ones and of the rest of four sum up to.
constexpr uint32_t kRankSums[] = {0, 3, 5, 6, 6};

inline void Place4(__m128i ranks, size_t first, uint32_t* ranked) {
  alignas(16) uint32_t each[4];
  _mm_store_si128(reinterpret_cast<__m128i*>(each), ranks);
  const auto item = static_cast<uint32_t>(first);
  ranked[each[0]] = item;
  ranked[each[1]] = item + 1;
  ranked[each[2]] = item + 2;
  ranked[each[3]] = item + 3;
}
#endif

}  // namespace

StructWalk::StructWalk() { Grow(); }

void StructWalk::Grow() {
  const size_t size = std::max(kFirstItems, 2 * items_.size());
  items_.resize(size);
  orders_.resize(size + kPadding);
  ranked_.resize(size + kPadding);
  holders_.resize(size + kPadding);
  sequences_.resize(size + kPadding);
}

void StructWalk::Shrink() {
  if (items_.size() <= kKeptItems) return;
  *this = StructWalk();
}

char* StructWalk::Run(Kind kind, absl::string_view bytes, int depth,
                      const char* readable_end, char* out) {
  readable_end_ = readable_end;
  out_ = out;
  item_count_ = 0;
  holder_count_ = 0;
  if (bytes.empty()) return out;
#if defined(__x86_64__)
  if (kHasAvx2) return RunWithAvx2(kind, bytes, depth);
#endif
  return RunPlainly(kind, bytes, depth);
}

#if defined(__x86_64__)
// All that is called is compiled anew into it.
__attribute__((target("avx2,bmi,bmi2"), flatten)) char* StructWalk::RunWithAvx2(
    Kind kind, absl::string_view bytes, int depth) {
  return RunPlainly(kind, bytes, depth);
}
#endif

inline char* StructWalk::RunPlainly(Kind kind, absl::string_view bytes,
                                    int depth) {
  if (!Gather(kind, bytes, depth)) return nullptr;
  sequences_[0] = Pair(0, item_count_);
  for (size_t i = 0; i < holder_count_; ++i) {
    const size_t first = item_count_;
    const auto holder = static_cast<uint32_t>(holders_[i]);
    const Item& item = items_[holder];
    if (!Gather((item.shift & kIsList) != 0 ? Kind::kList : Kind::kStruct,
                {item.start + (item.size & ~kOdd), item.below},
                static_cast<int>(holders_[i] >> 32))) {
      return nullptr;
    }
    items_[holder].below = Pair(first, item_count_ - first);
  }
  return CopyItems() ? out_ : nullptr;
}

inline bool StructWalk::Gather(Kind kind, absl::string_view bytes, int depth) {
  const char* const p = bytes.data();
  return kind == Kind::kList ? GatherList(p, p + bytes.size(), depth)
                             : GatherStruct(p, p + bytes.size(), depth);
}

inline const char* StructWalk::FastEnd(const char* p, const char* end) const {
  return readable_end_ - p > kWindow ? std::min(end, readable_end_ - kWindow)
                                     : p;
}

bool StructWalk::GatherStruct(const char* p, const char* end, int depth) {
  const size_t first = item_count_;
  const size_t first_holder = holder_count_;
  // Where it is negative it is not used.
  const uint64_t below_depth = Pair(0, static_cast<uint32_t>(depth - 3));
  // Before this, entries can be read without looking where they end.
  const char* const fast_end = FastEnd(p, end);
  while (true) {
    size_t count = item_count_;
    size_t holder_count = holder_count_;
    const size_t capacity = items_.size();
    Item* item = items_.data() + count;
    int32_t* const orders = orders_.data();
    uint64_t* const holders = holders_.data();
    while (p < fast_end && count < capacity) {
      const uint64_t head = absl::little_endian::Load64(p);
      const char* key = p + 4;
      if (ABSL_PREDICT_TRUE((head & 0x80ff80ff) ==
                            (kStructFields | kMapKey << 16))) {
        // Lengths of one byte each.
        const size_t size = (head >> 8) & 0xff;
        const size_t key_size = (head >> 24) & 0xff;
        const uint32_t value_head = absl::little_endian::Load32(key + key_size);
        const Shape& shape = kShapes.of[(value_head >> 16) & 0xff];
        const uint64_t value_size = size - 4 - key_size;
        const char* const next = p + 2 + size;
        if (ABSL_PREDICT_FALSE(((value_size << 32 | value_head) & shape.mask) !=
                                   shape.fixed + value_size * shape.per_size ||
                               next > end)) {
          break;
        }
        const uint64_t mask = kKeyParts.mask[key_size];
        orders[count] = KeyOrder(
            absl::little_endian::Load64(key) & mask,
            absl::little_endian::Load64(key + kKeyParts.last[key_size]) & mask);
        const uint32_t held = (value_head >> 24) & shape.holds;
        const uint32_t copied = static_cast<uint32_t>(size) + 2 - held;
        item->start = p;
        item->size = copied;
        // Of 64 bits, and never below 0; 128 more make no difference.
        item->shift = 128 + 64 - copied + shape.shift;
        item->below = held;
        holders[holder_count] = count + below_depth;
        holder_count += held != 0;
        ++item;
        ++count;
        p = next;
        continue;
      }
      // A large Struct or list: lengths of two bytes, but the key's.
      const uint64_t size = ((head >> 8) & 0x7f) | ((head >> 9) & 0x3f80);
      const uint64_t key_size = (head >> 32) & 0xff;
      const uint64_t value_size = size - 5 - key_size;
      ++key;
      if ((head & 0x80ff8080ff) !=
              (uint64_t{kStructFields} | 0x8000 | uint64_t{kMapKey} << 24) ||
          value_size - kLeastLong > kMostLong || p + 3 + size > end) {
        break;
      }
      const uint64_t value_head = absl::little_endian::Load64(key + key_size);
      if ((value_head & 0xff) != kMapValue ||
          !IsLongHolder(value_head >> 8, value_size) ||
          !IsPlainText({key, key_size}, readable_end_)) {
        break;
      }
      const uint64_t mask = kKeyParts.mask[key_size];
      orders[count] = KeyOrder(
          absl::little_endian::Load64(key) & mask,
          absl::little_endian::Load64(key + kKeyParts.last[key_size]) & mask);
      const auto copied = static_cast<uint32_t>(key_size + 11);
      item->start = p;
      item->size = copied;
      item->shift = ((value_head >> 24) & 0xff) == kListValue
                        ? kNoText | kIsList
                        : kNoText;
      item->below = value_size - 3;
      holders[holder_count] = count + below_depth;
      ++holder_count;
      ++item;
      ++count;
      p += 3 + size;
    }
    item_count_ = count;
    holder_count_ = holder_count;
    if (p == end || *p != kStructFields) break;
    if (count == capacity) {
      Grow();
      continue;
    }
    MapEntry entry;
    if (!ReadEntry(&p, end, readable_end_, &entry)) return false;
    orders_[item_count_] = entry.order;
    if (!AddItem(entry.start, entry.value(), entry.end(), depth - 2)) {
      return false;
    }
  }
  if (depth < 3 &&
      (holder_count_ != first_holder || (depth < 2 && item_count_ != first))) {
    return false;
  }
  if (!Order(first)) return false;
  return ABSL_PREDICT_TRUE(p == end) || AddUnknown(kStructType, p, end, depth);
}

bool StructWalk::GatherList(const char* p, const char* end, int depth) {
  const size_t first = item_count_;
  const char* const fast_end = FastEnd(p, end);
  while (p != end && *p == kListValues) {
    if (ABSL_PREDICT_FALSE(item_count_ == items_.size())) Grow();
    const size_t at = item_count_;
    ranked_[at] = static_cast<uint32_t>(at);
    if (p < fast_end && depth >= 2) {
      // A Struct or list.
      const uint64_t head = absl::little_endian::Load64(p);
      uint64_t size = (head >> 8) & 0xff;
      uint64_t tag = (head >> 16) & 0xff;
      uint32_t copied = 0;
      if (size < 0x80) {
        if (kShapes.of[tag].holds != 0 && (head >> 24 & 0xff) == size - 2 &&
            size > 2) {
          copied = 4;
          size -= 2;
        }
      } else {
        size = (size & 0x7f) | ((head >> 9) & 0x3f80);
        tag = (head >> 24) & 0xff;
        if (size >= kLeastLong && IsLongHolder(head >> 8, size)) {
          copied = 6;
          size -= 3;
        }
      }
      if (copied != 0 && size <= static_cast<size_t>(end - p) - copied) {
        items_[at] = {p, copied,
                      tag == kListValue ? kNoText | kIsList : kNoText, size};
        holders_[holder_count_++] = Pair(at, depth - 2);
        ++item_count_;
        p += copied + size;
        continue;
      }
    }
    const char* const start = p++;
    uint32_t size;
    if (depth < 1 || !ReadLength(&p, end, &size)) return false;
    if (!AddItem(start, p, p + size, depth - 1)) return false;
    p += size;
    // What holds nothing is copied together.
    if (at != first && items_[at].below == 0 && items_[at - 1].below == 0) {
      Item& last = items_[at - 1];
      last.size = static_cast<uint32_t>(p - last.start) | kOdd;
      item_count_ = at;
    }
  }
  return ABSL_PREDICT_TRUE(p == end) ||
         AddUnknown(kListValueType, p, end, depth);
}

bool StructWalk::AddItem(const char* start, const char* p, const char* end,
                         int depth) {
  Item& item = items_[item_count_];
  item.start = start;
  item.size = static_cast<uint32_t>(end - start);
  item.shift = kNoText;
  item.below = 0;
  const char* known_end = p + 1;
  uint32_t size;
  int32_t number;
  switch (p == end ? '\0' : *p) {
    case kNullValue:
      if (!ReadPlainEnum(&known_end, end, &number)) return false;
      break;
    case kNumberValue:
      if (end - known_end < 8) return false;
      known_end += 8;
      break;
    case kStringValue:
      if (!ReadLength(&known_end, end, &size) ||
          !IsPlainText({known_end, size}, readable_end_)) {
        return false;
      }
      known_end += size;
      break;
    case kBoolValue:
      if (known_end == end || Byte(known_end) > 1) return false;
      ++known_end;
      break;
    case kStructValue:
    case kListValue:
      if (!ReadLength(&known_end, end, &size) || depth < 1) return false;
      if (size != 0) {
        item.size = static_cast<uint32_t>(known_end - start);
        item.below = size;
        if (*p == kListValue) item.shift |= kIsList;
        holders_[holder_count_++] = Pair(item_count_, depth - 1);
        known_end += size;
        if (known_end != end) {
          item.shift |= kSplit;
          item.size |= kOdd;
        }
      }
      break;
    default:
      known_end = p;
      break;
  }
  if (item.size > 64 || readable_end_ - start < 64) item.size |= kOdd;
  ++item_count_;
  return ABSL_PREDICT_TRUE(known_end == end) ||
         SkipUnknown(kValueType, known_end, end, depth);
}

bool StructWalk::AddUnknown(const MessageType& type, const char* p,
                            const char* end, int depth) {
  if (item_count_ == items_.size()) Grow();
  // Behind all others.
  ranked_[item_count_] = static_cast<uint32_t>(item_count_);
  items_[item_count_++] = {p, static_cast<uint32_t>(end - p) | kOdd, kNoText,
                           0};
  return SkipUnknown(type, p, end, depth);
}

// Fills ranked_ for the items from `first` on. False: a key comes twice.
inline bool StructWalk::Order(size_t first) {
#if defined(__x86_64__)
  const size_t count = item_count_ - first;
  int32_t* const orders = orders_.data() + first;
  uint32_t* const ranked = ranked_.data() + first;
  // The last four are filled up; these all have the rank behind the last.
  orders[count] = orders[count + 1] = orders[count + 2] = 0x7fffffff;
  const __m128i none = _mm_setzero_si128();
  if (ABSL_PREDICT_TRUE(count <= 4)) {
    const __m128i own = Load4(orders);
    const __m128i ranks = _mm_sub_epi32(none, Above4(own, own));
    Place4(ranks, first, ranked);
    // Unless two are equal, each rank was there once.
    if (ABSL_PREDICT_TRUE(Sum4(ranks) == kRankSums[count])) return true;
    return OrderByKeys(first);
  }
  if (ABSL_PREDICT_TRUE(count <= kMostRanked)) {
    const size_t filled = (count + 3) & ~size_t{3};
    __m128i sums = none;
    for (size_t i = 0; i < filled; i += 4) {
      const __m128i own = Load4(orders + i);
      __m128i ranks = none;
      for (size_t j = 0; j < filled; j += 4) {
        ranks = _mm_sub_epi32(ranks, Above4(own, Load4(orders + j)));
      }
      Place4(ranks, first + i, ranked);
      sums = _mm_add_epi32(sums, ranks);
    }
    if (ABSL_PREDICT_TRUE(Sum4(sums) ==
                          count * (count - 1) / 2 + (filled - count) * count)) {
      return true;
    }
  }
#endif
  return OrderByKeys(first);
}

bool StructWalk::OrderByKeys(size_t first) {
  const auto key = [this](uint32_t i) {
    MapEntry entry;
    const char* p = items_[i].start;
    ReadEntry(&p, readable_end_, readable_end_, &entry);
    return entry.key();
  };
  const auto begin = ranked_.begin() + static_cast<ptrdiff_t>(first);
  const auto end = ranked_.begin() + static_cast<ptrdiff_t>(item_count_);
  std::iota(begin, end, static_cast<uint32_t>(first));
  std::sort(begin, end, [&](uint32_t a, uint32_t b) {
    if (orders_[a] != orders_[b]) return orders_[a] < orders_[b];
    return key(a) < key(b);
  });
  return std::adjacent_find(begin, end, [&](uint32_t a, uint32_t b) {
           return orders_[a] == orders_[b] && key(a) == key(b);
         }) == end;
}

template <typename Copy>
__attribute__((always_inline)) inline bool StructWalk::CopyItemsBy(Copy copy) {
  const Item* const items = items_.data();
  const uint32_t* const ranked = ranked_.data();
  uint64_t* const sequences = sequences_.data();
  size_t sequence_count = 1;
  char* out = out_;
  for (size_t i = 0; i < sequence_count; ++i) {
    const uint64_t sequence = sequences[i];
    const uint32_t* at = ranked + static_cast<uint32_t>(sequence);
    const uint32_t* const end = at + (sequence >> 32);
    for (; at != end; ++at) {
      const Item& item = items[*at];
      sequences[sequence_count] = item.below;
      sequence_count += (item.below >> 32) != 0;
      if (ABSL_PREDICT_TRUE(item.size <= 64)) {
        const uint64_t high = copy(item.start, out);
        if (ABSL_PREDICT_TRUE((high << (item.shift & 63)) == 0)) {
          out += item.size;
          continue;
        }
      }
      out = CopyOdd(item, out);
      if (out == nullptr) return false;
    }
  }
  out_ = out;
  return true;
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) bool StructWalk::CopyItemsAvx2() {
  return CopyItemsBy(Avx2Copy());
}

__attribute__((target("avx512bw"))) bool StructWalk::CopyItemsAvx512() {
  return CopyItemsBy(Avx512Copy());
}
#endif

bool StructWalk::CopyItems() {
#if defined(__x86_64__)
  if (kHasAvx512) return CopyItemsAvx512();
  if (kHasAvx2) return CopyItemsAvx2();
#endif
  return CopyItemsBy(Copy64);
}

char* StructWalk::CopyOdd(const Item& item, char* out) const {
  const uint32_t size = item.size & ~kOdd;
  if ((item.shift & kChecked) == 0) {
    // An entry with lengths of one byte each.
    const uint32_t key_size = Byte(item.start + 3);
    const char* const value = item.start + 4 + key_size + 2;
    if (!IsPlainText({item.start + 4, key_size}, readable_end_) ||
        (*value == kStringValue &&
         !IsPlainText({value + 2, Byte(value + 1)}, readable_end_))) {
      return nullptr;
    }
  }
  CopyLoosely(item.start, size, readable_end_, out);
  out += size;
  if ((item.shift & kSplit) != 0) {
    // The message that it holds has its length right before it.
    const char* const contents = item.start + size;
    const char* p = item.start + 1;
    uint32_t rest = 0;
    ReadLength(&p, readable_end_, &rest);
    const char* const end = p + rest;
    const char* length = contents - 1;
    while (Byte(length - 1) >= 0x80) --length;
    ReadLength(&length, end, &rest);
    const char* const unknown = contents + rest;
    CopyLoosely(unknown, end - unknown, readable_end_, out);
    out += end - unknown;
  }
  return out;
}

}  // namespace fncache::cache
