// SPDX-License-Identifier: Apache-2.0
// Reads google.protobuf.Struct off the wire into nodes, as protobuf reads it:
// the last of equal keys and of the kinds of a value counts, and a message that
// comes in pieces is the pieces behind each other.
#include <algorithm>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/utf8.h"
#include "sdk/model/node.h"

namespace fncache::sdk {
namespace {

class Reader {
 public:
  explicit Reader(absl::string_view bytes)
      : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  bool done() const { return at_ == end_; }
  bool Varint(uint64_t* value) {
    *value = 0;
    for (int shift = 0; shift < 70 && at_ != end_; shift += 7) {
      const uint8_t byte = static_cast<uint8_t>(*at_++);
      if (shift < 64) *value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }
  bool Tag(uint32_t* tag) {
    uint64_t value;
    if (!Varint(&value) || value > UINT32_MAX || value >> 3 == 0) return false;
    *tag = static_cast<uint32_t>(value);
    return true;
  }
  bool Bytes(absl::string_view* bytes) {
    uint64_t size;
    if (!Varint(&size) || size > static_cast<uint64_t>(end_ - at_)) {
      return false;
    }
    *bytes = {at_, static_cast<size_t>(size)};
    at_ += size;
    return true;
  }
  bool Double(double* value) {
    if (end_ - at_ < 8) return false;
    std::memcpy(value, at_, 8);
    at_ += 8;
    return true;
  }
  // Skips the field of this tag, groups too.
  bool Skip(uint32_t tag, int depth = 0) {
    uint64_t ignored;
    absl::string_view bytes;
    switch (tag & 7) {
      case 0:
        return Varint(&ignored);
      case 1:
        return Advance(8);
      case 2:
        return Bytes(&bytes);
      case 3:
        while (depth < 100) {
          uint32_t inner;
          if (!Tag(&inner)) return false;
          if ((inner & 7) == 4) return inner >> 3 == tag >> 3;
          if (!Skip(inner, depth + 1)) return false;
        }
        return false;
      case 5:
        return Advance(4);
      default:
        return false;
    }
  }

 private:
  bool Advance(ptrdiff_t bytes) {
    if (end_ - at_ < bytes) return false;
    at_ += bytes;
    return true;
  }

  const char* at_;
  const char* const end_;
};

constexpr uint32_t kLengthDelimited = 2;
constexpr uint32_t Tag(uint32_t field, uint32_t type) {
  return field << 3 | type;
}

class Decoder {
 public:
  Decoder(Document* document, std::string* error)
      : document_(document), error_(error) {}

  bool Struct(absl::string_view bytes, Node* object, int depth) {
    if (!Enter(depth)) return false;
    object->kind = Kind::kObject;
    Reader reader(bytes);
    while (!reader.done()) {
      uint32_t tag;
      if (!reader.Tag(&tag)) return Broken();
      if (tag != Tag(1, kLengthDelimited)) {
        if (!reader.Skip(tag)) return Broken();
        continue;
      }
      absl::string_view entry;
      if (!reader.Bytes(&entry) || !Entry(entry, object, depth)) {
        return Broken();
      }
    }
    auto& all = object->children;
    const auto before = [](const Node* a, const Node* b) {
      return a->key < b->key;
    };
    if (std::is_sorted(all.begin(), all.end(), before) &&
        std::adjacent_find(all.begin(), all.end(),
                           [](const Node* a, const Node* b) {
                             return a->key == b->key;
                           }) == all.end()) {
      return true;
    }
    std::stable_sort(all.begin(), all.end(), before);
    size_t kept = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      if (i + 1 < all.size() && all[i]->key == all[i + 1]->key) continue;
      all[kept++] = all[i];
    }
    all.resize(kept);
    return true;
  }

