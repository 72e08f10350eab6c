// SPDX-License-Identifier: Apache-2.0
#include "cache/key/plain_wire.h"

#include <algorithm>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "absl/base/attributes.h"
#include "cache/key/walk_machine.h"
#include "common/utf8.h"

namespace fncache::cache::key {
namespace {

bool SkipGroup(uint32_t group, const char** p, const char* end, int depth);

// Moves behind the rest of a field whose tag was read; it may not be the end of
// a group.
bool SkipRest(uint32_t tag, const char** p, const char* end, int depth) {
  uint64_t value;
  uint32_t size;
  switch (wire::TagType(tag)) {
    case wire::WireType::kVarint:
      return ReadPlainVarint(p, end, 10, &value);
    case wire::WireType::kFixed64:
      if (end - *p < 8) return false;
      *p += 8;
      return true;
    case wire::WireType::kFixed32:
      if (end - *p < 4) return false;
      *p += 4;
      return true;
    case wire::WireType::kBytes:
      if (!ReadLength(p, end, &size)) return false;
      *p += size;
      return true;
    case wire::WireType::kStartGroup:
      return depth > 0 && SkipGroup(wire::TagNumber(tag), p, end, depth - 1);
    default:
      return false;
  }
}

bool ReadPlainTag(const char** p, const char* end, uint32_t* tag) {
  uint64_t value;
  if (!ReadPlainVarint(p, end, 5, &value) || value > 0xffffffffu) return false;
  *tag = static_cast<uint32_t>(value);
  return wire::TagNumber(*tag) != 0;
}

// Moves behind the end of a group whose start was read; what it holds has to be
// in order.
bool SkipGroup(uint32_t group, const char** p, const char* end, int depth) {
  uint32_t last = 0;
  while (*p != end) {
    uint32_t tag;
    if (!ReadPlainTag(p, end, &tag)) return false;
    if (wire::TagType(tag) == wire::WireType::kEndGroup)
      return wire::TagNumber(tag) == group;
    if (wire::TagNumber(tag) < last || !SkipRest(tag, p, end, depth))
      return false;
    last = wire::TagNumber(tag);
  }
  return false;
}

// Whether the first `size` (at most 32) of the 32 bytes at `p` are ASCII.
inline bool IsAscii32(const char* p, size_t size) {
#if defined(__SSE2__)
  const auto high_bits = [](const char* at) {
    return static_cast<uint32_t>(_mm_movemask_epi8(
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(at))));
  };
  const uint32_t high = high_bits(p) | high_bits(p + 16) << 16;
  return (high & ((uint64_t{1} << size) - 1)) == 0;
#else
  uint64_t high = 0;
  for (; size >= 8; size -= 8, p += 8) high |= absl::little_endian::Load64(p);
  if (size > 0) high |= absl::little_endian::Load64(p) << (64 - 8 * size);
  return (high & 0x8080808080808080u) == 0;
#endif
}

// Reads the fields of an entry, `p` to `end`, if they are a key, then a value,
// and nothing else.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline bool ReadUsualFields(const char* p,
                                                         const char* end,
                                                         MapEntry* entry) {
  if (p == end || *p++ != kMapKey) return false;
  if (!ReadLength(&p, end, &entry->key_size)) return false;
  entry->key_at = static_cast<uint32_t>(p - entry->start);
  p += entry->key_size;
  if (p == end || *p++ != kMapValue) return false;
  if (!ReadLength(&p, end, &entry->value_size)) return false;
  entry->value_at = static_cast<uint32_t>(p - entry->start);
  return p + entry->value_size == end;
}

// Reads them if they are in either order, or one of them or both are missing.
ABSL_ATTRIBUTE_NOINLINE bool ReadAnyFields(const char* p, const char* end,
                                           MapEntry* entry) {
  entry->key_at = entry->value_at = 0;
  entry->key_size = entry->value_size = 0;
  while (p != end) {
    const char tag = *p++;
    uint32_t size;
    if (!ReadLength(&p, end, &size)) return false;
    const auto at = static_cast<uint32_t>(p - entry->start);
    if (tag == kMapKey && entry->key_at == 0) {
      entry->key_at = at;
      entry->key_size = size;
    } else if (tag != kMapValue || entry->value_at != 0) {
      return false;
    } else {
      entry->value_at = at;
      entry->value_size = size;
    }
    p += size;
  }
  return true;
}

}  // namespace

int32_t OrderOf(absl::string_view key) {
  if (key.size() >= 8) {
    return KeyOrder(absl::little_endian::Load64(key.data()),
                    absl::little_endian::Load64(key.data() + key.size() - 8));
  }
  char padded[8] = {};
  if (!key.empty()) std::memcpy(padded, key.data(), key.size());
  const uint64_t all = absl::little_endian::Load64(padded);
  return KeyOrder(all, all);
}

