// SPDX-License-Identifier: Apache-2.0
#include "cache/wire/validate.h"

#include <cstdint>

#include "cache/wire/struct_check.h"
#include "cache/wire/wire.h"
#include "common/utf8.h"

namespace fncache::cache::wire {
namespace {

// One element of `field`, or of a map's value; the tag has been read and has
// the right wire type.
bool ValidateElement(const FieldType& field, Cursor* in, int depth) {
  uint64_t scalar;
  absl::string_view bytes;
  switch (field.wire_type()) {
    case WireType::kVarint:
      return in->ReadVarint(&scalar);
    case WireType::kFixed64:
      return in->ReadFixed64(&scalar);
    default:
      break;
  }
  if (!in->ReadBytes(&bytes)) return false;
  switch (field.kind) {
    case FieldKind::kString:
      return IsUtf8(bytes);
    case FieldKind::kMessage:
      return depth > 0 && Validate(*field.message, bytes, depth - 1);
    default:
      return true;
  }
}

bool ValidateMapEntry(const FieldType& map, absl::string_view bytes,
                      int depth) {
  return ForEachField(bytes, [&](uint32_t tag, Cursor* in) {
    if (tag == MakeTag(1, WireType::kBytes)) {
      absl::string_view key;
      return in->ReadBytes(&key) && IsUtf8(key);
    }
    if (tag == MakeTag(2, map.wire_type())) {
      return ValidateElement(map, in, depth);
    }
    return in->Skip(tag, depth);
  });
}

bool ValidatePackedVarints(absl::string_view bytes) {
  Cursor in(bytes);
  uint64_t value;
  while (!in.done()) {
    if (!in.ReadVarint(&value)) return false;
  }
  return true;
}

}  // namespace

bool Validate(const MessageType& type, absl::string_view bytes, int depth) {
  if (&type == &kStructType) return IsStruct(bytes, depth);
  Cursor in(bytes);
  while (!in.done()) {
    uint32_t tag;
    if (!in.ReadTag(&tag)) return false;
    const FieldType* field = type.Find(TagNumber(tag));
    if (field != nullptr && field->label == FieldLabel::kMap &&
        TagType(tag) == WireType::kBytes) {
      absl::string_view entry;
      if (!in.ReadBytes(&entry) || depth <= 0 ||
          !ValidateMapEntry(*field, entry, depth - 1)) {
        return false;
      }
    } else if (field != nullptr && TagType(tag) == field->wire_type()) {
      if (!ValidateElement(*field, &in, depth)) return false;
    } else if (field != nullptr && field->label == FieldLabel::kRepeated &&
               field->wire_type() == WireType::kVarint &&
               TagType(tag) == WireType::kBytes) {
      absl::string_view packed;
      if (!in.ReadBytes(&packed) || !ValidatePackedVarints(packed)) {
        return false;
      }
    } else if (!in.Skip(tag, depth)) {
      return false;
    }
  }
  return true;
}

}  // namespace fncache::cache::wire
