// SPDX-License-Identifier: Apache-2.0
#include "proxy/telemetry/shadow_report.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/text_table.h"
#include "common/utf8.h"
#include "nlohmann/json.hpp"

namespace fncache::proxy::telemetry {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kPathsShown = 10;

double Rate(const ShadowReport::Count& count) {
  return count.hits == 0 ? 0
                         : static_cast<double>(count.differences) /
                               static_cast<double>(count.hits);
}

// The upper end of Wilson's interval at 95 %. Precondition: there are hits.
double WilsonUpper(const ShadowReport::Count& count) {
  if (count.differences == count.hits) return 1;
  constexpr double kZ = 1.959964;
  const auto n = static_cast<double>(count.hits);
  const double p = Rate(count);
  const double middle = p + kZ * kZ / (2 * n);
  const double spread = kZ * std::sqrt(p * (1 - p) / n + kZ * kZ / (4 * n * n));
  return std::min(1.0, (middle + spread) / (1 + kZ * kZ / n));
}

std::string Percent(double share) {
  return absl::StrFormat("%.3g %%", 100 * share);
}

std::string Of(const ShadowReport::Count& count) {
  return absl::StrCat(count.differences, " of ", count.hits);
}

const char* Hits(ShadowBy about) {
  return about == ShadowBy::kMask ? "hits by the masks" : "exact repeats";
}

// The masks that changed in differing hits, those that changed alone first.
std::vector<const ShadowReport::Mask*> Suspects(const ShadowReport& report) {
  std::vector<const ShadowReport::Mask*> suspects;
  for (const ShadowReport::Mask& mask : report.masks) {
    if (mask.changed.differences > 0) suspects.push_back(&mask);
  }
  std::stable_sort(suspects.begin(), suspects.end(),
                   [](const auto* a, const auto* b) {
                     if (a->alone.differences != b->alone.differences) {
                       return a->alone.differences > b->alone.differences;
                     }
                     return a->changed.differences > b->changed.differences;
                   });
  return suspects;
}

std::string VerdictText(const ShadowReport& report) {
  const ShadowVerdict verdict = Judge(report);
  const ShadowReport::Count& count = report.of(verdict.about);
  const ShadowReport::Count& control = report.of(ShadowBy::kExact);
  const char* const hits = Hits(verdict.about);
  const std::string bound =
      verdict.at_most.has_value() ? Percent(*verdict.at_most) : "";
  std::string text;
  switch (verdict.judgement) {
    case ShadowJudgement::kNotEnough:
      text = absl::StrFormat(
          "not enough yet: no difference in %d %s, and fewer than %d say "
          "little",
          count.hits, hits, ShadowReport::kEnough);
      if (!bound.empty() && count.hits > 3) {
        absl::StrAppend(&text, " (at most ", bound,
                        " of them wrong, at 95 % confidence)");
      }
      break;
    case ShadowJudgement::kNoDifference:
      text = absl::StrFormat(
          "no difference in %d %s: at most %s of them wrong, at 95 %% "
          "confidence (3/n, the rule of three)",
          count.hits, hits, bound);
      break;
    case ShadowJudgement::kWrong:
      text = absl::StrCat("wrong: ", Of(count), " ", hits,
                          " would have given another answer than the function");
      if (control.differences > 0) {
        absl::StrAppend(&text, ", ", Percent(Rate(count)),
                        " of them; it varies by itself "
                        "too, in ",
                        Of(control), " exact repeats, ", Percent(Rate(control)),
                        ", but not as much");
      } else if (control.hits > 0) {
        absl::StrAppend(&text, "; in ", control.hits,
                        " exact repeats it gave the same answer");
      }
      break;
    case ShadowJudgement::kVaries:
      text = absl::StrCat("the function varies by itself: ", Of(control),
                          " exact repeats gave another answer, ",
                          Percent(Rate(control)));
      if (verdict.about == ShadowBy::kMask) {
        absl::StrAppend(&text, ", and ", Of(count), " ", hits, ", ",
                        Percent(Rate(count)),
                        ", which is no more: about the masks this says "
                        "nothing, about caching it at all it does");
      }
      break;
  }
  absl::StrAppend(&text, "\n");
  if (verdict.judgement == ShadowJudgement::kWrong) {
    for (const ShadowReport::Mask* const mask : Suspects(report)) {
      if (mask->alone.differences > 0) {
        absl::StrAppend(&text, "  do not mask ", Printable(mask->path),
                        ": where it alone had changed, ", Of(mask->alone),
                        " answers differed\n");
      }
    }
  }
  const auto untried = std::count_if(
      report.masks.begin(), report.masks.end(),
      [](const ShadowReport::Mask& mask) { return mask.changed.hits == 0; });
  if (untried > 0 && count.hits > 0) {
    absl::StrAppend(&text, "  ", untried, " of ", report.masks.size(),
                    " masks were not tried: what they hide had changed in no "
                    "hit\n");
  }
  const ShadowReport::Count& unknown = report.of(ShadowBy::kUnknown);
  if (unknown.hits > 0) {
    absl::StrAppend(&text, "  besides, ", Of(unknown),
                    " hits differed whose entry is older than this trial: no "
                    "proof either way\n");
  }
  if (report.uncompared > 0) {
    absl::StrAppend(&text, "  ", report.uncompared,
                    " would have been hits, but the function gave no answer "
                    "to compare (errors, callers that left)\n");
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

Json CountJson(const ShadowReport::Count& count) {
  return {{"hits", count.hits}, {"differences", count.differences}};
}

double UnixSeconds(absl::Time time) {
  return absl::ToDoubleSeconds(time - absl::UnixEpoch());
}

Json ReportJson(const ShadowReport& report) {
  const ShadowVerdict verdict = Judge(report);
  Json by = Json::object();
  for (size_t i = 0; i < kShadowBys; ++i) {
    by[ShadowByName(static_cast<ShadowBy>(i))] = CountJson(report.by[i]);
  }
  Json masks = Json::array();
  for (const ShadowReport::Mask& mask : report.masks) {
    masks.push_back({{"path", mask.path},
                     {"values", mask.values},
                     {"changed", CountJson(mask.changed)},
                     {"alone", CountJson(mask.alone)}});
  }
  Json paths = Json::array();
  for (const ShadowReport::Path& path : report.paths) {
    Json differences = Json::object();
    for (size_t i = 0; i < kShadowBys; ++i) {
      differences[ShadowByName(static_cast<ShadowBy>(i))] = path.differences[i];
    }
    paths.push_back({{"path", path.path},
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
        {"confidence", 0.95}}},
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
      {"differences_not_examined", report.unexamined},
  };
}

}  // namespace

const char* ShadowJudgementName(ShadowJudgement judgement) {
  switch (judgement) {
    case ShadowJudgement::kNotEnough:
      return "not_enough";
    case ShadowJudgement::kNoDifference:
      return "no_difference";
    case ShadowJudgement::kWrong:
      return "wrong";
    case ShadowJudgement::kVaries:
      break;
  }
  return "varies";
}

ShadowVerdict Judge(const ShadowReport& report) {
  const ShadowReport::Count& control = report.of(ShadowBy::kExact);
  ShadowVerdict verdict;
  // Without masks there are none by them, unless `key: tag` makes keys.
  if (report.masks.empty() && report.of(ShadowBy::kMask).hits == 0) {
    verdict.about = ShadowBy::kExact;
  }
  const ShadowReport::Count& count = report.of(verdict.about);
  if (count.hits == 0) return verdict;
  if (count.differences == 0) {
    verdict.at_most = std::min(1.0, 3 / static_cast<double>(count.hits));
    if (count.hits >= ShadowReport::kEnough) {
      verdict.judgement = ShadowJudgement::kNoDifference;
    }
    return verdict;
  }
  verdict.at_most = WilsonUpper(count);
  const bool by_itself =
      control.differences > 0 && Rate(count) <= WilsonUpper(control);
  verdict.judgement =
      by_itself ? ShadowJudgement::kVaries : ShadowJudgement::kWrong;
  return verdict;
}

std::string ShadowText(absl::Span<const ShadowReport> reports) {
  if (reports.empty()) return "no function runs under mode: shadow\n";
  std::string text;
  for (const ShadowReport& report : reports) {
    const ShadowReport::Count& mask = report.of(ShadowBy::kMask);
    absl::StrAppend(&text, text.empty() ? "" : "\n", Printable(report.function),
                    ": ", VerdictText(report));
    absl::StrAppend(&text, "  since ",
                    absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", report.since,
                                     absl::UTCTimeZone()),
                    ": ", report.lookups, " look-ups of ", report.composites,
                    " composites\n");
    if (!report.masks.empty() || mask.hits > 0) {
      absl::StrAppend(&text, "  by the masks: ", mask.hits, " hits of ",
                      report.mask_composites, " composites, with ",
                      report.mask_masked_values,
                      " different sets of masked values; ", mask.differences,
                      " differ\n");
    }
    absl::StrAppend(&text, "  exact repeats, the control: ",
                    report.of(ShadowBy::kExact).hits, "; ",
                    report.of(ShadowBy::kExact).differences, " differ\n");
    if (report.unread > 0) {
      absl::StrAppend(&text, "  ", report.unread,
                      " requests were too large to say which masks' values "
                      "changed\n");
    }
    absl::StrAppend(&text, MaskTable(report), PathTable(report));
    if (report.unexamined > 0) {
      absl::StrAppend(&text, "  ", report.unexamined,
                      " differences were not looked into, to save time\n");
    }
  }
  return text;
}

std::string ShadowJson(absl::Span<const ShadowReport> reports) {
  Json functions = Json::array();
  for (const ShadowReport& report : reports) {
    functions.push_back(ReportJson(report));
  }
  // Names are UTF-8, as requests are; whatever is not is replaced.
  return Json{{"functions", functions}}.dump(-1, ' ', /*ensure_ascii=*/false,
                                             Json::error_handler_t::replace);
}

}  // namespace fncache::proxy::telemetry
