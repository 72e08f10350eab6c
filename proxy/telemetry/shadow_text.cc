// SPDX-License-Identifier: Apache-2.0
#include "proxy/telemetry/shadow_text.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/json_tree.h"
#include "common/text_table.h"
#include "common/utf8.h"
#include "proxy/telemetry/shadow_verdict.h"

namespace fncache::proxy::telemetry {
namespace {

using Json = JsonTree;

constexpr size_t kPathsShown = 10;

std::string Percent(double share) {
  return absl::StrFormat("%.3g %%", 100 * share);
}

std::string Of(const ShadowReport::Count& count) {
  return absl::StrCat(count.differences, " of ", count.hits);
}

std::string Counted(uint64_t n, const char* one, const char* many) {
  return absl::StrCat(n, " ", n == 1 ? one : many);
}

const char* Hits(ShadowBy about, uint64_t n) {
  if (about == ShadowBy::kMask) {
    return n == 1 ? "hit by the masks" : "hits by the masks";
  }
  return n == 1 ? "exact repeat" : "exact repeats";
}

// "3 of 41 exact repeats".
std::string OfHits(const ShadowReport& report, ShadowBy about) {
  const ShadowReport::Count& count = report.of(about);
  return absl::StrCat(Of(count), " ", Hits(about, count.hits));
}

// A suspected mask. `alone`: hits in which only this mask's value had changed,
// and those that differed.
struct Suspect {
  const ShadowReport::Mask* mask;
  ShadowReport::Count alone;
  const ShadowReport::Path* path;  // where; or null: anywhere
};

// The masks by which answers differ. If the verdict is wrong although the
// function varies by itself, only masks with differences at paths where it does
// not vary, or with more differences than it varies. Masks with the most
// differences when they changed alone come first.
std::vector<Suspect> Suspects(const ShadowReport& report,
                              const ShadowVerdict& verdict) {
  const bool narrow =
      verdict.varies && verdict.judgement == ShadowJudgement::kWrong;
  std::vector<Suspect> suspects;
  for (size_t i = 0; i < report.masks.size(); ++i) {
    const ShadowReport::Mask& mask = report.masks[i];
    Suspect suspect{&mask, {}, nullptr};
    if (!narrow || ExceedsControl(mask.alone, report, report.masks.size())) {
      suspect.alone = mask.alone;
    }
    for (const size_t at : verdict.paths) {
      const ShadowReport::Path& path = report.paths[at];
      const uint64_t there = i < path.alone.size() ? path.alone[i] : 0;
      if (!narrow || there == 0) continue;
      if (suspect.path == nullptr || there > suspect.alone.differences) {
        suspect.path = &path;
        suspect.alone = {mask.alone.hits, there};
      }
    }
    if (suspect.alone.differences > 0) suspects.push_back(suspect);
  }
  std::stable_sort(suspects.begin(), suspects.end(),
                   [](const Suspect& a, const Suspect& b) {
                     return a.alone.differences > b.alone.differences;
                   });
  return suspects;
}

std::string SuspectsText(const ShadowReport& report,
                         const ShadowVerdict& verdict) {
  std::string text;
  for (const Suspect& suspect : Suspects(report, verdict)) {
    absl::StrAppend(
        &text,
        verdict.judgement == ShadowJudgement::kWrong ? "  do not mask "
                                                     : "  suspected is ",
        Printable(suspect.mask->path), ": where it alone had changed, ",
        Of(suspect.alone), suspect.alone.hits == 1 ? " answer" : " answers",
        " differed");
    if (suspect.path != nullptr) {
      absl::StrAppend(&text, " at ", Printable(suspect.path->path));
    }
    absl::StrAppend(&text, "\n");
  }
  return text;
}

// "it varies by itself too, in 3 of 40 exact repeats, 7.5 %".
std::string VariesToo(const ShadowReport& report) {
  return absl::StrCat("it varies by itself too, in ",
                      OfHits(report, ShadowBy::kExact), ", ",
                      Percent(report.of(ShadowBy::kExact).rate()));
}

std::string NotEnoughText(const ShadowReport& report,
                          const ShadowVerdict& verdict) {
  const ShadowReport::Count& count = report.of(verdict.about);
  std::string text = absl::StrFormat(
      "not enough yet: no difference in %d %s, and fewer than %d say little",
      count.hits, Hits(verdict.about, count.hits), ShadowReport::kEnough);
  if (verdict.at_most.has_value() && count.hits > 3) {
    absl::StrAppend(&text, " (at most ", Percent(*verdict.at_most),
                    " of them wrong, at 95 % confidence)");
  }
  return text;
}

std::string NoDifferenceText(const ShadowReport& report,
                             const ShadowVerdict& verdict) {
  std::string text = absl::StrFormat(
      "no difference in %d %s: at most %s of them wrong, at 95 %% confidence "
      "(3/n, the rule of three)",
      report.of(verdict.about).hits,
      Hits(verdict.about, report.of(verdict.about).hits),
      Percent(*verdict.at_most));
  if (verdict.varies) absl::StrAppend(&text, "; but ", VariesToo(report));
  return text;
}

std::string WrongText(const ShadowReport& report,
                      const ShadowVerdict& verdict) {
  std::string text =
      absl::StrCat("wrong: ", OfHits(report, ShadowBy::kMask),
                   " would have given another answer than the function");
  const uint64_t repeats = report.of(ShadowBy::kExact).hits;
  if (!verdict.varies) {
    if (repeats > 0) {
      absl::StrAppend(&text, "; in ", repeats, " ",
                      Hits(ShadowBy::kExact, repeats),
                      " it gave the same answer");
    }
    return text;
  }
  absl::StrAppend(&text, ", ", Percent(report.of(ShadowBy::kMask).rate()),
                  " of them; ", VariesToo(report), ", but not as much");
  if (!verdict.paths.empty()) {
    const ShadowReport::Path& path = report.paths[verdict.paths.front()];
    absl::StrAppend(&text, " at ", Printable(path.path), ": there ",
                    path.certain(ShadowBy::kMask), " and ",
                    path.of(ShadowBy::kExact), " differed");
    if (verdict.paths.size() > 1) {
      absl::StrAppend(&text, "; and at ", verdict.paths.size() - 1, " more");
    }
  }
  return text;
}

std::string SuspectText(const ShadowReport& report,
                        const ShadowVerdict& verdict) {
  const ShadowReport::Count& control = report.of(ShadowBy::kExact);
  std::string text = absl::StrCat(
      "suspect, do not use the masks yet: ", OfHits(report, ShadowBy::kMask),
      " would have given another answer than the function, ",
      Percent(report.of(ShadowBy::kMask).rate()), "; ");
  if (control.hits < ShadowVerdict::kEnoughControl) {
    absl::StrAppend(
        &text, Counted(control.hits, "exact repeat", "exact repeats"),
        control.hits == 1 ? " is" : " are",
        " not enough to tell whether it varies by itself (",
        control.differences, control.differences == 1 ? " differs" : " differ",
        "; it takes ", ShadowVerdict::kEnoughControl, ")");
    return text;
  }
  absl::StrAppend(&text, VariesToo(report));
  if (!verdict.paths.empty()) {
    const ShadowReport::Path& path = report.paths[verdict.paths.front()];
    absl::StrAppend(&text, ", but at ", Printable(path.path),
                    " that is not certain yet: there ",
                    path.certain(ShadowBy::kMask), " and ",
                    path.of(ShadowBy::kExact), " differed");
  } else if (report.unrepeated > 0) {
    absl::StrAppend(
        &text, ", but ",
        Counted(report.unrepeated, "difference is", "differences are"),
        " of composites without an exact repeat");
  } else {
    absl::StrAppend(&text, ", and there may be more");
  }
  return text;
}

std::string VariesText(const ShadowReport& report,
                       const ShadowVerdict& verdict) {
  std::string text = absl::StrCat(
      "the function varies by itself: ", OfHits(report, ShadowBy::kExact),
      " gave another answer, ", Percent(report.of(ShadowBy::kExact).rate()));
  const ShadowReport::Count& masks = report.of(ShadowBy::kMask);
  if (verdict.about == ShadowBy::kMask) {
    absl::StrAppend(&text, ", and ", OfHits(report, ShadowBy::kMask), ", ",
                    Percent(masks.rate()),
                    ", at the same places and not clearly more often: about "
                    "the masks this says nothing, about caching it at all it "
                    "does");
  } else if (masks.hits > 0) {
    absl::StrAppend(&text, "; no difference yet in ", masks.hits, " ",
                    Hits(ShadowBy::kMask, masks.hits), ", and fewer than ",
                    ShadowReport::kEnough, " say little");
  } else if (!report.masks.empty()) {
    absl::StrAppend(&text, "; nothing hit by the masks yet");
  }
  return text;
}

std::string VerdictLine(const ShadowReport& report,
                        const ShadowVerdict& verdict) {
  switch (verdict.judgement) {
    case ShadowJudgement::kNotEnough:
      return NotEnoughText(report, verdict);
    case ShadowJudgement::kNoDifference:
      return NoDifferenceText(report, verdict);
    case ShadowJudgement::kSuspect:
      return SuspectText(report, verdict);
    case ShadowJudgement::kWrong:
      return WrongText(report, verdict);
    case ShadowJudgement::kVaries:
      break;
  }
  return VariesText(report, verdict);
}

std::string VerdictText(const ShadowReport& report) {
  const ShadowVerdict verdict = Judge(report);
  std::string text = absl::StrCat(VerdictLine(report, verdict), "\n");
  if (verdict.judgement == ShadowJudgement::kWrong ||
      verdict.judgement == ShadowJudgement::kSuspect) {
    absl::StrAppend(&text, SuspectsText(report, verdict));
  }
  const auto untried = std::count_if(
      report.masks.begin(), report.masks.end(),
      [](const ShadowReport::Mask& mask) { return mask.changed.hits == 0; });
  if (untried > 0 && report.of(verdict.about).hits > 0) {
    absl::StrAppend(&text, "  ", untried, " of ",
                    Counted(report.masks.size(), "mask", "masks"),
                    untried == 1 ? " was" : " were", " not tried: what ",
                    untried == 1 ? "it hides" : "they hide",
                    " had changed in no hit\n");
  }
  const ShadowReport::Count& unknown = report.of(ShadowBy::kUnknown);
  if (unknown.hits > 0) {
    absl::StrAppend(&text, "  besides, ", Of(unknown),
                    unknown.hits == 1 ? " hit" : " hits",
                    " differed whose entry is older than this trial: no proof "
                    "either way\n");
  }
  if (report.uncompared > 0) {
    absl::StrAppend(
        &text, "  ", report.uncompared,
        report.uncompared == 1 ? " would have been a hit"
                               : " would have been hits",
        ", but the function gave no answer to compare (errors, callers that "
        "left)\n");
  }
  return text;
}

// The size of the trial.
std::string TriedText(const ShadowReport& report) {
  if (report.since == absl::InfiniteFuture()) return "  no call yet\n";
  std::string text = absl::StrCat(
      "  since ",
      absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", report.since, absl::UTCTimeZone()),
      ": ", Counted(report.lookups, "look-up", "look-ups"), " of ",
      Counted(report.composites, "composite", "composites"), "\n");
  const auto differ = [](const ShadowReport::Count& count) {
    return absl::StrCat("; ", count.differences,
                        count.differences == 1 ? " differs" : " differ", "\n");
  };
  const ShadowReport::Count& mask = report.of(ShadowBy::kMask);
  if (!report.masks.empty() || mask.hits > 0) {
    absl::StrAppend(
        &text, "  by the masks: ", Counted(mask.hits, "hit", "hits"), " of ",
        Counted(report.mask_composites, "composite", "composites"), ", with ",
        Counted(report.mask_masked_values, "set", "different sets"),
        " of masked values", differ(mask));
  }
  const ShadowReport::Count& exact = report.of(ShadowBy::kExact);
  absl::StrAppend(&text, "  exact repeats, the control: ", exact.hits,
                  differ(exact));
  if (report.unread > 0) {
    absl::StrAppend(&text, "  ",
                    Counted(report.unread, "request was", "requests were"),
                    " too large to say which masks' values changed\n");
  }
  return text;
}

std::string MaskTable(const ShadowReport& report) {
  if (report.masks.empty()) return "";
  std::vector<std::vector<std::string>> rows = {
      {"mask", "values", "hits it changed in", "differ", "alone", "differ"}};
  for (const ShadowReport::Mask& mask : report.masks) {
    rows.push_back({Printable(mask.path), absl::StrCat(mask.values),
                    absl::StrCat(mask.changed.hits),
                    absl::StrCat(mask.changed.differences),
                    absl::StrCat(mask.alone.hits),
                    absl::StrCat(mask.alone.differences)});
  }
  return absl::StrCat("\n",
                      TextTable(rows, {false, true, true, true, true, true}));
}

std::string PathTable(const ShadowReport& report) {
  if (report.paths.empty()) return "";
  std::vector<std::vector<std::string>> rows = {
      {"what differed", "by mask", "exact", "unknown", "last"}};
  for (const ShadowReport::Path& path : report.paths) {
    if (rows.size() > kPathsShown) break;
    rows.push_back(
        {Printable(path.path),
         absl::StrCat(path.differences[static_cast<size_t>(ShadowBy::kMask)]),
         absl::StrCat(path.differences[static_cast<size_t>(ShadowBy::kExact)]),
         absl::StrCat(
             path.differences[static_cast<size_t>(ShadowBy::kUnknown)]),
         absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", path.last,
                          absl::UTCTimeZone())});
  }
  return absl::StrCat("\n", TextTable(rows, {false, true, true, true, false}));
}

uint64_t Unexamined(const ShadowReport& report) {
  return std::accumulate(report.unexamined.begin(), report.unexamined.end(),
                         uint64_t{0});
}

Json CountJson(const ShadowReport::Count& count) {
  return {{"hits", count.hits}, {"differences", count.differences}};
}

Json UnixSeconds(absl::Time time) {
  if (time == absl::InfiniteFuture()) return Json();
  return absl::ToDoubleSeconds(time - absl::UnixEpoch());
}

Json ReportJson(const ShadowReport& report) {
  const ShadowVerdict verdict = Judge(report);
  Json by = Json::Object();
  for (size_t i = 0; i < kShadowBys; ++i) {
    by.Set(ShadowByName(static_cast<ShadowBy>(i)), CountJson(report.by[i]));
  }
  Json masks = Json::Array();
  for (const ShadowReport::Mask& mask : report.masks) {
    masks.Append({{"path", mask.path},
                  {"values", mask.values},
                  {"changed", CountJson(mask.changed)},
                  {"alone", CountJson(mask.alone)}});
  }
  Json reasons = Json::Array();
  for (const size_t at : verdict.paths) reasons.Append(report.paths[at].path);
  Json paths = Json::Array();
  for (const ShadowReport::Path& path : report.paths) {
    Json differences = Json::Object();
    for (size_t i = 0; i < kShadowBys; ++i) {
      differences.Set(ShadowByName(static_cast<ShadowBy>(i)),
                      path.differences[i]);
    }
    paths.Append({{"path", path.path},
                  {"differences", differences},
                  {"first_unix_seconds", UnixSeconds(path.first)},
                  {"last_unix_seconds", UnixSeconds(path.last)}});
  }
  return {
      {"function", report.function},
      {"since_unix_seconds", UnixSeconds(report.since)},
      {"verdict",
       {{"judgement", ShadowJudgementName(verdict.judgement)},
        {"about", ShadowByName(verdict.about)},
        {"wrong_at_most",
         verdict.at_most.has_value() ? Json(*verdict.at_most) : Json()},
        {"confidence", 0.95},
        {"paths", reasons},
        {"varies_by_itself", verdict.varies}}},
      {"lookups", report.lookups},
      {"by", by},
      {"uncompared", report.uncompared},
      {"composites", report.composites},
      {"composites_by_mask", report.mask_composites},
      {"masked_values", report.masked_values},
      {"masked_values_by_mask", report.mask_masked_values},
      {"requests_not_read", report.unread},
      {"masks", masks},
      {"paths", paths},
      {"differences_not_examined", Unexamined(report)},
      {"differences_of_composites_not_repeated", report.unrepeated},
  };
}

}  // namespace

std::string ShadowText(absl::Span<const ShadowReport> reports) {
  if (reports.empty()) return "no function runs under mode: shadow\n";
  std::string text;
  for (const ShadowReport& report : reports) {
    absl::StrAppend(&text, text.empty() ? "" : "\n", Printable(report.function),
                    ": ", VerdictText(report), TriedText(report),
                    MaskTable(report), PathTable(report));
    const uint64_t unexamined = Unexamined(report);
    if (unexamined > 0) {
      absl::StrAppend(&text, "  ",
                      Counted(unexamined, "difference was", "differences were"),
                      " not looked into, to save time\n");
    }
  }
  return text;
}

std::string ShadowJson(absl::Span<const ShadowReport> reports) {
  Json functions = Json::Array();
  for (const ShadowReport& report : reports) {
    functions.Append(ReportJson(report));
  }
  return Json{{"functions", functions}}.Dump();
}

}  // namespace fncache::proxy::telemetry
