// SPDX-License-Identifier: Apache-2.0
#include "cache/key/read_fields.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "cache/key/plain_wire.h"
#include "cache/wire/schema.h"
#include "cache/wire/wire.h"

namespace fncache::cache::key {
namespace {

constexpr uint32_t kInput = wire::MakeTag(4, wire::WireType::kBytes);

constexpr absl::string_view kSpec = "spec";
constexpr absl::string_view kMetadata = "metadata";
// Where the entry of `spec` begins in it.
constexpr size_t kBareSpec = 16;

// Whether a Value has a Struct, once, and nothing else.
bool IsOneStruct(const char* p, const char* end) {
  uint32_t size;
  return p != end && *p++ == kStructValue && ReadLength(&p, end, &size) &&
         p + size == end;
}

bool IsHolder(char tag) { return tag == kStructValue || tag == kListValue; }

bool Is(absl::string_view key, absl::string_view name) {
  return key.size() == name.size() &&
         std::memcmp(key.data(), name.data(), name.size()) == 0;
}

// Sets `bare` to those entries of kBareObject that count of an object of which
// nothing was read. False: the object is not of the usual form.
bool ReadBare(const char* p, const char* end, absl::string_view* bare) {
  bool spec = false;
  bool metadata = false;
  while (p != end) {
    uint32_t size;
    if (*p++ != kStructFields || !ReadLength(&p, end, &size)) return false;
    const char* const entry_end = p + size;
    uint32_t key_size;
    if (p == entry_end || *p++ != kMapKey ||
        !ReadLength(&p, entry_end, &key_size)) {
      return false;
    }
    const absl::string_view key(p, key_size);
    p += key_size;
    if (p == entry_end || *p++ != kMapValue ||
        !ReadLength(&p, entry_end, &size) || p + size != entry_end) {
      return false;
    }
    bool* const kept = Is(key, kSpec)       ? &spec
                       : Is(key, kMetadata) ? &metadata
                                            : nullptr;
    if (kept != nullptr) {
      if (*kept || !IsOneStruct(p, entry_end)) return false;
      *kept = true;
    }
    p = entry_end;
  }
  *bare = kBareObject;
  if (!spec) bare->remove_suffix(kBareObject.size() - kBareSpec);
  if (!metadata) bare->remove_prefix(kBareSpec);
  return true;
}

class Walk {
 public:
  Walk(absl::string_view request, char* out)
      : asked_(request.data()),
        request_end_(request.data() + request.size()),
        out_(out) {}

  char* out() const { return out_; }

  // The fields of a message of `type` from `p` to `end`, of which messages
  // below are the request's own or lead to objects. `node` is where paths lead
  // (null: nowhere) and is not read as a whole.
  bool Message(const wire::MessageType& type, const char* p, const char* end,
               int depth, const MaskNode* node) {
    while (p != end) {
      const char* const start = p;
      uint32_t tag;
      if (!SkipField(&p, end, depth, &tag)) return false;
      const wire::FieldType* const field = type.Find(wire::TagNumber(tag));
      const MaskNode* const below = field == nullptr || node == nullptr
                                        ? nullptr
                                        : node->Find(field->name);
      if (field == nullptr || wire::TagType(tag) != wire::WireType::kBytes ||
          !LeadsToObjects(type, *field) || IsRead(below)) {
        Copy(start, p);
        continue;
      }
      if (depth < 1) return false;
      if (field->label == wire::FieldLabel::kMap) {
        p = start;
        do {
          if (!Entry(*field, &p, end, depth, below)) return false;
        } while (p != end && *p == *start);
        continue;
      }
      const char* at = start + 1;
      uint32_t size;
      if (!ReadLength(&at, p, &size)) return false;
      const MaskNode* inner = below;
      if (field->label == wire::FieldLabel::kRepeated && below != nullptr) {
        inner = below->element();
        if (IsRead(inner)) {
          Copy(start, p);
          continue;
        }
      }
      const Length length = Open(start, 1, size, inner);
      if (!Content(*field, at, p, depth - 1, inner)) return false;
      Close(length);
    }
    return true;
  }

 private:
  // The node was read with all that is below it.
  static bool IsRead(const MaskNode* node) {
    return node != nullptr && node->masked;
  }

  // Whether masks may hide something below this field.
  static bool LeadsToObjects(const wire::MessageType& type,
                             const wire::FieldType& field) {
    if (&type == &wire::kRunFunctionRequestType) {
      return field.name == "observed" || field.message == &wire::kResourcesType;
    }
    return field.message == &wire::kResourceType ||
           field.message == &wire::kStructType;
  }

