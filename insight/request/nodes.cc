// SPDX-License-Identifier: Apache-2.0
#include "insight/request/nodes.h"

#include <cstring>
#include <vector>

#include "absl/base/internal/endian.h"
#include "absl/strings/str_cat.h"
#include "cache/key/canonicalizer.h"
#include "cache/key/plain_wire.h"
#include "cache/wire/schema.h"
#include "cache/wire/wire.h"
#include "common/field_path.h"
#include "openssl/rand.h"
#include "xxhash.h"

namespace fncache::insight::request {
namespace {

namespace wire = cache::wire;

// Limits of the buffers that one message leaves to the next: bytes and nodes.
constexpr size_t kKeptBytes = 4 << 20;
constexpr size_t kKeptNodes = 1 << 16;

// Elements of lists hash under another seed than keys of the same digits.
constexpr uint64_t kElementSeed = 0x9e3779b97f4a7c15;

uint64_t PathOfName(uint64_t parent, absl::string_view name) {
  return XXH3_64bits_withSeed(name.data(), name.size(), parent);
}

uint64_t PathOfIndex(uint64_t parent, uint32_t index) {
  char bytes[4];
  absl::little_endian::Store32(bytes, index);
  return XXH3_64bits_withSeed(bytes, sizeof bytes, parent ^ kElementSeed);
}

}  // namespace

FingerprintSecret FingerprintSecret::Random() {
  FingerprintSecret secret;
  RAND_bytes(secret.bytes, sizeof secret.bytes);
  return secret;
}

struct RequestNodes::Impl {
  explicit Impl(const FingerprintSecret& fingerprints) : secret(fingerprints) {}

  // The parent of a node that is added.
  struct NodeRef {
    uint32_t node = kNoParent;
    uint64_t path = 0;
  };

  // From a message's canonical form, which is kept here.
  bool ReadForm(const wire::MessageType& type, absl::string_view form);
  void Shrink();

  NodeRef Add(NodeRef parent, NodeKind kind, absl::string_view name,
              uint64_t path, absl::string_view bytes, int32_t index = -1) {
    Node node;
    node.parent = parent.node;
    node.kind = kind;
    node.index = index;
    node.name = name;
    node.path = path;
    node.value = XXH3_64bits_withSecret(bytes.data(), bytes.size(),
                                        secret.bytes, sizeof secret.bytes);
    node.bytes = bytes;
    nodes.push_back(node);
    return {static_cast<uint32_t>(nodes.size() - 1), path};
  }
  NodeRef AddNamed(NodeRef parent, NodeKind kind, absl::string_view name,
                   absl::string_view bytes = {}) {
    return Add(parent, kind, name, PathOfName(parent.path, name), bytes);
  }
  // For a list whose count is known only after its elements.
  void SetCount(NodeRef list, uint32_t count) {
    Node& node = nodes[list.node];
    char bytes[4];
    absl::little_endian::Store32(bytes, count);
    node.value = Fingerprint({bytes, sizeof bytes});
  }
  void AddUnknown(NodeRef parent, absl::string_view bytes) {
    // A map key `?` has another hash.
    Add(parent, NodeKind::kUnknown, "[?]", PathOfIndex(parent.path, 0xffffffff),
        bytes);
  }
  NodeRef AddSecret(NodeRef parent, absl::string_view bytes) {
    return Add(parent, NodeKind::kSecret, "*",
               PathOfIndex(parent.path, 0xfffffffe), bytes);
  }

  // Each walks the canonical form of a message, which should not be malformed;
  // false if it is.
  bool Message(const wire::MessageType& type, absl::string_view bytes,
               NodeRef ref, int depth);
  bool MapField(const wire::FieldType& field, wire::Cursor* cursor,
                uint32_t tag, const char* end, absl::string_view first,
                NodeRef ref, int depth);