 private:
  bool Enter(int depth) {
    if (depth <= kMaxDepth) return true;
    *error_ = absl::StrCat("is nested deeper than ", kMaxDepth, " levels");
    return false;
  }
  bool Broken() {
    if (error_->empty()) *error_ = "is broken: no Struct of protobuf";
    return false;
  }

  bool Entry(absl::string_view bytes, Node* object, int depth) {
    Reader reader(bytes);
    absl::string_view key, value;
    bool has_value = false;
    while (!reader.done()) {
      uint32_t tag;
      absl::string_view piece;
      if (!reader.Tag(&tag)) return false;
      if (tag == Tag(1, kLengthDelimited)) {
        if (!reader.Bytes(&key)) return false;
      } else if (tag == Tag(2, kLengthDelimited)) {
        if (!reader.Bytes(&piece)) return false;
        value = has_value ? Join(value, piece) : piece;
        has_value = true;
      } else if (!reader.Skip(tag)) {
        return false;
      }
    }
    if (!IsUtf8(key)) return false;
    Node* const child = document_->arena()->NewNode(document_, object);
    child->key = key;
    object->children.push_back(child);
    return Value(value, child, depth + 1);
  }

  bool Value(absl::string_view bytes, Node* node, int depth) {
    node->kind = Kind::kNull;
    Reader reader(bytes);
    absl::string_view text, message;
    while (!reader.done()) {
      uint32_t tag;
      uint64_t number;
      if (!reader.Tag(&tag)) return false;
      switch (tag) {
        case Tag(1, 0):
          if (!reader.Varint(&number)) return false;
          node->kind = Kind::kNull;
          break;
        case Tag(2, 1):
          if (!reader.Double(&node->number)) return false;
          node->kind = Kind::kNumber;
          break;
        case Tag(3, kLengthDelimited):
          if (!reader.Bytes(&text) || !IsUtf8(text)) return false;
          node->kind = Kind::kText;
          break;
        case Tag(4, 0):
          if (!reader.Varint(&number)) return false;
          node->boolean = number != 0;
          node->kind = Kind::kBool;
          break;
        case Tag(5, kLengthDelimited):
        case Tag(6, kLengthDelimited): {
          const Kind kind =
              tag == Tag(5, kLengthDelimited) ? Kind::kObject : Kind::kList;
          absl::string_view piece;
          if (!reader.Bytes(&piece)) return false;
          message = node->kind == kind ? Join(message, piece) : piece;
          node->kind = kind;
          break;
        }
        default:
          if (!reader.Skip(tag)) return false;
      }
    }
    if (node->kind == Kind::kText) node->text = text;
    if (node->kind == Kind::kObject) return Struct(message, node, depth);
    if (node->kind == Kind::kList) return List(message, node, depth);
    return true;
  }

  bool List(absl::string_view bytes, Node* list, int depth) {
    if (!Enter(depth)) return false;
    Reader reader(bytes);
    while (!reader.done()) {
      uint32_t tag;
      if (!reader.Tag(&tag)) return false;
      if (tag != Tag(1, kLengthDelimited)) {
        if (!reader.Skip(tag)) return false;
        continue;
      }
      absl::string_view value;
      if (!reader.Bytes(&value)) return false;
      Node* const element = document_->arena()->NewNode(document_, list);
      element->index = static_cast<int>(list->elements.size());
      list->elements.push_back(element);
      if (!Value(value, element, depth + 1)) return false;
    }
    list->size = list->elements.size();
    return true;
  }

  absl::string_view Join(absl::string_view a, absl::string_view b) {
    return document_->arena()->Keep(absl::StrCat(a, b));
  }

  Document* const document_;
  std::string* const error_;
};

}  // namespace

bool DecodeStruct(absl::string_view bytes, Node* root, std::string* error) {
  if (!Decoder(root->document, error).Struct(bytes, root, 1)) {
    if (error->empty()) *error = "is broken: no Struct of protobuf";
    return false;
  }
  return true;
}

}  // namespace fncache::sdk
