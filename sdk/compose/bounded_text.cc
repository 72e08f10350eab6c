// SPDX-License-Identifier: Apache-2.0
#include "sdk/compose/bounded_text.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace fncache::sdk {
namespace {

std::string More(size_t count) {
  return absl::StrCat("; and ", count, " more");
}

// At most `most` items, as many as leave space for the count of the others.
std::string Cut(absl::string_view before, const std::vector<std::string>& items,
                absl::string_view separator, size_t most, size_t limit) {
  std::string text(before);
  size_t taken = 0;
  while (taken < most) {
    const absl::string_view between = taken == 0 ? "" : separator;
    const size_t left = items.size() - taken - 1;
    if (text.size() + between.size() + items[taken].size() +
            (left == 0 ? 0 : More(left).size()) >
        limit) {
      break;
    }
    absl::StrAppend(&text, between, items[taken]);
    ++taken;
  }
  if (taken == items.size()) return text;
  if (taken > 0) return text + More(items.size() - taken);
  const std::string more = items.size() > 1 ? More(items.size() - 1) : "";
  return Clip(text + items[0], limit - more.size()) + more;
}

}  // namespace

std::string Clip(std::string text, size_t limit) {
  if (text.size() <= limit) return text;
  size_t end = limit - 3;
  // Continuation bytes of UTF-8 are 10xxxxxx.
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) {
    --end;
  }
  text.resize(end);
  return text + "...";
}

std::string Bounded(absl::string_view before,
                    const std::vector<std::string>& items,
                    absl::string_view separator, size_t limit) {
  size_t bytes = before.size();
  for (const std::string& item : items) bytes += item.size() + separator.size();
  if (items.empty() || bytes - separator.size() <= limit) {
    return absl::StrCat(before, absl::StrJoin(items, separator));
  }
  return Cut(before, items, separator, items.size() - (items.size() > 1),
             limit);
}

std::string BoundedWaits(const std::vector<std::string>& items,
                         const std::vector<std::string>& edges) {
  const std::string waits = Bounded("", items, "; ");
  if (edges.empty()) return waits;
  if (items.empty()) return Bounded("graph: ", edges, ", ");
  size_t bytes = 2 * (items.size() - 1);
  for (const std::string& item : items) bytes += item.size();
  if (bytes > kMaxTextBytes) return waits;
  const std::string before = waits + "; graph: ";
  const std::string more = edges.size() > 1 ? More(edges.size() - 1) : "";
  if (before.size() + edges[0].size() + more.size() <= kMaxTextBytes) {
    return Bounded(before, edges, ", ");
  }
  const std::string all = More(edges.size());
  if (waits.size() + all.size() <= kMaxTextBytes) return waits + all;
  return Cut("", items, "; ", items.size() - 1, kMaxTextBytes);
}

}  // namespace fncache::sdk
