// SPDX-License-Identifier: Apache-2.0
#include "tests/cache/key/unfold.h"

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "cache/key/drift_marks.h"
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

  void AppendTo(std::string* out) const {
    out->append(bytes);
    if (inner != nullptr) inner->AppendTo(out);
    for (const Part& part : more) part.AppendTo(out);
  }
};

// A Struct or list of this size, level by level.
Part ReadLevels(Reader* in, bool is_list, size_t whole_size) {
  struct Pending {
    Part* part;  // an `inner`, which stays where it is
    bool list;
    size_t size;
  };
  Part root;
  std::deque<Pending> pending = {{&root, is_list, whole_size}};
  for (; in->ok && !pending.empty(); pending.pop_front()) {
    const Pending own = pending.front();
    size_t left = own.size;
    while (in->ok && left > 0 && in->Starts(kFirst)) {
      const absl::string_view begin = in->rest;
      size_t size = in->TagAndLength();
      const size_t head = begin.size() - in->rest.size();
      if (head + size > left) in->ok = false;
      left -= head + size;
      if (!own.list) {
        // The key, and how large the value is.
        const size_t at = in->rest.size();
        in->ok = in->ok && in->Starts(kFirst);
        in->Take(in->TagAndLength());
        in->ok = in->ok && in->Starts(kSecond);
        const size_t value_size = in->TagAndLength();
        if (at - in->rest.size() + value_size != size) in->ok = false;
        size = value_size;
      }
      Part& part = own.part->more.emplace_back();
      // The bytes behind an empty value do not belong to it.
      if (size > 0 && (in->Starts(kStructIn) || in->Starts(kListIn))) {
        const bool list = in->Starts(kListIn);
        const size_t at = in->rest.size();
        const size_t held = in->TagAndLength();
        const size_t value_head = at - in->rest.size();
        if (value_head + held > size) in->ok = false;
        part.bytes.assign(begin.data(), begin.size() - in->rest.size());
        part.inner = std::make_unique<Part>();
        const absl::string_view unknown = in->Take(size - value_head - held);
        part.more.emplace_back().bytes.assign(unknown.data(), unknown.size());
        if (held > 0) pending.push_back({part.inner.get(), list, held});
      } else {
        in->Take(size);
        part.bytes.assign(begin.data(), begin.size() - in->rest.size());
      }
      if (!in->ok) return root;
    }
    const absl::string_view unknown = in->Take(left);
    own.part->more.emplace_back().bytes.assign(unknown.data(), unknown.size());
  }
  return root;
}

class Unfolder {
 public:
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
      if (node != nullptr && !value.empty() && value[0] == kListIn) {
        node = NodeOfList(*node, key);
      }
      wire::AppendBytesField(&out, 2, Value(value, node));
    } else {
      wire::AppendBytesField(&out, 2, Message(*field.message, value, node));
    }
    return out;
  }

  std::string Levels(bool list, absl::string_view bytes) {
    Reader in{bytes};
    const Part part = ReadLevels(&in, list, bytes.size());
    ok_ = ok_ && in.ok && in.rest.empty();
    std::string out;
    part.AppendTo(&out);
    return out;
  }

  std::string Struct(absl::string_view bytes, const MaskNode* node) {
    if (node == nullptr) return Levels(/*list=*/false, bytes);
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
    // A mark: what stands for it in messages takes as many bytes.
    if (bytes.size() == 2 && bytes[0] == 0) return {kMarkTag, bytes[1]};
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

  bool ok_ = true;
};

}  // namespace

absl::optional<std::string> Unfold(const MaskNode* root,
                                   absl::string_view form) {
  Unfolder unfolder;
  std::string request =
      unfolder.Message(wire::kRunFunctionRequestType, form, root);
  if (!unfolder.ok()) return absl::nullopt;
  return request;
}

}  // namespace fncache::cache::key
