// SPDX-License-Identifier: Apache-2.0
// It is one thing: each function reads one message type of the same walk, and
// they call each other.
#include "cache/key/canonical_walk.h"

#include <algorithm>
#include <cstring>

#include "absl/base/optimization.h"
#include "absl/container/inlined_vector.h"
#include "cache/key/read_fields.h"
#include "cache/wire/wire.h"

namespace fncache::cache::key {
namespace {

// Buffers larger than that do not outlive a large request.
constexpr size_t kKeptEntries = 1 << 15;
constexpr size_t kKeptBytes = 1 << 20;

// Asks for bytes that will be read soon. They are spread over the request as
// its encoder ordered them, so that no cache could know.
void Prefetch(const char* p, size_t size) {
  constexpr size_t kMost = 16 << 10;
  for (size_t i = 0; i < std::min(size, kMost); i += 64) {
    __builtin_prefetch(p + i);
  }
}

// Whether a Resource is ready.
constexpr char kResourceReady = wire::MakeTag(3, wire::WireType::kVarint);

bool IsHolder(char tag) { return tag == kStructValue || tag == kListValue; }

// A field of a message in the output: its bytes, and what decides its position.
struct Field {
  const char* start;
  size_t size;
  uint32_t rank;
  // Only for an entry of a map.
  int32_t order = 0;
  absl::string_view key = {};

