// SPDX-License-Identifier: Apache-2.0
// Reading the plain wire form: the one that encoders emit, in which nothing is
// to be merged, dropped or shortened. Every varint and length is in its
// shortest form, fields are in order of their numbers; all else is refused,
// though protobuf may take it. For CanonicalWalk and StructWalk.
//
// Nothing reads beyond the bounds that it is given. Pure functions;
// thread-safe.
#ifndef FNCACHE_CACHE_KEY_PLAIN_WIRE_H_
#define FNCACHE_CACHE_KEY_PLAIN_WIRE_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/base/internal/endian.h"
#include "absl/base/optimization.h"
#include "absl/strings/string_view.h"
#include "cache/key/walk_machine.h"
#include "cache/wire/schema.h"
#include "cache/wire/wire.h"

namespace fncache::cache::key {

inline constexpr char kMapKey = wire::MakeTag(1, wire::WireType::kBytes);
inline constexpr char kMapValue = wire::MakeTag(2, wire::WireType::kBytes);
inline constexpr char kStructFields = wire::MakeTag(1, wire::WireType::kBytes);
inline constexpr char kListValues = wire::MakeTag(1, wire::WireType::kBytes);
inline constexpr char kNullValue = wire::MakeTag(1, wire::WireType::kVarint);
inline constexpr char kNumberValue = wire::MakeTag(2, wire::WireType::kFixed64);
inline constexpr char kStringValue = wire::MakeTag(3, wire::WireType::kBytes);
inline constexpr char kBoolValue = wire::MakeTag(4, wire::WireType::kVarint);
inline constexpr char kStructValue = wire::MakeTag(5, wire::WireType::kBytes);
inline constexpr char kListValue = wire::MakeTag(6, wire::WireType::kBytes);

// A Resource's field `resource`.
inline constexpr char kResourceObject =
    wire::MakeTag(1, wire::WireType::kBytes);

// The deepest nesting that the walks accept. The slow path can write a message
// one level deeper than protobuf accepts (wire::kMaxDepth), since a map entry
// without a value got an empty one.
inline constexpr int kMaxPlainDepth = wire::kMaxDepth + 1;

inline uint8_t Byte(const char* p) { return static_cast<uint8_t>(*p); }

// Each Read moves *p past what it read, and says false, leaving it somewhere,
// if it is not plain or `end` comes first.

// A varint of at most `most` bytes.
bool ReadPlainVarint(const char** p, const char* end, int most,
                     uint64_t* value);

// An int32 or enum as encoders write it: negative ones in ten bytes.
bool ReadPlainEnum(const char** p, const char* end, int32_t* value);

bool ReadLongLength(const char** p, const char* end, uint32_t* size);

// A length; there are that many bytes.
inline bool ReadLength(const char** p, const char* end, uint32_t* size) {
  if (ABSL_PREDICT_FALSE(*p == end)) return false;
  const uint32_t first = Byte(*p);
  if (first < 0x80) {
    *size = first;
    ++*p;
  } else if (end - *p >= 2 && Byte(*p + 1) - 1u < 0x7f) {
    // The second byte is neither 0, which would be longer than needed, nor
    // followed by another.
    *size = (first & 0x7f) | static_cast<uint32_t>(Byte(*p + 1)) << 7;
    *p += 2;
  } else {
    return ReadLongLength(p, end, size);
  }
  return *size <= static_cast<size_t>(end - *p);
}

// Whether protobuf takes fields with this tag for one that it knows.
bool IsKnown(const wire::MessageType& type, uint32_t tag);

// Moves past one field; `depth` is how many groups may be nested.
bool SkipField(const char** p, const char* end, int depth, uint32_t* tag);

// The same of a field that is unknown to `type`.
bool SkipUnknownField(const wire::MessageType& type, const char** p,
                      const char* end, int depth, uint32_t* number);

// Whether all fields up to `end` are unknown to `type`, and in order of their
// numbers.
bool SkipUnknown(const wire::MessageType& type, const char* p, const char* end,
                 int depth);

// Whether `text` is UTF-8. `end` is that of what may be read.
bool IsPlainText(absl::string_view text, const char* end);

// The upper half of this is KeyOrder, which is for the same numbers. `spread`
// is kKeySpread, from wherever the caller has it.
inline constexpr uint64_t kKeySpread = 0x9e3779b97f4a7c15;
inline uint64_t KeyProduct(uint64_t first, uint64_t last, uint64_t spread) {
  return (first + (last << 23 | last >> 41)) * spread;
}

// Map entries are ordered by this number first (docs/key-format.md). `first`
// and `last` are the first and the last 8 bytes of the key as little-endian
// numbers; of a shorter key both are all of it, with zeros above.
inline int32_t KeyOrder(uint64_t first, uint64_t last) {
  return static_cast<int32_t>(KeyProduct(first, last, kKeySpread) >> 32);
}

int32_t OrderOf(absl::string_view key);

// A map entry as it lies in the request. The canonical form has its key and
// then its value, both written even if they are empty. Some encoders leave out
// what is empty, and an entry's fields may come in either order.
struct MapEntry {
  const char* start;  // its tag in the map's message
  uint32_t size;      // from there to its end
  uint32_t key_at;    // from the start; 0: there is none, it is empty
  uint32_t key_size;
  uint32_t value_at;  // from the start; 0: there is none, it is empty
  uint32_t value_size;
  int32_t order;

