// SPDX-License-Identifier: Apache-2.0
#include "cache/wire/struct_check.h"

#include <cstddef>
#include <cstdint>

#include "absl/base/attributes.h"
#include "absl/base/internal/endian.h"
#include "absl/base/optimization.h"
#include "cache/wire/wire.h"
#include "common/utf8.h"

namespace fncache::cache::wire {
namespace {

using absl::little_endian::Load32;
using absl::little_endian::Load64;

constexpr uint64_t kHighBits = 0x8080808080808080u;

// The high bits of a text's first `size` bytes, at most 16, in two words.
struct Mask {
  uint64_t first = 0;
  uint64_t second = 0;
};
struct Masks {
  constexpr Masks() {
    for (int size = 0; size <= 16; ++size) {
      for (int i = 0; i < size; ++i) {
        uint64_t& word = i < 8 ? of[size].first : of[size].second;
        word |= uint64_t{0x80} << (8 * (i % 8));
      }
    }
  }
  Mask of[17];
};
constexpr Masks kMasks;

constexpr uint32_t kElement = MakeTag(1, WireType::kBytes);
constexpr uint32_t kKey = MakeTag(1, WireType::kBytes);
constexpr uint32_t kMapValue = MakeTag(2, WireType::kBytes);
constexpr uint32_t kNull = MakeTag(1, WireType::kVarint);
constexpr uint32_t kNumber = MakeTag(2, WireType::kFixed64);
constexpr uint32_t kString = MakeTag(3, WireType::kBytes);
constexpr uint32_t kBool = MakeTag(4, WireType::kVarint);
constexpr uint32_t kStruct = MakeTag(5, WireType::kBytes);
constexpr uint32_t kList = MakeTag(6, WireType::kBytes);

uint8_t Byte(const char* p) { return static_cast<uint8_t>(*p); }

// The payload that the length at `p` announces, if it has one or two bytes and
// the payload ends exactly at `end`; else null.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline const char* LastPayload(const char* p,
                                                            const char* end) {
  const size_t size = end - p;
  if (ABSL_PREDICT_FALSE(size < 2)) return size == 1 && *p == 0 ? end : nullptr;
  const size_t first = Byte(p);
  if (first < 0x80) return first == size - 1 ? p + 1 : nullptr;
  const size_t second = Byte(p + 1);
  return second < 0x80 && ((first & 0x7f) | second << 7) == size - 2 ? p + 2
                                                                     : nullptr;
}

// Every encoder writes an entry as key and value and nothing else, and a value
// as one field. Those shapes are recognised by a few bytes and lengths that
// meet; whatever looks otherwise is read field by field. Nothing nested is
// looked at twice, so that no shape costs more than linear time.
class StructCheck {
 public:
  // `limit`: up to where bytes may be read, be they checked or not.
  explicit StructCheck(const char* limit) : limit_(limit) {}

  bool Struct(const char* p, const char* end, int depth) const {
    while (p != end) {
      if (ABSL_PREDICT_TRUE(end - p >= 4)) {
        // An entry and its key, each with a length of one byte.
        const uint32_t head = Load32(p);
        const size_t size = head >> 8 & 0x7f;
        const size_t key = head >> 24;
        if (ABSL_PREDICT_TRUE((head & 0x80ff80ff) == (kElement | kKey << 16) &&
                              size >= key + 4 &&
                              static_cast<size_t>(end - p) >= size + 2)) {
          const char* const value = p + 4 + key;
          const char* const next = p + 2 + size;
          // The lengths are below 0x80, as what is left of the entry is.
          if (ABSL_PREDICT_TRUE(*value == kMapValue &&
                                Byte(value + 1) ==
                                    static_cast<size_t>(next - value) - 2)) {
            if (depth < 2 || !Text(p + 4, key) ||
                !Value(value + 2, next, depth - 2)) {
              return false;
            }
            p = next;
            continue;
          }
        }
      }
      absl::string_view entry;
      if (!NextElement(&p, end, depth, &entry)) return false;
      if (entry.data() != nullptr &&
          (depth <= 0 || !Entry(entry.begin(), entry.end(), depth - 1))) {
        return false;
      }
    }
    return true;
  }

 private:
  // Reads one field of a message whose only field is number 1, of messages. If
  // it is that, `element` is its payload, else null.
  static bool NextElement(const char** p, const char* end, int depth,
                          absl::string_view* element) {
    Cursor in(absl::string_view(*p, end - *p));
    uint32_t tag;
    if (!in.ReadTag(&tag)) return false;
    *element = {};
    if (!(tag == kElement ? in.ReadBytes(element) : in.Skip(tag, depth))) {
      return false;
    }
    *p = in.position();
    return true;
  }

