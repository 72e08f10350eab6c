// SPDX-License-Identifier: Apache-2.0
#include "resp/cluster.h"

#include <cstdint>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace fncache::resp {
namespace {

constexpr size_t kLongestHost = 255;

bool IsHost(absl::string_view host) {
  for (const char c : host) {
    if (!absl::ascii_isalnum(c) && !absl::StrContains(".:-_", c)) return false;
  }
  return host.size() <= kLongestHost;
}

bool IsName(absl::string_view host) {
  return !absl::StrContains(host, ':') &&
         host.find_first_not_of("0123456789.") != absl::string_view::npos;
}

bool IsSlot(int64_t slot) { return slot >= 0 && slot < kSlots; }

// False if host or port is none.
bool Fill(absl::string_view host, int64_t port, Address* address) {
  if (!IsHost(host) || port < 1 || port > 65535) return false;
  address->host = std::string(host);
  address->port = static_cast<int>(port);
  if (IsName(host)) address->name = address->host;
  return true;
}

bool IsText(const Reply& reply) { return reply.kind == Reply::Kind::kText; }

bool ReadMaster(const Reply& node, Address* master) {
  // Preferred endpoint (nil: the host that was asked), port, ID, metadata.
  const std::vector<Reply>& fields = node.elements;
  if (fields.size() < 2 || fields[1].kind != Reply::Kind::kInteger ||
      (!IsText(fields[0]) && fields[0].kind != Reply::Kind::kNil) ||
      !Fill(fields[0].text, fields[1].integer, master)) {
    return false;
  }
  if (fields.size() < 4) return true;
  const std::vector<Reply>& metadata = fields[3].elements;
  for (size_t i = 0; i + 1 < metadata.size(); i += 2) {
    const Reply& value = metadata[i + 1];
    if (metadata[i].text == "hostname" && IsText(value) && IsHost(value.text) &&
        IsName(value.text)) {
      master->name = value.text;
    }
  }
  return true;
}

}  // namespace

int SlotOf(absl::string_view key) {
  const size_t open = key.find('{');
  if (open != absl::string_view::npos) {
    const size_t close = key.find('}', open + 1);
    if (close != absl::string_view::npos && close != open + 1) {
      key = key.substr(open + 1, close - open - 1);
    }
  }
  uint16_t crc = 0;
  for (const char c : key) {
    crc ^= static_cast<uint16_t>(static_cast<uint8_t>(c) << 8);
    for (int bit = 0; bit < 8; ++bit) {
      crc = static_cast<uint16_t>((crc & 0x8000) != 0 ? (crc << 1) ^ 0x1021
                                                      : crc << 1);
    }
  }
  return crc % kSlots;
}

absl::optional<Redirection> ParseRedirection(absl::string_view words) {
  const std::vector<absl::string_view> parts = absl::StrSplit(words, ' ');
  Redirection to;
  to.ask = parts[0] == "ASK";
  if (parts.size() != 3 || (!to.ask && parts[0] != "MOVED")) {
    return absl::nullopt;
  }
  const size_t colon = parts[2].rfind(':');
  int port = 0;
  if (colon == absl::string_view::npos ||
      !absl::SimpleAtoi(parts[1], &to.slot) || !IsSlot(to.slot) ||
      !absl::SimpleAtoi(parts[2].substr(colon + 1), &port) ||
      !Fill(parts[2].substr(0, colon), port, &to.to)) {
    return absl::nullopt;
  }
  return to;
}

std::vector<SlotRange> ParseSlots(const Reply& reply) {
  std::vector<SlotRange> ranges;
  int64_t left = kSlots;  // ranges that overlap are none of a Cluster
  for (const Reply& entry : reply.elements) {
    // First slot, last slot, master, replicas.
    const std::vector<Reply>& fields = entry.elements;
    SlotRange range;
    if (fields.size() < 3 || fields[0].kind != Reply::Kind::kInteger ||
        fields[1].kind != Reply::Kind::kInteger || !IsSlot(fields[0].integer) ||
        !IsSlot(fields[1].integer) || fields[1].integer < fields[0].integer ||
        fields[1].integer - fields[0].integer >= left ||
        !ReadMaster(fields[2], &range.master)) {
      continue;
    }
    left -= fields[1].integer - fields[0].integer + 1;
    range.first = static_cast<int>(fields[0].integer);
    range.last = static_cast<int>(fields[1].integer);
    ranges.push_back(std::move(range));
  }
  return ranges;
}

}  // namespace fncache::resp
