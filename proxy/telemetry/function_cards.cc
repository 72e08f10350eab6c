// SPDX-License-Identifier: Apache-2.0
#include "proxy/telemetry/function_cards.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proxy/telemetry/outcome_chart.h"
#include "proxy/telemetry/page_text.h"

namespace fncache::proxy::telemetry {
namespace {

// With more functions than this, minutes do not show their numbers.
constexpr size_t kFewFunctions = 16;
// The number of reasons and paths that a card names.
constexpr size_t kMostNamed = 3;

// A row of a card; `text` is HTML.
void Row(absl::string_view what, absl::string_view text, std::string* out) {
  absl::StrAppend(out, "<dt>", what, "<dd>", text, "\n");
}

std::string Code(absl::string_view text) {
  return absl::StrCat("<code>", Shown(text), "</code>");
}

std::string Bad(absl::string_view text) {
  return absl::StrCat("<span class=bad>", text, "</span>");
}

std::string UpstreamText(const Status::Function& function, absl::Time now) {
  const Reachability& reach = function.reachability;
  std::string text = Code(function.upstream);
  if (!reach.reachable) {
    absl::StrAppend(
        &text, " ",
        Bad(absl::StrCat("cannot be reached, for ", SpanText(now - reach.since),
                         ": ", Shown(reach.why))));
  } else if (function.facts.has_value()) {
    absl::StrAppend(
        &text, ", ",
        Counted(static_cast<int64_t>(function.facts->upstream_connections),
                "connection", "connections"));
  }
  if (function.last_error.code != 0) {
    absl::StrAppend(
        &text, "<small>last error: ", StatusCodeName(function.last_error.code),
        ", ", TimeText(function.last_error.when), "</small>");
  } else if (reach.reachable) {
    absl::StrAppend(&text, "<small>no call to it has failed</small>");
  }
  return text;
}

std::string Number(uint64_t n) { return Count(static_cast<int64_t>(n)); }

std::string CallersText(const Status::Function& function) {
  std::string text =
      function.facts.has_value()
          ? absl::StrCat(Counted(static_cast<int64_t>(
                                     function.facts->callers_connections),
                                 "connection", "connections"),
                         ", ")
          : "";
  return absl::StrCat(text, Counted(function.gauges.in_flight, "call", "calls"),
                      " in flight");
}

std::string FlightsText(const FunctionGauges& gauges) {
  std::string text = absl::StrCat(
      Count(gauges.flights), " open, ",
      Counted(gauges.joined_waiting, "caller waits", "callers wait"), " there");
  if (gauges.released_running + gauges.released_waiting > 0) {
    absl::StrAppend(&text, "; released from them ",
                    Counted(gauges.released_running, "asks", "ask"),
                    " the function, ",
                    Counted(gauges.released_waiting, "waits", "wait"), " to");
  }
  return text;
}

// The most frequent reasons of misses, and the most frequent changes.
std::string MissesText(const FunctionCounts& total,
                       const Status::Function& function) {
  std::vector<std::pair<uint64_t, size_t>> reasons;
  for (size_t why = 0; why < kMissReasons; ++why) {
    if (total.missed[why] > 0) reasons.emplace_back(total.missed[why], why);
  }
  if (reasons.empty()) return "none since the start";
  std::stable_sort(
      reasons.begin(), reasons.end(),
      [](const auto& a, const auto& b) { return a.first > b.first; });
  reasons.resize(std::min(reasons.size(), kMostNamed));
  std::string text =
      absl::StrJoin(reasons, ", ", [](std::string* to, const auto& reason) {
        absl::StrAppend(to, MissReasonName(reason.second), " ",
                        Count(static_cast<int64_t>(reason.first)));
      });
  if (!function.miss_paths.empty()) {
    std::vector<std::string> paths;
    for (const auto& [path, count] : function.miss_paths) {
      if (paths.size() < kMostNamed) paths.push_back(Code(path));
    }
    absl::StrAppend(&text,
                    "<small>what changed most: ", absl::StrJoin(paths, ", "),
                    "</small>");
  }
  return text;
}

// Runs that got the answer of before, and what would save them; "" if none was
// examined.
std::string RepeatsText(const FunctionCounts& total,
                        const Status::Function& function) {
  using insight::explain::RepeatOver;
  if (total.examined == 0) return "";
  constexpr std::pair<RepeatOver, const char*> kOvers[] = {
      {RepeatOver::kDrift, "over drift only (<code>tune: on</code>)"},
      {RepeatOver::kTime, "when the TTL was over (<code>ttl.min</code>)"},
      {RepeatOver::kOther, "over other paths, or the answer was gone"},
  };
  uint64_t repeats = 0;
  std::vector<std::string> texts;
  for (const auto& [over, what] : kOvers) {
    const uint64_t count = total.repeats[static_cast<size_t>(over)];
    repeats += count;
    if (count > 0) texts.push_back(absl::StrCat(Number(count), " ", what));
  }
  std::string text = absl::StrCat(
      "of ", Counted(static_cast<int64_t>(total.examined), "run", "runs"), " ",
      repeats == 0 ? "none" : Number(repeats), " gave the answer of before");
  if (repeats > 0) absl::StrAppend(&text, ": ", absl::StrJoin(texts, ", "));
  if (!function.unread.empty()) {
    std::vector<std::string> masks;
    for (const insight::explain::UnreadPath& one : function.unread) {
      const std::string mask = Code(one.mask);
      if (masks.size() < kMostNamed &&
          std::find(masks.begin(), masks.end(), mask) == masks.end()) {
        masks.push_back(mask);
      }
    }
    absl::StrAppend(&text,
                    "<small>what changed besides, as masks (your promise): ",
                    absl::StrJoin(masks, ", "), "</small>");
  }
  return text;
}

// Why calls were not looked up; "" if all were.
std::string BypassesText(const FunctionCounts& total) {
  std::vector<std::string> reasons;
  for (size_t why = 0; why < kBypassReasons; ++why) {
    if (total.bypassed[why] == 0) continue;
    reasons.push_back(
        absl::StrCat(BypassReasonName(why), " ",
                     Count(static_cast<int64_t>(total.bypassed[why]))));
  }
  return absl::StrJoin(reasons, ", ");
}

// The texts of a row. Texts with a count of zero are left out.
class Items {
 public:
  void Always(absl::string_view text) { items_.emplace_back(text); }
  void If(uint64_t count, absl::string_view text) {
    if (count > 0) items_.emplace_back(text);
  }
  // The number, the word, and the number of the last minute.
  void Fault(uint64_t total, uint64_t recent, absl::string_view what) {
    if (total == 0) return;
    const std::string text =
        absl::StrCat(Count(static_cast<int64_t>(total)), " ", what);
    items_.push_back(
        recent == 0
            ? text
            : Bad(absl::StrCat(text, " (", Count(static_cast<int64_t>(recent)),
                               " in the last minute)")));
  }
  std::string Text() const { return absl::StrJoin(items_, ", "); }

