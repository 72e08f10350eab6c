// SPDX-License-Identifier: Apache-2.0
// Writes an Analysis as text and as JSON.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/duration.h"
#include "common/json_tree.h"
#include "common/text_table.h"
#include "common/utf8.h"
#include "insight/explain/analysis.h"

namespace fncache::insight::explain {
namespace {

constexpr size_t kRows = 20;
// The runner's field managers end in a digest of the composite. It would push
// the next column off the screen.
constexpr size_t kWriterWidth = 44;
// Beside each mask: it follows from the changes, not from the function.
constexpr char kNotAsked[] = "not asked";

std::string Percent(double part, double whole) {
  return whole > 0 ? absl::StrFormat("%.1f %%", 100 * part / whole) : "-";
}

std::string Writer(absl::string_view name) {
  if (name.empty()) return "-";
  if (name.size() <= kWriterWidth) return Printable(name);
  return absl::StrCat(Printable(name.substr(0, kWriterWidth - 3)), "...");
}

std::string MissTable(const std::string& title,
                      const std::vector<Misses>& shares,
                      const Analysis& analysis) {
  std::vector<std::vector<std::string>> rows = {
      {title, "misses", "share", "function s", "share"}};
  for (const Misses& share : shares) {
    if (rows.size() > kRows) break;
    rows.push_back({Printable(share.name), absl::StrCat(share.misses),
                    Percent(static_cast<double>(share.misses),
                            static_cast<double>(analysis.misses)),
                    absl::StrFormat("%.3f", share.seconds),
                    Percent(share.seconds, analysis.seconds)});
  }
  return TextTable(rows, {false, true, true, true, true});
}

}  // namespace

std::string AnalysisText(const Analysis& analysis, absl::string_view by) {
  const uint64_t looked_up = analysis.calls - analysis.bypasses;
  std::string text = absl::StrFormat(
      "%d calls of %s, %d composite%s, in %s: %d hits (%s), %d misses "
      "explained, "
      "%.3f function seconds\n",
      analysis.calls, Printable(absl::StrJoin(analysis.functions, ", ")),
      analysis.composites, analysis.composites == 1 ? "" : "s",
      FormatGoDuration(absl::Trunc(analysis.span, absl::Milliseconds(1))),
      analysis.hits,
      Percent(static_cast<double>(analysis.hits),
              static_cast<double>(looked_up)),
      analysis.misses, analysis.seconds);
  if (!analysis.bypasses_by_reason.empty()) {
    absl::StrAppend(&text, "not looked up: ");
    const char* comma = "";
    for (const auto& [reason, count] : analysis.bypasses_by_reason) {
      absl::StrAppend(&text, comma, count, " ", Printable(reason));
      comma = ", ";
    }
    absl::StrAppend(&text, "\n");
  }
  if (analysis.dropped > 0) {
    absl::StrAppend(&text, "the writer dropped ", analysis.dropped,
                    " calls, which are not in this\n");
  }
  if (analysis.damaged > 0) {
    absl::StrAppend(&text, analysis.damaged,
                    " blocks of the trace are damaged and were skipped\n");
  }
  const std::string short_of =
      TooShortForTimers(analysis.span, analysis.longest_ttl);
  if (!short_of.empty()) absl::StrAppend(&text, short_of, "\n");
  if (analysis.misses == 0) return text;
  absl::StrAppend(&text, "\n", MissTable("why", analysis.reasons, analysis));
  if (by == "section" && !analysis.sections.empty()) {
    absl::StrAppend(
        &text, "\n",
        MissTable("what changed, by section", analysis.sections, analysis));
  } else if (by == "writer" && !analysis.writers.empty()) {
    absl::StrAppend(
        &text, "\n",
        MissTable("last writer of what changed", analysis.writers, analysis));
  } else if (!analysis.paths.empty()) {
    std::vector<std::vector<std::string>> rows = {
        {"what changed", "misses", "share", "written by", "mask"}};
    for (const PathMisses& path : analysis.paths) {
      if (rows.size() > kRows) {
        rows.push_back({absl::StrCat("and ", analysis.paths.size() - kRows,
                                     " more (--json has all)"),
                        "", "", "", ""});
        break;
      }
      rows.push_back({Printable(path.path), absl::StrCat(path.misses),
                      Percent(static_cast<double>(path.misses),
                              static_cast<double>(analysis.misses)),
                      Writer(path.writer),
                      path.allowed ? "allowed" : "not allowed"});
    }
    absl::StrAppend(&text, "\n",
                    TextTable(rows, {false, true, true, false, false}));
  }
  if (analysis.has_paths && analysis.pathless > 0) {
    absl::StrAppend(&text, "\nOf ", analysis.pathless,
                    " changed ones the trace has no paths, for not all "
                    "requests were read for it: see\n"
                    "fncache_trace_read_share. No mask counts for them.\n");
  }
  if (!analysis.has_paths) {
    absl::StrAppend(&text,
                    "\nThe trace has no paths (trace.level: keys): what "
                    "changed is not in it.\n");
  } else if (!analysis.masks.empty()) {
    std::vector<std::vector<std::string>> rows = {
        {"masks that would have made hits", "alone", "with those above",
         "function s", "function"}};
    const auto misses = static_cast<double>(analysis.misses);
    for (const MaskGain& share : analysis.masks) {
      // The numbers are of all of these masks together.
      rows.push_back({Printable(share.masks[0]),
                      Percent(static_cast<double>(share.alone), misses),
                      Percent(static_cast<double>(share.together), misses),
                      absl::StrFormat("%.3f", share.seconds_together),
                      kNotAsked});
      for (size_t i = 1; i < share.masks.size(); ++i) {
        rows.push_back(
            {Printable(share.masks[i]), "with it", "", "", kNotAsked});
      }
    }
    absl::StrAppend(&text, "\n",
                    TextTable(rows, {false, true, true, true, false}),
                    "\nA mask says that the function does not read what it "
                    "hides. It was not asked:\nfncache probe and fncache "
                    "advise ask it.\n");
  } else {
    absl::StrAppend(&text,
                    "\nNo mask that could be proposed without asking the "
                    "function would have made a hit of any\nof them.\n");
  }
  return text;
}

std::string AnalysisJson(const Analysis& analysis) {
  const auto shares = [](const std::vector<Misses>& all) {
    JsonTree list = JsonTree::Array();
    for (const Misses& one : all) {
      list.Append({{"name", one.name},
                   {"misses", one.misses},
                   {"function_seconds", one.seconds}});
    }
    return list;
  };
  JsonTree paths = JsonTree::Array();
  for (const PathMisses& one : analysis.paths) {
    paths.Append({{"path", one.path},
                  {"section", one.section},
                  {"writer", one.writer},
                  {"misses", one.misses},
                  {"function_seconds", one.seconds},
                  {"allowed", one.allowed}});
  }
  JsonTree masks = JsonTree::Array();
  for (size_t group = 0; group < analysis.masks.size(); ++group) {
    const MaskGain& share = analysis.masks[group];
    for (const std::string& mask : share.masks) {
      masks.Append({{"mask", mask},
                    {"group", group},
                    {"hits_alone", share.alone},
                    {"hits_together", share.together},
                    {"function_seconds", share.seconds_together},
                    {"function_asked", false}});
    }
  }
  const JsonTree all = {
      {"version", 1},
      {"calls", analysis.calls},
      {"hits", analysis.hits},
      {"misses", analysis.misses},
      {"bypasses", analysis.bypasses},
      {"bypasses_by_reason", analysis.bypasses_by_reason},
      {"function_seconds", analysis.seconds},
      {"seconds", absl::ToDoubleSeconds(analysis.span)},
      {"longest_ttl_seconds", absl::ToDoubleSeconds(analysis.longest_ttl)},
      {"too_short_for_timers", analysis.span < analysis.longest_ttl},
      {"composites", analysis.composites},
      {"functions", analysis.functions},
      {"has_paths", analysis.has_paths},
      {"pathless", analysis.pathless},
      {"dropped", analysis.dropped},
      {"damaged", analysis.damaged},
      {"reasons", shares(analysis.reasons)},
      {"paths", paths},
      {"sections", shares(analysis.sections)},
      {"writers", shares(analysis.writers)},
      {"masks", masks}};
  return all.Dump(2, JsonTree::Order::kSorted) + "\n";
}

}  // namespace fncache::insight::explain
