#include "cache/plain_walk.h"

#include <algorithm>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "absl/base/internal/endian.h"
#include "absl/base/optimization.h"
#include "cache/wire.h"

namespace fncache::cache {
namespace {

// What a large request may leave behind: 32 bytes each.
constexpr size_t kKeptEntries = 1 << 15;

constexpr char kMapKey = MakeTag(1, WireType::kBytes);
constexpr char kMapValue = MakeTag(2, WireType::kBytes);
constexpr char kStructFields = MakeTag(1, WireType::kBytes);
constexpr char kListValues = MakeTag(1, WireType::kBytes);
constexpr char kNullValue = MakeTag(1, WireType::kVarint);
constexpr char kNumberValue = MakeTag(2, WireType::kFixed64);
constexpr char kStringValue = MakeTag(3, WireType::kBytes);
constexpr char kBoolValue = MakeTag(4, WireType::kVarint);
constexpr char kStructValue = MakeTag(5, WireType::kBytes);
constexpr char kListValue = MakeTag(6, WireType::kBytes);

uint8_t Byte(const char* p) { return static_cast<uint8_t>(*p); }

// A varint of at most `most` bytes in its shortest form.
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

bool ReadLongLength(const char** p, const char* end, uint32_t* size) {
  uint64_t value;
  if (!ReadPlainVarint(p, end, 5, &value) || value > kMaxWireLength) {
    return false;
  }
  *size = static_cast<uint32_t>(value);
  return *size <= static_cast<size_t>(end - *p);
}

// A length in its shortest form, and there are that many bytes.
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

// An int32 or enum as encoders write it: negative ones in ten bytes.
bool ReadPlainEnum(const char** p, const char* end, int32_t* value) {
  uint64_t wide;
  if (!ReadPlainVarint(p, end, 10, &wide)) return false;
  *value = static_cast<int32_t>(wide);
  return static_cast<uint64_t>(static_cast<int64_t>(*value)) == wide;
}

bool IsKnown(const MessageType& type, uint32_t tag) {
  const FieldType* field = type.Find(TagNumber(tag));
  if (field == nullptr) return false;
  return TagType(tag) == field->wire_type() ||
         // Repeated enums may be packed.
         (field->label == FieldLabel::kRepeated &&
          TagType(tag) == WireType::kBytes);
}

// Moves *p over fields unknown to `type` (null: any) in plain form, to `end`,
// or to behind the end of the group that is open (0: none).
bool SkipUnknown(const MessageType* type, uint32_t group, const char** p,
                 const char* end, int depth) {
  uint32_t last = 0;
  while (*p != end) {
    uint64_t tag;
    uint64_t value;
    uint32_t size;
    if (!ReadPlainVarint(p, end, 5, &tag) || tag > 0xffffffffu) return false;
    const uint32_t number = TagNumber(static_cast<uint32_t>(tag));
    const WireType wire_type = TagType(static_cast<uint32_t>(tag));
    if (number == 0) return false;
    if (wire_type == WireType::kEndGroup) return number == group;
    if (number < last) return false;
    if (type != nullptr && IsKnown(*type, static_cast<uint32_t>(tag))) {
      return false;
    }
    last = number;
    switch (wire_type) {
      case WireType::kVarint:
        if (!ReadPlainVarint(p, end, 10, &value)) return false;
        break;
      case WireType::kFixed64:
        if (end - *p < 8) return false;
        *p += 8;
        break;
      case WireType::kFixed32:
        if (end - *p < 4) return false;
        *p += 4;
        break;
      case WireType::kBytes:
        if (!ReadLength(p, end, &size)) return false;
        *p += size;
        break;
      case WireType::kStartGroup:
        if (depth <= 0 || !SkipUnknown(nullptr, number, p, end, depth - 1)) {
          return false;
        }
        break;
      default:
        return false;
    }
  }
  return group == 0;
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

}  // namespace

char* PlainWalk::Run(absl::string_view bytes, const MaskNode* masks, int depth,
                     char* out, absl::string_view* tag) {
  const char* const begin = bytes.data();
  in_end_ = begin + bytes.size();
  out_ = out;
  tag_ = absl::string_view();
  entry_count_ = 0;
  if (!Message(kRunFunctionRequestType, begin, in_end_, depth, masks)) {
    return nullptr;
  }
  *tag = tag_;
  return out_;
}

void PlainWalk::Shrink() {
  if (entries_.size() > kKeptEntries) {
    entries_ = std::vector<Entry>();
  }
}

inline bool PlainWalk::Utf8(const char* p, size_t size) const {
  if (ABSL_PREDICT_TRUE(static_cast<size_t>(in_end_ - p) >= 32)) {
    if (ABSL_PREDICT_TRUE(size <= 32)) {
      if (ABSL_PREDICT_TRUE(IsAscii32(p, size))) return true;
    } else {
      const char* const last = p + size - 32;
      const char* at = p;
      while (at < last && IsAscii32(at, 32)) at += 32;
      if (ABSL_PREDICT_TRUE(at >= last && IsAscii32(last, 32))) return true;
    }
  }
  return IsValidUtf8({p, size});
}

inline uint64_t PlainWalk::Prefix(const char* p, size_t size) const {
  if (size >= 8) return absl::big_endian::Load64(p);
  if (size == 0) return 0;
  if (ABSL_PREDICT_TRUE(in_end_ - p >= 8)) {
    return absl::big_endian::Load64(p) & (~uint64_t{0} << (64 - 8 * size));
  }
  char padded[8] = {};
  std::memcpy(padded, p, size);
  return absl::big_endian::Load64(padded);
}

inline void PlainWalk::Copy(const char* from, size_t size) {
  char* const to = out_;
  out_ += size;
  // In blocks of 64 bytes, up to 63 too many, which later ones overwrite: most
  // that is copied takes one, without a branch on its size.
  if (ABSL_PREDICT_TRUE(size <= 256 &&
                        static_cast<size_t>(in_end_ - from) >= size + 64)) {
    std::memcpy(to, from, 64);
    for (size_t done = 64; done < size; done += 64) {
      std::memcpy(to + done, from + done, 64);
    }
    return;
  }
  std::memcpy(to, from, size);
}

inline char* PlainWalk::Open(size_t most) {
  char* const at = out_;
  out_ += VarintSize(most);
  return at;
}

void PlainWalk::Close(char* at, size_t most) {
  const int reserved = VarintSize(most);
  const size_t size = out_ - at - reserved;
  const int needed = VarintSize(size);
  if (needed != reserved) {
    std::memmove(at + needed, at + reserved, size);
    out_ -= reserved - needed;
  }
  WriteVarint(at, size);
}

inline bool PlainWalk::Less(const Entry& a, const Entry& b) {
  if (ABSL_PREDICT_TRUE(a.prefix != b.prefix)) return a.prefix < b.prefix;
  return absl::string_view(a.key(), a.key_size) <
         absl::string_view(b.key(), b.key_size);
}

inline bool PlainWalk::SameKey(const Entry& a, const Entry& b) {
  return a.prefix == b.prefix && a.key_size == b.key_size &&
         std::memcmp(a.key(), b.key(), a.key_size) == 0;
}

void PlainWalk::Sort(Entry* begin, Entry* end) {
  if (end - begin > 24) {
    std::sort(begin, end, Less);
    return;
  }
  for (Entry* next = begin + 1; next < end; ++next) {
    if (!Less(*next, next[-1])) continue;
    const Entry entry = *next;
    Entry* at = next;
    do {
      *at = at[-1];
      --at;
    } while (at != begin && Less(entry, at[-1]));
    *at = entry;
  }
}

bool PlainWalk::Gather(char tag, const char** from, const char* end) {
  const char* p = *from;
  const size_t base = entry_count_;
  bool sorted = true;
  uint64_t last = 0;
  while (p != end && *p == tag) {
    if (ABSL_PREDICT_FALSE(entry_count_ == entries_.size())) {
      entries_.resize(std::max<size_t>(256, 2 * entries_.size()));
    }
    Entry& entry = entries_[entry_count_];
    entry.start = p++;
    uint32_t size;
    if (!ReadLength(&p, end, &size)) return false;
    const char* const entry_end = p + size;
    if (size < 4 || *p++ != kMapKey) return false;
    if (!ReadLength(&p, entry_end, &entry.key_size)) return false;
    const char* const key = p;
    p += entry.key_size;
    if (p == entry_end || *p++ != kMapValue) return false;
    if (!ReadLength(&p, entry_end, &entry.value_size)) return false;
    if (p + entry.value_size != entry_end) return false;
    if (!Utf8(key, entry.key_size)) return false;
    p = entry_end;
    entry.prefix = Prefix(key, entry.key_size);
    entry.size = static_cast<uint32_t>(entry_end - entry.start);
    entry.key_at = static_cast<uint32_t>(key - entry.start);
    // Of equal prefixes sorting finds out.
    sorted &= entry_count_ == base || last < entry.prefix;
    last = entry.prefix;
    ++entry_count_;
  }
  *from = p;
  if (!sorted) {
    Entry* const first = entries_.data() + base;
    Entry* const last = entries_.data() + entry_count_;
    Sort(first, last);
    for (const Entry* entry = first + 1; entry < last; ++entry) {
      if (SameKey(entry[-1], *entry)) return false;
    }
  }
  return true;
}

bool PlainWalk::Struct(const char* p, const char* end, int depth) {
  const size_t base = entry_count_;
  if (!Gather(kStructFields, &p, end)) return false;
  const size_t count = entry_count_;
  if (count != base && depth < 2) return false;
  for (size_t i = base; i < count; ++i) {
    const Entry& entry = entries_[i];
    if (!Value(entry.start, entry.value(), entry.end(), depth - 2)) {
      return false;
    }
  }
  entry_count_ = base;
  return ABSL_PREDICT_TRUE(p == end) ||
         UnknownFields(kStructType, p, end, depth);
}

bool PlainWalk::List(const char* p, const char* end, int depth) {
  while (p != end && *p == kListValues) {
    const char* const start = p++;
    uint32_t size;
    if (depth < 1 || !ReadLength(&p, end, &size)) return false;
    if (!Value(start, p, p + size, depth - 1)) return false;
    p += size;
  }
  return ABSL_PREDICT_TRUE(p == end) ||
         UnknownFields(kListValueType, p, end, depth);
}

inline bool PlainWalk::Value(const char* start, const char* p, const char* end,
                             int depth) {
  if (ABSL_PREDICT_FALSE(p == end)) {
    Copy(start, end - start);
    return true;
  }
  uint32_t size;
  const char* at = p + 1;
  switch (*p) {
    case kStringValue:
      if (!ReadLength(&at, end, &size) || !Utf8(at, size)) return false;
      at += size;
      break;
    case kNumberValue:
      if (end - at < 8) return false;
      at += 8;
      break;
    case kBoolValue:
      if (at == end || Byte(at) > 1) return false;
      ++at;
      break;
    case kStructValue:
      if (!ReadLength(&at, end, &size)) return false;
      if (ABSL_PREDICT_FALSE(at + size != end)) break;
      Copy(start, at - start);
      return depth > 0 && Struct(at, end, depth - 1);
    case kListValue:
      if (!ReadLength(&at, end, &size)) return false;
      if (ABSL_PREDICT_FALSE(at + size != end)) break;
      Copy(start, at - start);
      return depth > 0 && List(at, end, depth - 1);
    case kNullValue:
      if (at == end || Byte(at) >= 0x80) {
        return ValueAndUnknown(start, p, end, depth);
      }
      ++at;
      break;
    default:
      return ValueAndUnknown(start, p, end, depth);
  }
  if (ABSL_PREDICT_FALSE(at != end)) {
    return ValueAndUnknown(start, p, end, depth);
  }
  Copy(start, end - start);
  return true;
}

// What is rare in a Value: enum numbers of several bytes, and fields that are
// unknown, behind the known one or without it.
bool PlainWalk::ValueAndUnknown(const char* start, const char* p,
                                const char* end, int depth) {
  const char* known_end = p + 1;
  uint32_t size;
  int32_t value;
  switch (*p) {
    case kNullValue:
      if (!ReadPlainEnum(&known_end, end, &value)) return false;
      break;
    case kStringValue:
      if (!ReadLength(&known_end, end, &size) || !Utf8(known_end, size)) {
        return false;
      }
      known_end += size;
      break;
    case kNumberValue:
      if (end - known_end < 8) return false;
      known_end += 8;
      break;
    case kBoolValue:
      if (known_end == end || Byte(known_end) > 1) return false;
      ++known_end;
      break;
    case kStructValue:
    case kListValue: {
      if (!ReadLength(&known_end, end, &size) || depth < 1) return false;
      Copy(start, known_end - start);
      const char* const inner = known_end;
      known_end += size;
      const bool plain = *p == kStructValue
                             ? Struct(inner, known_end, depth - 1)
                             : List(inner, known_end, depth - 1);
      return plain && UnknownFields(kValueType, known_end, end, depth);
    }
    default:
      known_end = p;
      break;
  }
  Copy(start, known_end - start);
  return UnknownFields(kValueType, known_end, end, depth);
}

bool PlainWalk::UnknownFields(const MessageType& type, const char* p,
                              const char* end, int depth) {
  const char* const start = p;
  if (!SkipUnknown(&type, 0, &p, end, depth)) return false;
  Copy(start, end - start);
  return true;
}

bool PlainWalk::Message(const MessageType& type, const char* p, const char* end,
                        int depth, const MaskNode* node) {
  if (&type == &kStructType) {
    return node == nullptr ? Struct(p, end, depth)
                           : MaskedStruct(p, end, depth, *node);
  }
  uint32_t last = 0;
  while (p != end) {
    // Known fields have tags of one byte, and one of more is unknown.
    const uint8_t tag = Byte(p);
    const uint32_t number = TagNumber(tag);
    if (tag >= 0x80 || !IsKnown(type, tag)) {
      return UnknownFields(type, p, end, depth);
    }
    const FieldType& field = *type.Find(number);
    if (number < last ||
        (number == last && (field.kind != FieldKind::kMessage ||
                            field.label != FieldLabel::kRepeated))) {
      return false;
    }
    last = number;
    const MaskNode* const below =
        node == nullptr ? nullptr : node->Find(field.name);
    char* const before = out_;
    if (field.label == FieldLabel::kMap) {
      if (!Map(field, &p, end, depth, below)) return false;
    } else {
      const char* const start = p++;
      uint32_t size;
      int32_t value;
      switch (field.kind) {
        case FieldKind::kEnum:
          if (field.label == FieldLabel::kRepeated) {
            if (TagType(tag) != WireType::kBytes ||
                !ReadLength(&p, end, &size) || size == 0 ||
                !Capabilities(start, p, p + size, below)) {
              return false;
            }
            p += size;
          } else {
            if (!ReadPlainEnum(&p, end, &value) || value == 0) return false;
            Copy(start, p - start);
          }
          break;
        case FieldKind::kString:
          if (!ReadLength(&p, end, &size) || size == 0 || !Utf8(p, size)) {
            return false;
          }
          p += size;
          if (&type == &kRequestMetaType) {
            // meta.tag, the one string of a request outside Struct, is not
            // of the key.
            tag_ = absl::string_view(p - size, size);
          } else {
            Copy(start, p - start);
          }
          break;
        case FieldKind::kMessage:
          if (!ReadLength(&p, end, &size) || depth < 1 ||
              !MessageField(field, start, p, p + size, depth - 1, below)) {
            return false;
          }
          p += size;
          break;
        default:
          return false;  // no request has such a field
      }
    }
    // Read like anything else, since it must be one that protobuf reads.
    if (below != nullptr && below->masked) out_ = before;
  }
  return true;
}

// One message, from its tag at `start` on.
bool PlainWalk::MessageField(const FieldType& field, const char* start,
                             const char* p, const char* end, int depth,
                             const MaskNode* node) {
  const bool repeated = field.label == FieldLabel::kRepeated;
  if (node != nullptr && repeated) node = node->element();
  if (node == nullptr && field.message != &kRequestMetaType) {
    Copy(start, p - start);
    return Message(*field.message, p, end, depth, nullptr);
  }
  *out_++ = *start;
  char* const length = Open(end - p);
  char* const contents = out_;
  if (!Message(*field.message, p, end, depth, node)) return false;
  // A masked list element is emptied; others go as a whole, in Message.
  if (repeated && node != nullptr && node->masked) out_ = contents;
  Close(length, end - p);
  return true;
}

bool PlainWalk::Capabilities(const char* start, const char* p, const char* end,
                             const MaskNode* node) {
  const char* const first = p;
  size_t count = 0;
  int32_t value;
  for (; p != end; ++count) {
    if (!ReadPlainEnum(&p, end, &value)) return false;
  }
  if (node == nullptr || node->element() == nullptr) {
    Copy(start, end - start);
    return true;
  }
  *out_++ = *start;
  char* const length = Open(end - first);
  std::memset(out_, 0, count);
  out_ += count;
  Close(length, end - first);
  return true;
}

bool PlainWalk::Map(const FieldType& field, const char** p, const char* end,
                    int depth, const MaskNode* node) {
  const bool messages = field.kind == FieldKind::kMessage;
  const size_t base = entry_count_;
  if (depth < (messages ? 2 : 1) || !Gather(**p, p, end)) return false;
  const size_t count = entry_count_;
  for (size_t i = base; i < count; ++i) {
    const Entry entry = entries_[i];
    const MaskNode* const below =
        node == nullptr ? nullptr : node->Find({entry.key(), entry.key_size});
    if (below != nullptr && !below->masked) {
      *out_++ = *entry.start;
      const char* const key_field =
          entry.key() - 1 - VarintSize(entry.key_size);
      char* const length = Open(entry.end() - key_field);
      Copy(key_field, entry.key() + entry.key_size - key_field);
      *out_++ = kMapValue;
      char* const value_length = Open(entry.value_size);
      if (!Message(*field.message, entry.value(), entry.end(), depth - 2,
                   below)) {
        return false;
      }
      Close(value_length, entry.value_size);
      Close(length, entry.end() - key_field);
      continue;
    }
    char* const before = out_;
    if (messages) {
      Copy(entry.start, entry.value() - entry.start);
      if (!Message(*field.message, entry.value(), entry.end(), depth - 2,
                   nullptr)) {
        return false;
      }
    } else {
      Copy(entry.start, entry.size);
    }
    if (below != nullptr) out_ = before;
  }
  entry_count_ = base;
  return true;
}

bool PlainWalk::MaskedStruct(const char* p, const char* end, int depth,
                             const MaskNode& node) {
  const size_t base = entry_count_;
  if (!Gather(kStructFields, &p, end)) return false;
  const size_t count = entry_count_;
  if (count != base && depth < 2) return false;
  for (size_t i = base; i < count; ++i) {
    const Entry entry = entries_[i];
    const MaskNode* const below = node.Find({entry.key(), entry.key_size});
    if (below == nullptr || below->masked) {
      char* const before = out_;
      if (!Value(entry.start, entry.value(), entry.end(), depth - 2)) {
        return false;
      }
      if (below != nullptr) out_ = before;
      continue;
    }
    *out_++ = kStructFields;
    const char* const key_field = entry.key() - 1 - VarintSize(entry.key_size);
    char* const length = Open(entry.end() - key_field);
    Copy(key_field, entry.key() + entry.key_size - key_field);
    *out_++ = kMapValue;
    char* const value_length = Open(entry.value_size);
    if (!MaskedValue(entry.value(), entry.end(), depth - 2, *below)) {
      return false;
    }
    Close(value_length, entry.value_size);
    Close(length, entry.end() - key_field);
  }
  entry_count_ = base;
  return p == end || UnknownFields(kStructType, p, end, depth);
}

bool PlainWalk::MaskedValue(const char* p, const char* end, int depth,
                            const MaskNode& node) {
  if (p == end || (*p != kStructValue && *p != kListValue)) {
    // Nothing is below it that a path could mean.
    return Value(p, p, end, depth);
  }
  const bool is_struct = *p == kStructValue;
  *out_++ = *p++;
  uint32_t size;
  if (!ReadLength(&p, end, &size) || depth < 1) return false;
  char* const length = Open(size);
  if (!(is_struct ? MaskedStruct(p, p + size, depth - 1, node)
                  : MaskedList(p, p + size, depth - 1, node))) {
    return false;
  }
  Close(length, size);
  p += size;
  return p == end || UnknownFields(kValueType, p, end, depth);
}

bool PlainWalk::MaskedList(const char* p, const char* end, int depth,
                           const MaskNode& node) {
  const MaskNode* const element = node.element();
  if (element == nullptr) return List(p, end, depth);
  while (p != end && *p == kListValues) {
    *out_++ = *p++;
    uint32_t size;
    if (depth < 1 || !ReadLength(&p, end, &size)) return false;
    char* const length = Open(size);
    char* const contents = out_;
    if (!MaskedValue(p, p + size, depth - 1, *element)) return false;
    if (element->masked) out_ = contents;
    Close(length, size);
    p += size;
  }
  return p == end || UnknownFields(kListValueType, p, end, depth);
}

}  // namespace fncache::cache
