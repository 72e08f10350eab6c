// SPDX-License-Identifier: Apache-2.0
#include "insight/explain/last_misses.h"

#include <string>
#include <utility>

namespace fncache::insight::explain {
namespace {

// Names of Kubernetes are shorter; paths of masks mostly, too.
constexpr size_t kLongestText = 512;

// A text that is kept, cut where a character ends.
std::string Cut(const std::string& text) {
  if (text.size() <= kLongestText) return text;
  size_t end = kLongestText;
  while (end > 0 && (text[end] & 0xc0) == 0x80) --end;
  return text.substr(0, end);
}

uint64_t BytesOf(const ExplainedMiss& miss) {
  uint64_t bytes = sizeof miss;
  for (const std::string* text :
       {&miss.function, &miss.composite.api_version, &miss.composite.kind,
        &miss.composite.object_namespace, &miss.composite.name,
        &miss.composite.uid, &miss.why.detail, &miss.why.section,
        &miss.why.writer}) {
    // Short texts are within the string itself.
    if (text->capacity() > std::string().capacity()) {
      bytes += text->capacity() + 1;
    }
  }
  for (const std::string& mask : miss.why.masks) {
    bytes += sizeof(std::string) + mask.capacity() + 1;
  }
  return bytes;
}

void CutTexts(ExplainedMiss* miss) {
  miss->composite.kind = Cut(miss->composite.kind);
  miss->composite.object_namespace = Cut(miss->composite.object_namespace);
  miss->composite.name = Cut(miss->composite.name);
  miss->why.detail = Cut(miss->why.detail);
  miss->why.writer = Cut(miss->why.writer);
  if (!miss->why.masks.empty() && miss->why.masks[0].size() > kLongestText) {
    miss->why.masks.clear();
  }
}

}  // namespace

void LastMisses::Add(ExplainedMiss miss, uint64_t bound) {
  CutTexts(&miss);
  bytes_ += BytesOf(miss);
  misses_.push_back(std::move(miss));
  while (bytes_ > bound || misses_.size() > kMost) {
    bytes_ -= BytesOf(misses_.front());
    misses_.pop_front();
  }
}

std::vector<ExplainedMiss> LastMisses::Last(size_t most,
                                            absl::string_view function) const {
  std::vector<ExplainedMiss> last;
  for (auto at = misses_.rbegin(); at != misses_.rend(); ++at) {
    if (last.size() >= most) break;
    if (function.empty() || at->function == function) last.push_back(*at);
  }
  return last;
}

}  // namespace fncache::insight::explain