  // A Struct or list whose content follows, and the bytes of all its content.
  struct Item {
    NodeRef ref;
    size_t size;
    bool is_list;
    uint32_t secret;  // the node of the secret that it is in, or kNoParent
    // The metadata of a Secret: its managed fields and annotations name and
    // repeat the Secret's contents.
    bool of_secret = false;
  };
  // The content of a Struct is there level by level (docs/key-format.md).
  bool Levels(absl::string_view bytes, NodeRef ref, bool secret_object);
  bool Entries(const Item& item, bool secret_object, wire::Cursor* cursor);
  bool Elements(const Item& item, wire::Cursor* cursor);
  bool Value(const Item& in, absl::string_view name, uint64_t path,
             int32_t index, size_t left, bool secret, wire::Cursor* cursor);
  bool Unknown(const Item& item, const char* start, uint32_t tag, size_t left,
               wire::Cursor* cursor);
  // Subtracts the bytes that were read since `start` from `left`.
  static bool Take(size_t* left, const char* start, wire::Cursor* cursor) {
    const size_t taken = cursor->position() - start;
    if (taken > *left) return false;
    *left -= taken;
    return true;
  }
  uint64_t Fingerprint(absl::string_view bytes) const {
    return XXH3_64bits_withSecret(bytes.data(), bytes.size(), secret.bytes,
                                  sizeof secret.bytes);
  }