  bool SamePosition(const Field& other) const {
    return rank == other.rank && order == other.order && key == other.key;
  }
  friend bool operator<(const Field& a, const Field& b) {
    if (a.rank != b.rank) return a.rank < b.rank;
    if (a.order != b.order) return a.order < b.order;
    if (a.key != b.key) return a.key < b.key;
    return a.start < b.start;
  }
};

// Fields are written in order of their ranks: the known ones before the unknown
// ones, both in order of their numbers, which are below 2^29.
uint32_t Rank(uint32_t number, bool known) {
  return known ? number : number | uint32_t{1} << 29;
}

// Above every rank.
constexpr uint32_t kNotInOrder = ~uint32_t{0};

// Whether what is at `p` begins a field that belongs before `field`. (It may
// also be an unknown one of such a number: this is only a guess.)
bool IsLowerTag(const char* p, const char* end, const wire::FieldType& field) {
  return p != end && wire::TagNumber(Byte(p)) < field.number;
}

// The node for a field of the message that `node` is for.
const MaskNode* Below(const MaskNode* node, const wire::FieldType& field) {
  return node == nullptr ? nullptr : node->Find(field.name);
}

// How far ahead of a map's entries that is done.
constexpr ptrdiff_t kAhead = 8 << 10;

}  // namespace

char* CanonicalWalk::Run(absl::string_view bytes, const MaskNode* masks,
                         int depth, std::string* drifts, char* out,
                         absl::string_view* tag) {
  return Walk(wire::kRunFunctionRequestType, bytes, masks, depth, drifts, out,
              tag);
}

char* CanonicalWalk::RunResponse(absl::string_view bytes, int depth,
                                 char* out) {
  absl::string_view tag;
  return Walk(wire::kRunFunctionResponseType, bytes, nullptr, depth, nullptr,
              out, &tag);
}

char* CanonicalWalk::Walk(const wire::MessageType& type,
                          absl::string_view bytes, const MaskNode* masks,
                          int depth, std::string* drifts, char* out,
                          absl::string_view* tag) {
  const char* const begin = bytes.data();
  in_end_ = begin + bytes.size();
  out_ = out;
  tag_ = absl::string_view();
  entry_count_ = 0;
  growth_ = MostGrowth(bytes.size());
  drifts_ = drifts;
  structs_.SetDrifts(drifts);
  if (!Message(type, begin, in_end_, depth, masks)) return nullptr;
  *tag = tag_;
  return out_;
}

void CanonicalWalk::Shrink() {
  if (entries_.size() > kKeptEntries) std::vector<MapEntry>().swap(entries_);
  if (arranged_.capacity() > kKeptBytes) std::string().swap(arranged_);
  structs_.Shrink();
}

inline void CanonicalWalk::Copy(const char* from, size_t size) {
  CopyLoosely(from, size, in_end_, out_);
  out_ += size;
}

bool CanonicalWalk::Grow(size_t bytes) {
  if (bytes > growth_) return false;
  growth_ -= bytes;
  return true;
}

inline char* CanonicalWalk::Open(size_t expected) {
  char* const at = out_;
  out_ = wire::WriteVarint(at, expected);
  return at;
}

bool CanonicalWalk::Close(char* at, size_t expected) {
  const int reserved = wire::VarintSize(expected);
  const size_t size = out_ - at - reserved;
  if (ABSL_PREDICT_TRUE(size == expected)) return true;
  const int needed = wire::VarintSize(size);
  if (needed != reserved) {
    if (needed > reserved && !Grow(needed - reserved)) return false;
    std::memmove(at + needed, at + reserved, size);
    out_ += needed - reserved;
  }
  wire::WriteVarint(at, size);
  return true;
}

bool CanonicalWalk::OpenEntry(const MapEntry& entry, EntryLengths* lengths) {
  if (!entry.usual() && !Grow(entry.Growth())) return false;
  lengths->contents = out_ + 1;
  if (entry.usual()) {
    Copy(entry.start, entry.value_at);
  } else {
    out_ = WriteEntryHead(entry, in_end_, out_);
  }
  lengths->value = out_ - wire::VarintSize(entry.value_size);
  return true;
}

bool CanonicalWalk::CloseEntry(const MapEntry& entry,
                               const EntryLengths& lengths) {
  if (out_ ==
      lengths.value + wire::VarintSize(entry.value_size) + entry.value_size) {
    return true;
  }
  return Close(lengths.value, entry.value_size) &&
         Close(lengths.contents, entry.CanonicalContents());
}

bool CanonicalWalk::Gather(char tag, const char** p, const char* end) {
  const size_t base = entry_count_;
  const char* asked = *p;
  while (*p != end && **p == tag) {
    // Where the next entries begin is not known, so all is asked for.
    for (; asked < end && asked - *p < kAhead; asked += 64) {
      __builtin_prefetch(asked);
    }
    if (ABSL_PREDICT_FALSE(entry_count_ == entries_.size())) {
      entries_.resize(std::max<size_t>(256, 2 * entries_.size()));
    }
    if (!ReadEntry(p, end, in_end_, &entries_[entry_count_])) return false;
    ++entry_count_;
  }
  return OrderEntries(entries_.data() + base, entry_count_ - base);
}

bool CanonicalWalk::Whole(StructWalk::Kind kind, const char* p, const char* end,
                          int depth) {
  char* const out = structs_.Run(kind, {p, static_cast<size_t>(end - p)}, depth,
                                 in_end_, &growth_, out_);
  if (out == nullptr) return false;
  out_ = out;
  return true;
}

bool CanonicalWalk::Value(const char* start, const char* p, const char* end,
                          int depth) {
  const char* known_end = p + 1;
  uint32_t size;
  int32_t number;
  char* length;
  switch (p == end ? '\0' : *p) {
    case kNullValue:
      if (!ReadPlainEnum(&known_end, end, &number)) return false;
      break;
    case kNumberValue:
      if (end - known_end < 8) return false;
      known_end += 8;
      break;
    case kStringValue:
      if (!ReadLength(&known_end, end, &size) ||
          !IsPlainText({known_end, size}, in_end_)) {
        return false;
      }
      known_end += size;
      break;
    case kBoolValue:
      if (known_end == end || Byte(known_end) > 1) return false;
      ++known_end;
      break;
    case kStructValue:
    case kListValue:
      if (!ReadLength(&known_end, end, &size) || depth < 1) return false;
      Copy(start, p + 1 - start);
      length = Open(size);
      if (!Whole(*p == kStructValue ? StructWalk::Kind::kStruct
                                    : StructWalk::Kind::kList,
                 known_end, known_end + size, depth - 1) ||
          !Close(length, size)) {
        return false;
      }
      start = known_end += size;
      break;
    default:
      known_end = p;
      break;
  }
  Copy(start, known_end - start);
  return known_end == end ||
         UnknownFields(wire::kValueType, known_end, end, depth);
}

bool CanonicalWalk::UnknownFields(const wire::MessageType& type, const char* p,
                                  const char* end, int depth) {
  Copy(p, end - p);
  return SkipUnknown(type, p, end, depth);
}

bool CanonicalWalk::Message(const wire::MessageType& type, const char* p,
                            const char* end, int depth, const MaskNode* node) {
  if (&type == &wire::kStructType) {
    return node == nullptr ? Whole(StructWalk::Kind::kStruct, p, end, depth)
                           : MaskedStruct(p, end, depth, *node);
  }
  char* const begin = out_;
  const size_t drifts = DriftBytes();
  uint32_t last = 0;  // the last field's rank, or kNotInOrder from then on
  uint32_t met = 0;
  while (p != end) {
    // Known fields have tags of one byte, and one of more is unknown.
    const uint8_t tag = Byte(p);
    uint32_t number = wire::TagNumber(tag);
    const bool known = tag < 0x80 && IsKnown(type, tag);
    if (known) {
      const wire::FieldType& field = *type.Find(number);
      switch (KnownField(type, field, &p, end, depth, Below(node, field),
                         /*in_order=*/true, &met)) {
        case Step::kRefused:
          return false;
        case Step::kDone:
          break;
        case Step::kOutOfOrder:
          return FieldsInAnyOrder(type, p, end, depth, node, begin, drifts,
                                  last, met);
      }
    } else {
      const char* const start = p;
      if (!SkipUnknownField(type, &p, end, depth, &number)) return false;
      Copy(start, p - start);
    }
    const uint32_t rank = Rank(number, known);
    last = rank >= last ? rank : kNotInOrder;
  }
  return ABSL_PREDICT_TRUE(last != kNotInOrder) || Arrange(type, begin, drifts);
}

bool CanonicalWalk::FieldsInAnyOrder(const wire::MessageType& type,
                                     const char* p, const char* end, int depth,
                                     const MaskNode* node, char* begin,
                                     size_t drifts, uint32_t last,
                                     uint32_t met) {
  // Fields of one kind that follow one another, or one unknown field.
  struct Run {
    uint32_t rank;
    const char* start;
    const char* end;
    const wire::FieldType* field;  // null: it is unknown
  };
  absl::InlinedVector<Run, 16> runs;
  while (p != end) {
    const char* const start = p;
    uint32_t tag;
    if (!SkipField(&p, end, depth, &tag)) return false;
    const bool known = IsKnown(type, tag);
    const uint32_t rank = Rank(wire::TagNumber(tag), known);
    if (known && !runs.empty() && runs.back().rank == rank) {
      runs.back().end = p;
    } else {
      runs.push_back(
          {rank, start, p, known ? type.Find(wire::TagNumber(tag)) : nullptr});
    }
  }
  std::sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) {
    return a.rank != b.rank ? a.rank < b.rank : a.start < b.start;
  });
  for (const Run& run : runs) {
    // The entries of a map may be in several runs.
    const bool is_map =
        run.field != nullptr && run.field->label == wire::FieldLabel::kMap;
    const uint32_t least = is_map && last != kNotInOrder ? last + 1 : last;
    last = run.rank >= least ? run.rank : kNotInOrder;
    if (run.field == nullptr) {
      Copy(run.start, run.end - run.start);
      continue;
    }
    for (const char* at = run.start; at != run.end;) {
      if (KnownField(type, *run.field, &at, run.end, depth,
                     Below(node, *run.field), /*in_order=*/false,
                     &met) != Step::kDone) {
        return false;
      }
    }
  }
  return last != kNotInOrder || Arrange(type, begin, drifts);
}

