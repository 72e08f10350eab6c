// SPDX-License-Identifier: Apache-2.0
#include "runner/load/html.h"

#include "absl/strings/str_cat.h"
#include "common/html.h"
#include "common/utf8.h"

namespace fncache::runner::load {
namespace {

constexpr char kStyle[] = R"(
:root{color-scheme:light dark;--bg:#fff;--fg:#1b1f24;--dim:#5c6570;--line:#d8dee4;--card:#f6f8fa;--s0:#0b62c4;--s1:#b3261e;--s2:#137333;--s3:#8a4b00}
@media(prefers-color-scheme:dark){:root{--bg:#0f1419;--fg:#e6e9ed;--dim:#9aa4af;--line:#2d353e;--card:#171d24;--s0:#6cb0ff;--s1:#ff8a80;--s2:#6fd08c;--s3:#f0b35a}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:72rem;padding:1rem;background:var(--bg);color:var(--fg);font:16px/1.45 system-ui,sans-serif}
h1{font-size:1.5rem;margin:.2rem 0}h2{font-size:1.1rem;margin:1.6rem 0 .5rem}
.dim{color:var(--dim)}.bad{color:var(--s1);font-weight:600}.good{color:var(--s2)}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(9rem,1fr));gap:.6rem}
.card{background:var(--card);border:1px solid var(--line);border-radius:.5rem;padding:.6rem .8rem}
.card b{display:block;font-size:1.25rem;overflow-wrap:anywhere}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,30rem),1fr));gap:1rem}
figure{margin:0;background:var(--card);border:1px solid var(--line);border-radius:.5rem;padding:.6rem}
figcaption{font-size:.9rem;margin-bottom:.3rem}
svg{width:100%;height:auto;display:block}svg text{fill:var(--dim);font:11px system-ui,sans-serif}
.grid{stroke:var(--line)}.l{fill:none;stroke-width:1.6;vector-effect:non-scaling-stroke}.later{stroke-dasharray:5 3}
.s0{stroke:var(--s0)}.s1{stroke:var(--s1)}.s2{stroke:var(--s2)}.s3{stroke:var(--s3)}
.k{white-space:nowrap;margin-right:.8rem}.k svg{display:inline-block;width:1.6rem;height:.6rem;vertical-align:middle}
.bar{fill:var(--s0);opacity:.75}.bar.later{fill:var(--s3);opacity:.55}
.scroll{overflow-x:auto}table{border-collapse:collapse;width:100%;font-size:.9rem}
th,td{text-align:right;padding:.3rem .6rem;border-bottom:1px solid var(--line);white-space:nowrap}
th:first-child,td:first-child{text-align:left}td.t,th.t{text-align:left;white-space:normal;overflow-wrap:break-word}
.swatch{display:inline-block;width:.8rem;height:.8rem;border-radius:.15rem;margin:0 .3rem 0 .8rem;background:var(--s0)}.swatch.later{background:var(--s3)}
@media(max-width:40rem){svg text{font-size:19px}td.t,th.t{min-width:5rem}table{font-size:.85rem}th,td{padding:.3rem .45rem}}
)";

}  // namespace

std::string Escape(absl::string_view text) {
  return EscapeHtml(Printable(text));
}

std::string PageHead(absl::string_view title) {
  return absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>"
      "<meta name=\"viewport\" content=\"width=device-width, "
      "initial-scale=1\"/><title>",
      Escape(title), "</title><style>", kStyle, "</style></head>\n");
}

std::string Card(absl::string_view name, absl::string_view value,
                 absl::string_view tone) {
  return absl::StrCat("<div class=\"card\"><span class=\"dim\">", Escape(name),
                      "</span><b", tone.empty() ? "" : " class=\"", tone,
                      tone.empty() ? "" : "\"", ">", Escape(value),
                      "</b></div>");
}

std::string Row(const std::vector<std::string>& cells, const char* tag,
                size_t texts) {
  std::string row = "<tr>";
  for (size_t i = 0; i < cells.size(); ++i) {
    absl::StrAppend(&row, "<", tag, i < texts ? " class=\"t\">" : ">",
                    Escape(cells[i]), "</", tag, ">");
  }
  return absl::StrCat(row, "</tr>");
}

std::string Table(absl::string_view head, absl::string_view rows) {
  return absl::StrCat("<div class=\"scroll\"><table><thead>", head,
                      "</thead><tbody>", rows, "</tbody></table></div>");
}

}  // namespace fncache::runner::load
