// SPDX-License-Identifier: Apache-2.0
// Writes documents as google.protobuf.Struct: what earlier steps desire, and on
// top of it what this call set.
//
// The bytes are written from their end to their beginning, so that the length
// of a message is known when its head is written.
#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "sdk/model/node.h"

namespace fncache::sdk {
namespace {

class BackwardWriter {
 public:
  size_t size() const { return buffer_.size() - at_; }
  void Bytes(absl::string_view bytes) {
    Reserve(bytes.size());
    at_ -= bytes.size();
    if (!bytes.empty()) std::memcpy(&buffer_[at_], bytes.data(), bytes.size());
  }
  void Byte(uint8_t byte) {
    Reserve(1);
    buffer_[--at_] = static_cast<char>(byte);
  }
  void Varint(uint64_t value) {
    char bytes[10];
    size_t size = 0;
    do {
      bytes[size++] =
          static_cast<char>((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
      value >>= 7;
    } while (value != 0);
    Bytes({bytes, size});
  }
  // The head of what was written since the size was `before`.
  void Head(uint8_t tag, size_t before) {
    Varint(size() - before);
    Byte(tag);
  }
  std::string Take() { return buffer_.substr(at_); }

 private:
  void Reserve(size_t bytes) {
    if (at_ >= bytes) return;
    std::string larger(std::max(buffer_.size() * 2, size() + bytes + 1024),
                       '\0');
    const size_t at = larger.size() - size();
    std::memcpy(&larger[at], buffer_.data() + at_, size());
    buffer_ = std::move(larger);
    at_ = at;
  }

  std::string buffer_;
  size_t at_ = 0;
};

bool HasWait(const Node* node) {
  if (node->awaited != nullptr) return true;
  if (node->kind == Kind::kObject) {
    return std::any_of(node->children.begin(), node->children.end(), HasWait);
  }
  if (node->kind == Kind::kList) {
    for (size_t i = 0; i < node->size; ++i) {
      if (HasWait(node->elements[i])) return true;
    }
  }
  return false;
}

class Emitter {
 public:
  Emitter(Node* observed, std::vector<const Node*>* kept)
      : observed_(observed), kept_(kept) {}

  // The fields of an object, without its head. False if there are none and
  // nothing asked for the object.
  bool Fields(const Node* own, const Node* base, Node* observed,
              const std::function<bool(absl::string_view)>& filter) {
    if (own != nullptr && (own->hides_base || (own->kind != Kind::kObject &&
                                               own->kind != Kind::kUnset))) {
      base = nullptr;
    }
    if (base != nullptr && base->kind != Kind::kObject) base = nullptr;
    bool any = base != nullptr || observed != nullptr || own == nullptr ||
               !own->implicit;
    // Three lists of children in the order of their keys, from their ends.
    size_t mine = own == nullptr ? 0 : own->children.size();
    size_t earlier = base == nullptr ? 0 : base->children.size();
    size_t there = observed == nullptr ? 0 : observed->children.size();
    while (mine + earlier + there > 0) {
      absl::string_view key;
      bool first = true;
      const auto consider = [&](const Node* node) {
        if (first || node->key > key) key = node->key;
        first = false;
      };
      if (mine > 0) consider(own->children[mine - 1]);
      if (earlier > 0) consider(base->children[earlier - 1]);
      if (there > 0) consider(observed->children[there - 1]);
      const Node* own_child = nullptr;
      const Node* base_child = nullptr;
      Node* observed_child = nullptr;
      if (mine > 0 && own->children[mine - 1]->key == key) {
        own_child = own->children[--mine];
      }
      if (earlier > 0 && base->children[earlier - 1]->key == key) {
        base_child = base->children[--earlier];
      }
      if (there > 0 && observed->children[there - 1]->key == key) {
        observed_child = observed->children[--there];
      }
      if (filter != nullptr && !filter(key)) continue;
      const size_t before = out_.size();
      if (!Value(own_child, base_child, observed_child)) continue;
      out_.Head(0x12, before);
      const size_t value_end = out_.size();
      out_.Bytes(key);
      out_.Head(0x0a, value_end);
      out_.Head(0x0a, before);
      any = true;
    }
    return any;
  }
  std::string Take() { return out_.Take(); }

 private:
  // The content of a Value. `observed` is not null where what this layer lacks
  // comes from there, before the base. False: nothing is emitted.
  bool Value(const Node* own, const Node* base, Node* observed) {
    if (own != nullptr && own->removed) return false;
    if (own == nullptr ||
        (own->kind == Kind::kUnset && own->awaited == nullptr)) {
      if (observed != nullptr && Content(observed, base, nullptr)) return true;
      return base != nullptr && Content(base, nullptr, nullptr);
    }
    const bool keeps_list = own->kind == Kind::kList && HasWait(own);
    if (own->awaited == nullptr && !keeps_list) {
      if (Content(own, own->kind == Kind::kObject ? base : nullptr, observed)) {
        return true;
      }
      // Another value that is there, or of an earlier step, stays until one is
      // here. That an object is there, or nothing, is known from the paths
      // below it: they are awaited, and so read.
      const bool waits = HasWait(own);
      Node* const there = waits ? Observed(own) : nullptr;
      if (there != nullptr && there->kind != Kind::kUnset &&
          there->kind != Kind::kObject) {
        ReadWhole(there);
        if (Content(there, nullptr, nullptr)) return true;
      }
      return base != nullptr && base->kind != Kind::kObject &&
             (waits || !own->hides_base) && Content(base, nullptr, nullptr);
    }
    // The observed value is emitted instead of what is awaited here.
    if (kept_ != nullptr) kept_->push_back(own);
    Node* const there = Look(own);
    const bool other = there != nullptr && there->kind != Kind::kUnset &&
                       there->kind != Kind::kNull &&
                       there->kind != Kind::kObject;
    if (own->kind == Kind::kObject && !other &&
        Content(own, base,
                there != nullptr && there->kind == Kind::kObject ? there
                                                                 : nullptr)) {
      return true;
    }
    return there != nullptr && Content(there, base, nullptr);
  }

  bool Content(const Node* node, const Node* base, Node* observed) {
    const size_t before = out_.size();
    bool any = !node->implicit;
    switch (node->kind) {
      case Kind::kUnset:
        return false;
      case Kind::kNull:
        if (!any) return false;
        out_.Byte(0);
        out_.Byte(0x08);
        return true;
      case Kind::kBool:
        out_.Byte(node->boolean ? 1 : 0);
        out_.Byte(0x20);
        return true;
      case Kind::kNumber: {
        char bytes[8];
        std::memcpy(bytes, &node->number, 8);
        out_.Bytes({bytes, 8});
        out_.Byte(0x11);
        return true;
      }
      case Kind::kText:
        out_.Bytes(node->text);
        out_.Head(0x1a, before);
        return true;
      case Kind::kObject:
        if (!Fields(node, base, observed, {})) return false;
        out_.Head(0x2a, before);
        return true;
      case Kind::kList:
        for (size_t i = node->size; i-- > 0;) {
          const size_t end = out_.size();
          if (!Value(node->elements[i], nullptr, nullptr)) continue;
          out_.Head(0x0a, end);
          any = true;
        }
        if (!any) return false;
        out_.Head(0x32, before);
        return true;
    }
    return false;
  }

  // The observed node at the path of `own`, which is then known as read.
  Node* Look(const Node* own) {
    Node* const there = Observed(own);
    if (there != nullptr) ReadWhole(there);
    return there;
  }
  Node* Observed(const Node* own) {
    if (observed_ == nullptr) return nullptr;
    if (own->parent == nullptr) return observed_;
    Node* const above = Observed(own->parent);
    return own->index < 0 ? ChildOf(above, own->key)
                          : ElementOf(above, own->index);
  }

  Node* const observed_;
  std::vector<const Node*>* const kept_;
  BackwardWriter out_;
};

void CollectWaits(const Node* node, std::vector<Wait>* waits) {
  if (node->awaited != nullptr) waits->push_back({node, *node->awaited});
  if (node->kind == Kind::kObject) {
    for (const Node* const child : node->children) CollectWaits(child, waits);
  } else if (node->kind == Kind::kList) {
    for (size_t i = 0; i < node->size; ++i) {
      CollectWaits(node->elements[i], waits);
    }
  }
}

}  // namespace

std::vector<Wait> WaitsOf(const Node* node) {
  std::vector<Wait> waits;
  CollectWaits(node, &waits);
  return waits;
}

std::string Emit(Document* document, Node* observed,
                 std::vector<const Node*>* kept,
                 const std::function<bool(absl::string_view)>& filter) {
  document->Open();
  const Node* base = nullptr;
  if (document->base != nullptr) {
    document->base->Open();
    base = document->base->root();
  }
  Emitter emitter(observed, kept);
  const Node* const root = document->root();
  if (!root->removed) emitter.Fields(root, base, nullptr, filter);
  std::string bytes = emitter.Take();
  // Fields go from the last to the first: so did the kept ones.
  if (kept != nullptr) std::reverse(kept->begin(), kept->end());
  return bytes;
}

std::string EncodeStruct(Node* node) {
  ReadWhole(node);
  const Node* const shown = Peek(node);
  if (shown == nullptr || shown->kind != Kind::kObject) return {};
  // A copy resolves the layers below the node.
  Document* const copy = node->document->arena()->NewDocument();
  CopyNode(copy->root(), node);
  return Emit(copy, nullptr, nullptr);
}

}  // namespace fncache::sdk
