// SPDX-License-Identifier: Apache-2.0
#include "tests/cache/key/unfold.h"

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "cache/wire/schema.h"
#include "cache/wire/wire.h"
#include "tests/cache/key/drift_oracle.h"

namespace fncache::cache::key {
namespace {

constexpr uint32_t kFirst = wire::MakeTag(1, wire::WireType::kBytes);
constexpr uint32_t kSecond = wire::MakeTag(2, wire::WireType::kBytes);
constexpr uint32_t kStructIn = wire::MakeTag(5, wire::WireType::kBytes);
constexpr uint32_t kListIn = wire::MakeTag(6, wire::WireType::kBytes);

// Bytes read from the front; `ok` says whether all that was asked for was
// there.
struct Reader {
  absl::string_view rest;
  bool ok = true;

  bool Starts(uint32_t tag) const {
    return !rest.empty() && static_cast<uint8_t>(rest[0]) == tag;
  }
  absl::string_view Take(size_t size) {
    if (size > rest.size()) {
      ok = false;
      size = rest.size();
    }
    const absl::string_view taken = rest.substr(0, size);
    rest.remove_prefix(size);
    return taken;
  }
  // A tag of one byte, and the length behind it.
  uint64_t TagAndLength() {
    Take(1);
    wire::Cursor cursor(rest);
    uint64_t length = 0;
    ok = ok && cursor.ReadVarint(&length);
    Take(cursor.position() - rest.data());
    return length;
  }
};

// A message that is read with its contents elsewhere: its own bytes, and
// between them others'.
struct Part {
  std::string bytes;
  std::unique_ptr<Part> inner;  // follows the bytes
  std::vector<Part> more;       // follow both
  // Not 0: `inner` has no length before it. It is in a Value with this tag, and
  // if there is a key, in an entry of a Struct.
  char tag = 0;
  absl::optional<std::string> key;