  ABSL_ATTRIBUTE_ALWAYS_INLINE bool Text(const char* p, size_t size) const {
    uint64_t high = 1;
    if (size <= 16) {
      if (ABSL_PREDICT_TRUE(limit_ - p >= 16)) {
        const Mask& mask = kMasks.of[size];
        high = (Load64(p) & mask.first) | (Load64(p + 8) & mask.second);
      }
    } else if (size <= 32) {
      high = (Load64(p) | Load64(p + 8) | Load64(p + size - 16) |
              Load64(p + size - 8)) &
             kHighBits;
    }
    return ABSL_PREDICT_TRUE(high == 0) || IsUtf8(absl::string_view(p, size));
  }

  bool Entry(const char* p, const char* end, int depth) const {
    // A key with a length of one byte, then the value.
    if (ABSL_PREDICT_TRUE(end - p >= 2 && *p == kKey && Byte(p + 1) < 0x80)) {
      const size_t size = Byte(p + 1);
      if (static_cast<size_t>(end - p) < size + 2 || !Text(p + 2, size)) {
        return false;
      }
      p += 2 + size;
      if (ABSL_PREDICT_TRUE(p != end && *p == kMapValue)) {
        const char* const value = LastPayload(p + 1, end);
        if (ABSL_PREDICT_TRUE(value != nullptr)) {
          return depth > 0 && Value(value, end, depth - 1);
        }
      }
    }
    Cursor in(absl::string_view(p, end - p));
    while (!in.done()) {
      uint32_t tag;
      if (!in.ReadTag(&tag)) return false;
      absl::string_view field;
      if (tag == kKey) {
        if (!in.ReadBytes(&field) || !Text(field.data(), field.size())) {
          return false;
        }
      } else if (tag == kMapValue) {
        if (!in.ReadBytes(&field) || depth <= 0 ||
            !Value(field.begin(), field.end(), depth - 1)) {
          return false;
        }
      } else if (!in.Skip(tag, depth)) {
        return false;
      }
    }
    return true;
  }

  bool List(const char* p, const char* end, int depth) const {
    absl::string_view value;
    while (p != end) {
      if (!NextElement(&p, end, depth, &value)) return false;
      if (value.data() != nullptr &&
          (depth <= 0 || !Value(value.begin(), value.end(), depth - 1))) {
        return false;
      }
    }
    return true;
  }

  bool Value(const char* p, const char* end, int depth) const {
    if (ABSL_PREDICT_FALSE(p == end)) return true;
    const uint8_t first = Byte(p);
    if (first == kNumber) {
      if (ABSL_PREDICT_TRUE(end - p == 9)) return true;
    } else if (first == kBool || first == kNull) {
      if (ABSL_PREDICT_TRUE(end - p == 2 && Byte(p + 1) < 0x80)) return true;
    } else if (first == kString || first == kStruct || first == kList) {
      const char* const field = LastPayload(p + 1, end);
      if (ABSL_PREDICT_TRUE(field != nullptr)) {
        if (first == kString) return Text(field, end - field);
        return depth > 0 && (first == kStruct ? Struct(field, end, depth - 1)
                                              : List(field, end, depth - 1));
      }
    }
    return AnyValue(p, end, depth);
  }

  // A value in whatever form.
  bool AnyValue(const char* p, const char* end, int depth) const {
    Cursor in(absl::string_view(p, end - p));
    while (!in.done()) {
      uint32_t tag;
      if (!in.ReadTag(&tag)) return false;
      uint64_t scalar;
      absl::string_view field;
      bool ok;
      switch (tag) {
        case kNull:
        case kBool:
          ok = in.ReadVarint(&scalar);
          break;
        case kNumber:
          ok = in.ReadFixed64(&scalar);
          break;
        case kString:
          ok = in.ReadBytes(&field) && Text(field.data(), field.size());
          break;
        case kStruct:
          ok = in.ReadBytes(&field) && depth > 0 &&
               Struct(field.begin(), field.end(), depth - 1);
          break;
        case kList:
          ok = in.ReadBytes(&field) && depth > 0 &&
               List(field.begin(), field.end(), depth - 1);
          break;
        default:
          ok = in.Skip(tag, depth);
          break;
      }
      if (!ok) return false;
    }
    return true;
  }

  const char* const limit_;
};

}  // namespace

bool IsStruct(absl::string_view bytes, int depth) {
  return StructCheck(bytes.end()).Struct(bytes.begin(), bytes.end(), depth);
}

}  // namespace fncache::cache::wire
