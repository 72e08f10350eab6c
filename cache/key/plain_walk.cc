#include "cache/key/plain_walk.h"

#include <algorithm>
#include <cstring>

#include "absl/base/optimization.h"

namespace fncache::cache::key {
namespace {

// What a large request may leave behind.
constexpr size_t kKeptEntries = 1 << 15;

// Asks for bytes that will be read soon. They are spread over the request as
// its encoder ordered them, so that no cache could know.
void Prefetch(const char* p, size_t size) {
  constexpr size_t kMost = 16 << 10;
  for (size_t i = 0; i < std::min(size, kMost); i += 64) {
    __builtin_prefetch(p + i);
  }
}

// Where the field that holds its key begins.
const char* KeyField(const MapEntry& entry) {
  return entry.key().data() - 1 - wire::VarintSize(entry.key_size);
}

// How far ahead of a map's entries that is done.
constexpr ptrdiff_t kAhead = 8 << 10;

}  // namespace

char* PlainWalk::Run(absl::string_view bytes, const MaskNode* masks, int depth,
                     char* out, absl::string_view* tag) {
  const char* const begin = bytes.data();
  in_end_ = begin + bytes.size();
  out_ = out;
  tag_ = absl::string_view();
  entry_count_ = 0;
  if (!Message(wire::kRunFunctionRequestType, begin, in_end_, depth, masks)) {
    return nullptr;
  }
  *tag = tag_;
  return out_;
}

void PlainWalk::Shrink() {
  if (entries_.size() > kKeptEntries) std::vector<MapEntry>().swap(entries_);
  structs_.Shrink();
}

inline void PlainWalk::Copy(const char* from, size_t size) {
  CopyLoosely(from, size, in_end_, out_);
  out_ += size;
}

inline char* PlainWalk::Open(size_t most) {
  char* const at = out_;
  out_ += wire::VarintSize(most);
  return at;
}

void PlainWalk::Close(char* at, size_t most) {
  const int reserved = wire::VarintSize(most);
  const size_t size = out_ - at - reserved;
  const int needed = wire::VarintSize(size);
  if (needed != reserved) {
    std::memmove(at + needed, at + reserved, size);
    out_ -= reserved - needed;
  }
  wire::WriteVarint(at, size);
}

bool PlainWalk::Gather(char tag, const char** p, const char* end) {
  const size_t base = entry_count_;
  const char* asked = *p;
  while (*p != end && **p == tag) {
    // Where the next entries begin is not known, so all is asked for.
    for (; asked < end && asked - *p < kAhead; asked += 64) {
      __builtin_prefetch(asked);
    }
    if (ABSL_PREDICT_FALSE(entry_count_ == entries_.size())) {
      entries_.resize(std::max<size_t>(256, 2 * entries_.size()));
    }
    if (!ReadEntry(p, end, in_end_, &entries_[entry_count_])) return false;
    ++entry_count_;
  }
  return OrderEntries(entries_.data() + base, entry_count_ - base);
}

bool PlainWalk::Whole(StructWalk::Kind kind, const char* p, const char* end,
                      int depth) {
  char* const out = structs_.Run(kind, {p, static_cast<size_t>(end - p)}, depth,
                                 in_end_, out_);
  if (out == nullptr) return false;
  out_ = out;
  return true;
}

bool PlainWalk::Value(const char* start, const char* p, const char* end,
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
          !IsPlainText({known_end, size}, in_end_)) {
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
      Copy(start, known_end - start);
      if (!Whole(*p == kStructValue ? StructWalk::Kind::kStruct
                                    : StructWalk::Kind::kList,
                 known_end, known_end + size, depth - 1)) {
        return false;
      }
      start = known_end += size;
      break;
    default:
      known_end = p;
      break;
  }
  Copy(start, known_end - start);
  return known_end == end ||
         UnknownFields(wire::kValueType, known_end, end, depth);
}

bool PlainWalk::UnknownFields(const wire::MessageType& type, const char* p,
                              const char* end, int depth) {
  Copy(p, end - p);
  return SkipUnknown(type, p, end, depth);
}