  void AppendTo(std::string* out) const {
    if (tag != 0) return AppendFramed(out);
    out->append(bytes);
    if (inner != nullptr) inner->AppendTo(out);
    for (const Part& part : more) part.AppendTo(out);
  }
  void AppendFramed(std::string* out) const {
    std::string contents;
    inner->AppendTo(&contents);
    std::string value;
    wire::AppendBytesField(&value, wire::TagNumber(tag), contents);
    for (const Part& part : more) part.AppendTo(&value);
    std::string entry;
    if (key.has_value()) {
      wire::AppendBytesField(&entry, 1, *key);
      wire::AppendBytesField(&entry, 2, value);
    }
    wire::AppendBytesField(out, 1, key.has_value() ? entry : value);
  }
};

// The node that leads into a Struct or list in a Value, where `node` is that of
// the Value, of an entry with this key or of an element; null: nothing does.
const MaskNode* Inside(const MaskNode* node, bool list,
                       const absl::optional<std::string>& key) {
  if (node == nullptr || !list) return node;
  if (node->drifts == MaskNode::Drifts::kStatus && key == "managedFields") {
    node = node->managed.get();
  }
  return node != nullptr && node->element() != nullptr ? node : nullptr;
}

// How many bytes of unknown fields precede a zero.
size_t UnknownSize(Reader* in) {
  wire::Cursor cursor(in->rest);
  const auto taken = [&] { return cursor.position() - in->rest.data(); };
  while (in->ok && !cursor.done() && in->rest[taken()] != 0) {
    uint32_t tag;
    in->ok = cursor.ReadTag(&tag) && cursor.Skip(tag, wire::kMaxDepth);
  }
  in->ok = in->ok && !cursor.done();
  return taken();
}

// A Struct or list of this size, level by level. With `root_node` and tuning
// its size does not count, and it ends with a zero.
Part ReadLevels(Reader* in, bool is_list, size_t whole_size,
                const MaskNode* root_node) {
  struct Pending {
    Part* part;  // an `inner`, which stays where it is
    bool list;
    size_t size;
    const MaskNode* node;
  };
  Part root;
  std::deque<Pending> pending = {{&root, is_list, whole_size, root_node}};
  for (; in->ok && !pending.empty(); pending.pop_front()) {
    const Pending own = pending.front();
    size_t left = own.node == nullptr ? own.size : in->rest.size();
    while (in->ok && left > 0 && in->Starts(kFirst)) {
      const absl::string_view begin = in->rest;
      size_t size = in->TagAndLength();
      const size_t head = begin.size() - in->rest.size();
      if (head + size > left) in->ok = false;
      left -= head + size;
      absl::optional<std::string> key;
      if (!own.list) {
        // The key, and how large the value is.
        const size_t at = in->rest.size();
        in->ok = in->ok && in->Starts(kFirst);
        key = std::string(in->Take(in->TagAndLength()));
        in->ok = in->ok && in->Starts(kSecond);
        const size_t value_size = in->TagAndLength();
        if (at - in->rest.size() + value_size != size) in->ok = false;
        size = value_size;
      }
      Part& part = own.part->more.emplace_back();
      // The bytes behind an empty value do not belong to it.
      if (size > 0 && (in->Starts(kStructIn) || in->Starts(kListIn))) {
        const bool list = in->Starts(kListIn);
        const MaskNode* below = nullptr;
        if (own.node != nullptr) {
          below = own.list ? own.node->element() : own.node->Find(*key);
        }
        below = Inside(below, list, key);
        if (below != nullptr) {
          part.tag = list ? kListIn : kStructIn;
          part.key = key;
          in->Take(1);
          part.inner = std::make_unique<Part>();
          const absl::string_view unknown = in->Take(size - 1);
          part.more.emplace_back().bytes.assign(unknown.data(), unknown.size());
          pending.push_back({part.inner.get(), list, 0, below});
          continue;
        }
        const size_t at = in->rest.size();
        const size_t held = in->TagAndLength();
        const size_t value_head = at - in->rest.size();
        if (value_head + held > size) in->ok = false;
        part.bytes.assign(begin.data(), begin.size() - in->rest.size());
        part.inner = std::make_unique<Part>();
        const absl::string_view unknown = in->Take(size - value_head - held);
        part.more.emplace_back().bytes.assign(unknown.data(), unknown.size());
        if (held > 0) {
          pending.push_back({part.inner.get(), list, held, nullptr});
        }
      } else {
        const absl::string_view value = in->Take(size);
        part.bytes.assign(begin.data(), begin.size() - in->rest.size());
        if (own.node != nullptr && size == 2 && value[0] == 0) {
          // A mark: what stands for it in messages takes as many bytes.
          part.bytes[part.bytes.size() - 2] = kMarkTag;
        }
      }
      if (!in->ok) return root;
    }
    // Unknown fields, and the end.
    if (own.node != nullptr) left = UnknownSize(in);
    const absl::string_view unknown = in->Take(left);
    if (own.node != nullptr) in->Take(1);
    own.part->more.emplace_back().bytes.assign(unknown.data(), unknown.size());
  }
  return root;
}

class Unfolder {
 public:
  explicit Unfolder(bool tuned) : tuned_(tuned) {}

  // A message between its tag and its length is read within its own bounds.
  std::string Message(const wire::MessageType& type, absl::string_view bytes,
                      const MaskNode* node) {
    if (&type == &wire::kStructType) return Struct(bytes, node);
    std::string out;
    Reader in{bytes};
    while (ok_ && !in.rest.empty()) {
      const auto tag = static_cast<uint8_t>(in.rest[0]);
      const wire::FieldType* field = type.Find(wire::TagNumber(tag));
      if (tag >= 0x80 || field == nullptr ||
          wire::TagType(tag) != wire::WireType::kBytes ||
          (field->kind != wire::FieldKind::kMessage &&
           field->label != wire::FieldLabel::kMap)) {
        wire::Cursor cursor(in.rest);
        uint32_t whole_tag;
        if (!cursor.ReadTag(&whole_tag) ||
            !cursor.Skip(whole_tag, wire::kMaxDepth)) {
          ok_ = false;
          break;
        }
        const absl::string_view taken =
            in.Take(cursor.position() - in.rest.data());
        out.append(taken.data(), taken.size());
        continue;
      }
      const MaskNode* below =
          node == nullptr ? nullptr : node->Find(field->name);
      const absl::string_view inner = in.Take(in.TagAndLength());
      ok_ = ok_ && in.ok;
      if (!ok_) break;
      if (field->label == wire::FieldLabel::kMap) {
        wire::AppendBytesField(&out, field->number,
                               Entry(*field, inner, below));
      } else {
        if (field->label == wire::FieldLabel::kRepeated && below != nullptr) {
          below = below->element();
        }
        wire::AppendBytesField(&out, field->number,
                               Message(*field->message, inner, below));
      }
    }
    return out;
  }

