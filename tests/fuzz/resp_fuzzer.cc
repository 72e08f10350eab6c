// SPDX-License-Identifier: Apache-2.0
// Any bytes are a reply, or the beginning of one, or broken, however they are
// cut. A reply stays within its bound. Redirections and slots in it are those
// of a Cluster, or none. The first byte says how the rest is cut.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "resp/cluster.h"
#include "resp/parser.h"
#include "tests/fuzz/check.h"

namespace {

using fncache::fuzz::Check;
using fncache::resp::Address;
using fncache::resp::kSlots;
using fncache::resp::Parser;
using fncache::resp::Reply;

constexpr size_t kMostBytes = 4096;

size_t SizeOf(const Reply& reply) {
  size_t size = reply.text.size();
  for (const Reply& element : reply.elements) {
    size += sizeof(Reply) + SizeOf(element);
  }
  return size;
}

bool Same(const Reply& a, const Reply& b) {
  return a.kind == b.kind && a.integer == b.integer && a.text == b.text &&
         std::equal(a.elements.begin(), a.elements.end(), b.elements.begin(),
                    b.elements.end(), Same);
}

void CheckAddress(const Address& address) {
  Check(address.port > 0 && address.port < 65536);
  for (const std::string& text : {address.host, address.name}) {
    Check(text.size() < 256);
    for (const char c : text) {
      Check(absl::ascii_isalnum(c) || absl::StrContains(".:-_", c));
    }
  }
}

void CheckRedirection(absl::string_view words) {
  const auto redirection = fncache::resp::ParseRedirection(words);
  if (!redirection) return;
  Check(redirection->slot >= 0 && redirection->slot < kSlots);
  CheckAddress(redirection->to);
}

void CheckReply(const Reply& reply) {
  Check(SizeOf(reply) <= kMostBytes);
  CheckRedirection(reply.text);
  int slots = 0;
  for (const auto& range : fncache::resp::ParseSlots(reply)) {
    Check(range.first >= 0 && range.first <= range.last && range.last < kSlots);
    slots += range.last - range.first + 1;
    CheckAddress(range.master);
  }
  Check(slots <= kSlots);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const size_t step = data[0] + 1;
  absl::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  CheckRedirection(bytes);
  const int slot = fncache::resp::SlotOf(bytes);
  Check(slot >= 0 && slot < kSlots);

  Parser whole;
  whole.Begin(kMostBytes);
  const Parser::Result result = whole.Feed(bytes);
  if (result == Parser::Result::kReply) CheckReply(whole.reply());
  if (result == Parser::Result::kBroken) Check(!whole.why().empty());

  Parser cut;
  cut.Begin(kMostBytes);
  Parser::Result last = Parser::Result::kMore;
  while (last == Parser::Result::kMore && !bytes.empty()) {
    last = cut.Feed(bytes.substr(0, step));
    bytes.remove_prefix(std::min(step, bytes.size()));
  }
  // A reply that is followed by more breaks the whole.
  const bool followed = last == Parser::Result::kReply && !bytes.empty();
  Check(followed ? result == Parser::Result::kBroken : last == result);
  if (result == Parser::Result::kReply) {
    Check(Same(whole.reply(), cut.reply()));
  }
  // The next reply is one of its own.
  if (last == Parser::Result::kReply) {
    cut.Begin(kMostBytes);
    Check(cut.Feed(":7\r\n") == Parser::Result::kReply);
    Check(cut.reply().integer == 7);
  }
  return 0;
}