CanonicalWalk::Step CanonicalWalk::KnownField(const wire::MessageType& type,
                                              const wire::FieldType& field,
                                              const char** from,
                                              const char* end, int depth,
                                              const MaskNode* node,
                                              bool in_order, uint32_t* met) {
  char* const before = out_;
  const char* p = *from;
  if (field.label == wire::FieldLabel::kMap) {
    const Step step = Map(field, &p, end, depth, node, in_order);
    if (step != Step::kDone) return step;
  } else {
    const char* const start = p++;
    uint32_t size;
    int32_t value;
    const bool singular = field.label != wire::FieldLabel::kRepeated ||
                          field.kind != wire::FieldKind::kMessage;
    // No field has the number 0.
    const uint32_t place = uint32_t{singular}
                           << (field.in_oneof ? 0 : field.number);
    // Both would have to become one, and this walk merges nothing.
    if ((*met & place) != 0) return Step::kRefused;
    const bool presence = field.label == wire::FieldLabel::kExplicit;
    switch (field.kind) {
      case wire::FieldKind::kEnum:
        if (field.label == wire::FieldLabel::kRepeated) {
          if (wire::TagType(Byte(start)) != wire::WireType::kBytes ||
              !ReadLength(&p, end, &size) ||
              !Capabilities(start, p, p + size, node)) {
            return Step::kRefused;
          }
          p += size;
        } else {
          if (!ReadPlainEnum(&p, end, &value)) return Step::kRefused;
          // A default is the same as nothing, unless presence counts.
          if (value != 0 || presence) Copy(start, p - start);
        }
        break;
      case wire::FieldKind::kString:
        if (!ReadLength(&p, end, &size) || !IsPlainText({p, size}, in_end_)) {
          return Step::kRefused;
        }
        p += size;
        if (&type == &wire::kRequestMetaType) {
          // meta.tag, the one string of a request outside Struct, is not of the
          // key.
          tag_ = absl::string_view(p - size, size);
        } else if (size != 0 || presence) {
          Copy(start, p - start);
        }
        break;
      case wire::FieldKind::kMessage:
        if (!ReadLength(&p, end, &size)) return Step::kRefused;
        // This is known before the message is read, which may be large.
        if (in_order && IsLowerTag(p + size, end, field)) {
          return Step::kOutOfOrder;
        }
        if (depth < 1 ||
            !MessageField(field, start, p, p + size, depth - 1, node)) {
          return Step::kRefused;
        }
        p += size;
        break;
      default:
        // Only a response's meta has such a field, which is none of the
        // response's canonical form.
        return Step::kRefused;
    }
    *met |= place;
  }
  // A masked field was read like any other, since it must be something that
  // protobuf reads.
  if (node != nullptr && node->LeavesOut()) out_ = before;
  *from = p;
  return Step::kDone;
}

