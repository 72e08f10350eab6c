// SPDX-License-Identifier: Apache-2.0
#include "cache/key/read_fields.h"

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
// Entries of a Struct with these keys and an empty Struct.
constexpr absl::string_view kEmptySpec("\x0a\x0a\x0a\x04spec\x12\x02\x2a\0",
                                       12);
constexpr absl::string_view kEmptyMetadata(
    "\x0a\x0e\x0a\x08metadata\x12\x02\x2a\0", 16);

// Whether a Value has a Struct, once, and nothing else.
bool IsOneStruct(const char* p, const char* end) {
  uint32_t size;
  return p != end && *p++ == kStructValue && ReadLength(&p, end, &size) &&
         p + size == end;
}

bool IsHolder(char tag) { return tag == kStructValue || tag == kListValue; }

class Walk {
 public:
  explicit Walk(char* out) : out_(out) {}

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
        MapEntry entry;
        const char* at = start;
        if (!ReadEntryFields(&at, p, &entry)) return false;
        const MaskNode* const inner =
            below == nullptr ? nullptr : below->Find(entry.key());
        if (IsRead(inner) || !entry.usual()) {
          if (!IsRead(inner) && entry.has_value()) return false;
          Copy(start, p);
          continue;
        }
        const Length length = Open(start, 1, p - start, inner);
        if (!Holder(entry, inner, [&] {
              return Content(*field, entry.value(), entry.value_end(),
                             depth - 2, inner);
            })) {
          return false;
        }
        Close(length);
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

  bool Content(const wire::FieldType& field, const char* p, const char* end,
               int depth, const MaskNode* node) {
    return field.message == &wire::kStructType
               ? Struct(p, end, depth, node, /*object=*/true)
               : Message(*field.message, p, end, depth, node);
  }

  // An object of which nothing was read. False, and nothing written: it is not
  // of the usual form.
  bool Unread(const char* p, const char* end) {
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
      bool* const kept = key == kSpec       ? &spec
                         : key == kMetadata ? &metadata
                                            : nullptr;
      if (kept != nullptr) {
        if (*kept || !IsOneStruct(p, entry_end)) return false;
        *kept = true;
      }
      p = entry_end;
    }
    // In the order of the canonical form, which then takes no time.
    if (metadata) Copy(kEmptyMetadata);
    if (spec) Copy(kEmptySpec);
    return true;
  }

  // A Struct's fields. `object`: it is all of an object.
  bool Struct(const char* p, const char* end, int depth, const MaskNode* node,
              bool object) {
    if (depth < 0) return false;
    if (object && node == nullptr && Unread(p, end)) return true;
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

  // An entry's key, and its value with what `content` writes.
  template <typename Content>
  bool Holder(const MapEntry& entry, const MaskNode* node, Content content) {
    // The key with its tag and length, and the value's tag.
    const char* const value_tag =
        entry.value() - wire::VarintSize(entry.value_size) - 1;
    const char* const key_tag =
        entry.key().data() - wire::VarintSize(entry.key_size) - 1;
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

  char* out_;
};

}  // namespace

char* WriteReadFields(absl::string_view request, const MaskNode* reads,
                      char* out) {
  if (reads != nullptr && reads->masked) return nullptr;  // no path is empty
  Walk walk(out);
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
