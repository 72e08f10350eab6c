// SPDX-License-Identifier: Apache-2.0
// It is one thing: the steps of one walk share tables and a queue, and are
// inlined into each other for speed.
#include "cache/key/struct_walk.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "absl/base/internal/endian.h"
#include "absl/base/optimization.h"
#include "absl/container/inlined_vector.h"
#include "cache/key/drift_marks.h"
#include "cache/key/level_lengths.h"
#include "cache/key/mask.h"
#include "cache/key/plain_wire.h"
#include "cache/key/walk_machine.h"
#include "cache/wire/wire.h"

namespace fncache::cache::key {
namespace {

// Buffers larger than that do not outlive a large message.
constexpr size_t kKeptItems = 1 << 15;
constexpr size_t kFirstHolders = 1024;

// An entry is read up to this many bytes before its end is known: tags,
// lengths, a key of 127 bytes and 8 bytes. At most as many bytes of it are
// copied.
constexpr ptrdiff_t kWindow = 192;

// Until its Struct is in order an entry is one word, so that it can be put in
// order in registers and little has to be stored and found again. That is the
// `what` of an item, but for two things: above kOrderAt it has the upper bits
// of its key's order, and instead of the depth, which is the same for all
// entries of a Struct, how far from the Struct's start the entry begins.
constexpr int kOrderAt = 47;
constexpr uint64_t kOrderBits = ~uint64_t{0} << kOrderAt;
constexpr uint64_t kMostOffset = 0xffff;
// The size of what it holds has two bytes on the wire at most.
constexpr uint64_t kMostContents = 0x3fff;

}  // namespace

// Tables by single bytes of a map entry of less than 128 bytes. They are in one
// struct, so that one register addresses them all.
//
// An entry's value begins with four bytes: the entry's tag of the value, its
// size, the Value's tag and one byte more. If that byte is a length, it follows
// from the size, and the size follows from those of the entry and its key.
// `sizes` has the expected values of these two, and flags above the four bytes.
// The exclusive or of `sizes` and the four bytes must equal `fixed` in the bits
// of `mask`.
struct StructWalk::Tables {
  // By the size of a key: a mask for 8 bytes from its start on that leaves
  // those of the key, and where its last 8 bytes begin.
  uint64_t key_mask[128] = {};
  uint8_t key_last[128] = {};
  // An item's `what` is the sum of these: by the size of its key; by its
  // Value's tag; and by that for each byte of the difference of sizes.
  uint64_t key_what[128] = {};
  uint64_t what[256] = {};
  uint64_t each[256] = {};
  // By the size of an entry, less its tag and length, less that of its key.
  uint64_t sizes[256] = {};
  // By the Value's tag.
  uint64_t mask[256] = {};
  uint64_t fixed[256] = {};
  // Constants, since a register for each would be one too many.
  uint64_t spread = kKeySpread;
  uint64_t order_bits = kOrderBits;
  uint64_t held_bits = kMostContents << kContentsAt | kIsList;
  uint64_t least_held = uint64_t{1} << kContentsAt;

  constexpr Tables() {
    for (size_t i = 0; i < 128; ++i) {
      key_mask[i] = i < 8 ? (uint64_t{1} << (8 * i)) - 1 : ~uint64_t{0};
      key_last[i] = static_cast<uint8_t>(i < 8 ? 0 : i - 8);
      key_what[i] = kText * i;
    }
    for (size_t i = 0; i < 256; ++i) {
      // Six bytes of the rest of the entry precede the contents of the value.
      // With fewer bytes there is no value.
      const uint64_t rest = i - kHeads;
      sizes[i] = i < kHeads || i >= 128
                     ? kNever
                     : rest << 32 | rest << 24 | (rest + 2) << 8;
      fixed[i] = 1;  // which is never so
    }
    Fixed(kNullValue, 2, 0x80, 0);
    Fixed(kNumberValue, 9, 0, 8);  // which are not text
    Fixed(kBoolValue, 2, 0xfe, 0);
    Long(kStringValue, kText, 0);
    // Only their heads are copied; what they hold follows later.
    Long(kStructValue, uint64_t{1} << kContentsAt, 0);
    Long(kListValue, uint64_t{1} << kContentsAt, kIsList);
  }

 private:
  static constexpr uint64_t kNever = uint64_t{1} << 63;
  // Tags and lengths of key, value and what that holds.
  static constexpr uint64_t kHeads = 6;
  // Bytes that are copied, and have to be ASCII.
  static constexpr uint64_t kText =
      (uint64_t{1} << kCopiedAt) + (uint64_t{1} << kTextAt);