  // Key and value are there, in this order: but for what the value holds, the
  // canonical form of the entry is its own bytes.
  bool usual() const { return key_at != 0 && key_at < value_at; }
  // A value that is not there is not nested either.
  bool has_value() const { return value_at != 0; }

  absl::string_view key() const { return {start + key_at, key_size}; }
  const char* value() const { return start + value_at; }
  const char* value_end() const { return value() + value_size; }

  // How many bytes the fields of its canonical form take (behind its tag and
  // its length), with the value as it is.
  uint32_t CanonicalContents() const {
    return static_cast<uint32_t>(2 + wire::VarintSize(key_size) + key_size +
                                 wire::VarintSize(value_size) + value_size);
  }
  // How many bytes the canonical form has more than the entry itself.
  uint32_t Growth() const {
    if (usual()) return 0;
    const uint32_t contents = CanonicalContents();
    return 1 + static_cast<uint32_t>(wire::VarintSize(contents)) + contents -
           size;
  }
};

// The entry at *p, whose tag was looked at: a key and a value, each at most
// once. Sets neither its order, nor is the key checked.
bool ReadEntryFields(const char** p, const char* end, MapEntry* entry);

// The same with its order. The key is UTF-8. `text_end` is that of what may be
// read.
bool ReadEntry(const char** p, const char* end, const char* text_end,
               MapEntry* entry);

// Puts them in the order of the canonical form. False: a key comes twice.
bool OrderEntries(MapEntry* entries, size_t count);

// Copies `size` bytes, and up to 63 more. `end` is that of what may be read.
inline void CopyLoosely(const char* from, size_t size, const char* end,
                        char* to) {
  // In blocks of 64 bytes, so that most takes one, without a branch on its
  // size.
  if (ABSL_PREDICT_TRUE(size <= 256 &&
                        static_cast<size_t>(end - from) >= size + 64)) {
    AnyMachine::Copy(from, to);
    for (size_t done = 64; done < size; done += 64) {
      AnyMachine::Copy(from + done, to + done);
    }
    return;
  }
  std::memcpy(to, from, size);
}

// Writes the canonical form of an entry up to its value, with the lengths that
// it has if the value is written as it is. Returns its end. May write up to 63
// bytes behind that. `readable_end` is that of what may be read.
inline char* WriteEntryHead(const MapEntry& entry, const char* readable_end,
                            char* out) {
  *out++ = *entry.start;
  out = wire::WriteVarint(out, entry.CanonicalContents());
  *out++ = kMapKey;
  out = wire::WriteVarint(out, entry.key_size);
  CopyLoosely(entry.key().data(), entry.key_size, readable_end, out);
  out += entry.key_size;
  *out++ = kMapValue;
  return wire::WriteVarint(out, entry.value_size);
}

}  // namespace fncache::cache::key

#endif  // FNCACHE_CACHE_KEY_PLAIN_WIRE_H_