bool ReadPlainVarint(const char** p, const char* end, int most,
                     uint64_t* value) {
  uint64_t result = 0;
  for (int i = 0; i < most && *p != end; ++i) {
    const uint64_t byte = Byte((*p)++);
    if (i == 9 && byte > 1) return false;
    result |= (byte & 0x7f) << (7 * i);
    if (byte < 0x80) {
      *value = result;
      return byte != 0 || i == 0;
    }
  }
  return false;
}

bool ReadPlainEnum(const char** p, const char* end, int32_t* value) {
  uint64_t wide;
  if (!ReadPlainVarint(p, end, 10, &wide)) return false;
  *value = static_cast<int32_t>(wide);
  return static_cast<uint64_t>(static_cast<int64_t>(*value)) == wide;
}

bool ReadLongLength(const char** p, const char* end, uint32_t* size) {
  uint64_t value;
  if (!ReadPlainVarint(p, end, 5, &value) || value > wire::kMaxWireLength) {
    return false;
  }
  *size = static_cast<uint32_t>(value);
  return *size <= static_cast<size_t>(end - *p);
}

bool IsKnown(const wire::MessageType& type, uint32_t tag) {
  const wire::FieldType* field = type.Find(wire::TagNumber(tag));
  if (field == nullptr) return false;
  return wire::TagType(tag) == field->wire_type() ||
         // Repeated enums may be packed.
         (field->label == wire::FieldLabel::kRepeated &&
          wire::TagType(tag) == wire::WireType::kBytes);
}

bool SkipField(const char** p, const char* end, int depth, uint32_t* tag) {
  return ReadPlainTag(p, end, tag) && SkipRest(*tag, p, end, depth);
}

bool SkipUnknownField(const wire::MessageType& type, const char** p,
                      const char* end, int depth, uint32_t* number) {
  uint32_t tag;
  if (!SkipField(p, end, depth, &tag) || IsKnown(type, tag)) return false;
  *number = wire::TagNumber(tag);
  return true;
}

bool SkipUnknown(const wire::MessageType& type, const char* p, const char* end,
                 int depth) {
  uint32_t last = 0;
  while (p != end) {
    uint32_t number;
    if (!SkipUnknownField(type, &p, end, depth, &number) || number < last) {
      return false;
    }
    last = number;
  }
  return true;
}

bool IsPlainText(absl::string_view text, const char* end) {
  const char* const p = text.data();
  if (ABSL_PREDICT_TRUE(static_cast<size_t>(end - p) >= 32)) {
    if (ABSL_PREDICT_TRUE(text.size() <= 32)) {
      if (ABSL_PREDICT_TRUE(IsAscii32(p, text.size()))) return true;
    } else {
      const char* const last = p + text.size() - 32;
      const char* at = p;
      while (at < last && IsAscii32(at, 32)) at += 32;
      if (ABSL_PREDICT_TRUE(at >= last && IsAscii32(last, 32))) return true;
    }
  }
  return IsUtf8(text);
}

ABSL_ATTRIBUTE_ALWAYS_INLINE static inline bool ReadFields(const char** from,
                                                           const char* end,
                                                           MapEntry* entry) {
  const char* p = *from;
  entry->start = p++;
  uint32_t size;
  if (!ReadLength(&p, end, &size)) return false;
  const char* const entry_end = p + size;
  entry->size = static_cast<uint32_t>(entry_end - entry->start);
  *from = entry_end;
  return ABSL_PREDICT_TRUE(ReadUsualFields(p, entry_end, entry)) ||
         ReadAnyFields(p, entry_end, entry);
}

bool ReadEntryFields(const char** from, const char* end, MapEntry* entry) {
  return ReadFields(from, end, entry);
}

bool ReadEntry(const char** from, const char* end, const char* text_end,
               MapEntry* entry) {
  if (!ReadFields(from, end, entry)) return false;
  entry->order = OrderOf(entry->key());
  return IsPlainText(entry->key(), text_end);
}

bool OrderEntries(MapEntry* entries, size_t count) {
  if (count <= kMostRanked) {
    int64_t words[kMostRanked + kRankPadding];
    uint32_t ranked[kMostRanked + kRankPadding];
    MapEntry unordered[kMostRanked];
    for (size_t i = 0; i < count; ++i) {
      unordered[i] = entries[i];
      words[i] = int64_t{entries[i].order} * (int64_t{1} << 32);
    }
    if (ABSL_PREDICT_TRUE(RankWords(words, count, ranked))) {
      for (size_t i = 0; i < count; ++i) entries[i] = unordered[ranked[i]];
      return true;
    }
  }
  MapEntry* const end = entries + count;
  std::sort(entries, end, [](const MapEntry& a, const MapEntry& b) {
    if (ABSL_PREDICT_TRUE(a.order != b.order)) return a.order < b.order;
    return a.key() < b.key();
  });
  return std::adjacent_find(entries, end,
                            [](const MapEntry& a, const MapEntry& b) {
                              return a.order == b.order && a.key() == b.key();
                            }) == end;
}

}  // namespace fncache::cache::key