// One message, from its tag at `start` on.
bool CanonicalWalk::MessageField(const wire::FieldType& field,
                                 const char* start, const char* p,
                                 const char* end, int depth,
                                 const MaskNode* node) {
  const bool repeated = field.label == wire::FieldLabel::kRepeated;
  if (node != nullptr && repeated) node = node->element();
  *out_++ = *start;
  char* const length = Open(end - p);
  char* const contents = out_;
  if (!Message(*field.message, p, end, depth, node)) return false;
  // A masked list element is emptied; others go as a whole, in KnownField.
  if (repeated && node != nullptr && node->LeavesOut()) out_ = contents;
  return Close(length, end - p);
}

bool CanonicalWalk::Arrange(const wire::MessageType& type, char* begin,
                            size_t drifts) {
  // Its drift would have to be put in order, too.
  if (DriftBytes() != drifts) return false;
  std::vector<Field> fields;
  wire::Cursor in(absl::string_view(begin, out_ - begin));
  while (!in.done()) {
    Field field;
    field.start = in.position();
    uint32_t tag;
    // They were written here, so all of it can be read.
    if (!in.ReadTag(&tag)) return false;
    const bool known = IsKnown(type, tag);
    field.rank = Rank(wire::TagNumber(tag), known);
    if (!in.Skip(tag, kMaxPlainDepth)) return false;
    field.size = in.position() - field.start;
    if (known &&
        type.Find(wire::TagNumber(tag))->label == wire::FieldLabel::kMap) {
      const char* p = field.start;
      MapEntry entry;
      if (!ReadEntry(&p, in.position(), in.position(), &entry)) return false;
      field.order = entry.order;
      field.key = entry.key();
    }
    fields.push_back(field);
  }
  // Elements of lists and unknown fields of one number stay in their order.
  std::sort(fields.begin(), fields.end());
  arranged_.clear();
  for (size_t i = 0; i < fields.size(); ++i) {
    if (i > 0 && fields[i].SamePosition(fields[i - 1])) {
      const wire::FieldType* const field = type.Find(fields[i].rank);
      if (field != nullptr && field->label == wire::FieldLabel::kMap) {
        return false;
      }
    }
    arranged_.append(fields[i].start, fields[i].size);
  }
  std::memcpy(begin, arranged_.data(), arranged_.size());
  return true;
}