  // Asks for bytes that will be read soon: only each length tells where the
  // next one is, so all is asked for.
  void AskAhead(const char* p) {
    constexpr ptrdiff_t kAhead = 8 << 10;
    const char* const end =
        request_end_ - p > kAhead ? p + kAhead : request_end_;
    const char* asked = std::max(asked_, p);
    for (; asked < end; asked += 64) __builtin_prefetch(asked);
    asked_ = asked;
  }

  // The entry at *p of a map that leads to objects. `node` is the map's.
  bool Entry(const wire::FieldType& field, const char** p, const char* end,
             int depth, const MaskNode* node) {
    AskAhead(*p);
    const char* const start = *p;
    MapEntry entry;
    if (!ReadEntryFields(p, end, &entry)) return false;
    const MaskNode* const below =
        node == nullptr ? nullptr : node->Find(entry.key());
    if (below == nullptr && field.message == &wire::kResourceType &&
        Unread(entry, depth - 2)) {
      return true;
    }
    if (IsRead(below) || !entry.usual()) {
      if (!IsRead(below) && entry.has_value()) return false;
      Copy(start, *p);
      return true;
    }
    const Length length = Open(start, 1, *p - start, below);
    if (!Holder(entry, below, [&] {
          return Content(field, entry.value(), entry.value_end(), depth - 2,
                         below);
        })) {
      return false;
    }
    Close(length);
    return true;
  }

  // The entry of a Resource of which nothing was read. False, and nothing
  // written: it does not begin with its object, once, or that is not of the
  // usual form.
  bool Unread(const MapEntry& entry, int depth) {
    const char* p = entry.value();
    const char* const end = entry.value_end();
    uint32_t size;
    absl::string_view bare;
    if (!entry.usual() || p == end || *p++ != kResourceObject ||
        !ReadLength(&p, end, &size) || !ReadBare(p, p + size, &bare)) {
      return false;
    }
    p += size;
    const char* const rest = p;
    while (p != end) {
      uint32_t tag;
      if (!SkipField(&p, end, depth, &tag) || tag == kResourceObject) {
        return false;
      }
    }
    const char* const key_end = entry.key().data() + entry.key_size;
    const char* const key_tag = KeyTag(entry);
    const size_t value_size = 2 + bare.size() + (end - rest);
    *out_++ = *entry.start;
    out_ =
        wire::WriteVarint(out_, (key_end - key_tag) + 1 +
                                    wire::VarintSize(value_size) + value_size);
    Copy(key_tag, key_end);
    *out_++ = kMapValue;
    out_ = wire::WriteVarint(out_, value_size);
    *out_++ = kResourceObject;
    *out_++ = static_cast<char>(bare.size());
    Copy(bare);
    Copy(rest, end);
    return true;
  }

  bool Content(const wire::FieldType& field, const char* p, const char* end,
               int depth, const MaskNode* node) {
    return field.message == &wire::kStructType
               ? Struct(p, end, depth, node, /*object=*/true)
               : Message(*field.message, p, end, depth, node);
  }

  // A Struct's fields. `object`: it is all of an object.
  bool Struct(const char* p, const char* end, int depth, const MaskNode* node,
              bool object) {
    if (depth < 0) return false;
    absl::string_view bare;
    if (object && node == nullptr && ReadBare(p, end, &bare)) {
      Copy(bare);
      return true;
    }
    while (p != end) {
      const char* const start = p;
      if (*p != kStructFields) {
        uint32_t tag;
        if (!SkipField(&p, end, depth, &tag)) return false;
        Copy(start, p);
        continue;
      }
      MapEntry entry;
      if (!ReadEntryFields(&p, end, &entry)) return false;
      const absl::string_view key = entry.key();
      const MaskNode* const below = node == nullptr ? nullptr : node->Find(key);
      if (below == nullptr && (!object || (key != kSpec && key != kMetadata))) {
        continue;
      }
      if (IsRead(below) || entry.value_size == 0) {
        Copy(start, p);
        continue;
      }
      if (!entry.usual() || depth < 2) return false;
      const Length length = Open(start, 1, p - start, below);
      if (!Holder(entry, below, [&] {
            return Value(entry.value(), entry.value_end(), depth - 2, below);
          })) {
        return false;
      }
      Close(length);
    }
    return true;
  }

