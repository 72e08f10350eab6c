// SPDX-License-Identifier: Apache-2.0
#include "cache/key/drift_marks.h"

#include <algorithm>
#include <cstring>
#include <random>

#include "absl/base/internal/endian.h"
#include "absl/base/optimization.h"
#include "cache/key/plain_wire.h"
#include "cache/wire/wire.h"

namespace fncache::cache::key {
namespace {

// The size of a Value that is a placeholder or a mark.
constexpr uint32_t kMarkSize = 9;

// A placeholder's bits, from the lowest on: the nonce, the number of the drift,
// its type, and ones, which make it a NaN.
constexpr int kNumberAt = 25;
constexpr int kTypeAt = 49;
constexpr uint64_t kOnes = ~uint64_t{0} << 51;
constexpr size_t kMostDrifts = size_t{1} << (kTypeAt - kNumberAt);

// The first block's size, which stays.
constexpr size_t kBlock = 256 << 10;

bool IsHolder(char tag) { return tag == kStructValue || tag == kListValue; }

const MaskNode* Below(const MaskNode* node, absl::string_view key) {
  return node == nullptr ? nullptr : node->Find(key);
}
bool IsMasked(const MaskNode* node) { return node != nullptr && node->masked; }

// The text of a Value from `p` to `end` that is nothing else.
bool ReadText(const char* p, const char* end, absl::string_view* text) {
  uint32_t size;
  if (p == end || *p++ != kStringValue || !ReadLength(&p, end, &size) ||
      p + size != end) {
    return false;
  }
  *text = absl::string_view(p, size);
  return true;
}

// One entry of a Struct: where the lengths of entry and value are, and the
// value.
struct Entry {
  const char* length;
  uint32_t size;
  absl::string_view key;
  const char* value_length;  // null: there is no value
  const char* value;
  const char* value_end;
};

// The entry at *p: a key and a value, either of them perhaps missing. False: it
// is of another form.
bool TakeEntry(const char** p, const char* end, Entry* entry) {
  const char* q = *p;
  if (*q++ != kStructFields) return false;
  entry->length = q;
  if (!ReadLength(&q, end, &entry->size)) return false;
  const char* const entry_end = q + entry->size;
  entry->key = absl::string_view();
  entry->value_length = nullptr;
  // Most have both, in this order.
  for (int field = 0; field < 2 && q != entry_end; ++field) {
    const char tag = *q++;
    const char* const length = q;
    uint32_t size;
    if (!ReadLength(&q, entry_end, &size)) return false;
    if (tag == kMapKey) {
      entry->key = absl::string_view(q, size);
    } else if (tag == kMapValue) {
      entry->value_length = length;
      entry->value = q;
      entry->value_end = q + size;
    } else {
      return false;
    }
    q += size;
  }
  *p = entry_end;
  return q == entry_end;
}

// False: the entry at `p` is of the usual form, with lengths of one byte, and
// holds neither a Struct nor a list nor what may be drift. *next is where it
// ends. Reads up to kWindow bytes.
constexpr ptrdiff_t kWindow = 192;
inline bool MayHaveDrift(const char* p, const char** next) {
  const uint32_t head = absl::little_endian::Load32(p);
  if (ABSL_PREDICT_FALSE((head & 0x80ff80ff) !=
                         (kStructFields | uint32_t{kMapKey} << 16))) {
    return true;
  }
  const uint32_t key_size = head >> 24;
  *next = p + 2 + (head >> 8 & 0xff);
  const char* const value = p + 4 + key_size;
  // Tag and length of the value, tag of what is in it, and its length.
  const uint32_t value_head = absl::little_endian::Load32(value);
  const auto tag = static_cast<char>(value_head >> 16);
  const bool odd = (value_head & 0x80ff) != kMapValue;
  const bool is_time =
      (tag == kStringValue) & (value[8] == '-') & (value[14] == 'T');
  const bool is_version = key_size == kVersionKey.size();
  return odd | is_time | is_version | (tag == kStructValue) |
         (tag == kListValue);
}

// A random number of kNumberAt bits.
uint64_t Nonce() {
  std::random_device device;
  return device() & ((uint64_t{1} << kNumberAt) - 1);
}

}  // namespace

DriftMarks::DriftMarks() : nonce_(Nonce()) {}

void DriftMarks::Begin() {
  drifts_.clear();
  collected_.clear();
  if (blocks_.size() > 1) blocks_.resize(1);
  if (!blocks_.empty()) {
    free_ = blocks_[0].get();
    free_end_ = free_ + kBlock;
  }
}

void DriftMarks::Shrink() {
  if (blocks_.size() > 1) {
    blocks_.clear();
    free_ = free_end_ = nullptr;
  }
  if (collected_.capacity() > kBlock) std::string().swap(collected_);
  constexpr size_t kKept = 1 << 12;
  if (drifts_.capacity() > kKept) std::vector<Drift>().swap(drifts_);
  if (edits_.capacity() > kKept) std::vector<Edit>().swap(edits_);
}

char* DriftMarks::Reserve(size_t size) {
  if (ABSL_PREDICT_FALSE(static_cast<size_t>(free_end_ - free_) < size)) {
    const size_t block = blocks_.empty() ? std::max(size, kBlock) : size;
    // The first one is of the usual size, so that Begin knows it.
    if (blocks_.empty() && block != kBlock) {
      blocks_.emplace_back(new char[kBlock]);
    }
    blocks_.emplace_back(new char[block]);
    free_ = blocks_.back().get();
    free_end_ = free_ + block;
  }
  return free_;
}

bool DriftMarks::Replace(DriftSection section, int depth, const MaskNode* node,
                         WriteList write_list, absl::string_view* object,
                         const char** readable_end) {
  edits_.clear();
  const char* const begin = object->data();
  const char* const end = begin + object->size();
  Visit visit = {
      section, write_list,
      *readable_end - begin > kWindow ? *readable_end - kWindow : begin, false};
  const Change change = VisitObject(begin, end, depth, node, &visit);
  if (ABSL_PREDICT_FALSE(visit.refused)) return false;
  if (edits_.empty()) return true;
  const size_t size = object->size() + change;
  // CopyLoosely may write up to 63 bytes more.
  char* const copy = Reserve(size + std::max<size_t>(kReadable, 64));
  char* out = copy;
  const char* from = begin;
  for (const Edit& edit : edits_) {
    CopyLoosely(from, edit.at - from, *readable_end, out);
    out += edit.at - from;
    if (edit.is_mark) {
      *out = kNumberValue;
      absl::little_endian::Store64(out + 1, edit.value);
      out += kMarkSize;
    } else {
      out = wire::WriteVarint(out, edit.value);
    }
    from = edit.at + edit.size;
  }
  CopyLoosely(from, end - from, *readable_end, out);
  *object = absl::string_view(copy, size);
  *readable_end = copy + size + kReadable;
  return true;
}

template <typename VisitEntry>
inline DriftMarks::Change DriftMarks::VisitEntries(
    const char* p, const char* end, Visit* visit,
    const VisitEntry& visit_value) {
  Change change = 0;
  while (p < end && *p == kStructFields) {
    const char* next;
    if (ABSL_PREDICT_TRUE(p < visit->safe_end) && !MayHaveDrift(p, &next)) {
      p = next;
      continue;
    }
    Entry entry;
    if (ABSL_PREDICT_FALSE(!TakeEntry(&p, end, &entry))) {
      visit->refused = true;
      return 0;
    }
    if (entry.value_length == nullptr || entry.value == entry.value_end) {
      continue;
    }
    const size_t first = edits_.size();
    // Its lengths come before what is in it.
    edits_.emplace_back();
    edits_.emplace_back();
    const Change by = visit_value(entry.key, entry.value, entry.value_end);
    if (ABSL_PREDICT_TRUE(edits_.size() == first + 2)) {
      edits_.pop_back();
      edits_.pop_back();
      continue;
    }
    const Change around =
        Lengthen(first + 1, entry.value_length,
                 static_cast<uint32_t>(entry.value_end - entry.value), by);
    change += Lengthen(first, entry.length, entry.size, around);
  }
  return change;
}

DriftMarks::Change DriftMarks::Lengthen(size_t edit, const char* at,
                                        uint32_t size, Change change) {
  const auto width = static_cast<uint32_t>(wire::VarintSize(size));
  const auto now = static_cast<uint64_t>(size + change);
  edits_[edit] = {at, width, false, now};
  return change + wire::VarintSize(now) - width;
}

DriftMarks::Change DriftMarks::Add(const Drift& drift, const char* p,
                                   const char* end) {
  const uint64_t number = drifts_.size();
  drifts_.push_back(drift);
  edits_.push_back({p, static_cast<uint32_t>(end - p), true,
                    kOnes | static_cast<uint64_t>(drift.type) << kTypeAt |
                        number << kNumberAt | nonce_});
  return Change{kMarkSize} - (end - p);
}

DriftMarks::Change DriftMarks::AddManagedFields(const char* p, const char* end,
                                                absl::string_view key,
                                                int depth, const MaskNode* node,
                                                Visit* visit) {
  const char* contents = p + 1;
  uint32_t size;
  if (!ReadLength(&contents, end, &size) || depth < 1) {
    visit->refused = true;
    return 0;
  }
  if (contents + size != end) return 0;  // unknown fields
  char* const begin = Reserve(size + ListGrowth(size) + 64);
  char* const written =
      visit->write_list({contents, size}, depth - 1, node, begin);
  if (written == nullptr || drifts_.size() == kMostDrifts) {
    visit->refused = true;
    return 0;
  }
  free_ = written;
  return Add({visit->section, DriftType::kManagedFields, key,
              absl::string_view(begin, written - begin)},
             p, end);
}

template <typename Inner>
inline DriftMarks::Change DriftMarks::VisitHolder(const char* p,
                                                  const char* end,
                                                  const Inner& inner,
                                                  Visit* visit) {
  const char* const length = p + 1;
  const char* contents = length;
  uint32_t size;
  if (!ReadLength(&contents, end, &size)) {
    visit->refused = true;
    return 0;
  }
  const size_t first = edits_.size();
  edits_.emplace_back();
  const Change by = inner(contents, contents + size);
  if (ABSL_PREDICT_TRUE(edits_.size() == first + 1)) {
    edits_.pop_back();
    return 0;
  }
  return Lengthen(first, length, size, by);
}

DriftMarks::Change DriftMarks::VisitObject(const char* p, const char* end,
                                           int depth, const MaskNode* node,
                                           Visit* visit) {
  return VisitEntries(
      p, end, visit,
      [&](absl::string_view key, const char* value,
          const char* value_end) -> Change {
        if (key == kMetadataKey && *value == kStructValue) {
          const MaskNode* const below = Below(node, key);
          if (IsMasked(below)) return 0;
          return VisitHolder(
              value, value_end,
              [&](const char* from, const char* to) {
                return VisitMetadata(from, to, depth - 3, below, visit);
              },
              visit);
        }
        if (key == kStatusKey && visit->section != DriftSection::kComposite) {
          return VisitValue(value, value_end, key, /*in_list=*/false, depth - 2,
                            Below(node, key), visit);
        }
        return 0;
      });
}

DriftMarks::Change DriftMarks::VisitMetadata(const char* p, const char* end,
                                             int depth, const MaskNode* node,
                                             Visit* visit) {
  return VisitEntries(
      p, end, visit,
      [&](absl::string_view key, const char* value,
          const char* value_end) -> Change {
        if (key == kVersionKey) {
          absl::string_view text;
          if (!ReadText(value, value_end, &text) || !IsVersion(text) ||
              IsMasked(Below(node, key)) || drifts_.size() == kMostDrifts) {
            return 0;
          }
          return Add({visit->section, DriftType::kVersion, key, text}, value,
                     value_end);
        }
        if (key == kManagedFieldsKey && *value == kListValue) {
          const MaskNode* const below = Below(node, key);
          if (IsMasked(below)) return 0;
          return AddManagedFields(value, value_end, key, depth - 2, below,
                                  visit);
        }
        return 0;
      });
}

DriftMarks::Change DriftMarks::VisitStruct(const char* p, const char* end,
                                           int depth, const MaskNode* node,
                                           Visit* visit) {
  return VisitEntries(
      p, end, visit,
      [&](absl::string_view key, const char* value, const char* value_end) {
        return VisitValue(value, value_end, key,
                          /*in_list=*/false, depth - 2, Below(node, key),
                          visit);
      });
}

DriftMarks::Change DriftMarks::VisitValue(const char* p, const char* end,
                                          absl::string_view key, bool in_list,
                                          int depth, const MaskNode* node,
                                          Visit* visit) {
  if (IsMasked(node)) return 0;
  if (*p == kStringValue) {
    absl::string_view text;
    DriftType type;
    if (!ReadText(p, end, &text) ||
        !IsStatusDrift(in_list ? absl::string_view() : key, text, &type) ||
        drifts_.size() == kMostDrifts) {
      return 0;
    }
    return Add({visit->section, type, key, text}, p, end);
  }
  if (!IsHolder(*p)) return 0;
  if (depth < 1) {
    visit->refused = true;
    return 0;
  }
  if (*p == kStructValue) {
    return VisitHolder(
        p, end,
        [&](const char* from, const char* to) {
          return VisitStruct(from, to, depth - 1, node, visit);
        },
        visit);
  }
  if (key == kManagedFieldsKey && !in_list) {
    return AddManagedFields(p, end, key, depth, node, visit);
  }
  const MaskNode* const element = node == nullptr ? nullptr : node->element();
  return VisitHolder(
      p, end,
      [&](const char* from, const char* to) {
        Change change = 0;
        while (from != to && *from == kListValues) {
          const char* const length = ++from;
          uint32_t size;
          if (!ReadLength(&from, to, &size) || depth < 2) {
            visit->refused = true;
            return Change{0};
          }
          if (size == 0) continue;
          const size_t first = edits_.size();
          edits_.emplace_back();
          const Change by = VisitValue(from, from + size, key, /*in_list=*/true,
                                       depth - 2, element, visit);
          if (edits_.size() == first + 1) {
            edits_.pop_back();
          } else {
            change += Lengthen(first, length, size, by);
          }
          from += size;
        }
        return change;
      },
      visit);
}

absl::string_view DriftMarks::Collect(char* form, size_t size) {
  if (drifts_.empty()) return absl::string_view();
  // The last byte of a placeholder is 0xff, which is rare in requests.
  const char* const end = form + size;
  for (char* p = form + kMarkSize - 1; p < end;) {
    p = static_cast<char*>(std::memchr(p, 0xff, end - p));
    if (p == nullptr) break;
    char* const value = p - (kMarkSize - 1);
    const uint64_t bits = absl::little_endian::Load64(value + 1);
    const size_t number = (bits >> kNumberAt) & (kMostDrifts - 1);
    const uint64_t nonce = bits & ((uint64_t{1} << kNumberAt) - 1);
    ++p;
    if (*value != kNumberValue || bits < kOnes || nonce != nonce_ ||
        number >= drifts_.size() ||
        (bits >> kTypeAt & 3) != static_cast<uint64_t>(drifts_[number].type)) {
      continue;
    }
    AppendDrift(drifts_[number], &collected_);
    const char type = static_cast<char>(drifts_[number].type);
    const char mark[kMarkSize] = {kStringValue, 7, '\xff', type};
    std::memcpy(value, mark, kMarkSize);
    p = std::min(value + 2 * kMarkSize - 1, form + size);
  }
  return collected_;
}

}  // namespace fncache::cache::key
