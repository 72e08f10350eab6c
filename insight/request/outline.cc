// SPDX-License-Identifier: Apache-2.0
#include "insight/request/outline.h"

#include <algorithm>
#include <string>

#include "absl/hash/hash.h"
#include "cache/key/walk_machine.h"
#include "cache/wire/schema.h"
#include "cache/wire/wire.h"
#include "xxhash.h"

namespace fncache::insight::request {
namespace {

namespace wire = cache::wire;

// Bytes of the copy that a thread keeps for the next composite.
constexpr size_t kKeptCopy = 64 << 10;

// The sums of bytes and of their squares and cubes, each modulo 2^16, and their
// count. They do not depend on the bytes' order. Compilers vectorize the loop
// (CMakeLists.txt asks for that).
struct Powers {
  uint16_t sum = 0, squares = 0, cubes = 0;
};

inline __attribute__((always_inline)) Powers PowersOf(absl::string_view bytes) {
  uint16_t sum = 0, squares = 0, cubes = 0;
  for (const char c : bytes) {
    const uint16_t byte = static_cast<uint8_t>(c);
    const auto square = static_cast<uint16_t>(byte * byte);
    sum = static_cast<uint16_t>(sum + byte);
    squares = static_cast<uint16_t>(squares + square);
    // As unsigned int: int would overflow.
    cubes = static_cast<uint16_t>(cubes + uint32_t{square} * byte);
  }
  return {sum, squares, cubes};
}

#if defined(__x86_64__)
FNCACHE_AVX2 Powers PowersWithAvx2(absl::string_view bytes) {
  return PowersOf(bytes);
}
#endif

// Uses vectors of twice the size where this machine has them.
Powers FastPowersOf(absl::string_view bytes) {
#if defined(__x86_64__)
  if (cache::key::ThisMachine() == cache::key::Machine::kAvx2) {
    return PowersWithAvx2(bytes);
  }
#endif
  return PowersOf(bytes);
}

class ByteSums {
 public:
  void Add(absl::string_view bytes) {
    const Powers more = FastPowersOf(bytes);
    powers_.sum = static_cast<uint16_t>(powers_.sum + more.sum);
    powers_.squares = static_cast<uint16_t>(powers_.squares + more.squares);
    powers_.cubes = static_cast<uint16_t>(powers_.cubes + more.cubes);
    count_ += bytes.size();
  }
  // The count + 1 makes an empty section differ from an absent one.
  uint64_t all() const {
    return ((uint64_t{powers_.cubes} << 48) ^
            (uint64_t{powers_.squares} << 32) ^ (uint64_t{powers_.sum} << 16)) +
           count_ + 1;
  }

 private:
  Powers powers_;
  uint64_t count_ = 0;
};

// Bytes that may lie in several slices. Reads are usually near the beginning
// and short, but need not be.
class SlicedCursor {
 public:
  explicit SlicedCursor(absl::Span<const absl::string_view> slices)
      : slices_(slices) {}

  bool done() {
    while (slice_ < slices_.size() && at_ == slices_[slice_].size()) {
      ++slice_;
      at_ = 0;
    }
    return slice_ == slices_.size();
  }
  bool ReadByte(uint8_t* byte) {
    if (done()) return false;
    *byte = static_cast<uint8_t>(slices_[slice_][at_]);
    Advance(1);
    return true;
  }
  bool ReadVarint(uint64_t* value) {
    *value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      uint8_t byte = 0;
      if (!ReadByte(&byte)) return false;
      *value |= static_cast<uint64_t>(byte & 0x7f) << std::min(shift, 63);
      if (byte < 0x80) return true;
    }
    return false;
  }
  bool Skip(uint64_t size) {
    return ForEachPiece(size, [](absl::string_view /*piece*/) {});
  }
  // Skips `size` bytes, and adds them up.
  bool Sum(uint64_t size, uint64_t* sum) {
    ByteSums sums;
    if (!ForEachPiece(size,
                      [&sums](absl::string_view piece) { sums.Add(piece); })) {
      return false;
    }
    *sum += sums.all();
    return true;
  }
  // The number of bytes before the position.
  uint64_t passed() const { return passed_; }
  // `size` bytes as one piece. It is `*copy` if they are in several slices.
  bool Read(uint64_t size, absl::string_view* bytes, std::string* copy) {
    if (size == 0) {
      *bytes = absl::string_view();
      return true;
    }
    if (done()) return false;
    if (slices_[slice_].size() - at_ >= size) {
      *bytes = slices_[slice_].substr(at_, size);
      Advance(size);
      return true;
    }
    uint64_t there = 0;
    for (size_t i = slice_; i < slices_.size(); ++i) {
      there += slices_[i].size();
    }
    if (there - at_ < size) return false;
    copy->clear();
    if (!ForEachPiece(size, [copy](absl::string_view piece) {
          copy->append(piece.data(), piece.size());
        })) {
      return false;
    }
    *bytes = *copy;
    return true;
  }