bool CanonicalWalk::Capabilities(const char* start, const char* p,
                                 const char* end, const MaskNode* node) {
  const char* const first = p;
  size_t count = 0;
  int32_t value;
  for (; p != end; ++count) {
    if (!ReadPlainEnum(&p, end, &value)) return false;
  }
  // An empty list is no list.
  if (count == 0) return true;
  if (node == nullptr || node->element() == nullptr) {
    Copy(start, end - start);
    return true;
  }
  *out_++ = *start;
  char* const length = Open(end - first);
  std::memset(out_, 0, count);
  out_ += count;
  return Close(length, end - first);
}

CanonicalWalk::Step CanonicalWalk::Map(const wire::FieldType& field,
                                       const char** p, const char* end,
                                       int depth, const MaskNode* node,
                                       bool in_order) {
  const size_t base = entry_count_;
  if (depth < 1 || !Gather(**p, p, end)) return Step::kRefused;
  const size_t count = entry_count_;
  if (in_order && IsLowerTag(*p, end, field)) {
    entry_count_ = base;
    return Step::kOutOfOrder;
  }
  for (size_t i = base; i < count; ++i) {
    const MapEntry entry = entries_[i];
    if (i + 1 < count) {
      Prefetch(entries_[i + 1].value(), entries_[i + 1].value_size);
    }
    const MaskNode* const below =
        node == nullptr ? nullptr : node->Find(entry.key());
    char* const before = out_;
    if (!MapValue(field, entry, depth - 1, below)) return Step::kRefused;
    if (below != nullptr && below->LeavesOut()) out_ = before;
  }
  entry_count_ = base;
  return Step::kDone;
}

bool CanonicalWalk::MapValue(const wire::FieldType& field,
                             const MapEntry& entry, int depth,
                             const MaskNode* node) {
  const bool is_message = field.kind == wire::FieldKind::kMessage;
  if (field.kind == wire::FieldKind::kString &&
      !IsPlainText({entry.value(), entry.value_size}, in_end_)) {
    return false;
  }
  if (entry.usual() && !is_message) {
    Copy(entry.start, entry.size);
    return true;
  }
  if (field.message == &wire::kResourceType &&
      UsualResource(entry, depth, node)) {
    return true;
  }
  EntryLengths lengths;
  if (!OpenEntry(entry, &lengths)) return false;
  if (!is_message) {
    Copy(entry.value(), entry.value_size);
    return true;
  }
  return (depth >= 1 || !entry.has_value()) &&
         Message(*field.message, entry.value(), entry.value_end(), depth - 1,
                 node == nullptr || node->masked ? nullptr : node) &&
         CloseEntry(entry, lengths);
}

bool CanonicalWalk::UsualResource(const MapEntry& entry, int depth,
                                  const MaskNode* node) {
  if (!entry.usual() || entry.value_size == 0 || depth < 2) return false;
  const char* object = entry.value();
  const char* const end = entry.value_end();
  uint32_t size;
  if (*object++ != kResourceObject || !ReadLength(&object, end, &size)) {
    return false;
  }
  const char* const object_end = object + size;
  const ptrdiff_t rest = end - object_end;
  // A default is the same as nothing, and is not written.
  const bool is_ready = rest == 2 && *object_end == kResourceReady &&
                        Byte(object_end + 1) - 1u < 0x7f;
  if (rest != 0 && !is_ready) return false;
  if (node != nullptr) {
    // Nothing but what is in the object.
    if (node->masked || node->Find("ready") != nullptr) return false;
    node = node->Find("resource");
    if (node != nullptr && node->masked) return false;
  }
  if (size == kBareObject.size() && drifts_ == nullptr &&
      absl::string_view(object, size) == kBareObject) {
    Copy(entry.start, entry.size);
    return true;
  }
  char* const before = out_;
  const size_t growth = growth_;
  Copy(entry.start, object - entry.start);
  char* const contents = out_;
  const size_t drifts = DriftBytes();
  char* const written = structs_.Run(StructWalk::Kind::kStruct, {object, size},
                                     depth - 2, in_end_, &growth_, out_, node);
  if (written != nullptr) {
    out_ = written;
    // If it is as long as before, all lengths are right.
    const bool same = written == contents + size;
    if (same || Close(contents - wire::VarintSize(size), size)) {
      Copy(object_end, rest);
      const int value_length = wire::VarintSize(entry.value_size);
      if (same || CloseEntry(entry, {before + 1,
                                     before + entry.value_at - value_length})) {
        return true;
      }
    }
  }
  out_ = before;
  growth_ = growth;
  if (drifts_ != nullptr) drifts_->resize(drifts);
  return false;
}

