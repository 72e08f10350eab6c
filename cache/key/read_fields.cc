// SPDX-License-Identifier: Apache-2.0
#include "cache/key/read_fields.h"

#include <cstddef>
#include <cstdint>

#include "cache/key/plain_wire.h"
#include "cache/wire/schema.h"
#include "cache/wire/wire.h"

namespace fncache::cache::key {
namespace {

constexpr uint32_t kInput = wire::MakeTag(4, wire::WireType::kBytes);

bool IsHolder(char tag) { return tag == kStructValue || tag == kListValue; }

class Walk {
 public:
  Walk(const char* end, std::string* out) : end_(end), out_(*out) {}

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
        if (!ReadEntry(&at, p, end_, &entry)) return false;
        const MaskNode* const inner =
            below == nullptr ? nullptr : below->Find(entry.key());
        if (IsRead(inner) || !entry.usual()) {
          if (!IsRead(inner) && entry.has_value()) return false;
          Copy(start, p);
          continue;
        }
        const size_t length = Open(start, 1, p - start);
        if (!Holder(entry, [&] {
              return Content(*field, entry.value(), entry.value_end(),
                             depth - 2, inner);
            })) {
          return false;
        }
        Close(length, p - start);
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
      const size_t length = Open(start, 1, size);
      if (!Content(*field, at, p, depth - 1, inner)) return false;
      Close(length, size);
    }
    return true;
  }

 private:
  // What is at this node is read with all that is below it.
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

  // A Struct's fields. `object`: it is all of an object.
  bool Struct(const char* p, const char* end, int depth, const MaskNode* node,
              bool object) {
    if (depth < 0) return false;
    while (p != end) {
      const char* const start = p;
      if (*p != kStructFields) {
        uint32_t tag;
        if (!SkipField(&p, end, depth, &tag)) return false;
        Copy(start, p);
        continue;
      }
      MapEntry entry;
      if (!ReadEntry(&p, end, end_, &entry)) return false;
      const MaskNode* const below =
          node == nullptr ? nullptr : node->Find(entry.key());
      if (below == nullptr &&
          !(object && (entry.key() == "spec" || entry.key() == "metadata"))) {
        continue;
      }
      if (IsRead(below) || entry.value_size == 0) {
        Copy(start, p);
        continue;
      }
      if (!entry.usual() || depth < 2) return false;
      const size_t length = Open(start, 1, p - start);
      if (!Holder(entry, [&] {
            return Value(entry.value(), entry.value_end(), depth - 2, below);
          })) {
        return false;
      }
      Close(length, p - start);
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
      const size_t length = Open(start, 1, size);
      const bool taken = tag == kStructValue
                             ? Struct(at, p, depth - 1, node, /*object=*/false)
                             : List(at, p, depth - 1, node->element());
      if (!taken) return false;
      Close(length, size);
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
      const size_t length = Open(start, 1, size);
      if (node != nullptr && !Value(at, p, depth - 1, node)) return false;
      Close(length, size);
    }
    return true;
  }

  // An entry's key, and its value with what `content` writes.
  template <typename Content>
  bool Holder(const MapEntry& entry, Content content) {
    // The key with its tag and length, and the value's tag.
    const char* const value_tag =
        entry.value() - wire::VarintSize(entry.value_size) - 1;
    const char* const key_tag =
        entry.key().data() - wire::VarintSize(entry.key_size) - 1;
    const size_t length =
        Open(key_tag, value_tag + 1 - key_tag, entry.value_size);
    if (!content()) return false;
    Close(length, entry.value_size);
    return true;
  }

  void Copy(const char* from, const char* to) { out_.append(from, to - from); }

  // Copies `size` bytes and opens a length behind them, of which the final
  // value is at most `most`. Close gets what Open returned.
  size_t Open(const char* from, size_t size, size_t most) {
    out_.append(from, size);
    const size_t at = out_.size();
    out_.append(wire::VarintSize(most), '\0');
    return at;
  }
  void Close(size_t at, size_t most) {
    const size_t reserved = wire::VarintSize(most);
    const size_t size = out_.size() - at - reserved;
    const size_t needed = wire::VarintSize(size);
    if (needed < reserved) out_.erase(at, reserved - needed);
    wire::WriteVarint(&out_[at], size);
  }

  const char* const end_;
  std::string& out_;
};

}  // namespace

bool AppendReadFields(absl::string_view request, const MaskNode* reads,
                      std::string* part) {
  if (reads != nullptr && reads->masked) return false;  // no path is empty
  const char* const end = request.data() + request.size();
  return Walk(end, part).Message(wire::kRunFunctionRequestType, request.data(),
                                 end, wire::kMaxDepth + 1, reads);
}

bool AppendInput(absl::string_view request, std::string* part) {
  const char* p = request.data();
  const char* const end = p + request.size();
  while (p != end) {
    const char* const start = p;
    uint32_t tag;
    if (!SkipField(&p, end, wire::kMaxDepth, &tag)) return false;
    if (tag == kInput) part->append(start, p - start);
  }
  return true;
}

}  // namespace fncache::cache::key