  bool ok() const { return ok_; }

 private:
  std::string Entry(const wire::FieldType& field, absl::string_view bytes,
                    const MaskNode* node) {
    Reader in{bytes};
    ok_ = ok_ && in.Starts(kFirst);
    const absl::string_view key = in.Take(in.TagAndLength());
    ok_ = ok_ && in.Starts(kSecond);
    const absl::string_view value = in.Take(in.TagAndLength());
    ok_ = ok_ && in.ok && in.rest.empty();
    if (!ok_) return "";
    if (node != nullptr) node = node->Find(key);
    std::string out;
    wire::AppendBytesField(&out, 1, key);
    if (field.kind != wire::FieldKind::kMessage) {
      wire::AppendBytesField(&out, 2, value);
    } else if (field.message == &wire::kValueType) {
      wire::AppendBytesField(&out, 2, Value(value, node));
    } else {
      wire::AppendBytesField(&out, 2, Message(*field.message, value, node));
    }
    return out;
  }

  std::string Levels(bool list, absl::string_view bytes,
                     const MaskNode* node = nullptr) {
    Reader in{bytes};
    const Part part = ReadLevels(&in, list, bytes.size(), node);
    ok_ = ok_ && in.ok && in.rest.empty();
    std::string out;
    part.AppendTo(&out);
    return out;
  }

  std::string Struct(absl::string_view bytes, const MaskNode* node) {
    if (node == nullptr || tuned_) {
      return Levels(/*list=*/false, bytes, node);
    }
    return InPlace(bytes, [&](absl::string_view entry) {
      return Entry(wire::kStructType.fields[0], entry, node);
    });
  }

  // Fields with number 1, read by `read`, and what follows them.
  std::string InPlace(
      absl::string_view bytes,
      const std::function<std::string(absl::string_view)>& read) {
    std::string out;
    Reader in{bytes};
    while (ok_ && in.Starts(kFirst)) {
      const absl::string_view inner = in.Take(in.TagAndLength());
      ok_ = ok_ && in.ok;
      if (ok_) wire::AppendBytesField(&out, 1, read(inner));
    }
    return out.append(in.rest.data(), in.rest.size());
  }

  std::string Value(absl::string_view bytes, const MaskNode* node) {
    Reader in{bytes};
    if (!in.Starts(kStructIn) && !in.Starts(kListIn)) {
      return std::string(bytes);
    }
    const bool list = in.Starts(kListIn);
    const absl::string_view inner = in.Take(in.TagAndLength());
    ok_ = ok_ && in.ok;
    if (!ok_) return "";
    std::string contents;
    if (!list) {
      contents = Struct(inner, node);
    } else if (node == nullptr || node->element() == nullptr) {
      contents = Levels(/*list=*/true, inner);
    } else {
      contents = InPlace(inner, [&](absl::string_view element) {
        return Value(element, node->element());
      });
    }
    std::string out;
    wire::AppendBytesField(&out, list ? 6 : 5, contents);
    return out.append(in.rest.data(), in.rest.size());
  }

  const bool tuned_;
  bool ok_ = true;
};

}  // namespace

absl::optional<std::string> Unfold(const MaskSet& masks, bool tuned,
                                   absl::string_view form) {
  Unfolder unfolder(tuned);
  const MaskNode* const root = tuned ? masks.drift_root() : masks.root();
  std::string request =
      unfolder.Message(wire::kRunFunctionRequestType, form, root);
  if (!unfolder.ok()) return absl::nullopt;
  return request;
}

}  // namespace fncache::cache::key
