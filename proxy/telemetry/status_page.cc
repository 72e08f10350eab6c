#include "proxy/telemetry/status_page.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace fncache::proxy::telemetry {
namespace {

constexpr char kStyle[] = R"(
:root { color-scheme: light dark; --text: #1c1c1c; --dim: #666; --line: #ddd;
  --back: #fff; --good: #1a7f37; --warn: #9a6700; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e0e0e0; --dim: #999; --line: #3a3a3a; --back: #161616;
    --good: #4cc26a; --warn: #d9a520; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--text);
  background: var(--back); margin: 2rem auto; padding: 0 1rem;
  max-width: 70rem; }
h1 { font-size: 1.5rem; margin: 0; }
h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
p { margin: .25rem 0; color: var(--dim); }
.ready { color: var(--good); } .draining, .starting { color: var(--warn); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: right; padding: .25rem .75rem .25rem 0; white-space: nowrap;
  border-bottom: 1px solid var(--line); font-variant-numeric: tabular-nums; }
th { font-weight: 600; color: var(--dim); }
th:first-child, td:first-child, .left { text-align: left; }
pre { overflow-x: auto; padding: .75rem; border: 1px solid var(--line);
  font: 13px/1.45 ui-monospace, monospace; }
)";

std::string Escape(absl::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

// 1234567 -> 1,234,567.
std::string Count(int64_t n) {
  std::string digits = absl::StrCat(n);
  const int first = n < 0 ? 1 : 0;
  for (int i = static_cast<int>(digits.size()) - 3; i > first; i -= 3) {
    digits.insert(i, ",");
  }
  return digits;
}

std::string Bytes(uint64_t n) {
  static constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
  if (n < 1024) return absl::StrCat(n, " B");
  double value = static_cast<double>(n) / 1024;
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < sizeof(kUnits) / sizeof(*kUnits)) {
    value /= 1024;
    ++unit;
  }
  return absl::StrFormat("%.1f %s", value, kUnits[unit]);
}