 private:
  std::vector<std::string> items_;
};

// The rows about old answers.
void AppendStaleRows(const Status::Function& function,
                     const FunctionCounts& total, const FunctionCounts& recent,
                     std::string* out) {
  const uint64_t hits = total.Calls(Outcome::kStaleHit);
  const bool on = function.facts.has_value() && function.facts->serves_stale;
  if (on || hits + total.superseded > 0) {
    std::string text = Number(hits);
    std::vector<std::string> codes;
    for (size_t code = 0; code < kStatusCodes; ++code) {
      if (total.served_over[code] == 0) continue;
      codes.push_back(absl::StrCat(StatusCodeName(static_cast<int>(code)), " ",
                                   Number(total.served_over[code])));
    }
    if (!codes.empty()) {
      Items items;
      items.Fault(total.ServedOver(), recent.ServedOver(), "instead of errors");
      absl::StrAppend(&text, ", of them ", items.Text(),
                      "<small>served over: ", absl::StrJoin(codes, ", "),
                      "</small>");
    }
    if (total.superseded > 0) {
      absl::StrAppend(&text,
                      "<small>dropped for answers that may not be stored: ",
                      Number(total.superseded), "</small>");
    }
    Row("stale hits", text, out);
  }
  const bool refreshed =
      function.facts.has_value() && function.facts->refreshes_behind;
  if (refreshed || total.refreshes + total.refreshes_refused > 0) {
    const auto running =
        static_cast<uint64_t>(std::max<int64_t>(0, function.gauges.refreshes));
    const uint64_t ended = total.refreshes_failed + running;
    Items items;
    items.Always(absl::StrCat(Number(running), " running"));
    items.Always(absl::StrCat(
        Number(total.refreshes > ended ? total.refreshes - ended : 0),
        " done"));
    items.Fault(total.refreshes_failed, recent.refreshes_failed, "failed");
    const uint64_t waiting =
        function.facts.has_value() ? function.facts->backing_off : 0;
    items.If(waiting,
             absl::StrCat("<span class=warn>",
                          Counted(static_cast<int64_t>(waiting), "key", "keys"),
                          " backing off</span>"));
    items.Fault(total.refreshes_refused, recent.refreshes_refused, "refused");
    Row("refreshes", items.Text(), out);
  }
}

void AppendAbandonedRow(const Status::Function& function,
                        const FunctionCounts& total,
                        const FunctionCounts& recent, std::string* out) {
  const bool on =
      function.facts.has_value() && function.facts->finishes_abandoned;
  if (!on && total.abandoned + total.abandoned_refused == 0) return;
  Items items;
  items.Always(absl::StrCat(Count(function.gauges.abandoned), " running"));
  items.Always(absl::StrCat(Number(total.abandoned), " continued"));
  items.Always(absl::StrCat(Number(total.abandoned_finished), " stored"));
  items.Fault(total.abandoned_refused, recent.abandoned_refused, "refused");
  Row("abandoned", items.Text(), out);
}

// The row about the comparisons of a rehearsal. The facts have a row with the
// verdict.
void AppendShadowRow(const FunctionCounts& total, std::string* out) {
  if (total.shadow_lookups == 0) return;
  Items items;
  for (size_t by = 0; by < kShadowBys; ++by) {
    if (total.shadow_hits[by] == 0) continue;
    const std::string differ =
        absl::StrCat(Number(total.shadow_differences[by]), " differ");
    items.Always(absl::StrCat(
        ShadowByName(static_cast<ShadowBy>(by)), " ",
        Number(total.shadow_hits[by]), " (",
        total.shadow_differences[by] > 0 ? Bad(differ) : differ, ")"));
  }
  items.If(total.shadow_uncompared,
           absl::StrCat(Number(total.shadow_uncompared), " not compared"));
  const std::string hits = items.Text();
  Row("rehearsed",
      absl::StrCat(Counted(static_cast<int64_t>(total.shadow_lookups),
                           "look-up", "look-ups"),
                   "<small>would have hit: ", hits.empty() ? "none" : hits,
                   "</small>"),
      out);
}

// What `vary: on` brought.
std::string VaryText(const VaryFigures& vary) {
  Items items;
  items.Always(
      Counted(static_cast<int64_t>(vary.hits), "hit by hint", "hits by hint"));
  items.If(vary.refused, Bad(absl::StrCat(Number(vary.refused), " refused")));
  return absl::StrCat(
      items.Text(), "<small>",
      Counted(static_cast<int64_t>(vary.hints), "hint is", "hints are"),
      " known</small>");
}

// What `tune: on` brought, and what it cost.
std::string TuneText(const TuneReport& tune) {
  const TuneFigures& figures = tune.figures;
  Items hits;
  hits.Always(Counted(static_cast<int64_t>(figures.hits), "hit across drift",
                      "hits across drift"));
  hits.Always(absl::StrCat(Saved(tune.saved), " saved"));
  hits.If(figures.revoked_hits,
          Bad(absl::StrCat(Number(figures.revoked_hits), " revoked")));
  Items cost;
  cost.Always(absl::StrCat(
      "keys: ", Number(figures.keys_proven), " proven, ",
      Number(figures.keys_repeating), " repeating; ",
      Counted(static_cast<int64_t>(figures.asked()), "question", "questions"),
      ", ", Saved(tune.question_time)));
  cost.If(figures.steps_read, Counted(static_cast<int64_t>(figures.steps_read),
                                      "step reads drift", "steps read drift"));
  cost.If(figures.steps_vary, Counted(static_cast<int64_t>(figures.steps_vary),
                                      "step varies", "steps vary"));
  return absl::StrCat(hits.Text(), "<small>", cost.Text(), "</small>");
}

std::string MasksText(const std::vector<MaskUse>& masks) {
  std::vector<std::string> texts;
  for (const MaskUse& use : masks) {
    std::string state = "<span class=warn>has matched nothing yet</span>";
    if (use.matched > 0) state = "in use";
    if (use.matched > 0 && use.paths > 1) {
      absl::StrAppend(&state, ", ", use.matched, " of ", use.paths, " paths");
    }
    texts.push_back(absl::StrCat(Code(use.mask), " ", state));
  }
  return absl::StrJoin(texts, "<br>");
}

std::string BansText(const std::vector<BanInForce>& bans) {
  std::vector<std::string> texts;
  for (const BanInForce& ban : bans) {
    texts.push_back(absl::StrCat(Shown(ban.of), ": what began until ",
                                 TimeText(ban.before),
                                 ban.soft ? " is stale" : " is gone"));
  }
  return absl::StrJoin(texts, "<br>");
}

void AppendCard(const Status& status, size_t id, std::string* out) {
  const Status::Function& function = status.functions[id];
  const History::Reading& reading = status.reading;
  absl::StrAppend(out, "<article class=card>\n<h3>", Shown(function.name),
                  "</h3>\n");
  AppendOutcomeChart(reading.hour.functions[id], reading.hour.last_minute,
                     status.functions.size() <= kFewFunctions, out);
  absl::StrAppend(out, "<dl>\n");
  Row("function", UpstreamText(function, reading.now), out);
  Row("callers", CallersText(function), out);
  Row("flights", FlightsText(function.gauges), out);
  const FunctionCounts& total = reading.total.functions[id];
  const FunctionCounts& recent = reading.recent.functions[id];
  Row("misses", MissesText(total, function), out);
  const std::string repeats = RepeatsText(total, function);
  if (!repeats.empty()) Row("repeats", repeats, out);
  const std::string bypasses = BypassesText(total);
  if (!bypasses.empty()) Row("bypasses", bypasses, out);
  AppendStaleRows(function, total, recent, out);
  AppendAbandonedRow(function, total, recent, out);
  if (function.facts.has_value()) {
    const FunctionFacts& facts = *function.facts;
    if (facts.tune.has_value()) Row("tuning", TuneText(*facts.tune), out);
    if (facts.vary.has_value()) Row("hints", VaryText(*facts.vary), out);
    if (!facts.masks.empty()) Row("masks", MasksText(facts.masks), out);
    Row("bans", facts.bans.empty() ? "none" : BansText(facts.bans), out);
    for (const FunctionFacts::Row& more : facts.more) {
      const std::string text = Shown(more.text);
      Row(Shown(more.what), more.bad ? Bad(text) : text, out);
    }
  }
  AppendShadowRow(total, out);
  absl::StrAppend(out, "</dl>\n</article>\n");
}

}  // namespace

void AppendFunctionCards(const Status& status, std::string* out) {
  absl::StrAppend(out,
                  "<h2>The last hour</h2>\n<p class=dim>What became of calls, "
                  "minute by minute; and each function as it is now, with "
                  "what was counted since the start.</p>\n");
  AppendOutcomeLegend(status.reading.hour, out);
  absl::StrAppend(out, "<div class=functions>\n");
  for (size_t id = 0; id < status.functions.size(); ++id) {
    AppendCard(status, id, out);
  }
  absl::StrAppend(out, "</div>\n");
}

}  // namespace fncache::proxy::telemetry