bool CanonicalWalk::MaskedStruct(const char* p, const char* end, int depth,
                                 const MaskNode& node) {
  char* const out =
      structs_.Run(StructWalk::Kind::kStruct, {p, static_cast<size_t>(end - p)},
                   depth, in_end_, &growth_, out_, &node);
  if (ABSL_PREDICT_TRUE(out != nullptr)) {
    out_ = out;
    return true;
  }
  // It is not of the usual form. With drift it is not plain.
  if (drifts_ != nullptr) return false;
  const size_t base = entry_count_;
  if (!Gather(kStructFields, &p, end)) return false;
  const size_t count = entry_count_;
  for (size_t i = base; i < count; ++i) {
    const MapEntry entry = entries_[i];
    if (depth < (entry.has_value() ? 2 : 1)) return false;
    const char* const value = entry.value();
    const MaskNode* const below = node.Find(entry.key());
    char* const before = out_;
    const MaskNode* inner = nullptr;
    if (below != nullptr && !below->masked && entry.value_size != 0 &&
        IsHolder(*value)) {  // nothing is below others that a path could mean
      inner = below;
    }
    const bool leads_in = inner != nullptr;
    EntryLengths lengths;
    if (entry.usual() && !leads_in) {
      // All of it is copied at once.
      lengths = {before + 1,
                 before + entry.value_at - wire::VarintSize(entry.value_size)};
      if (!Value(entry.start, value, entry.value_end(), depth - 2)) {
        return false;
      }
    } else if (!OpenEntry(entry, &lengths) ||
               !(leads_in
                     ? MaskedValue(value, entry.value_end(), depth - 2, *inner)
                     : Value(value, value, entry.value_end(), depth - 2))) {
      return false;
    }
    if (!CloseEntry(entry, lengths)) return false;
    if (below != nullptr && below->LeavesOut()) out_ = before;
  }
  entry_count_ = base;
  return p == end || UnknownFields(wire::kStructType, p, end, depth);
}

bool CanonicalWalk::MaskedValue(const char* p, const char* end, int depth,
                                const MaskNode& node) {
  if (p == end || !IsHolder(*p)) {
    // Nothing is below it that a path could mean.
    return Value(p, p, end, depth);
  }
  const bool is_struct = *p == kStructValue;
  *out_++ = *p++;
  uint32_t size;
  if (!ReadLength(&p, end, &size) || depth < 1) return false;
  char* const length = Open(size);
  if (!(is_struct ? MaskedStruct(p, p + size, depth - 1, node)
                  : MaskedList(p, p + size, depth - 1, node)) ||
      !Close(length, size)) {
    return false;
  }
  p += size;
  return p == end || UnknownFields(wire::kValueType, p, end, depth);
}

bool CanonicalWalk::MaskedList(const char* p, const char* end, int depth,
                               const MaskNode& node) {
  const MaskNode* const element = node.element();
  if (element == nullptr) {
    return Whole(StructWalk::Kind::kList, p, end, depth);
  }
  while (p != end && *p == kListValues) {
    *out_++ = *p++;
    uint32_t size;
    if (depth < 1 || !ReadLength(&p, end, &size)) return false;
    char* const length = Open(size);
    char* const contents = out_;
    if (!MaskedValue(p, p + size, depth - 1, *element)) return false;
    if (element->LeavesOut()) out_ = contents;
    if (!Close(length, size)) return false;
    p += size;
  }
  return p == end || UnknownFields(wire::kListValueType, p, end, depth);
}

}  // namespace fncache::cache::key