  // A Value. Without a node nothing in a Struct counts; a list, which no mask
  // may hide then, counts whole.
  bool Value(const char* p, const char* end, int depth, const MaskNode* node) {
    while (p != end) {
      const char* const start = p;
      const char tag = *p;
      uint32_t any;
      if (!SkipField(&p, end, depth, &any)) return false;
      if (!IsHolder(tag) || (tag == kListValue && node == nullptr)) {
        Copy(start, p);
        continue;
      }
      const char* at = start + 1;
      uint32_t size;
      if (depth < 1 || !ReadLength(&at, p, &size)) return false;
      if (node == nullptr) {
        // None of its fields counts.
        Close(Open(start, 1, 0, nullptr));
        continue;
      }
      const Length length = Open(start, 1, size, node);
      const bool taken = tag == kStructValue
                             ? Struct(at, p, depth - 1, node, /*object=*/false)
                             : List(at, p, depth - 1, node->element());
      if (!taken) return false;
      Close(length);
    }
    return true;
  }

  // A list's elements, which stay, without what does not count in them.
  bool List(const char* p, const char* end, int depth, const MaskNode* node) {
    while (p != end) {
      const char* const start = p;
      uint32_t tag;
      if (!SkipField(&p, end, depth, &tag)) return false;
      if (tag != static_cast<uint32_t>(kListValues) || IsRead(node)) {
        Copy(start, p);
        continue;
      }
      const char* at = start + 1;
      uint32_t size;
      if (depth < 1 || !ReadLength(&at, p, &size)) return false;
      const Length length = Open(start, 1, size, node);
      if (node != nullptr && !Value(at, p, depth - 1, node)) return false;
      Close(length);
    }
    return true;
  }

  static const char* KeyTag(const MapEntry& entry) {
    return entry.key().data() - wire::VarintSize(entry.key_size) - 1;
  }

  // An entry's key, and its value with what `content` writes.
  template <typename Content>
  bool Holder(const MapEntry& entry, const MaskNode* node, Content content) {
    // The key with its tag and length, and the value's tag.
    const char* const value_tag =
        entry.value() - wire::VarintSize(entry.value_size) - 1;
    const char* const key_tag = KeyTag(entry);
    const Length length =
        Open(key_tag, value_tag + 1 - key_tag, entry.value_size, node);
    if (!content()) return false;
    Close(length);
    return true;
  }

  void Copy(absl::string_view bytes) {
    std::memcpy(out_, bytes.data(), bytes.size());
    out_ += bytes.size();
  }
  void Copy(const char* from, const char* to) {
    std::memcpy(out_, from, to - from);
    out_ += to - from;
  }

  // A length that is known later.
  struct Length {
    char* at;
    int reserved;
  };
  // Copies `size` bytes and opens a length behind them, for `expected` bytes.
  // Without a node hardly anything counts.
  Length Open(const char* from, size_t size, size_t expected,
              const MaskNode* node) {
    Copy(from, from + size);
    const Length length = {out_,
                           node == nullptr ? 1 : wire::VarintSize(expected)};
    out_ += length.reserved;
    return length;
  }
  void Close(const Length& length) {
    const size_t size = out_ - length.at - length.reserved;
    const int needed = wire::VarintSize(size);
    if (needed != length.reserved) {
      std::memmove(length.at + needed, length.at + length.reserved, size);
      out_ += needed - length.reserved;
    }
    wire::WriteVarint(length.at, size);
  }

  const char* asked_;  // up to here
  const char* const request_end_;
  char* out_;
};

}  // namespace

char* WriteReadFields(absl::string_view request, const MaskNode* reads,
                      char* out) {
  if (reads != nullptr && reads->masked) return nullptr;  // no path is empty
  Walk walk(request, out);
  const bool taken =
      walk.Message(wire::kRunFunctionRequestType, request.data(),
                   request.data() + request.size(), wire::kMaxDepth + 1, reads);
  return taken ? walk.out() : nullptr;
}

char* WriteInput(absl::string_view request, char* out) {
  const char* p = request.data();
  const char* const end = p + request.size();
  while (p != end) {
    const char* const start = p;
    uint32_t tag;
    if (!SkipField(&p, end, wire::kMaxDepth, &tag)) return nullptr;
    if (tag != kInput) continue;
    std::memcpy(out, start, p - start);
    out += p - start;
  }
  return out;
}

}  // namespace fncache::cache::key
