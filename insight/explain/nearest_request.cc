// SPDX-License-Identifier: Apache-2.0
#include "insight/explain/nearest_request.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "absl/hash/hash.h"
#include "absl/strings/match.h"
#include "absl/types/optional.h"
#include "insight/explain/proposed_mask.h"
#include "insight/request/match_paths.h"
#include "insight/request/nodes.h"

namespace fncache::insight::explain {
namespace {

using request::Section;

// The differences between a request and a kept one.
struct Difference {
  size_t count = 0;
  // The request's first own node that is new or different, an index in
  // RequestReader::at. Otherwise the first node that it lacks, an index in the
  // kept one's shape.
  absl::optional<uint32_t> first;
  std::vector<uint32_t> gone;
  // The request's own nodes that are new or different, up to kMostChanged, and
  // for each whether it is new.
  std::vector<uint32_t> changed;
  std::vector<bool> is_new;
};

Difference Compare(const RequestReader& now, const KeptRequest& before,
                   const cache::key::Hint* hint) {
  Difference difference;
  const auto counts = [hint](const std::string& path) {
    return hint->Counts(path);
  };
  const auto differs = [&](size_t i, bool is_new) {
    if (hint != nullptr && !counts(now.nodes.SpellMask(now.at[i]))) return;
    ++difference.count;
    if (!difference.first.has_value()) {
      difference.first = static_cast<uint32_t>(i);
    }
    if (difference.changed.size() < kMostChanged) {
      difference.changed.push_back(static_cast<uint32_t>(i));
      difference.is_new.push_back(is_new);
    }
  };
  request::MatchPaths(now.paths, before.shape->paths, [&](size_t i, size_t j) {
    if (i == request::kNoMatch) {
      if (before.values[j] == kNotCompared) return;
      const auto gone = static_cast<uint32_t>(j);
      if (hint != nullptr && !counts(before.shape->Spell(gone))) return;
      ++difference.count;
      difference.gone.push_back(gone);
    } else if (j == request::kNoMatch) {
      if (now.values[i] != kNotCompared) differs(i, /*is_new=*/true);
    } else if (now.values[i] != before.values[j]) {
      differs(i, /*is_new=*/false);
    }
  });
  return difference;
}

// The sections that a mask leads into.
std::array<bool, request::kSections> MaskedSections(
    const cache::key::MaskSet& masks) {
  std::array<bool, request::kSections> masked{};
  const auto mark = [&masked](Section section) {
    masked[static_cast<size_t>(section)] = true;
  };
  for (const cache::key::MaskPath& path : masks.paths()) {
    if (path[0].name == "context") {
      mark(Section::kContext);
    } else if (path[0].name == "observed") {
      mark(path.size() > 1 && path[1].name == "composite"
               ? Section::kComposite
               : Section::kObservedResource);
    } else {
      mark(Section::kRequiredResource);
    }
  }
  return masked;
}

// The section that changed. None if it could be one of several that masks lead
// into, or of which a hint may leave something out, or if the bytes are the
// same ones in another order.
absl::optional<Section> ChangedSection(
    const std::array<uint64_t, request::kSections>& now,
    const std::array<uint64_t, request::kSections>& before,
    const cache::key::MaskSet& masks, bool has_hint) {
  auto masked = MaskedSections(masks);
  if (has_hint) {
    // Any of the objects may have changed where nothing counts.
    for (const Section section :
         {Section::kComposite, Section::kObservedResource,
          Section::kRequiredResource}) {
      masked[static_cast<size_t>(section)] = true;
    }
  }
  absl::optional<Section> only_masked;
  size_t masked_count = 0;
  for (size_t i = 0; i < request::kSections; ++i) {
    if (now[i] == before[i]) continue;
    if (!masked[i]) return static_cast<Section>(i);
    only_masked = static_cast<Section>(i);
    ++masked_count;
  }
  return masked_count == 1 ? only_masked : absl::nullopt;
}

size_t SectionsDiffering(const std::array<uint64_t, request::kSections>& a,
                         const std::array<uint64_t, request::kSections>& b) {
  size_t differing = 0;
  for (size_t i = 0; i < request::kSections; ++i) differing += a[i] != b[i];
  return differing;
}

// The masks of the first path come first.
std::vector<std::string> MasksFor(const RequestReader& reader,
                                  const KeptRequest& nearest,
                                  const Difference& difference) {
  std::vector<std::string> masks;
  // Whether one is proposed; known ones are not added twice.
  const auto add = [&masks](const std::string& path, bool leaf) {
    std::string mask = ProposedMask(path, leaf);
    if (mask.empty()) return false;
    if (std::find(masks.begin(), masks.end(), mask) == masks.end()) {
      masks.push_back(std::move(mask));
    }
    return true;
  };
  if (difference.count > kMostChanged) return {};
  // Functions wait for paths that come or go, so such a path is no leaf here.
  for (size_t i = 0; i < difference.changed.size(); ++i) {
    const uint32_t at = reader.at[difference.changed[i]];
    const bool leaf =
        !difference.is_new[i] && IsLeaf(reader.nodes.nodes()[at].kind);
    if (!add(reader.nodes.Spell(at), leaf)) return {};
  }
  for (const uint32_t gone : difference.gone) {
    if (!add(nearest.shape->Spell(gone), /*leaf=*/false)) return {};
  }
  return masks;
}

// The paths that differ besides drift, written as masks. Empty if no mask is
// proposed for one of them, or if they are more than kMostUnread.
std::vector<std::string> UnreadPaths(const RequestReader& reader,
                                     const KeptRequest& nearest,
                                     const Difference& difference) {
  std::vector<std::string> paths;
  const auto add = [&paths](std::string path, bool leaf) {
    std::string mask = ProposedMask(path, leaf);
    if (mask.empty()) return false;
    // A named set does not name the path.
    if (mask[0] != '@') path = std::move(mask);
    if (std::find(paths.begin(), paths.end(), path) != paths.end()) return true;
    paths.push_back(std::move(path));
    return paths.size() <= kMostUnread;
  };
  if (difference.count > kMostChanged) return {};
  for (size_t i = 0; i < difference.changed.size(); ++i) {
    const uint32_t at = reader.at[difference.changed[i]];
    if (reader.IsDrift(at)) continue;
    const bool leaf =
        !difference.is_new[i] && IsLeaf(reader.nodes.nodes()[at].kind);
    if (!add(reader.nodes.SpellMask(at), leaf)) return {};
  }
  for (const uint32_t gone : difference.gone) {
    std::string path = nearest.shape->Spell(gone);
    // An element of managedFields is drift.
    if (absl::EndsWith(ProposedMask(path, /*leaf=*/false),
                       ".metadata.managedFields")) {
      continue;
    }
    if (!add(std::move(path), /*leaf=*/false)) return {};
  }
  return paths;
}

void ExplainChange(const RequestReader& reader, const KeptRequest& nearest,
                   const Difference& difference, Explanation* said) {
  said->reason = trace::Reason::kChanged;
  said->masks = MasksFor(reader, nearest, difference);
  if (difference.first.has_value()) {
    const uint32_t at = reader.at[*difference.first];
    const std::string path = reader.nodes.Spell(at);
    said->detail = reader.nodes.SpellMask(at);
    said->section = request::SectionOf(path);
    const std::string object = request::ObjectOf(path);
    if (object.empty()) return;
    for (const request::ObjectWriter& writer :
         request::WritersOf(reader.nodes.nodes())) {
      if (writer.object == object) said->writer = writer.manager;
    }
    return;
  }
  // The first missing path by name, so that a parent precedes its children.
  for (const uint32_t gone : difference.gone) {
    std::string path = nearest.shape->Spell(gone);
    if (said->detail.empty() || path < said->detail) {
      said->detail = std::move(path);
    }
  }
  said->section = request::SectionOf(said->detail);
}

}  // namespace

AnswerBefore NewestAnswer(const std::list<KeptRequest>& all,
                          const cache::key::Key& key,
                          absl::string_view generation,
                          const RequestReader& reader, bool expired,
                          absl::Time now) {
  for (const KeptRequest& kept : all) {
    if (kept.answer == 0 || kept.driftless != reader.driftless ||
        kept.generation != absl::HashOf(generation)) {
      continue;
    }
    AnswerBefore before;
    before.answer = kept.answer;
    before.over = RepeatOver::kOther;
    if (kept.fate == Fate::kStored) {
      const bool own = kept.key == key;
      if (kept.until <= now || (own && expired)) {
        before.over = RepeatOver::kTime;
      } else if (!own) {
        before.over = RepeatOver::kDrift;
      }
    }
    return before;
  }
  return {};
}

const KeptRequest* ExplainByNearest(
    const std::list<KeptRequest>& all, absl::string_view generation,
    const request::Outline& outline, const cache::key::MaskSet& masks,
    const cache::key::Hint* hint, const RequestReader* reader,
    Explanation* said, std::vector<std::string>* unread) {
  const KeptRequest* nearest = nullptr;
  Difference fewest;
  for (const KeptRequest& kept : all) {
    if (reader == nullptr || kept.shape == nullptr) continue;
    Difference difference = Compare(*reader, kept, hint);
    if (nearest != nullptr && difference.count >= fewest.count) continue;
    nearest = &kept;
    fewest = std::move(difference);
  }
  if (nearest != nullptr && fewest.count > 0) {
    ExplainChange(*reader, *nearest, fewest, said);
    if (unread != nullptr && nearest->answer != 0) {
      *unread = UnreadPaths(*reader, *nearest, fewest);
    }
    return nearest;
  }
  if (nearest != nullptr) {
    // It is equal in all that counts, so its key differs for another reason.
    said->reason = nearest->generation != absl::HashOf(generation)
                       ? trace::Reason::kGeneration
                       : trace::Reason::kUnknown;
    return nearest;
  }
  nearest = &*std::min_element(
      all.begin(), all.end(),
      [&outline](const KeptRequest& a, const KeptRequest& b) {
        return SectionsDiffering(a.sums, outline.sums) <
               SectionsDiffering(b.sums, outline.sums);
      });
  if (nearest->generation != absl::HashOf(generation) &&
      nearest->sums == outline.sums) {
    said->reason = trace::Reason::kGeneration;
    return nearest;
  }
  said->reason = trace::Reason::kChanged;
  const auto section =
      ChangedSection(outline.sums, nearest->sums, masks, hint != nullptr);
  if (section.has_value()) said->section = request::SectionName(*section);
  return nearest;
}

}  // namespace fncache::insight::explain