  const FingerprintSecret secret;
  cache::key::Canonicalizer canonicalizer;
  size_t form_size = 0;
  std::vector<Node> nodes;
  std::vector<Item> to_come;
};

namespace {

// Takes the next field off canonical bytes: its bytes for a message or text,
// else the bytes of its number.
bool TakeField(wire::Cursor* cursor, uint32_t* tag, absl::string_view* bytes) {
  if (!cursor->ReadTag(tag)) return false;
  if (wire::TagType(*tag) == wire::WireType::kBytes) {
    return cursor->ReadBytes(bytes);
  }
  const char* const start = cursor->position();
  if (!cursor->Skip(*tag, wire::kMaxDepth)) return false;
  *bytes = absl::string_view(start, cursor->position() - start);
  return true;
}

// Key and value of a map's entry.
bool TakeEntry(absl::string_view entry, absl::string_view* key,
               absl::string_view* value) {
  *key = *value = absl::string_view();
  wire::Cursor cursor(entry);
  while (!cursor.done()) {
    uint32_t tag;
    absl::string_view bytes;
    if (!TakeField(&cursor, &tag, &bytes)) return false;
    (wire::TagNumber(tag) == 1 ? *key : *value) = bytes;
  }
  return true;
}

// Whether the fields of an object, which are stored level by level, show a
// Secret.
bool IsSecretObject(absl::string_view fields) {
  bool version = false, kind = false;
  wire::Cursor cursor(fields);
  size_t left = fields.size();
  while (left > 0) {
    const char* const start = cursor.position();
    uint32_t tag;
    uint64_t size, value_size;
    absl::string_view key, text;
    if (!cursor.ReadTag(&tag) ||
        tag != static_cast<uint8_t>(cache::key::kStructFields) ||
        !cursor.ReadVarint(&size)) {
      break;
    }
    const size_t head = cursor.position() - start;
    if (head > left || size > left - head) break;
    left -= head + size;
    if (!cursor.ReadTag(&tag) || !cursor.ReadBytes(&key) ||
        !cursor.ReadTag(&tag) || !cursor.ReadVarint(&value_size)) {
      break;
    }
    // The entry's value is here, without the contents of Structs and lists.
    const char* const value = cursor.position();
    while (value_size > static_cast<size_t>(cursor.position() - value)) {
      if (!cursor.ReadTag(&tag)) return false;
      if (tag == cache::key::kStructValue || tag == cache::key::kListValue) {
        if (!cursor.ReadVarint(&size) || size > value_size) return false;
        value_size -= size;
      } else if (tag == cache::key::kStringValue) {
        if (!cursor.ReadBytes(&text)) return false;
        if (key == "kind") kind = text == "Secret";
        if (key == "apiVersion") version = text == "v1";
      } else if (!cursor.Skip(tag, wire::kMaxDepth)) {
        return false;
      }
    }
  }
  return version && kind;
}

bool HoldsSecrets(const wire::FieldType& field) {
  return field.kind == wire::FieldKind::kBytes;
}

}  // namespace

bool RequestNodes::Impl::Message(const wire::MessageType& type,
                                 absl::string_view bytes, NodeRef ref,
                                 int depth) {
  if (depth < 0) return false;
  wire::Cursor cursor(bytes);
  while (!cursor.done()) {
    const char* const start = cursor.position();
    uint32_t tag;
    absl::string_view value;
    if (!TakeField(&cursor, &tag, &value)) return false;
    const wire::FieldType* const field = type.Find(wire::TagNumber(tag));
    if (field == nullptr || !cache::key::IsKnown(type, tag)) {
      // Unknown fields come after the known ones.
      AddUnknown(ref,
                 absl::string_view(start, bytes.data() + bytes.size() - start));
      return true;
    }
    const char* const end = bytes.data() + bytes.size();
    if (field->label == wire::FieldLabel::kMap) {
      if (!MapField(*field, &cursor, tag, end, value, ref, depth - 1)) {
        return false;
      }
    } else if (field->kind != wire::FieldKind::kMessage) {
      // All occurrences of a repeated field, which are contiguous.
      const char* to = cursor.position();
      while (field->label == wire::FieldLabel::kRepeated && !cursor.done()) {
        wire::Cursor ahead(absl::string_view(to, end - to));
        uint32_t next;
        absl::string_view more;
        if (!TakeField(&ahead, &next, &more)) return false;
        if (wire::TagNumber(next) != field->number) break;
        to = ahead.position();
        cursor = wire::Cursor(absl::string_view(to, end - to));
      }
      AddNamed(ref, NodeKind::kScalar, field->name,
               absl::string_view(start, to - start));
    } else if (field->label == wire::FieldLabel::kRepeated) {
      const NodeRef list = AddNamed(ref, NodeKind::kList, field->name);
      uint32_t count = 0;
      for (;;) {
        const NodeRef element =
            Add(list, NodeKind::kMessage, {}, PathOfIndex(list.path, count), {},
                static_cast<int32_t>(count));
        ++count;
        if (!Message(*field->message, value, element, depth - 1)) return false;
        wire::Cursor ahead(
            absl::string_view(cursor.position(), cursor.remaining()));
        uint32_t next;
        if (ahead.done() || !ahead.ReadTag(&next) || next != tag) break;
        if (!TakeField(&cursor, &next, &value)) return false;
      }
      SetCount(list, count);
    } else if (field->message == &wire::kStructType) {
      const NodeRef object = AddNamed(ref, NodeKind::kStruct, field->name);
      const bool is_secret =
          &type == &wire::kResourceType && IsSecretObject(value);
      if (!Levels(value, object, is_secret)) return false;
    } else {
      const NodeRef message = AddNamed(ref, NodeKind::kMessage, field->name);
      if (!Message(*field->message, value, message, depth - 1)) return false;
    }
  }
  return true;
}

bool RequestNodes::Impl::MapField(const wire::FieldType& field,
                                  wire::Cursor* cursor, uint32_t tag,
                                  const char* end, absl::string_view first,
                                  NodeRef ref, int depth) {
  const NodeRef map = AddNamed(ref, NodeKind::kMap, field.name);
  const char* const start = first.data();
  const char* last_end = first.data() + first.size();
  for (absl::string_view entry = first;;) {
    if (!HoldsSecrets(field)) {
      absl::string_view key, value;
      if (!TakeEntry(entry, &key, &value)) return false;
      if (field.kind != wire::FieldKind::kMessage) {
        AddNamed(map, NodeKind::kScalar, key, value);
      } else if (!Message(*field.message, value,
                          AddNamed(map, NodeKind::kMessage, key), depth - 1)) {
        return false;
      }
    }
    last_end = entry.data() + entry.size();
    wire::Cursor ahead(absl::string_view(last_end, end - last_end));
    uint32_t next;
    if (ahead.done() || !ahead.ReadTag(&next) || next != tag) break;
    if (!TakeField(cursor, &next, &entry)) return false;
  }
  if (HoldsSecrets(field)) {
    AddSecret(map, absl::string_view(start, last_end - start));
  }
  return true;
}

bool RequestNodes::Impl::Levels(absl::string_view bytes, NodeRef ref,
                                bool secret_object) {
  wire::Cursor cursor(bytes);
  to_come.clear();
  to_come.push_back({ref, bytes.size(), /*is_list=*/false, kNoParent});
  for (size_t i = 0; i < to_come.size(); ++i) {
    const Item item = to_come[i];
    const char* const start = cursor.position();
    const bool read = item.is_list
                          ? Elements(item, &cursor)
                          : Entries(item, i == 0 && secret_object, &cursor);
    if (!read) return false;
    if (item.secret != kNoParent) {
      // A secret's contents make one value, level by level.
      Node& node = nodes[item.secret];
      node.value =
          XXH3_64bits_withSeed(start, cursor.position() - start, node.value) ^
          Fingerprint({start, static_cast<size_t>(cursor.position() - start)});
    }
  }
  return cursor.done();
}

bool RequestNodes::Impl::Entries(const Item& item, bool secret_object,
                                 wire::Cursor* cursor) {
  size_t left = item.size;
  while (left > 0) {
    const char* const start = cursor->position();
    uint32_t tag;
    uint64_t size;
    if (!cursor->ReadTag(&tag)) return false;
    if (tag != static_cast<uint8_t>(cache::key::kStructFields)) {
      return Unknown(item, start, tag, left, cursor);
    }
    absl::string_view key;
    if (!cursor->ReadVarint(&size) || !Take(&left, start, cursor) ||
        size > left) {
      return false;
    }
    left -= size;
    const char* const inner = cursor->position();
    uint64_t value_size;
    size_t entry_left = size;
    if (!cursor->ReadTag(&tag) || !cursor->ReadBytes(&key) ||
        !cursor->ReadTag(&tag) || !cursor->ReadVarint(&value_size) ||
        !Take(&entry_left, inner, cursor) || value_size != entry_left) {
      return false;
    }
    const uint64_t path = PathOfName(item.ref.path, key);
    const bool secret =
        (secret_object &&
         (key == "data" || key == "stringData" || key == "binaryData")) ||
        (item.of_secret && (key == "managedFields" || key == "annotations"));
    const size_t before = to_come.size();
    if (!Value(item, key, path, -1, value_size, secret, cursor)) return false;
    if (secret_object && key == "metadata" && to_come.size() > before) {
      to_come.back().of_secret = !to_come.back().is_list;
    }
  }
  return true;
}

bool RequestNodes::Impl::Elements(const Item& item, wire::Cursor* cursor) {
  size_t left = item.size;
  uint32_t count = 0;
  while (left > 0) {
    const char* const start = cursor->position();
    uint32_t tag;
    uint64_t size;
    if (!cursor->ReadTag(&tag)) return false;
    if (tag != static_cast<uint8_t>(cache::key::kListValues)) {
      if (!Unknown(item, start, tag, left, cursor)) return false;
      break;
    }
    if (!cursor->ReadVarint(&size) || !Take(&left, start, cursor) ||
        size > left) {
      return false;
    }
    left -= size;
    if (!Value(item, {}, PathOfIndex(item.ref.path, count),
               static_cast<int32_t>(count), size, /*secret=*/false, cursor)) {
      return false;
    }
    ++count;
  }
  if (item.secret == kNoParent) SetCount(item.ref, count);
  return true;
}

// Reads the rest of a message, from a field at `start` whose tag was read.
bool RequestNodes::Impl::Unknown(const Item& item, const char* start,
                                 uint32_t tag, size_t left,
                                 wire::Cursor* cursor) {
  for (;;) {
    if (!cursor->Skip(tag, wire::kMaxDepth)) return false;
    const size_t taken = cursor->position() - start;
    if (taken > left) return false;
    if (taken == left) break;
    if (!cursor->ReadTag(&tag)) return false;
  }
  if (item.secret == kNoParent) {
    AddUnknown(item.ref, absl::string_view(start, left));
  }
  return true;
}

bool RequestNodes::Impl::Value(const Item& in, absl::string_view name,
                               uint64_t path, int32_t index, size_t left,
                               bool secret, wire::Cursor* cursor) {
  const bool silent = in.secret != kNoParent;
  NodeRef ref = in.ref;
  if (left == 0) {
    if (!silent) Add(in.ref, NodeKind::kNoKind, name, path, {}, index);
    return true;
  }
  const char* start = cursor->position();
  uint32_t tag;
  if (!cursor->ReadTag(&tag)) return false;
  NodeKind kind;
  absl::string_view value;
  const char* const content = cursor->position();
  const absl::string_view content_tag(start, content - start);
  switch (tag) {
    case cache::key::kNullValue:
      kind = NodeKind::kNull;
      break;
    case cache::key::kNumberValue:
      kind = NodeKind::kNumber;
      break;
    case cache::key::kStringValue:
      kind = NodeKind::kString;
      break;
    case cache::key::kBoolValue:
      kind = NodeKind::kBool;
      break;
    case cache::key::kStructValue:
      kind = NodeKind::kStruct;
      break;
    case cache::key::kListValue:
      kind = NodeKind::kList;
      break;
    default:
      if (!silent) {
        ref = Add(in.ref, NodeKind::kNoKind, name, path, {}, index);
      }
      return Unknown({ref, 0, false, in.secret}, start, tag, left, cursor);
  }
  if (kind == NodeKind::kStruct || kind == NodeKind::kList) {
    uint64_t size;
    if (!cursor->ReadVarint(&size) || !Take(&left, start, cursor) ||
        size > left) {
      return false;
    }
    left -= size;
    uint32_t secret_node = in.secret;
    if (!silent) {
      ref =
          Add(in.ref, secret ? NodeKind::kStruct : kind, name, path, {}, index);
      // The kind counts, too: an empty list is no empty object.
      if (secret) secret_node = AddSecret(ref, content_tag).node;
    }
    to_come.push_back({ref, size, kind == NodeKind::kList, secret_node});
  } else {
    if (kind == NodeKind::kString) {
      if (!cursor->ReadBytes(&value)) return false;
    } else {
      if (!cursor->Skip(tag, 0)) return false;
      value = absl::string_view(content, cursor->position() - content);
    }
    if (!Take(&left, start, cursor)) return false;
    if (!silent) {
      ref = Add(in.ref, secret ? NodeKind::kStruct : kind, name, path,
                secret ? absl::string_view() : value, index);
      if (secret) {
        AddSecret(ref, absl::string_view(start, cursor->position() - start));
      }
    }
  }
  if (left == 0) return true;
  start = cursor->position();
  return cursor->ReadTag(&tag) &&
         Unknown({ref, 0, false, in.secret}, start, tag, left, cursor);
}

bool RequestNodes::Impl::ReadForm(const wire::MessageType& type,
                                  absl::string_view form) {
  // A map entry counts as a message in the depth limit, and at most twice here.
  constexpr int kDepth = 3 * wire::kMaxDepth;
  form_size = form.size();
  if (Message(type, form, NodeRef{}, kDepth)) return true;
  nodes.clear();
  return false;
}

void RequestNodes::Impl::Shrink() {
  if (form_size > kKeptBytes / 2) canonicalizer.Shrink();
  if (nodes.capacity() > kKeptNodes) std::vector<Node>().swap(nodes);
  nodes.clear();
  form_size = 0;
}

RequestNodes::RequestNodes(const FingerprintSecret& secret)
    : impl_(std::make_unique<Impl>(secret)) {}

RequestNodes::~RequestNodes() = default;

bool RequestNodes::Read(absl::Span<const absl::string_view> slices) {
  impl_->Shrink();
  cache::key::Canonicalizer::Form form;
  return impl_->canonicalizer.Request(impl_->canonicalizer.Join(slices), "",
                                      nullptr, /*drift=*/false, &form) &&
         impl_->ReadForm(wire::kRunFunctionRequestType, form.bytes);
}

bool RequestNodes::ReadResponse(absl::Span<const absl::string_view> slices) {
  impl_->Shrink();
  absl::string_view form;
  return impl_->canonicalizer.Response(impl_->canonicalizer.Join(slices),
                                       &form) &&
         impl_->ReadForm(wire::kRunFunctionResponseType, form);
}

absl::Span<const Node> RequestNodes::nodes() const { return impl_->nodes; }

namespace {

std::string SpellWith(absl::Span<const Node> nodes, size_t node,
                      bool any_element) {
  std::vector<uint32_t> chain;
  for (auto at = static_cast<uint32_t>(node); at != kNoParent;
       at = nodes[at].parent) {
    chain.push_back(at);
  }
  std::string path;
  for (size_t i = chain.size(); i-- > 0;) {
    const Node& one = nodes[chain[i]];
    if (one.index >= 0) {
      path = any_element ? absl::StrCat(path, ".*")
                         : PathOfElement(path, one.index);
    } else if (one.kind == NodeKind::kUnknown) {
      absl::StrAppend(&path, one.name);
    } else if (one.kind == NodeKind::kSecret) {
      absl::StrAppend(&path, path.empty() ? "" : ".", one.name);
    } else {
      path = PathBelow(path, one.name);
    }
  }
  return path;
}

}  // namespace

std::string RequestNodes::Spell(size_t node) const {
  return SpellWith(impl_->nodes, node, /*any_element=*/false);
}

std::string RequestNodes::SpellMask(size_t node) const {
  return SpellWith(impl_->nodes, node, /*any_element=*/true);
}

}  // namespace fncache::insight::request