 private:
  // Skips `size` bytes, a piece of each slice at a time. False: there are
  // fewer.
  template <typename Each>
  bool ForEachPiece(uint64_t size, Each each) {
    while (size > 0) {
      if (done()) return false;
      const absl::string_view piece = slices_[slice_].substr(at_, size);
      each(piece);
      Advance(piece.size());
      size -= piece.size();
    }
    return true;
  }
  void Advance(size_t bytes) {
    at_ += bytes;
    passed_ += bytes;
  }

  const absl::Span<const absl::string_view> slices_;
  size_t slice_ = 0;
  size_t at_ = 0;
  uint64_t passed_ = 0;
};

// Moves to the contents of the next field, `size` bytes. A field that is not
// length-delimited has number 0: no request has such fields.
bool NextField(SlicedCursor* cursor, uint32_t* number, uint64_t* size) {
  uint64_t tag = 0;
  if (!cursor->ReadVarint(&tag)) return false;
  *number = 0;
  switch (wire::TagType(static_cast<uint32_t>(tag))) {
    case wire::WireType::kVarint:
      *size = 0;
      return cursor->ReadVarint(&tag);
    case wire::WireType::kFixed64:
      *size = 8;
      return true;
    case wire::WireType::kFixed32:
      *size = 4;
      return true;
    case wire::WireType::kBytes:
      *number = wire::TagNumber(static_cast<uint32_t>(tag));
      return cursor->ReadVarint(size);
    default:
      return false;
  }
}

// The last field `number` of a message. For a field that occurs once, this is
// all.
bool LastField(absl::string_view bytes, uint32_t number,
               absl::string_view* found) {
  bool any = false;
  const uint32_t wanted = wire::MakeTag(number, wire::WireType::kBytes);
  return wire::ForEachField(bytes,
                            [&](uint32_t tag, wire::Cursor* in) {
                              if (tag != wanted) {
                                return in->Skip(tag, wire::kMaxDepth);
                              }
                              any = true;
                              return in->ReadBytes(found);
                            }) &&
         any;
}

// A map's entry as encoders write it, the key before the value.
bool TakeEntry(absl::string_view entry, absl::string_view* key,
               absl::string_view* value) {
  wire::Cursor cursor(entry);
  uint32_t tag;
  return cursor.ReadTag(&tag) &&
         tag == wire::MakeTag(1, wire::WireType::kBytes) &&
         cursor.ReadBytes(key) && cursor.ReadTag(&tag) &&
         tag == wire::MakeTag(2, wire::WireType::kBytes) &&
         cursor.ReadBytes(value) && cursor.done();
}

// Calls `each` with the key and the Value of a Struct's fields; the last one of
// a key counts.
template <typename Each>
bool ForEachField(absl::string_view fields, Each each) {
  return wire::ForEachField(fields, [&](uint32_t tag, wire::Cursor* in) {
    if (tag != wire::MakeTag(1, wire::WireType::kBytes)) {
      return in->Skip(tag, wire::kMaxDepth);
    }
    absl::string_view entry, key, value;
    if (!in->ReadBytes(&entry)) return false;
    if (!TakeEntry(entry, &key, &value)) {
      LastField(entry, 1, &key);
      LastField(entry, 2, &value);
    }
    each(key, value);
    return true;
  });
}

void TakeText(absl::string_view value, std::string* text) {
  absl::string_view found;
  if (LastField(value, 3, &found)) text->assign(found.data(), found.size());
}

void Clear(CompositeName* name) {
  for (std::string* part : {&name->api_version, &name->kind,
                            &name->object_namespace, &name->name, &name->uid}) {
    part->clear();
  }
}

void OfObject(absl::string_view fields, CompositeName* name) {
  Clear(name);
  const bool read = ForEachField(
      fields, [name](absl::string_view key, absl::string_view value) {
        if (key == "apiVersion") TakeText(value, &name->api_version);
        if (key == "kind") TakeText(value, &name->kind);
        absl::string_view metadata;
        if (key != "metadata" || !LastField(value, 5, &metadata)) return;
        ForEachField(metadata,
                     [name](absl::string_view inner, absl::string_view text) {
                       if (inner == "name") TakeText(text, &name->name);
                       if (inner == "namespace")
                         TakeText(text, &name->object_namespace);
                       if (inner == "uid") TakeText(text, &name->uid);
                     });
      });
  if (!read) Clear(name);
}

// The numbers of RunFunctionRequest's fields (proto/function_v1.proto).
enum RequestField : uint32_t {
  kMetaField = 1,
  kObservedField = 2,
  kDesiredField = 3,
  kInputField = 4,
  kContextField = 5,
  kExtraResourcesField = 6,
  kCredentialsField = 7,
  kRequiredResourcesField = 8,
  kRequiredSchemasField = 9,
};

uint64_t SumOf(absl::string_view bytes) {
  ByteSums sums;
  sums.Add(bytes);
  return sums.all();
}

Section SectionOfField(uint32_t number) {
  switch (number) {
    case kDesiredField:
      return Section::kDesired;
    case kContextField:
      return Section::kContext;
    case kCredentialsField:
      return Section::kCredentials;
    case kExtraResourcesField:
    case kRequiredResourcesField:
      return Section::kRequiredResource;
    case kRequiredSchemasField:
      return Section::kSchema;
    default:
      return Section::kOther;
  }
}

uint64_t KeyOfEntry(absl::string_view entry) {
  absl::string_view key;
  LastField(entry, 1, &key);
  return XXH3_64bits(key.data(), key.size());
}

// Reads `observed`, which takes the next `size` bytes, while `on_composite`
// returns true. Only the composite is copied, if it is in several slices.
// False: it is malformed.
template <typename OnComposite, typename OnOther>
bool ReadObserved(uint64_t size, SlicedCursor* cursor, OnComposite on_composite,
                  OnOther on_other) {
  thread_local std::string copy;
  const uint64_t end = cursor->passed() + size;
  while (cursor->passed() < end) {
    uint32_t number = 0;
    if (!NextField(cursor, &number, &size)) return false;
    if (number != 1) {
      if (!on_other(size)) return false;
      continue;
    }
    absl::string_view composite;
    if (!cursor->Read(size, &composite, &copy)) return false;
    const bool goes_on = on_composite(composite);
    if (copy.capacity() > kKeptCopy) std::string().swap(copy);
    if (!goes_on) return cursor->passed() <= end;
  }
  return cursor->passed() == end;
}

// The first of several composites that has a name counts. Protobuf would merge
// them, but no encoder writes several.
void OfComposite(absl::string_view composite, CompositeName* name) {
  if (name->known()) return;
  absl::string_view object;
  if (LastField(composite, 1, &object)) OfObject(object, name);
}

// The composite, and all else that is observed.
bool OutlineObserved(uint64_t size, SlicedCursor* cursor, Outline* outline) {
  return ReadObserved(
      size, cursor,
      [outline](absl::string_view composite) {
        OfComposite(composite, &outline->composite);
        outline->sums[static_cast<size_t>(Section::kComposite)] +=
            SumOf(composite);
        return true;
      },
      [cursor, outline](uint64_t other) {
        return cursor->Sum(
            other,
            &outline->sums[static_cast<size_t>(Section::kObservedResource)]);
      });
}

}  // namespace

