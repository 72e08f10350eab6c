// SPDX-License-Identifier: Apache-2.0
#include "proxy/telemetry/status_page.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/sha256.h"
#include "proxy/telemetry/function_cards.h"
#include "proxy/telemetry/page_table.h"
#include "proxy/telemetry/page_text.h"
#include "proxy/telemetry/page_words.h"
#include "proxy/telemetry/status_page_script.h"
#include "proxy/telemetry/status_page_style.h"

namespace fncache::proxy::telemetry {
namespace {

// Sections, from the top.

void Top(const Status& status, std::string* out) {
  const std::string state = Shown(status.state);
  absl::StrAppend(out, "<h1>fncache ", Shown(status.version),
                  " <span class=\"pill ", state, "\">", state,
                  "</span></h1>\n<p class=dim>Up for ", SpanText(status.uptime),
                  ", seen at ");
  absl::StrAppend(out, TimeText(status.reading.now),
                  ". The same for programs: <a href=\"/statusz?format=json\">"
                  "JSON</a>, <a href=\"/metrics\">metrics</a>.</p>\n");
}

void ProblemList(const Status& status, std::string* out) {
  const std::vector<Problem> problems = FindProblems(status);
  if (problems.empty()) {
    absl::StrAppend(out, "<p class=good>Nothing is wrong.</p>\n");
    return;
  }
  absl::StrAppend(out, "<ul class=problems>\n");
  for (const Problem& problem : problems) {
    const char* const severity = SeverityName(problem.severity);
    absl::StrAppend(out, "<li class=", severity, "><b>", severity,
                    "</b> <span>", Shown(problem.text), "</span>\n");
  }
  absl::StrAppend(out, "</ul>\n");
}

void Tile(absl::string_view what, absl::string_view value,
          absl::string_view beside, std::string* out) {
  absl::StrAppend(out, "<div class=tile><span>", what, "</span><b>", value,
                  "</b><span>", beside, "</span></div>\n");
}

void Tiles(const Status& status, std::string* out) {
  constexpr auto kHits = static_cast<size_t>(Outcome::kHit);
  // Sums the numbers of the tiles over all functions.
  const auto sum = [](const DaemonCounts& counts) {
    FunctionCounts all;
    for (const FunctionCounts& function : counts.functions) {
      for (size_t method = 0; method < kMethods; ++method) {
        for (size_t outcome = 0; outcome < kOutcomes; ++outcome) {
          all.calls[method][outcome] += function.calls[method][outcome];
        }
      }
      all.hits += function.hits;
      all.misses += function.misses;
      all.saved += function.saved;
      all.latency[kHits] += function.latency[kHits];
      all.upstream_latency += function.upstream_latency;
    }
    return all;
  };
  const FunctionCounts recent = sum(status.reading.recent);
  const FunctionCounts total = sum(status.reading.total);
  absl::StrAppend(out, "<div class=tiles>\n");
  Tile("calls",
       PerSecond(static_cast<double>(recent.Calls()),
                 status.reading.recent_length),
       absl::StrCat(Count(total.Calls()), " since the start"), out);
  Tile("answered from the cache", Percent(HitRate(recent)),
       absl::StrCat(Percent(HitRate(total)), " since the start"), out);
  Tile("a hit takes (p50)",
       recent.latency[kHits].Count() == 0
           ? std::string(kDash)
           : Latency(recent.latency[kHits].Quantile(.5)),
       recent.upstream_latency.Count() == 0
           ? std::string("no function was asked")
           : absl::StrCat("a call to a function ",
                          Latency(recent.upstream_latency.Quantile(.5))),
       out);
  Tile("function time saved", Saved(total.saved),
       absl::StrCat(Saved(recent.saved), " in the last minute"), out);
  absl::StrAppend(out, "</div>\n");
}

void Functions(const Status& status, std::string* out) {
  const History::Reading& reading = status.reading;
  absl::StrAppend(
      out, "<h2>Functions</h2>\n<p class=dim>Above the last minute (",
      absl::StrFormat("%.0f", absl::ToDoubleSeconds(reading.recent_length)),
      " s), below since the start.</p>\n<div class=scroll><table "
      "class=cards>\n");
  Head({{"function", ""},
        {"calls", "Calls of RunFunction and of other methods."},
        {kHitRate.word, kHitRate.meaning},
        {kHit.word, kHit.meaning},
        {kStaleHit.word, kStaleHit.meaning},
        {kMiss.word, kMiss.meaning},
        {kStale.word, kStale.meaning},
        {kCollapsed.word, kCollapsed.meaning},
        {kBypass.word, kBypass.meaning},
        {kRequest.word, kRequest.meaning},
        {kErrors.word, kErrors.meaning},
        {kFills.word, kFills.meaning},
        {kDropped.word, kDropped.meaning},
        {kFailures.word, kFailures.meaning},
        {kSaved.word, kSaved.meaning},
        {kInFlight.word, kInFlight.meaning}},
       out);
  for (size_t id = 0; id < status.functions.size(); ++id) {
    const Status::Function& function = status.functions[id];
    const FunctionCounts& recent = reading.recent.functions[id];
    const FunctionCounts& total = reading.total.functions[id];
    absl::StrAppend(out, "<tr><td class=name>", Shown(function.name), "<small>",
                    Shown(function.upstream));
    if (!function.reachability.reachable) {
      absl::StrAppend(out, " <span class=bad>unreachable</span>");
    }
    absl::StrAppend(out, "</small>");
    TwoLines(
        "calls",
        PerSecond(static_cast<double>(recent.Calls()), reading.recent_length),
        Count(total.Calls()), "", out);
    TwoLines(kHitRate.word, Percent(HitRate(recent)), Percent(HitRate(total)),
             "", out);
    for (size_t o = 0; o < kOutcomes; ++o) {
      const auto outcome = static_cast<Outcome>(o);
      TwoCounts(OutcomeWords(outcome), recent.Calls(outcome),
                total.Calls(outcome), out);
    }
    TwoFaults(kErrors.word, recent.UpstreamErrors(), total.UpstreamErrors(),
              out);
    TwoCounts(kFills.word, recent.fills, total.fills, out);
    TwoFaults(kDropped.word, recent.fills_dropped, total.fills_dropped, out);
    TwoFaults(kFailures.word, recent.cache_errors, total.cache_errors, out);
    TwoLines(kSaved.word, Saved(recent.saved), Saved(total.saved), "", out);
    absl::StrAppend(out, "<td data-of=\"", kInFlight.word, "\">",
                    Count(function.gauges.in_flight), "</tr>\n");
  }
  absl::StrAppend(out, "</table></div>\n");
}

constexpr Word kReasonWords[kMissReasons] = {
    {"new", "The first request of its composite since the start."},
    {"expired", "It was answered before, and that answer's time is over."},
    {"evicted",
     "It was answered before, and that answer was evicted for others."},
    {"purged", "It was answered before, and that answer was purged."},
    {"generation", "It was answered by another generation of the function."},
    {"not-stored", "The answer to the request before was not one to keep."},
    {"unknown",
     "It is not remembered: explain.memory is full or 0, there were too many "
     "misses to examine, or the answer before is still awaited."},
    {"changed", "The request is not what it was."},
    {"drift",
     "Another request with its key was answered. The function was called, "
     "because it has not shown that it does not read what drifted."}};

void Frequent(const insight::explain::MissMemory::Top& top, const char* nothing,
              std::string* out) {
  std::vector<std::string> items;
  for (const auto& [name, count] : top) {
    items.push_back(absl::StrCat("<code>", Shown(name), "</code> ",
                                 Count(static_cast<int64_t>(count))));
  }
  absl::StrAppend(out, items.empty() ? nothing : absl::StrJoin(items, "<br>"));
}

bool HasMissed(const FunctionCounts& function) {
  return std::any_of(std::begin(function.missed), std::end(function.missed),
                     [](uint64_t count) { return count > 0; });
}

void Misses(const Status& status, std::string* out) {
  const std::vector<FunctionCounts>& total = status.reading.total.functions;
  if (std::none_of(total.begin(), total.end(), HasMissed)) return;
  absl::StrAppend(
      out,
      "<h2>Why calls missed</h2>\n<p class=dim>Above the last "
      "minute, below since the start. <code>fncache admin "
      "explain</code> has the last ones one by one, and the masks "
      "that would help.</p>\n<div class=scroll><table class=cards>\n");
  std::vector<Column> columns = {{"function", ""}};
  for (const Word& reason : kReasonWords) {
    columns.push_back({reason.word, reason.meaning});
  }
  Head(columns, out);
  for (size_t id = 0; id < status.functions.size(); ++id) {
    if (!HasMissed(total[id])) continue;
    absl::StrAppend(out, "<tr><td class=name>",
                    Shown(status.functions[id].name));
    for (size_t why = 0; why < kMissReasons; ++why) {
      TwoCounts(MissReasonName(why),
                status.reading.recent.functions[id].missed[why],
                total[id].missed[why], out);
    }
    absl::StrAppend(out, "</tr>\n");
  }
  absl::StrAppend(out, "</table></div>\n");
  if (std::all_of(status.functions.begin(), status.functions.end(),
                  [](const Status::Function& function) {
                    return function.miss_paths.empty();
                  })) {
    return;
  }
  absl::StrAppend(out, "<table class=settings>\n");
  Head({{"function", ""},
        {"what changed most often",
         "The first path that differed from the "
         "request before, and how often."},
        {"written by", "The manager of the newest managedFields entry."}},
       out);
  for (const Status::Function& function : status.functions) {
    if (function.miss_paths.empty()) continue;
    absl::StrAppend(out, "<tr><td>", Shown(function.name),
                    "<td data-of=\"changed\">");
    Frequent(function.miss_paths, "", out);
    absl::StrAppend(out, "<td data-of=\"written by\">");
    Frequent(function.miss_writers, "<span class=dim>unknown</span>", out);
    absl::StrAppend(out, "</tr>\n");
  }
  absl::StrAppend(out, "</table>\n");
}

// p50 and p99, or dashes.
void Percentiles(const metrics::Distribution& latency, std::string* out) {
  for (const double q : {0.5, 0.99}) {
    absl::StrAppend(out, "<td>",
                    latency.Count() == 0 ? "<span class=zero>–</span>"
                                         : Latency(latency.Quantile(q)));
  }
}

void LatencyRow(absl::string_view what, const metrics::Distribution& recent,
                const metrics::Distribution& total, std::string* out) {
  if (total.Count() == 0) return;
  absl::StrAppend(out, "<tr><td>", what, "<td class=wide>",
                  Count(recent.Count()));
  Percentiles(recent, out);
  absl::StrAppend(out, "<td class=wide>", Count(total.Count()));
  Percentiles(total, out);
  absl::StrAppend(out, "<td class=wide>", Latency(total.Mean()), "</tr>\n");
}

void Latencies(const Status& status, std::string* out) {
  absl::StrAppend(
      out,
      "<h2>How long RunFunction took</h2>\n<p class=dim>From a call's arrival "
      "to its answer, by what became of it. “function” is what the function "
      "itself took where it was asked.</p>\n<div "
      "class=scroll><table>\n<thead><tr "
      "class=groups><th>"
      "<th class=wide colspan=3>last minute<th class=narrow colspan=2>last "
      "minute<th class=wide colspan=4>since the start<th class=narrow "
      "colspan=2>since the start</tr>\n<tr><th><th "
      "class=wide>calls<th>p50<th>p99"
      "<th class=wide>calls<th>p50<th>p99<th class=wide>mean</tr></thead>\n");
  for (size_t id = 0; id < status.functions.size(); ++id) {
    const FunctionCounts& recent = status.reading.recent.functions[id];
    const FunctionCounts& total = status.reading.total.functions[id];
    std::string rows;
    for (size_t o = 0; o < kOutcomes; ++o) {
      LatencyRow(OutcomeWords(static_cast<Outcome>(o)), recent.latency[o],
                 total.latency[o], &rows);
    }
    LatencyRow("function", recent.upstream_latency, total.upstream_latency,
               &rows);
    if (rows.empty()) continue;  // the function has not been called yet
    absl::StrAppend(out, "<tr class=of><th colspan=8>",
                    Shown(status.functions[id].name), "</tr>\n", rows);
  }
  absl::StrAppend(out, "</table></div>\n");
}

void Tiers(const Status& status, std::string* out) {
  absl::StrAppend(out,
                  "<h2>Tiers</h2>\n<p class=dim>Where responses are kept."
                  "</p>\n<div class=scroll><table class=cards>\n");
  Head({{"tier", ""},
        {"entries", "Responses that are kept now (on disk: an estimate)."},
        {"used", "Bytes in use, every overhead counted."},
        {"of", "Bytes that may be used."},
        {"full", ""},
        {"evicted", "Entries that left to free capacity, since the start."},
        {"expired", "Entries whose time was up, since the start."},
        {"replaced", "Entries replaced by newer fills, since the start."},
        {"dropped",
         "Entries that were corrupt, or from another time, since the start."},
        {"purged", "Entries that an operator purged, since the start."}},
       out);
  for (size_t i = 0; i < status.reading.tiers.size(); ++i) {
    const Instruments::TierReading& tier = status.reading.tiers[i];
    absl::StrAppend(out, "<tr><td class=name>", TierName(tier.tier));
    if (status.reading.down_since[i].has_value()) {
      absl::StrAppend(out, " <span class=bad>down</span>");
    }
    const auto cell = [&](const char* column, const std::string& text) {
      absl::StrAppend(out, "<td data-of=\"", column, "\">", text);
    };
    const auto removed = [&](cache::Removal why) {
      cell(RemovalName(why), Count(tier.removed[static_cast<size_t>(why)]));
    };
    cell("entries", Count(tier.stats.entries));
    cell("used", Bytes(tier.stats.bytes));
    cell("of", Bytes(tier.stats.capacity));
    cell("full", tier.stats.capacity == 0
                     ? std::string(kDash)
                     : Percent(static_cast<double>(tier.stats.bytes) /
                               static_cast<double>(tier.stats.capacity)));
    removed(cache::Removal::kEvicted);
    removed(cache::Removal::kExpired);
    removed(cache::Removal::kReplaced);
    removed(cache::Removal::kDropped);
    removed(cache::Removal::kPurged);
    absl::StrAppend(out, "</tr>\n");
  }
  absl::StrAppend(out, "</table></div>\n");
}

std::string SinceText(absl::Time since, const std::string& why) {
  return absl::StrCat(TimeText(since), why.empty() ? "" : ": ", Shown(why));
}

template <size_t kCount>
std::string Results(const std::array<uint64_t, kCount>& counts,
                    const char* (*name)(size_t)) {
  std::string text;
  for (size_t i = 0; i < kCount; ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", name(i), " ",
                    Count(static_cast<int64_t>(counts[i])));
  }
  return text;
}

// The section of the shared tier, if there is one.
void Shared(const Status& status, std::string* out) {
  if (!status.shared.has_value()) return;
  const cache::store::SharedFigures& shared = *status.shared;
  absl::StrAppend(out, "<h2>Shared tier</h2>\n<table class=settings>\n");
  const auto row = [out](absl::string_view what, absl::string_view text) {
    absl::StrAppend(out, "<tr><td>", what, "<td>", text, "</tr>\n");
  };
  row(shared.up ? "up since" : "<span class=bad>down</span> since",
      SinceText(shared.since, shared.why));
  row("server", absl::StrCat("version ", Shown(shared.version),
                             shared.server.cluster ? ", a Cluster" : ""));
  row("round trip", Latency(shared.round_trip));
  const absl::Duration clock = shared.clock_difference;
  row("this clock",
      absl::StrCat(Latency(absl::AbsDuration(clock)),
                   clock < absl::ZeroDuration() ? " behind" : " ahead of",
                   " the server's"));
  row("record of bans",
      shared.bans_age == absl::InfiniteDuration()
          ? "not read yet"
          : absl::StrCat("read ", Latency(shared.bans_age), " ago, ",
                         shared.bans_written ? "has" : "lacks some of",
                         " the bans of this daemon"));
  row("look-ups since the start", Results(shared.lookups, &SharedLookupName));
  row("writes since the start", Results(shared.writes, &SharedWriteName));
  for (const resp::Node& node : shared.server.nodes) {
    row(Shown(node.address), absl::StrCat(NodeStateName(node.state), " since ",
                                          SinceText(node.since, node.why)));
  }
  absl::StrAppend(out, "</table>\n");
}

// The section of the access log, if there is one.
void AccessLog(const Status& status, std::string* out) {
  const DaemonCounts& total = status.reading.total;
  const DaemonCounts& recent = status.reading.recent;
  if (total.access_log_written + total.access_log_dropped == 0) return;
  absl::StrAppend(
      out, "<h2>Access log</h2>\n<div class=scroll><table class=cards>\n");
  Head({{"lines", ""},
        {"written", "Lines that were written."},
        {"dropped",
         "Lines that were not: the queue was full, or the output took no "
         "more."}},
       out);
  absl::StrAppend(out,
                  "<tr><td class=name>last minute<small>since the start"
                  "</small>");
  TwoCounts("written", recent.access_log_written, total.access_log_written,
            out);
  TwoFaults("dropped", recent.access_log_dropped, total.access_log_dropped,
            out);
  absl::StrAppend(out, "</tr>\n</table></div>\n");
}

// The reasons for which handshakes failed on a side: "no_certificate 3, expired
// 1".
std::string Reasons(const uint64_t (&failed)[kHandshakeFaults]) {
  std::vector<std::string> reasons;
  for (size_t fault = 0; fault < kHandshakeFaults; ++fault) {
    if (failed[fault] == 0) continue;
    reasons.push_back(
        absl::StrCat(HandshakeFaultName(static_cast<HandshakeFault>(fault)),
                     " ", Count(failed[fault])));
  }
  return reasons.empty() ? "none" : absl::StrJoin(reasons, ", ");
}

void Certificates(const Status& status, std::string* out) {
  if (status.certificates.empty()) return;
  absl::StrAppend(out, "<h2>Certificates</h2>\n<table class=settings>\n");
  Head({{"side", ""},
        {"ends", "When the certificate that is in use ends."},
        {"taken up", "Replaced files that were taken up, since the start."},
        {"refused", "Replaced files that could not be used, since the start."},
        {"failed handshakes, last minute", ""},
        {"failed handshakes, since the start", ""}},
       out);
  for (const Instruments::CertificateReading& certificate :
       status.certificates) {
    const auto side = static_cast<size_t>(certificate.side);
    const absl::Duration left = certificate.expiry - status.reading.now;
    absl::StrAppend(out, "<tr><td>", TlsSideName(certificate.side),
                    "<td data-of=\"ends\">", TimeText(certificate.expiry), " (",
                    left > absl::ZeroDuration()
                        ? absl::StrCat("in ", SpanText(left))
                        : std::string("ended"));
    absl::StrAppend(out, ")<td data-of=\"taken up\">",
                    Count(certificate.reloads), "<td data-of=\"refused\">",
                    Count(certificate.reload_failures));
    absl::StrAppend(out, "<td data-of=\"failed handshakes, last minute\">",
                    Reasons(status.reading.recent.handshakes_failed[side]),
                    "<td data-of=\"failed handshakes, since the start\">",
                    Reasons(status.reading.total.handshakes_failed[side]),
                    "</tr>\n");
  }
  absl::StrAppend(out, "</table>\n");
}

void SettingRows(const Status& status, bool given, std::string* out) {
  absl::StrAppend(out, "<table class=settings>\n");
  Head({{"setting", ""}, {"value", ""}, {"from", ""}}, out);
  for (const ListedSetting& setting : status.settings) {
    if (setting.given != given) continue;
    absl::StrAppend(out, "<tr><td>");
    if (!setting.function.empty()) {
      absl::StrAppend(out, "<span class=dim>", Shown(setting.function),
                      "</span> ");
    }
    absl::StrAppend(out, Shown(setting.key), "<td>");
    if (!setting.set || setting.values.empty()) {
      absl::StrAppend(out, "<span class=dim>unset</span>");
    } else {
      absl::StrAppend(out, "<code>", ShownLines(setting.values), "</code>");
    }
    if (!setting.notes.empty()) {
      absl::StrAppend(out,
                      "<details><summary>what it stands for</summary><code>",
                      ShownLines(setting.notes), "</code></details>");
    }
    absl::StrAppend(out, "<td class=dim>", Shown(setting.where), "</tr>\n");
  }
  absl::StrAppend(out, "</table>\n");
}

// The source of the settings, and the state of reloads.
void Reload(const Status& status, std::string* out) {
  const ReloadFigures& reload = status.reload;
  if (reload.file.empty()) return;
  absl::StrAppend(out, "<p class=dim>Read from <code>", Shown(reload.file),
                  "</code>, in force since ", TimeText(reload.last_success),
                  "; reloaded ", Count(reload.successes), " times, failed ",
                  Count(reload.failures), " times.</p>\n");
  if (!reload.last_successful) {
    absl::StrAppend(out, "<p>What it holds now is not in force: ",
                    Shown(reload.error), "</p>\n");
  }
  if (!reload.restart.empty()) {
    absl::StrAppend(out, "<p>Takes a restart: <code>",
                    ShownLines(reload.restart), "</code></p>\n");
  }
}

void Settings(const Status& status, std::string* out) {
  absl::StrAppend(out, "<h2>Settings that were given</h2>\n");
  Reload(status, out);
  SettingRows(status, /*given=*/true, out);
  absl::StrAppend(out,
                  "<details><summary>All others, which have their "
                  "defaults</summary>\n");
  SettingRows(status, /*given=*/false, out);
  absl::StrAppend(out, "</details>\n");
}

// `before`, `after`: HTML around the page's content.
std::string Document(absl::string_view title, absl::string_view body,
                     absl::string_view before = "",
                     absl::string_view after = "") {
  return absl::StrCat(
      "<!DOCTYPE html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n"
      "<meta name=viewport content=\"width=device-width, initial-scale=1\">\n"
      "<link rel=icon href=\"data:,\">\n"
      "<title>",
      Shown(title), "</title>\n<style>", kPageStyle,
      "</style>\n</head>\n<body>\n", before, "<main>\n", body, "</main>\n",
      after, "</body>\n</html>\n");
}

// The name that Content-Security-Policy uses for an allowed text in a page.
std::string HashSource(absl::string_view text) {
  return absl::StrCat(
      "'sha256-", absl::Base64Escape(absl::HexStringToBytes(Sha256Hex(text))),
      "'");
}

std::string StatusBody(const Status& status) {
  std::string body;
  Top(status, &body);
  ProblemList(status, &body);
  Tiles(status, &body);
  Functions(status, &body);
  Words(&body);
  AppendFunctionCards(status, &body);
  Misses(status, &body);
  Latencies(status, &body);
  Tiers(status, &body);
  Shared(status, &body);
  Certificates(status, &body);
  AccessLog(status, &body);
  Settings(status, &body);
  return body;
}

}  // namespace

