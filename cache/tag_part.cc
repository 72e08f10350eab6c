#include "cache/tag_part.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "cache/schema.h"
#include "cache/wire.h"

namespace fncache::cache {
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
    if (!ReadVarint(5, &value) || value > kMaxWireLength) return false;
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
      const uint32_t number = TagNumber(tag);
      if (number == 0) return false;
      uint64_t value;
      size_t length;
      switch (TagType(tag)) {
        case WireType::kVarint:
          if (!ReadVarint(10, &value)) return false;
          break;
        case WireType::kFixed64:
          if (!Keep(8)) return false;
          break;
        case WireType::kFixed32:
          if (!Keep(4)) return false;
          break;
        case WireType::kBytes:
          if (!ReadLength(&length) || !Keep(length)) return false;
          break;
        case WireType::kStartGroup:
          if (open.size() == kMaxDepth) return false;
          open.push_back(number);
          break;
        case WireType::kEndGroup:
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
    case MakeTag(2, WireType::kBytes):  // observed
    case MakeTag(3, WireType::kBytes):  // desired
    case MakeTag(4, WireType::kBytes):  // input
    case MakeTag(7, WireType::kBytes):  // credentials
      return true;
    default:
      // With another wire type these are unknown fields.
      return false;
  }
}

bool AppendTagPart(absl::Span<const absl::string_view> slices,
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

}  // namespace fncache::cache
