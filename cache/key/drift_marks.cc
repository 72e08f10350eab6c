// SPDX-License-Identifier: Apache-2.0
#include "cache/key/drift_marks.h"

#include <cstring>

#include "cache/key/drift.h"
#include "cache/key/plain_wire.h"
#include "cache/wire/wire.h"

namespace fncache::cache::key {
namespace {

// Whether the Value from `p` to `end` is drift and nothing else. Sets its type
// and its value.
bool IsDrift(const MaskNode& node, absl::string_view key, bool in_list,
             const char* p, const char* end, Drift* drift) {
  if (p == end) return false;
  if (*p++ != kStringValue) return false;
  uint32_t size;
  if (!ReadLength(&p, end, &size) || p + size != end) return false;
  drift->value = absl::string_view(p, size);
  switch (node.drifts) {
    case MaskNode::Drifts::kVersion:
      drift->type = DriftType::kVersion;
      return IsVersion(drift->value);
    case MaskNode::Drifts::kStatus:
      return IsStatusDrift(in_list ? absl::string_view() : key, drift->value,
                           &drift->type);
    default:
      return false;
  }
}

}  // namespace

char* WriteMark(DriftType type, char* out) {
  *out++ = 0;
  *out++ = static_cast<char>(type);
  return out;
}

char* WriteElementHead(size_t value_size, char* out) {
  *out++ = kListValues;
  return wire::WriteVarint(out, value_size);
}

char* WriteLedHead(absl::string_view key, size_t value_size, char* out) {
  *out++ = kStructFields;
  out = wire::WriteVarint(out, 2 + wire::VarintSize(key.size()) + key.size() +
                                   wire::VarintSize(value_size) + value_size);
  *out++ = kMapKey;
  out = wire::WriteVarint(out, key.size());
  std::memcpy(out, key.data(), key.size());
  out += key.size();
  *out++ = kMapValue;
  return wire::WriteVarint(out, value_size);
}

char* MarkEntry(const MaskNode& node, char* head, char* end,
                std::string* drifts) {
  const char* p = head + 1;
  uint32_t size;
  if (!ReadLength(&p, end, &size)) return end;
  const char* const key_tag = p++;
  if (!ReadLength(&p, end, &size)) return end;
  Drift drift;
  drift.key = absl::string_view(p, size);
  p += size + 1;
  if (!ReadLength(&p, end, &size) ||
      !IsDrift(node, drift.key, /*in_list=*/false, p, end, &drift)) {
    return end;
  }
  drift.section = node.section;
  AppendDrift(drift, drifts);
  // Its first length may take fewer bytes now.
  const size_t key_size = p - wire::VarintSize(size) - key_tag;
  const size_t contents = key_size + 1 + kMarkSize;
  char* const key = wire::WriteVarint(head + 1, contents);
  if (key != key_tag) std::memmove(key, key_tag, key_size);
  char* out = key + key_size;
  *out++ = kMarkSize;
  return WriteMark(drift.type, out);
}

char* MarkElement(const MaskNode& node, absl::string_view key, char* head,
                  char* end, std::string* drifts) {
  const char* p = head + 1;
  uint32_t size;
  Drift drift;
  if (!ReadLength(&p, end, &size) ||
      !IsDrift(node, key, /*in_list=*/true, p, end, &drift)) {
    return end;
  }
  drift.section = node.section;
  drift.key = key;
  AppendDrift(drift, drifts);
  head[1] = kMarkSize;
  return WriteMark(drift.type, head + 2);
}

}  // namespace fncache::cache::key