std::string RenderStatusPage(const Status& status) {
  return Document("fncache", StatusBody(status));
}

std::string RenderLivePage(const Status& status) {
  return Document(
      "fncache", StatusBody(status),
      "<p id=live hidden><span id=live-text></span> <button id=live-pause "
      "type=button>pause</button></p>\n",
      absl::StrCat("<script>", kPageScript, "</script>\n"));
}

const std::string& PagePolicy() {
  static const auto* const policy = new std::string(absl::StrCat(
      "default-src 'none'; style-src ", HashSource(kPageStyle), "; script-src ",
      HashSource(kPageScript),
      "; connect-src 'self'; img-src data:; base-uri 'none'; form-action "
      "'none'; frame-ancestors 'none'"));
  return *policy;
}

std::string RenderIndexPage(const std::string& version) {
  return Document(
      "fncache",
      absl::StrCat(
          "<h1>fncache ", Shown(version),
          "</h1>\n<p class=dim>A caching proxy for composition functions. "
          "These pages are read-only.</p>\n<dl>\n"
          "<dt><a href=\"/statusz\">/statusz</a><dd>How it does, for people: "
          "hit rates, latencies, tiers, what is wrong, settings. <a "
          "href=\"/statusz?format=json\">/statusz?format=json</a> is the same "
          "for programs.\n"
          "<dt><a href=\"/metrics\">/metrics</a><dd>Everything that it counts, "
          "for Prometheus.\n"
          "<dt><a href=\"/healthz\">/healthz</a><dd>200 while the process can "
          "answer at all: for liveness probes.\n"
          "<dt><a href=\"/readyz\">/readyz</a><dd>200 while it takes calls, "
          "503 while it starts or drains: for readiness probes.\n</dl>\n"));
}

}  // namespace fncache::proxy::telemetry