bool PlainWalk::Message(const wire::MessageType& type, const char* p,
                        const char* end, int depth, const MaskNode* node) {
  if (&type == &wire::kStructType) {
    return node == nullptr ? Whole(StructWalk::Kind::kStruct, p, end, depth)
                           : MaskedStruct(p, end, depth, *node);
  }
  uint32_t last = 0;
  while (p != end) {
    // Known fields have tags of one byte, and one of more is unknown.
    const uint8_t tag = Byte(p);
    const uint32_t number = wire::TagNumber(tag);
    if (tag >= 0x80 || !IsKnown(type, tag)) {
      return UnknownFields(type, p, end, depth);
    }
    const wire::FieldType& field = *type.Find(number);
    if (number < last ||
        (number == last && (field.kind != wire::FieldKind::kMessage ||
                            field.label != wire::FieldLabel::kRepeated))) {
      return false;
    }
    last = number;
    const MaskNode* const below =
        node == nullptr ? nullptr : node->Find(field.name);
    char* const before = out_;
    if (field.label == wire::FieldLabel::kMap) {
      if (!Map(field, &p, end, depth, below)) return false;
    } else {
      const char* const start = p++;
      uint32_t size;
      int32_t value;
      switch (field.kind) {
        case wire::FieldKind::kEnum:
          if (field.label == wire::FieldLabel::kRepeated) {
            if (wire::TagType(tag) != wire::WireType::kBytes ||
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
        case wire::FieldKind::kString:
          if (!ReadLength(&p, end, &size) || size == 0 ||
              !IsPlainText({p, size}, in_end_)) {
            return false;
          }
          p += size;
          if (&type == &wire::kRequestMetaType) {
            // meta.tag, the one string of a request outside Struct, is not
            // of the key.
            tag_ = absl::string_view(p - size, size);
          } else {
            Copy(start, p - start);
          }
          break;
        case wire::FieldKind::kMessage:
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
bool PlainWalk::MessageField(const wire::FieldType& field, const char* start,
                             const char* p, const char* end, int depth,
                             const MaskNode* node) {
  const bool repeated = field.label == wire::FieldLabel::kRepeated;
  if (node != nullptr && repeated) node = node->element();
  if (node == nullptr && field.message != &wire::kRequestMetaType) {
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

bool PlainWalk::Map(const wire::FieldType& field, const char** p,
                    const char* end, int depth, const MaskNode* node) {
  const bool messages = field.kind == wire::FieldKind::kMessage;
  const size_t base = entry_count_;
  if (depth < (messages ? 2 : 1) || !Gather(**p, p, end)) return false;
  const size_t count = entry_count_;
  for (size_t i = base; i < count; ++i) {
    const MapEntry entry = entries_[i];
    if (i + 1 < count) {
      Prefetch(entries_[i + 1].value(), entries_[i + 1].value_size);
    }
    const MaskNode* const below =
        node == nullptr ? nullptr : node->Find(entry.key());
    if (below != nullptr && !below->masked) {
      *out_++ = *entry.start;
      const char* const key_field = KeyField(entry);
      char* const length = Open(entry.end() - key_field);
      Copy(key_field, entry.key().end() - key_field);
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
    const MapEntry entry = entries_[i];
    const MaskNode* const below = node.Find(entry.key());
    if (below == nullptr || below->masked) {
      char* const before = out_;
      if (!Value(entry.start, entry.value(), entry.end(), depth - 2)) {
        return false;
      }
      if (below != nullptr) out_ = before;
      continue;
    }
    *out_++ = kStructFields;
    const char* const key_field = KeyField(entry);
    char* const length = Open(entry.end() - key_field);
    Copy(key_field, entry.key().end() - key_field);
    *out_++ = kMapValue;
    char* const value_length = Open(entry.value_size);
    if (!MaskedValue(entry.value(), entry.end(), depth - 2, *below)) {
      return false;
    }
    Close(value_length, entry.value_size);
    Close(length, entry.end() - key_field);
  }
  entry_count_ = base;
  return p == end || UnknownFields(wire::kStructType, p, end, depth);
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
  return p == end || UnknownFields(wire::kValueType, p, end, depth);
}

bool PlainWalk::MaskedList(const char* p, const char* end, int depth,
                           const MaskNode& node) {
  const MaskNode* const element = node.element();
  if (element == nullptr) {
    return Whole(StructWalk::Kind::kList, p, end, depth);
  }
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
  return p == end || UnknownFields(wire::kListValueType, p, end, depth);
}

}  // namespace fncache::cache::key