  // `never` are the bits of the byte behind the tag that are never set.
  constexpr void Fixed(char tag, uint64_t size, uint64_t never,
                       uint64_t no_text) {
    const uint64_t rest = size - 2;
    Of(tag, uint64_t{0xffffffff00ffffff} | never << 24, rest,
       (kHeads + 2 + rest) * kText - (no_text << kTextAt), 0);
  }
  constexpr void Long(char tag, uint64_t each_byte, uint64_t flags) {
    Of(tag, kNever | 0xffffffff, 0,
       (kHeads + 2) * kText - kHeads * each_byte + flags, each_byte);
  }
  constexpr void Of(char tag, uint64_t bits, uint64_t rest, uint64_t all,
                    uint64_t each_byte) {
    const auto at = static_cast<uint8_t>(tag);
    mask[at] = bits;
    fixed[at] = rest << 32 | static_cast<uint64_t>(at) << 16 | kMapValue;
    what[at] = all;
    each[at] = each_byte;
  }
};

namespace {

inline bool IsHolder(uint64_t tag) {
  return tag == kStructValue || tag == kListValue;
}

// A length of 128 to 16383 as it is written, in two bytes.
inline uint64_t TwoBytes(uint64_t size) {
  return (size & 0x7f) | 0x80 | size >> 7 << 8;
}

// Whether `head` is that of a Value of `size` bytes (131 or more, in two), with
// a Struct or ListValue in it and nothing else: the size, the Value's tag, and
// the size of what is in it.
inline bool IsLongHolder(uint64_t head, uint64_t size) {
  return (head & 0xffff00ffff) == (TwoBytes(size) | TwoBytes(size - 3) << 24) &&
         IsHolder((head >> 16) & 0xff);
}
// Whether the second byte of this is a length of one byte.
inline bool IsShort(uint64_t head) { return (head & 0x8000) == 0; }
// The same as IsLongHolder, of a Value whose size is in one byte (IsShort).
inline bool IsShortHolder(uint64_t head, uint64_t size) {
  return (head & 0xff00ff) == (size | (size - 2) << 16) &&
         IsHolder((head >> 8) & 0xff);
}
// The least size of a Value that IsLongHolder is for, and the most.
constexpr uint64_t kLeastLong = 131;
constexpr uint64_t kMostLong = kMostContents;

// Bytes up to this size are copied as one block.
constexpr uint64_t kMostShort = 63;
// In an item's `what`: copied are more.
constexpr uint64_t kLong = 0xc0000000;
// How many bytes have to be ASCII, and how many are copied.
constexpr uint64_t kSizes = 0xffff0000;

// The words of a few entries are put in order by sorting networks, as minima
// and maxima in registers: of each two, the less at the first of these places.
struct Exchange {
  size_t first;
  size_t second;
};
// For each number of words as few exchanges as there can be (Knuth, The Art of
// Computer Programming, 3, 5.3.4).
template <size_t kCount>
constexpr Exchange kNetwork[1] = {};
template <>
constexpr Exchange kNetwork<2>[] = {{0, 1}};
template <>
constexpr Exchange kNetwork<3>[] = {{0, 1}, {1, 2}, {0, 1}};
template <>
constexpr Exchange kNetwork<4>[] = {{0, 1}, {2, 3}, {0, 2}, {1, 3}, {1, 2}};
template <>
constexpr Exchange kNetwork<5>[] = {{0, 1}, {2, 3}, {0, 2}, {1, 3}, {1, 2},
                                    {3, 4}, {2, 3}, {1, 2}, {0, 1}};
template <>
constexpr Exchange kNetwork<6>[] = {{0, 5}, {1, 3}, {2, 4}, {1, 2},
                                    {3, 4}, {0, 3}, {2, 5}, {0, 1},
                                    {2, 3}, {4, 5}, {1, 2}, {3, 4}};
template <>
constexpr Exchange kNetwork<7>[] = {
    {0, 6}, {2, 3}, {4, 5}, {0, 2}, {1, 4}, {3, 6}, {0, 1}, {2, 5},
    {3, 4}, {1, 2}, {4, 6}, {2, 3}, {4, 5}, {1, 2}, {3, 4}, {5, 6}};
template <>
constexpr Exchange kNetwork<8>[] = {{0, 2}, {1, 3}, {4, 6}, {5, 7}, {0, 4},
                                    {1, 5}, {2, 6}, {3, 7}, {0, 1}, {2, 3},
                                    {4, 5}, {6, 7}, {2, 4}, {3, 5}, {1, 4},
                                    {3, 6}, {1, 2}, {3, 4}, {5, 6}};
template <>
constexpr Exchange kNetwork<9>[] = {
    {0, 3}, {1, 7}, {2, 5}, {4, 8}, {0, 7}, {2, 4}, {3, 8}, {5, 6}, {0, 2},
    {1, 3}, {4, 5}, {7, 8}, {1, 4}, {3, 6}, {5, 7}, {0, 1}, {2, 4}, {3, 5},
    {6, 8}, {2, 3}, {4, 5}, {6, 7}, {1, 2}, {3, 4}, {5, 6}};

constexpr void Do(const Exchange& exchange, int64_t* words) {
  const int64_t a = words[exchange.first];
  const int64_t b = words[exchange.second];
  words[exchange.first] = b < a ? b : a;
  words[exchange.second] = b < a ? a : b;
}

// Whether this network puts all words in order. It does if it does so with all
// that are 0 or 1 (the zero-one principle; ibid.).
template <size_t kCount>
constexpr bool Orders() {
  for (unsigned bits = 0; bits < 1u << kCount; ++bits) {
    int64_t words[kCount] = {};
    for (size_t i = 0; i < kCount; ++i) words[i] = bits >> i & 1;
    for (const Exchange& exchange : kNetwork<kCount>) Do(exchange, words);
    for (size_t i = 1; i < kCount; ++i) {
      if (words[i] < words[i - 1]) return false;
    }
  }
  return true;
}
static_assert(Orders<2>() && Orders<3>() && Orders<4>() && Orders<5>() &&
              Orders<6>() && Orders<7>() && Orders<8>() && Orders<9>());

inline bool Differ(int64_t a, int64_t b) {
  return static_cast<uint64_t>(a ^ b) >= uint64_t{1} << kOrderAt;
}

enum class Added : uint8_t {
  kAll,
  // Nothing: two of the keys may have one order.
  kNone,
  // One cannot be.
  kInvalid,
};

template <size_t kCount, typename Add, size_t... kExchanges, size_t... kIndices>
inline Added AddInOrder(const int64_t* from, const Add& add,
                        std::index_sequence<kExchanges...> /*exchanges*/,
                        std::index_sequence<kIndices...> /*all but the last*/) {
  int64_t words[] = {from[kIndices]..., from[kCount - 1]};
  (Do(kNetwork<kCount>[kExchanges], words), ...);
  if (!(Differ(words[kIndices], words[kIndices + 1]) && ...)) {
    return Added::kNone;
  }
  return (add(words[kIndices]) && ...) && add(words[kCount - 1])
             ? Added::kAll
             : Added::kInvalid;
}
// Adds a few words by their order, with instructions for just as many.
template <size_t kCount, typename Add>
inline Added AddFew(const int64_t* words, const Add& add) {
  return AddInOrder<kCount>(
      words, add, std::make_index_sequence<std::size(kNetwork<kCount>)>(),
      std::make_index_sequence<kCount - 1>());
}

}  // namespace

constexpr StructWalk::Tables StructWalk::kTables;

StructWalk::StructWalk(Machine machine)
    : machine_(std::min(machine, ThisMachine())) {
  ReserveHolders(kFirstHolders);
}

void StructWalk::ReserveHolders(size_t holders) {
  const size_t size = std::max(holders, 2 * holders_.size());
  holder_starts_.resize(size);
  holders_.resize(size);
  led_.resize(size);
}

void StructWalk::Shrink() {
  if (items_.capacity() <= kKeptItems && holders_.size() <= kKeptItems) return;
  *this = StructWalk(machine_);
}

char* StructWalk::Run(Kind kind, absl::string_view bytes, int depth,
                      const char* readable_end, size_t* growth, char* out,
                      const MaskNode* node) {
  static_assert(kMaxPlainDepth <= kMostDepth, "it has to fit in an item");
  const bool tuned = node != nullptr && drifts_ != nullptr;
  if (bytes.empty() && !tuned) return out;
  // The mark of its end may be one byte more. So may that of a list that is
  // written apart.
  if (tuned && *growth < 2) return nullptr;
  if (tuned) --*growth;
  readable_end_ = readable_end;
  // None is where all is within the window.
  safe_end_ = readable_end - bytes.data() > kWindow ? readable_end - kWindow
                                                    : bytes.data();
  out_ = out;
  holder_starts_[0] = bytes.data();
  holders_[0] = uint64_t{bytes.size()} << kContentsAt | Depth(depth) |
                (kind == Kind::kList ? kIsList : 0);
  holder_count_ = 1;
  growth_ = node == nullptr ? *growth : 0;
  grown_.clear();
  char* const written = WalkOnThisMachine(0, node);
  if (ABSL_PREDICT_TRUE(grown_.empty()) || written == nullptr) return written;
  char* const corrected = CorrectLengths(out);
  *growth = growth_;
  return corrected;
}

char* StructWalk::WalkOnThisMachine(size_t begin, const MaskNode* node) {
  if (node != nullptr && drifts_ != nullptr) {
    led_[begin] = {node, {}};
    holders_[begin] |= kIsLed;
    node = nullptr;
  }
#if defined(__x86_64__)
  if (machine_ == Machine::kAvx2) {
    return node == nullptr ? WalkWithAvx2(begin)
                           : WalkMaskedWithAvx2(begin, node);
  }
#endif
  return node == nullptr ? WalkPlainly(begin) : WalkMaskedPlainly(begin, node);
}

bool StructWalk::AddLed(size_t holder) {
#if defined(__x86_64__)
  if (machine_ == Machine::kAvx2) return WalkLedWithAvx2(holder) != nullptr;
#endif
  return WalkLedPlainly(holder) != nullptr;
}

char* StructWalk::CorrectLengths(char* begin) {
  absl::InlinedVector<Level, 32> levels(holder_count_);
  absl::InlinedVector<uint64_t, 32> by(holder_count_);
  for (const Grown& grown : grown_) by[grown.holder] = grown.by;
  // They lie one behind the other, each without those that are in it.
  char* contents = begin;
  for (size_t i = 0; i < holder_count_; ++i) {
    const size_t first_inner = FirstInner(holders_[i]);
    const size_t inner_end =
        i + 1 < holder_count_ ? FirstInner(holders_[i + 1]) : holder_count_;
    levels[i] = {contents, first_inner, (holders_[i] & kIsList) != 0};
    contents += (holders_[i] >> kContentsAt) + by[i];
    for (size_t inner = first_inner; inner < inner_end; ++inner) {
      contents -= holders_[inner] >> kContentsAt;
    }
  }
  char* const end = WidenLengths(levels, growth_, absl::MakeSpan(by), out_);
  if (end != nullptr) growth_ -= end - out_;
  return end;
}

// All that is called often is compiled anew into each of these.
__attribute__((flatten)) char* StructWalk::WalkPlainly(size_t begin) {
  return Walk<AnyMachine, Mode::kWhole>(begin, nullptr);
}
__attribute__((flatten)) char* StructWalk::WalkMaskedPlainly(
    size_t begin, const MaskNode* node) {
  return Walk<AnyMachine, Mode::kMasked>(begin, node);
}
__attribute__((flatten)) char* StructWalk::WalkLedPlainly(size_t at) {
  return Walk<AnyMachine, Mode::kLed>(at, nullptr);
}
#if defined(__x86_64__)
FNCACHE_AVX2 __attribute__((flatten)) char* StructWalk::WalkWithAvx2(
    size_t begin) {
  return Walk<Avx2Machine, Mode::kWhole>(begin, nullptr);
}
FNCACHE_AVX2 __attribute__((flatten)) char* StructWalk::WalkMaskedWithAvx2(
    size_t begin, const MaskNode* node) {
  return Walk<Avx2Machine, Mode::kMasked>(begin, node);
}
FNCACHE_AVX2 __attribute__((flatten)) char* StructWalk::WalkLedWithAvx2(
    size_t at) {
  return Walk<Avx2Machine, Mode::kLed>(at, nullptr);
}
#endif

template <typename Instructions, StructWalk::Mode kMode>
__attribute__((always_inline)) inline char* StructWalk::Walk(
    size_t begin, const MaskNode* node) {
  constexpr bool kMasked = kMode == Mode::kMasked;
  constexpr bool kInLed = kMode == Mode::kLed;
  // The entries of one Struct; and where they are many, their orders alone.
  int64_t words[kMostRanked];
  int64_t orders[kMostRanked + kRankPadding];
  uint32_t ranked[kMostRanked + kRankPadding];
  const Tables& tables = *tables_;
  const char* const safe_end = safe_end_;
  // Copied here, so that what is written need not be looked for in them.
  const char** holder_starts = holder_starts_.data();
  uint64_t* holders = holders_.data();
  Led* led = led_.data();
  // Below this count, the Structs and lists of a Struct of usual size fit.
  size_t room = holders_.size() - kMostRanked;
  size_t holder_count = holder_count_;
  char* out = out_;
  // Around what is rare, which works on the members.
  const auto leave = [&] {
    out_ = out;
    holder_count_ = holder_count;
  };
  const auto enter = [&] {
    holder_starts = holder_starts_.data();
    holders = holders_.data();
    led = led_.data();
    room = holders_.size() - kMostRanked;
    holder_count = holder_count_;
    out = out_;
  };

  for (size_t at = begin;
       at < (kMode == Mode::kWhole ? holder_count : begin + 1); ++at) {
    const char* const start = holder_starts[at];
    const uint64_t holder = holders[at];
    const char* const end = start + (holder >> kContentsAt);
    const auto depth = [holder] {
      return static_cast<int>(holder) & kMostDepth;
    };
    const char* p = start;
    if (kMode == Mode::kWhole && ABSL_PREDICT_FALSE((holder & kIsLed) != 0)) {
      leave();
      if (!AddLed(at)) return nullptr;
      enter();
      continue;
    }
    // The upper half stays.
    absl::little_endian::Store32(&holders[at],
                                 static_cast<uint32_t>(holder_count));
    if (kMasked && (holder & kIsList) != 0) {
      leave();
      if (!AddMaskedElements(p, end, depth(), *node->element())) return nullptr;
      enter();
      continue;
    }
    if (kInLed) node = led[at].node;
    if ((holder & kIsList) != 0) {
      const MaskNode* const element = kInLed ? node->element() : nullptr;
      const absl::string_view key = kInLed ? led[at].key : absl::string_view();
      const uint64_t below = Depth(depth() - 2) | (kInLed ? kIsLed : 0);
      // A list: elements that are Structs and lists are read here.
      while (p < std::min(end, safe_end) && depth() >= 2) {
        const uint64_t head = absl::little_endian::Load64(p);
        uint64_t size = (head >> 8) & 0xff;
        uint64_t tag = (head >> 16) & 0xff;
        ptrdiff_t copied = 4;
        if (ABSL_PREDICT_TRUE(size < 0x80)) {
          size -= 2;
          if (!IsHolder(tag) || (head >> 24 & 0xff) != size ||
              static_cast<int64_t>(size) <= 0) {
            break;
          }
        } else {
          size = (size & 0x7f) | ((head >> 9) & 0x3f80);
          tag = (head >> 24) & 0xff;
          copied = 6;
          if (size < kLeastLong || !IsLongHolder(head >> 8, size)) break;
          size -= 3;
        }
        const char* const contents = p + copied;
        if (static_cast<uint8_t>(head) != kListValues ||
            static_cast<ptrdiff_t>(size) > end - contents ||
            holder_count > room) {
          break;
        }
        if (kInLed) {
          if (element->masked || tag == kListValue) break;
          absl::little_endian::Store32(
              out, static_cast<uint32_t>(kListValues | 1 << 8 | tag << 16));
          out += 3;
          led[holder_count] = {element, key};
        } else {
          absl::little_endian::Store64(out, head);
          out += copied;
        }
        holder_starts[holder_count] = contents;
        holders[holder_count] =
            size << kContentsAt | below | (tag == kListValue ? kIsList : 0);
        ++holder_count;
        p = contents + size;
      }
      if (p != end) {
        leave();
        if (!AddRestOfList(p, end, depth(), element, key)) return nullptr;
        enter();
      }
      if (kInLed) *out++ = kEndMark;
      continue;
    }

    // The nesting that is allowed below the contents of an entry; negative if
    // such contents are not allowed.
    const int64_t below_depth =
        static_cast<int64_t>(holder & Depth(kMostDepth)) -
        static_cast<int64_t>(Depth(3));
    // The upper bits of the order of a key of less than 128 bytes.
    const auto order_of = [&](const char* key, uint64_t key_size) {
      const uint64_t mask = tables.key_mask[key_size];
      return KeyProduct(
                 absl::little_endian::Load64(key) & mask,
                 absl::little_endian::Load64(key + tables.key_last[key_size]) &
                     mask,
                 tables.spread) &
             tables.order_bits;
    };
    // Reads the entry at `p`, if it is of the usual form; it may end behind the
    // Struct.
    const auto read = [&](int64_t* word) {
      if (ABSL_PREDICT_TRUE((absl::little_endian::Load32(p) & 0x80ff80ff) ==
                            (kStructFields | kMapKey << 16))) {
        // Lengths of one byte each.
        const uint64_t size = Byte(p + 1);
        const uint64_t key_size = Byte(p + 3);
        const char* const entry = p;
        const char* const key = entry + 4;
        const char* const value = key + key_size;
        p += 2 + size;
        const uint64_t difference = (size - key_size) & 0xff;
        const uint64_t tag = Byte(value + 2);
        const uint64_t head = absl::little_endian::Load32(value);
        if (ABSL_PREDICT_FALSE(((head ^ tables.sizes[difference]) &
                                tables.mask[tag]) != tables.fixed[tag])) {
          return false;
        }
        *word = static_cast<int64_t>(
            tables.each[tag] * difference + tables.what[tag] +
            tables.key_what[key_size] + static_cast<uint64_t>(entry - start) +
            order_of(key, key_size));
        return true;
      }
      // A large Struct or list: lengths of two bytes, but the key's.
      const uint64_t head = absl::little_endian::Load64(p);
      const uint64_t size = ((head >> 8) & 0x7f) | ((head >> 9) & 0x3f80);
      const uint64_t key_size = (head >> 32) & 0xff;
      const char* const key = p + 5;
      if ((head & 0x80ff8080ff) !=
              (uint64_t{kStructFields} | 0x8000 | uint64_t{kMapKey} << 24) ||
          key_size > kMostShort - 11) {
        return false;
      }
      const uint64_t value_head = absl::little_endian::Load64(key + key_size);
      const uint64_t tag = IsShort(value_head) ? value_head >> 16 & 0xff
                                               : value_head >> 24 & 0xff;
      const char* const entry = p;
      const auto hold = [&](uint64_t held, uint64_t heads) {
        *word = static_cast<int64_t>(order_of(key, key_size) |
                                     (held & kMostContents) << kContentsAt |
                                     static_cast<uint64_t>(entry - start) |
                                     (key_size + heads) << kCopiedAt |
                                     (tag == kListValue ? kIsList : 0));
      };
      p += 3 + size;
      bool is_holder;
      if (IsShort(value_head)) {
        // The entry is just long enough for such a length, and its value not.
        const uint64_t value_size = size - 4 - key_size;
        hold(value_size - 2, 9);
        is_holder = size >= 0x80 && IsShortHolder(value_head >> 8, value_size);
      } else {
        const uint64_t value_size = size - 5 - key_size;
        hold(value_size - 3, 11);
        is_holder = value_size - kLeastLong <= kMostLong &&
                    IsLongHolder(value_head >> 8, value_size);
      }
      // The bytes are copied for the check alone, and will be overwritten.
      return (value_head & 0xff) == kMapValue && is_holder &&
             Instructions::Low(Instructions::Copy(key, out), key_size) == 0;
    };
    // Copies it. The messages in it join the queue.
    const auto copy = [&](int64_t entry) {
      const auto word = static_cast<uint64_t>(entry);
      const char* const from = start + (word & kMostOffset);
      const uint64_t held =
          (word & tables.held_bits) | static_cast<uint64_t>(below_depth);
      const uint64_t sizes = word >> kTextAt;
      if (ABSL_PREDICT_TRUE((sizes & (kLong >> kTextAt)) == 0) &&
          ABSL_PREDICT_TRUE(
              Instructions::Low(Instructions::Copy(from, out), sizes) == 0)) {
        const uint64_t copied = (sizes >> (kCopiedAt - kTextAt)) & 0xff;
        out += copied;
        holder_starts[holder_count] = from + copied;
        holders[holder_count] = held;
        holder_count += held >= tables.least_held ? 1 : 0;
        return true;
      }
      leave();
      const Item item = {from, held | (word & kSizes)};
      if (!(kMasked ? AddTwoBlocks(item) : AddOdd(item, depth() - 2))) {
        return false;
      }
      enter();
      return true;
    };
    const auto key_at = [](const char* from) {
      const char* const key = from + (Byte(from + 1) < 0x80 ? 4 : 5);
      return absl::string_view(key, Byte(key - 1));
    };
    // The node that leads to the entry with this key; null: nothing does.
    const auto node_of = [&](int64_t entry, absl::string_view key) {
      return node->MayHave(static_cast<uint64_t>(entry)) ? node->Find(key)
                                                         : nullptr;
    };
    // Copies it with all that it holds, unless it is masked.
    const auto copy_masked = [&](int64_t entry) {
      const char* const from =
          start + (static_cast<uint64_t>(entry) & kMostOffset);
      const absl::string_view key = key_at(from);
      const MaskNode* const below = node_of(entry, key);
      char* const head = out;
      const size_t inner = holder_count;
      if (!copy(entry)) return false;
      if (holder_count != inner) {
        holder_count = inner;
        const uint64_t what = holders[inner];
        const char* const contents = out;
        leave();
        if (!AddInner(holder_starts[inner], what,
                      below != nullptr && below->masked ? nullptr : below)) {
          return false;
        }
        if (out_ - contents != static_cast<ptrdiff_t>(what >> kContentsAt)) {
          ShortenEntry(head, key, (what & kIsList) != 0, contents);
        }
        enter();
      }
      if (below != nullptr && below->LeavesOut()) out = head;
      return true;
    };
    // Copies it as a path says that leads to it.
    const auto copy_led = [&](int64_t entry) {
      const char* const from =
          start + (static_cast<uint64_t>(entry) & kMostOffset);
      const absl::string_view key = key_at(from);
      const MaskNode* const below = node_of(entry, key);
      if (below == nullptr) return copy(entry);
      char* const head = out;
      const size_t inner = holder_count;
      if (!copy(entry)) return false;
      if (holder_count != inner && !below->masked &&
          ((holders[inner] & kIsList) == 0 || IsLedList(*below, key))) {
        // A head as WriteLedHead would write it, for a key of less than 128
        // bytes. If the one that was copied has longer lengths, the key is
        // shorter than one block.
        if (key.data() != from + 4)
          Instructions::Copy(key.data() - 2, head + 2);
        char* const value = head + 4 + key.size();
        head[1] = static_cast<char>(key.size() + 5);
        value[0] = kMapValue;
        value[1] = 1;
        value[2] = (holders[inner] & kIsList) != 0 ? kListValue : kStructValue;
        out = value + 3;
        holders[inner] |= kIsLed;
        led[inner] = {below, key};
        return true;
      }
      // The tag of its Value, which is neither a large Struct nor a list.
      if (holder_count == inner && !below->masked &&
          !IsHolder(Byte(key.data() + key.size() + 2))) {
        if (MayBeDrift(key)) out = MarkEntry(*below, head, out, drifts_);
        return true;
      }
      leave();
      if (!LeadEntry(*below, from, head, inner)) return false;
      enter();
      return true;
    };
    // They wait until all are in order: with copy_led in each network the code
    // would be too large for the caches.
    size_t waiting = 0;
    const auto wait = [&](int64_t entry) {
      orders[waiting++] = entry;
      return true;
    };
    // Adds the first `count` words by their order.
    const auto add_all = [&](size_t count, const auto& add) {
      // For each small number of entries there are instructions of its own.
      switch (count) {
        case 1:
          return add(words[0]) ? Added::kAll : Added::kInvalid;
        case 2:
          return AddFew<2>(words, add);
        case 3:
          return AddFew<3>(words, add);
        case 4:
          return AddFew<4>(words, add);
        case 5:
          return AddFew<5>(words, add);
        case 6:
          return AddFew<6>(words, add);
        case 7:
          return AddFew<7>(words, add);
        case 8:
          return AddFew<8>(words, add);
        case 9:
          return AddFew<9>(words, add);
        default:
          for (size_t i = 0; i < count; ++i) {
            orders[i] = static_cast<int64_t>(static_cast<uint64_t>(words[i]) &
                                             kOrderBits);
          }
          if (!Instructions::Rank(orders, count, ranked)) return Added::kNone;
          for (size_t i = 0; i < count; ++i) {
            if (!add(words[ranked[i]])) return Added::kInvalid;
          }
          return Added::kAll;
      }
    };
    Added added = Added::kNone;
    do {
      if (ABSL_PREDICT_FALSE(
              end > safe_end || below_depth < 0 || (kInLed && p == end) ||
              holder >> kContentsAt > kMostOffset || holder_count > room)) {
        break;
      }
      int64_t* word = words;
      bool usual;
      do {
        usual = read(word);
        ++word;
      } while (ABSL_PREDICT_TRUE(usual) && p < end &&
               ABSL_PREDICT_TRUE(word != words + kMostRanked));
      if (ABSL_PREDICT_FALSE(!usual || p != end)) break;
      const size_t count = word - words;
      added =
          kMode == Mode::kWhole ? add_all(count, copy) : add_all(count, wait);
    } while (false);
    if (ABSL_PREDICT_FALSE(added != Added::kAll)) {
      if (kMasked || added == Added::kInvalid) return nullptr;
      leave();
      if (!AddStruct(at, start, end, depth(), node)) return nullptr;
      enter();
    }
    for (size_t i = 0; kMode != Mode::kWhole && i < waiting; ++i) {
      if (!(kMasked ? copy_masked(orders[i]) : copy_led(orders[i]))) {
        return nullptr;
      }
    }
    if (kInLed) *out++ = kEndMark;
  }
  leave();
  return out;
}

// Adds the Struct with this number, whose entries begin at `p`, of any form,
// size and place.
bool StructWalk::AddStruct(size_t holder, const char* p, const char* end,
                           int depth, const MaskNode* node) {
  // Lead may write other Structs before these entries are done.
  std::vector<MapEntry> items;
  items.swap(items_);
  items.clear();
  uint64_t grown = 0;
  while (p != end && *p == kStructFields) {
    MapEntry entry;
    if (!ReadEntry(&p, end, readable_end_, &entry) ||
        depth < (entry.has_value() ? 2 : 1)) {
      return false;
    }
    grown += entry.Growth();
    items.push_back(entry);
  }
  if (ABSL_PREDICT_FALSE(grown != 0)) {
    if (grown > growth_) return false;
    growth_ -= grown;
    grown_.push_back({holder, grown});
  }
  // Reserves capacity for the Struct after this one, too, which may be usual.
  if (items.size() + kMostRanked > holders_.size() - holder_count_) {
    ReserveHolders(holder_count_ + items.size() + kMostRanked);
  }
  if (!OrderEntries(items.data(), items.size())) return false;
  for (const MapEntry& entry : items) {
    char* const head = out_;
    const size_t inner = holder_count_;
    const char* start = entry.start;
    if (ABSL_PREDICT_FALSE(!entry.usual())) {
      out_ = WriteEntryHead(entry, readable_end_, out_);
      start = entry.value();
    }
    if (!AddValue(start, entry.value(), entry.value_end(), depth - 2)) {
      return false;
    }
    const MaskNode* const below =
        node == nullptr ? nullptr : node->Find(entry.key());
    if (below != nullptr &&
        !Lead(*below, entry.key(), /*in_list=*/false, entry.value(),
              entry.value_end(), head, inner)) {
      return false;
    }
  }
  items_.swap(items);
  return p == end || AddUnknown(wire::kStructType, p, end, depth);
}

// Adds the elements of a list from `p` on, of any form, size and place.
bool StructWalk::AddRestOfList(const char* p, const char* end, int depth,
                               const MaskNode* element, absl::string_view key) {
  while (p != end && *p == kListValues) {
    if (holder_count_ == holders_.size()) ReserveHolders(0);
    char* const head = out_;
    const size_t inner = holder_count_;
    const char* const start = p++;
    uint32_t size;
    if (depth < 1 || !ReadLength(&p, end, &size) ||
        !AddValue(start, p, p + size, depth - 1)) {
      return false;
    }
    if (element != nullptr &&
        !Lead(*element, key, /*in_list=*/true, p, p + size, head, inner)) {
      return false;
    }
    p += size;
  }
  return p == end || AddUnknown(wire::kListValueType, p, end, depth);
}

// Adds an entry that is read in the usual way, and is too long to be copied in
// one block or not ASCII.
bool StructWalk::AddOdd(const Item& item, int depth) {
  if (ABSL_PREDICT_TRUE(AddTwoBlocks(item))) return true;
  const char* p = item.start;
  MapEntry entry;
  return ReadEntry(&p, readable_end_, readable_end_, &entry) &&
         AddValue(entry.start, entry.value(), entry.value_end(), depth);
}

bool StructWalk::AddTwoBlocks(const Item& item) {
  const uint64_t text = (item.what >> kTextAt) & 0xff;
  const uint64_t copied = (item.what >> kCopiedAt) & 0xff;
  if (copied < 64 || copied >= 128) return false;
  const uint64_t low =
      AnyMachine::Low(AnyMachine::Copy(item.start, out_), text);
  const uint64_t high = AnyMachine::Copy(item.start + 64, out_ + 64);
  if (ABSL_PREDICT_FALSE(
          low != 0 || (text > 64 && AnyMachine::Low(high, text - 64) != 0))) {
    return false;
  }
  out_ += copied;
  holder_starts_[holder_count_] = item.start + copied;
  holders_[holder_count_] = item.what;
  holder_count_ += (item.what >> kContentsAt) != 0 ? 1 : 0;
  return true;
}

bool StructWalk::LeadEntry(const MaskNode& node, const char* entry, char* head,
                           size_t inner) {
  MapEntry read;
  return ReadEntry(&entry, readable_end_, readable_end_, &read) &&
         Lead(node, read.key(), /*in_list=*/false, read.value(),
              read.value_end(), head, inner);
}

bool StructWalk::Lead(const MaskNode& node, absl::string_view key, bool in_list,
                      const char* value, const char* value_end, char* head,
                      size_t inner) {
  const bool is_empty = holder_count_ == inner;
  const auto write_apart = [&](const MaskNode* below) {
    holder_count_ = inner;
    return is_empty || AddInner(holder_starts_[inner], holders_[inner], below);
  };
  if (node.LeavesOut()) {
    // Protobuf has to be able to read it all the same.
    if (!write_apart(nullptr)) return false;
    out_ = in_list ? WriteElementHead(0, head) : head;
    return true;
  }
  if (value == value_end || !IsHolder(Byte(value))) {
    out_ = in_list ? MarkElement(node, key, head, out_, drifts_)
                   : MarkEntry(node, head, out_, drifts_);
    return true;
  }
  const char tag = *value++;
  uint32_t size;
  if (!ReadLength(&value, value_end, &size)) return false;
  const char* const unknown = value + size;
  const auto write_head = [&](size_t value_size) {
    return in_list ? WriteElementHead(value_size, head)
                   : WriteLedHead(key, value_size, head);
  };
  const MaskNode* below = &node;
  if (tag == kListValue) {
    if (!in_list && IsDriftList(node, key)) {
      below =
          node.drifts == MaskNode::Drifts::kStatus ? node.managed.get() : &node;
      if (unknown == value_end) {
        // It is written apart, and then appended.
        char* const contents = out_;
        if (!write_apart(below)) return false;
        AppendDrift({node.section,
                     DriftType::kManagedFields,
                     key,
                     {contents, static_cast<size_t>(out_ - contents)}},
                    drifts_);
        out_ = WriteMark(DriftType::kManagedFields, write_head(kMarkSize));
        return true;
      }
    }
    if (below == nullptr || below->element() == nullptr) return true;
  }
  out_ = write_head(1 + (value_end - unknown));
  *out_++ = tag;
  Copy(unknown, value_end);
  if (is_empty) {
    holder_starts_[inner] = unknown;
    holders_[inner] = tag == kListValue ? kIsList : 0;
    holder_count_ = inner + 1;
  }
  holders_[inner] |= kIsLed;
  led_[inner] = {below, key};
  return true;
}

bool StructWalk::AddInner(const char* p, uint64_t what, const MaskNode* node) {
  // A mask that has a key where there is a list masks nothing.
  if (node != nullptr && (what & kIsList) != 0 && node->element() == nullptr) {
    node = nullptr;
  }
  const size_t inner = holder_count_;
  if (inner + 1 + kMostRanked > holders_.size()) ReserveHolders(0);
  holder_starts_[inner] = p;
  holders_[inner] = what;
  holder_count_ = inner + 1;
  if (WalkOnThisMachine(inner, node) == nullptr) return false;
  holder_count_ = inner;
  return true;
}

bool StructWalk::AddMaskedElements(const char* p, const char* end, int depth,
                                   const MaskNode& element) {
  // A masked element is emptied, which is rare.
  if (element.masked || depth < 2) return false;
  while (p != end) {
    const char* const start = p;
    uint32_t size;
    if (*p++ != kListValues || !ReadLength(&p, end, &size) || size == 0) {
      return false;
    }
    const char* const value_end = p + size;
    const auto tag = static_cast<uint64_t>(Byte(p));
    char* const head = out_;
    if (!IsHolder(tag)) {
      if (!AddValue(start, p, value_end, depth - 1)) return false;
      p = value_end;
      continue;
    }
    if (!ReadLength(&++p, value_end, &size) || p + size != value_end) {
      return false;
    }
    Copy(start, p);
    const char* const contents = out_;
    const bool is_list = tag == kListValue;
    if (size != 0 && !AddInner(p,
                               uint64_t{size} << kContentsAt |
                                   Depth(depth - 2) | (is_list ? kIsList : 0),
                               &element)) {
      return false;
    }
    if (out_ - contents != static_cast<ptrdiff_t>(size)) {
      ShortenElement(head, is_list, contents);
    }
    p = value_end;
  }
  return true;
}

void StructWalk::ShortenElement(char* head, bool is_list,
                                const char* contents) {
  FinishHead(head + 1, is_list, contents);
}

void StructWalk::ShortenEntry(char* head, absl::string_view key, bool is_list,
                              const char* contents) {
  const size_t size = out_ - contents;
  const size_t value_size = 1 + wire::VarintSize(size) + size;
  head = wire::WriteVarint(
      head + 1, 3 + key.size() + wire::VarintSize(value_size) + value_size);
  *head++ = kMapKey;
  *head++ = static_cast<char>(key.size());  // less than 128
  std::memcpy(head, key.data(), key.size());
  head += key.size();
  *head++ = kMapValue;
  FinishHead(head, is_list, contents);
}

void StructWalk::FinishHead(char* head, bool is_list, const char* contents) {
  const size_t size = out_ - contents;
  head = wire::WriteVarint(head, 1 + wire::VarintSize(size) + size);
  *head++ = is_list ? kListValue : kStructValue;
  head = wire::WriteVarint(head, size);
  if (head != contents) std::memmove(head, contents, size);
  out_ = head + size;
}

// Adds the Value from `p` to `end`, and before it what is between `start` and
// it.
bool StructWalk::AddValue(const char* start, const char* p, const char* end,
                          int depth) {
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
        Copy(start, known_end);
        holder_starts_[holder_count_] = known_end;
        holders_[holder_count_] = uint64_t{size} << kContentsAt |
                                  Depth(depth - 1) |
                                  (*p == kListValue ? kIsList : 0);
        ++holder_count_;
        start = known_end += size;
      }
      break;
    default:
      known_end = p;
      break;
  }
  Copy(start, end);
  return ABSL_PREDICT_TRUE(known_end == end) ||
         SkipUnknown(wire::kValueType, known_end, end, depth);
}

bool StructWalk::AddUnknown(const wire::MessageType& type, const char* p,
                            const char* end, int depth) {
  Copy(p, end);
  return SkipUnknown(type, p, end, depth);
}

inline void StructWalk::Copy(const char* start, const char* end) {
  CopyLoosely(start, end - start, readable_end_, out_);
  out_ += end - start;
}

}  // namespace fncache::cache::key
