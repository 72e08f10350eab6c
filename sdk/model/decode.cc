// SPDX-License-Identifier: Apache-2.0
// Reads google.protobuf.Struct off the wire into nodes, as protobuf reads it:
// the last of equal keys and of the kinds of a value counts, and a message that
// comes in pieces is the pieces behind each other. Each piece is read where it
// is, so that any number of them costs no more than their bytes.
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

  bool Root(absl::string_view bytes, Node* object) {
    Become(Kind::kObject, object);
    if (!Fields(bytes, object, 1)) return Broken();
    Finish(object);
    return true;
  }

 private:
  // The last kind of a value counts, with what came since.
  static void Become(Kind kind, Node* node) {
    if (node->kind == kind) return;
    node->kind = kind;
    node->children.clear();
    node->elements.clear();
  }
  // Once all pieces of a value are read.
  static void Finish(Node* node) {
    node->size = node->elements.size();
    auto& all = node->children;
    const auto before = [](const Node* a, const Node* b) {
      return a->key < b->key;
    };
    const auto not_before = [&](const Node* a, const Node* b) {
      return !before(a, b);
    };
    if (std::adjacent_find(all.begin(), all.end(), not_before) == all.end()) {
      return;
    }
    std::stable_sort(all.begin(), all.end(), before);
    size_t kept = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      if (i + 1 < all.size() && all[i]->key == all[i + 1]->key) continue;
      all[kept++] = all[i];
    }
    all.resize(kept);
  }

  bool Enter(int depth) {
    if (depth <= kMaxDepth) return true;
    *error_ = absl::StrCat("is nested deeper than ", kMaxDepth, " levels");
    return false;
  }
  bool Broken() {
    if (error_->empty()) *error_ = "is broken: no Struct of protobuf";
    return false;
  }

  // A piece of a Struct or ListValue: calls `use` with each of its first field,
  // the entries or values.
  template <class Use>
  bool EachOf(absl::string_view bytes, int depth, Use use) {
    if (!Enter(depth)) return false;
    Reader reader(bytes);
    while (!reader.done()) {
      uint32_t tag;
      if (!reader.Tag(&tag)) return false;
      if (tag != Tag(1, kLengthDelimited)) {
        if (!reader.Skip(tag)) return false;
        continue;
      }
      absl::string_view one;
      if (!reader.Bytes(&one) || !use(one)) return false;
    }
    return true;
  }

  bool Fields(absl::string_view bytes, Node* object, int depth) {
    return EachOf(bytes, depth, [&](absl::string_view entry) {
      return Entry(entry, object, depth);
    });
  }

  bool Entry(absl::string_view bytes, Node* object, int depth) {
    Node* const child = document_->arena()->NewNode(document_, object);
    child->kind = Kind::kNull;
    object->children.push_back(child);
    Reader reader(bytes);
    while (!reader.done()) {
      uint32_t tag;
      absl::string_view piece;
      if (!reader.Tag(&tag)) return false;
      if (tag == Tag(1, kLengthDelimited)) {
        if (!reader.Bytes(&child->key)) return false;
      } else if (tag == Tag(2, kLengthDelimited)) {
        if (!reader.Bytes(&piece) || !Value(piece, child, depth + 1)) {
          return false;
        }
      } else if (!reader.Skip(tag)) {
        return false;
      }
    }
    Finish(child);
    return IsUtf8(child->key);
  }

  // A piece of a Value.
  bool Value(absl::string_view bytes, Node* node, int depth) {
    Reader reader(bytes);
    while (!reader.done()) {
      uint32_t tag;
      uint64_t number;
      absl::string_view piece;
      if (!reader.Tag(&tag)) return false;
      switch (tag) {
        case Tag(1, 0):
          if (!reader.Varint(&number)) return false;
          Become(Kind::kNull, node);
          break;
        case Tag(2, 1):
          if (!reader.Double(&node->number)) return false;
          Become(Kind::kNumber, node);
          break;
        case Tag(3, kLengthDelimited):
          if (!reader.Bytes(&node->text) || !IsUtf8(node->text)) return false;
          Become(Kind::kText, node);
          break;
        case Tag(4, 0):
          if (!reader.Varint(&number)) return false;
          node->boolean = number != 0;
          Become(Kind::kBool, node);
          break;
        case Tag(5, kLengthDelimited):
          Become(Kind::kObject, node);
          if (!reader.Bytes(&piece) || !Fields(piece, node, depth)) {
            return false;
          }
          break;
        case Tag(6, kLengthDelimited):
          Become(Kind::kList, node);
          if (!reader.Bytes(&piece) || !Elements(piece, node, depth)) {
            return false;
          }
          break;
        default:
          if (!reader.Skip(tag)) return false;
      }
    }
    return true;
  }

  bool Elements(absl::string_view bytes, Node* list, int depth) {
    return EachOf(bytes, depth, [&](absl::string_view value) {
      Node* const element = document_->arena()->NewNode(document_, list);
      element->kind = Kind::kNull;
      element->index = static_cast<int>(list->elements.size());
      list->elements.push_back(element);
      if (!Value(value, element, depth + 1)) return false;
      Finish(element);
      return true;
    });
  }

  Document* const document_;
  std::string* const error_;
};

}  // namespace

bool DecodeStruct(absl::string_view bytes, Node* root, std::string* error) {
  return Decoder(root->document, error).Root(bytes, root);
}

}  // namespace fncache::sdk