const char* SectionName(Section section) {
  switch (section) {
    case Section::kComposite:
      return "composite";
    case Section::kObservedResource:
      return "observed resource";
    case Section::kDesired:
      return "desired";
    case Section::kContext:
      return "context";
    case Section::kCredentials:
      return "credentials";
    case Section::kRequiredResource:
      return "required resource";
    case Section::kSchema:
      return "schema";
    case Section::kOther:
      break;
  }
  return "other";
}

CompositeName ReadComposite(absl::Span<const absl::string_view> slices) {
  CompositeName name;
  ReadComposite(slices, &name);
  return name;
}

void ReadComposite(absl::Span<const absl::string_view> slices,
                   CompositeName* name) {
  Clear(name);
  SlicedCursor cursor(slices);
  while (!cursor.done()) {
    uint32_t number = 0;
    uint64_t size = 0;
    if (!NextField(&cursor, &number, &size)) return Clear(name);
    if (number != kObservedField) {
      if (!cursor.Skip(size)) return Clear(name);
      continue;
    }
    if (!ReadObserved(
            size, &cursor,
            [name](absl::string_view composite) {
              OfComposite(composite, name);
              return !name->known();
            },
            [&cursor](uint64_t other) { return cursor.Skip(other); })) {
      return Clear(name);
    }
    // Encoders write `meta` and then `observed`, in it the composite, first and
    // once. The bulk follows, and is not read: going from one resource to the
    // next costs a memory access each.
    if (name->known()) return;
  }
}

bool ReadOutline(absl::Span<const absl::string_view> slices, Outline* outline) {
  *outline = Outline();
  SlicedCursor cursor(slices);
  std::string copy;
  uint64_t input = 0, required = 0;
  while (!cursor.done()) {
    uint32_t number = 0;
    uint64_t size = 0;
    if (!NextField(&cursor, &number, &size)) return false;
    uint64_t* const sum =
        &outline->sums[static_cast<size_t>(SectionOfField(number))];
    absl::string_view field;
    switch (number) {
      case kMetaField:  // the tag is different every time
        if (!cursor.Skip(size)) return false;
        break;
      case kObservedField:
        if (!OutlineObserved(size, &cursor, outline)) return false;
        break;
      case kInputField:
        if (!cursor.Sum(size, &input)) return false;
        break;
      case kExtraResourcesField:
      case kRequiredResourcesField:
      case kRequiredSchemasField:
        if (!cursor.Read(size, &field, &copy)) return false;
        required += KeyOfEntry(field) * number;
        *sum += SumOf(field);
        break;
      default:
        if (!cursor.Sum(size, sum)) return false;
    }
  }
  const CompositeName& name = outline->composite;
  outline->identity = absl::HashOf(name.kind, name.object_namespace, name.name,
                                   name.uid, input, required);
  return true;
}

}  // namespace fncache::insight::request
