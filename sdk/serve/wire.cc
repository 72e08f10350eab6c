// SPDX-License-Identifier: Apache-2.0
#include "sdk/serve/wire.h"

namespace fncache::sdk::serve {
namespace {

enum WireType : uint64_t { kVarint = 0, kFixed64 = 1, kText = 2, kFixed32 = 5 };

bool ReadVarint(absl::string_view* bytes, uint64_t* value) {
  *value = 0;
  for (int shift = 0; shift < 64 && !bytes->empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes->front());
    bytes->remove_prefix(1);
    *value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

void WriteVarint(uint64_t value, std::string* out) {
  for (; value >= 0x80; value >>= 7) {
    out->push_back(static_cast<char>(value | 0x80));
  }
  out->push_back(static_cast<char>(value));
}

}  // namespace

bool ForEachText(
    absl::string_view message,
    const std::function<void(uint32_t number, absl::string_view text)>& take) {
  while (!message.empty()) {
    uint64_t tag = 0;
    uint64_t size = 0;
    if (!ReadVarint(&message, &tag)) return false;
    switch (tag & 7) {
      case kVarint:
        if (!ReadVarint(&message, &size)) return false;
        continue;
      case kFixed64:
        size = 8;
        break;
      case kText:
        if (!ReadVarint(&message, &size)) return false;
        break;
      case kFixed32:
        size = 4;
        break;
      default:
        return false;
    }
    if (size > message.size()) return false;
    if ((tag & 7) == kText) {
      take(static_cast<uint32_t>(tag >> 3), message.substr(0, size));
    }
    message.remove_prefix(size);
  }
  return true;
}

absl::string_view LastText(absl::string_view message, uint32_t number) {
  absl::string_view last;
  ForEachText(message, [&](uint32_t found, absl::string_view text) {
    if (found == number) last = text;
  });
  return last;
}

void AppendVarint(uint32_t number, uint64_t value, std::string* message) {
  WriteVarint(uint64_t{number} << 3 | kVarint, message);
  WriteVarint(value, message);
}

void AppendText(uint32_t number, absl::string_view text, std::string* message) {
  WriteVarint(uint64_t{number} << 3 | kText, message);
  WriteVarint(text.size(), message);
  message->append(text.data(), text.size());
}

}  // namespace fncache::sdk::serve
