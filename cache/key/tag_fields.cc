// SPDX-License-Identifier: Apache-2.0
#include "cache/key/tag_fields.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "cache/wire/schema.h"
#include "cache/wire/wire.h"

namespace fncache::cache::key {
namespace {

// Reads as Cursor does (wire.h), but across slices, and keeps what it reads:
// appends it to a string. Its bounds and what it accepts are the cursor's.
class KeepingReader {
 public:
  KeepingReader(absl::Span<const absl::string_view> slices, std::string* kept)
      : slices_(slices), kept_(kept) {
    Settle();
  }

  bool done() const { return slices_.empty(); }

  bool ReadTag(uint32_t* tag) {
    uint64_t value;
    if (!ReadVarint(5, &value)) return false;
    *tag = static_cast<uint32_t>(value);
    return true;
  }

  bool ReadLength(size_t* length) {
    uint64_t value;
    if (!ReadVarint(5, &value) || value > wire::kMaxWireLength) return false;
    *length = value;
    return true;
  }

  bool Skip(size_t size) {
    return Pass(size, [](absl::string_view) {});
  }

  // The rest of a field whose tag was just read, as Cursor::Skip.
  bool ReadField(uint32_t tag) {
    std::vector<uint32_t> open;  // the numbers of the groups, outermost first
    while (true) {
      const uint32_t number = wire::TagNumber(tag);
      if (number == 0) return false;
      uint64_t value;
      size_t length;
      switch (wire::TagType(tag)) {
        case wire::WireType::kVarint:
          if (!ReadVarint(10, &value)) return false;
          break;
        case wire::WireType::kFixed64:
          if (!Keep(8)) return false;
          break;
        case wire::WireType::kFixed32:
          if (!Keep(4)) return false;
          break;
        case wire::WireType::kBytes:
          if (!ReadLength(&length) || !Keep(length)) return false;
          break;
        case wire::WireType::kStartGroup:
          if (open.size() == wire::kMaxDepth) return false;
          open.push_back(number);
          break;
        case wire::WireType::kEndGroup:
          if (open.empty() || open.back() != number) return false;
          open.pop_back();
          break;
        default:
          return false;
      }
      if (open.empty()) return true;
      if (!ReadTag(&tag)) return false;
    }
  }

 private:
  // The first slice has bytes, or there is none.
  void Settle() {
    while (!slices_.empty() && at_ == slices_.front().size()) {
      slices_.remove_prefix(1);
      at_ = 0;
    }
  }

  template <typename Take>
  bool Pass(size_t size, Take take) {
    while (size > 0) {
      if (slices_.empty()) return false;
      const absl::string_view piece = slices_.front().substr(at_, size);
      take(piece);
      at_ += piece.size();
      size -= piece.size();
      Settle();
    }
    return true;
  }

  bool Keep(size_t size) {
    return Pass(size, [this](absl::string_view piece) {
      kept_->append(piece.data(), piece.size());
    });
  }

  // At most `most` bytes; bits beyond the 64th are dropped.
  bool ReadVarint(int most, uint64_t* value) {
    uint64_t result = 0;
    for (int i = 0; i < most; ++i) {
      if (slices_.empty()) return false;
      const char c = slices_.front()[at_++];
      Settle();
      kept_->push_back(c);
      const uint64_t byte = static_cast<uint8_t>(c);
      result |= (byte & 0x7f) << (7 * i);
      if (byte < 0x80) {
        *value = result;
        return true;
      }
    }
    return false;
  }

  absl::Span<const absl::string_view> slices_;  // from the current one on
  size_t at_ = 0;                               // in the first of them
  std::string* const kept_;
};

}  // namespace

bool IsSkippedByTag(uint32_t tag) {
  switch (tag) {
    case wire::MakeTag(2, wire::WireType::kBytes):  // observed
    case wire::MakeTag(3, wire::WireType::kBytes):  // desired
    case wire::MakeTag(4, wire::WireType::kBytes):  // input
    case wire::MakeTag(7, wire::WireType::kBytes):  // credentials
      return true;
    default:
      // With another wire type these are unknown fields.
      return false;
  }
}

bool AppendTagFields(absl::Span<const absl::string_view> slices,
                     std::string* part) {
  KeepingReader in(slices, part);
  while (!in.done()) {
    const size_t start = part->size();
    uint32_t tag;
    if (!in.ReadTag(&tag)) return false;
    if (IsSkippedByTag(tag)) {
      size_t length;
      if (!in.ReadLength(&length) || !in.Skip(length)) return false;
      part->resize(start);
    } else if (!in.ReadField(tag)) {
      return false;
    }
  }
  return true;
}

bool IsHexTag(absl::string_view tag) {
  return tag.size() == kHexTagSize &&
         std::all_of(tag.begin(), tag.end(), [](char c) {
           return absl::ascii_isxdigit(static_cast<unsigned char>(c));
         });
}

}  // namespace fncache::cache::key
