// SPDX-License-Identifier: Apache-2.0
// Protobuf's wire form: a cursor over bytes that reads tags, varints, lengths
// and whole fields, and helpers that write them. Knows no schema.
//
// It accepts exactly the bytes that protobuf C++ (3.21) accepts in a message in
// memory: tags of up to five bytes (taken modulo 2^32), lengths of up to five
// bytes below 2 GiB, varints of up to ten. Everything stays within the cursor's
// bounds. Values are views of the bytes; nothing is copied or owned.
//
// A Cursor belongs to one thread.
#ifndef FNCACHE_CACHE_WIRE_WIRE_H_
#define FNCACHE_CACHE_WIRE_WIRE_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "absl/base/internal/endian.h"
#include "absl/base/optimization.h"
#include "absl/strings/string_view.h"

namespace fncache::cache::wire {

enum class WireType : uint8_t {
  kVarint = 0,
  kFixed64 = 1,
  kBytes = 2,
  kStartGroup = 3,
  kEndGroup = 4,
  kFixed32 = 5,
};

// The largest length that protobuf C++ takes: sizes are ints, less the bytes
// that it reads ahead.
inline constexpr uint32_t kMaxWireLength = 0x7fffffff - 16;

constexpr uint32_t MakeTag(uint32_t number, WireType type) {
  return number << 3 | static_cast<uint32_t>(type);
}
constexpr uint32_t TagNumber(uint32_t tag) { return tag >> 3; }
// May return 6 and 7 too, which are no wire types.
constexpr WireType TagType(uint32_t tag) {
  return static_cast<WireType>(tag & 7);
}

class Cursor {
 public:
  explicit Cursor(absl::string_view bytes)
      : p_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  bool done() const { return p_ == end_; }
  const char* position() const { return p_; }
  size_t remaining() const { return end_ - p_; }

  // Each Read moves past what it read, and says false, leaving the cursor
  // somewhere, if the bytes are not such a thing.

  // Field number 0 and an end of group are read too; they are for the caller to
  // refuse or to expect.
  bool ReadTag(uint32_t* tag) {
    if (ABSL_PREDICT_TRUE(p_ != end_ && Byte(p_) < 0x80)) {
      *tag = Byte(p_++);
      return true;
    }
    uint64_t value;
    if (!ReadLong(5, &value)) return false;
    *tag = static_cast<uint32_t>(value);
    return true;
  }

  bool ReadVarint(uint64_t* value) {
    if (ABSL_PREDICT_TRUE(p_ != end_ && Byte(p_) < 0x80)) {
      *value = Byte(p_++);
      return true;
    }
    return ReadLong(10, value);
  }

  // A length and that many bytes.
  bool ReadBytes(absl::string_view* bytes) {
    uint64_t length;
    if (ABSL_PREDICT_TRUE(p_ != end_ && Byte(p_) < 0x80)) {
      length = Byte(p_++);
    } else if (!ReadLong(5, &length) || length > kMaxWireLength) {
      return false;
    }
    if (length > remaining()) return false;
    *bytes = absl::string_view(p_, length);
    p_ += length;
    return true;
  }

  bool ReadFixed64(uint64_t* value) {
    if (remaining() < 8) return false;
    *value = absl::little_endian::Load64(p_);
    p_ += 8;
    return true;
  }

  bool ReadFixed32(uint32_t* value) {
    if (remaining() < 4) return false;
    *value = absl::little_endian::Load32(p_);
    p_ += 4;
    return true;
  }

  // Moves past the rest of a field whose tag was just read, whatever it is; a
  // group with all that it holds, to its end. `depth` is how many groups may be
  // open at once (this one included). Refuses field number 0, an end of group
  // without its start, and wire types that do not exist.
  bool Skip(uint32_t tag, int depth) {
    if (ABSL_PREDICT_TRUE(TagType(tag) == WireType::kBytes)) {
      absl::string_view bytes;
      return TagNumber(tag) != 0 && ReadBytes(&bytes);
    }
    return SkipOther(tag, depth);
  }

 private:
  static uint8_t Byte(const char* p) { return static_cast<uint8_t>(*p); }

  // Skip, for fields of any type.
  bool SkipOther(uint32_t tag, int depth) {
    // The open groups, outermost first. Only their ends show their numbers, so
    // a stack is needed, but a cheap one.
    std::string open;
    while (true) {
      if (TagNumber(tag) == 0) return false;
      uint64_t wide;
      uint32_t narrow;
      absl::string_view bytes;
      switch (TagType(tag)) {
        case WireType::kVarint:
          if (!ReadVarint(&wide)) return false;
          break;
        case WireType::kFixed64:
          if (!ReadFixed64(&wide)) return false;
          break;
        case WireType::kBytes:
          if (!ReadBytes(&bytes)) return false;
          break;
        case WireType::kFixed32:
          if (!ReadFixed32(&narrow)) return false;
          break;
        case WireType::kStartGroup:
          if (depth-- <= 0) return false;
          open.append(reinterpret_cast<const char*>(&tag), sizeof(tag));
          break;
        case WireType::kEndGroup: {
          if (open.empty()) return false;
          uint32_t start;
          std::memcpy(&start, open.data() + open.size() - sizeof(start),
                      sizeof(start));
          if (TagNumber(start) != TagNumber(tag)) return false;
          open.resize(open.size() - sizeof(start));
          ++depth;
          break;
        }
        default:
          return false;
      }
      if (open.empty()) return true;
      if (!ReadTag(&tag)) return false;
    }
  }

  // A varint of at most `most` bytes; bits beyond the 64th are dropped.
  bool ReadLong(int most, uint64_t* value) {
    uint64_t result = 0;
    for (int i = 0; i < most; ++i) {
      if (p_ == end_) return false;
      const uint64_t byte = Byte(p_++);
      result |= (byte & 0x7f) << (7 * i);
      if (byte < 0x80) {
        *value = result;
        return true;
      }
    }
    return false;
  }

  const char* p_;
  const char* end_;
};

// Calls on_field(tag, cursor) for each field of a message, which reads or skips
// the field. False if it returns false, or if a tag is malformed.
template <typename OnField>
bool ForEachField(absl::string_view message, OnField on_field) {
  Cursor in(message);
  while (!in.done()) {
    uint32_t tag;
    if (!in.ReadTag(&tag) || !on_field(tag, &in)) return false;
  }
  return true;
}

// How many bytes the shortest varint of `value` takes.
inline int VarintSize(uint64_t value) {
  int size = 1;
  for (; value >= 0x80; value >>= 7) ++size;
  return size;
}

// Writes the shortest varint of `value`, at most ten bytes; returns its end.
inline char* WriteVarint(char* out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) *out++ = static_cast<char>(value | 0x80);
  *out++ = static_cast<char>(value);
  return out;
}

inline void AppendVarint(std::string* out, uint64_t value) {
  char buffer[10];
  out->append(buffer, WriteVarint(buffer, value) - buffer);
}

inline void AppendBytesField(std::string* out, uint32_t number,
                             absl::string_view bytes) {
  AppendVarint(out, MakeTag(number, WireType::kBytes));
  AppendVarint(out, bytes.size());
  out->append(bytes.data(), bytes.size());
}

inline void AppendVarintField(std::string* out, uint32_t number,
                              uint64_t value) {
  AppendVarint(out, MakeTag(number, WireType::kVarint));
  AppendVarint(out, value);
}

}  // namespace fncache::cache::wire

#endif  // FNCACHE_CACHE_WIRE_WIRE_H_