std::string Latency(absl::Duration duration) {
  const double us = absl::ToDoubleMicroseconds(duration);
  if (us < 999.5) return absl::StrFormat("%.0f µs", us);
  if (us < 999'950) return absl::StrFormat("%.1f ms", us / 1e3);
  return absl::StrFormat("%.2f s", us / 1e6);
}

// Whole seconds, in the largest units that matter: 3d 4h 5m 6s.
std::string Span(absl::Duration duration) {
  int64_t seconds = absl::ToInt64Seconds(duration);
  if (seconds < 0) seconds = 0;
  std::string out;
  const auto part = [&](int64_t size, const char* unit) {
    if (seconds >= size || !out.empty()) {
      absl::StrAppend(&out, out.empty() ? "" : " ", seconds / size, unit);
      seconds %= size;
    }
  };
  part(86400, "d");
  part(3600, "h");
  part(60, "m");
  absl::StrAppend(&out, out.empty() ? "" : " ", seconds, "s");
  return out;
}

// A share in percent; a dash where there is nothing to share.
std::string Share(uint64_t part, uint64_t whole) {
  if (whole == 0) return "–";
  return absl::StrFormat("%.1f %%", 100.0 * static_cast<double>(part) /
                                        static_cast<double>(whole));
}

uint64_t Calls(const FunctionInstruments::Summary& summary) {
  uint64_t calls = 0;
  for (const auto& by_outcome : summary.calls) {
    for (const uint64_t count : by_outcome) calls += count;
  }
  return calls;
}

void FunctionsTable(const StatusPageInput& input, std::string* out) {
  absl::StrAppend(
      out,
      "<h2>Functions</h2>\n<div class=wide><table>\n<tr><th>function<th>calls"
      "<th>hit rate<th>hits<th>misses<th>fills<th>time saved"
      "<th>in flight<th>flights<th>cache errors</tr>\n");
  for (const auto& function : input.functions) {
    const FunctionInstruments::Summary& s = function.summary;
    absl::StrAppend(out, "<tr><td>", Escape(function.name), "<td>",
                    Count(Calls(s)), "<td>", Share(s.hits, s.hits + s.misses),
                    "<td>", Count(s.hits), "<td>");
    absl::StrAppend(out, Count(s.misses), "<td>", Count(s.writes), "<td>",
                    Span(s.saved), "<td>", Count(s.in_flight), "<td>",
                    Count(s.flights));
    absl::StrAppend(out, "<td>", Count(s.errors), "</tr>\n");
  }
  absl::StrAppend(out, "</table></div>\n");
}

void LatencyRow(absl::string_view function, absl::string_view what,
                const metrics::Distribution& latency, std::string* out) {
  if (latency.count == 0) return;
  absl::StrAppend(out, "<tr><td>", Escape(function), "<td class=left>",
                  Escape(what), "<td>", Count(latency.count), "<td>",
                  Latency(latency.Quantile(0.5)));
  absl::StrAppend(out, "<td>", Latency(latency.Quantile(0.99)), "<td>",
                  Latency(latency.sum / static_cast<int64_t>(latency.count)),
                  "</tr>\n");
}

void LatenciesTable(const StatusPageInput& input, std::string* out) {
  absl::StrAppend(
      out,
      "<h2>Latencies of RunFunction</h2>\n<p>Since the start; percentiles are "
      "estimates from histograms.</p>\n<div class=wide><table>\n"
      "<tr><th>function<th class=left>outcome<th>calls<th>p50<th>p99<th>mean"
      "</tr>\n");
  for (const auto& function : input.functions) {
    for (size_t o = 0; o < kOutcomes; ++o) {
      LatencyRow(function.name, OutcomeName(static_cast<Outcome>(o)),
                 function.summary.latency[o], out);
    }
    LatencyRow(function.name, "(the function itself)",
               function.summary.upstream, out);
  }
  absl::StrAppend(out, "</table></div>\n");
}

void TiersTable(const StatusPageInput& input, std::string* out) {
  absl::StrAppend(
      out,
      "<h2>Tiers</h2>\n<div class=wide><table>\n<tr><th>tier<th>entries"
      "<th>bytes<th>capacity<th>full<th>evicted<th>expired<th>replaced"
      "<th>dropped</tr>\n");
  const auto removed = [](const Instruments::TierSummary& tier,
                          cache::Removal why) {
    return Count(tier.removed[static_cast<size_t>(why)]);
  };
  for (const Instruments::TierSummary& tier : input.tiers) {
    absl::StrAppend(out, "<tr><td>",
                    tier.tier == cache::Tier::kMemory ? "memory" : "disk",
                    tier.stats.up ? "" : " (not open)", "<td>",
                    Count(tier.stats.entries), "<td>");
    absl::StrAppend(out, Bytes(tier.stats.bytes), "<td>",
                    Bytes(tier.stats.capacity), "<td>",
                    Share(tier.stats.bytes, tier.stats.capacity));
    absl::StrAppend(out, "<td>", removed(tier, cache::Removal::kEvicted),
                    "<td>", removed(tier, cache::Removal::kExpired), "<td>",
                    removed(tier, cache::Removal::kReplaced));
    absl::StrAppend(out, "<td>", removed(tier, cache::Removal::kDropped),
                    "</tr>\n");
  }
  absl::StrAppend(out, "</table></div>\n");
}

}  // namespace

std::string RenderStatusPage(const StatusPageInput& input) {
  std::string out = absl::StrCat(
      "<!DOCTYPE html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n"
      "<meta name=viewport content=\"width=device-width, initial-scale=1\">\n"
      "<title>fncache</title>\n<style>",
      kStyle, "</style>\n</head>\n<body>\n<h1>fncache ", Escape(input.version));
  const std::string state = Escape(input.state);
  absl::StrAppend(&out, " <span class=\"", state, "\">", state,
                  "</span></h1>\n<p>Up for ", Span(input.uptime), ", at ",
                  absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", input.now,
                                   absl::UTCTimeZone()));
  absl::StrAppend(&out, ". The same for machines: /metrics.</p>\n");
  FunctionsTable(input, &out);
  LatenciesTable(input, &out);
  TiersTable(input, &out);
  absl::StrAppend(&out, "<h2>Settings</h2>\n<pre>", Escape(input.settings),
                  "</pre>\n</body>\n</html>\n");
  return out;
}

}  // namespace fncache::proxy::telemetry
