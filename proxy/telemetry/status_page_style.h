// SPDX-License-Identifier: Apache-2.0
// The style sheet of the pages for people; see status_page.h.
//
// Below 70rem of width the table of functions becomes a card for each function:
// a row is a grid, and each cell follows its column's name, which it has as
// data-of. Above 70rem, a table that is too wide scrolls. Below 40rem the other
// tables hide cells that are marked wide, and show those marked narrow.
#ifndef FNCACHE_PROXY_TELEMETRY_STATUS_PAGE_STYLE_H_
#define FNCACHE_PROXY_TELEMETRY_STATUS_PAGE_STYLE_H_

namespace fncache::proxy::telemetry {

inline constexpr char kPageStyle[] = R"(
:root { color-scheme: light dark; --text: #1b1f24; --dim: #656d76;
  --line: #d8dee4; --back: #fff; --panel: #f6f8fa; --good: #1a7f37;
  --warn: #8a5a00; --bad: #c21f2c; --warn-back: #fff8e1; --bad-back: #ffeeef;
  --link: #0a58c2; --hit: #2f9e54; --collapsed: #3d9db0; --miss: #d9622b;
  --stale: #d99a1c; --stale-hit: #93ad2b; --bypass: #8b949e; --request: #8f63cf; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e6e9ec; --dim: #97a0aa; --line: #30363d; --back: #0f1317;
    --panel: #181d23; --good: #4cc26a; --warn: #e0b341; --bad: #ff7b80;
    --warn-back: #2b2410; --bad-back: #331518; --link: #79b4ff;
    --hit: #3faa5c; --collapsed: #4fb3c6; --miss: #ee8150; --stale: #e0ad3c; --stale-hit: #a9c24f;
    --bypass: #7d8590; --request: #a884e6; } }
* { box-sizing: border-box; }
body { font: 15px/1.45 system-ui, -apple-system, "Segoe UI", "DejaVu Sans",
  sans-serif; color: var(--text); background: var(--back);
  margin: 1.5rem auto 4rem; padding: 0 1rem; max-width: 80rem;
  overflow-wrap: anywhere; -webkit-text-size-adjust: 100%; }
a { color: var(--link); }
h1 { font-size: 1.4rem; margin: 0; }
h2 { font-size: 1.05rem; margin: 2rem 0 .4rem; }
p { margin: .25rem 0; } .dim { color: var(--dim); }
.pill { font-size: .8rem; font-weight: 600; padding: .1rem .55rem;
  border-radius: 1rem; border: 1px solid; vertical-align: .15em; }
.warn { color: var(--warn); } .ready, .good { color: var(--good); } .draining, .starting, .not_accepting { color: var(--warn); }
.bad { color: var(--bad); }
.tiles { display: grid; gap: .75rem; margin: 1rem 0;
  grid-template-columns: repeat(4, 1fr); }
.tile { background: var(--panel); border: 1px solid var(--line);
  border-radius: .5rem; padding: .6rem .8rem; }
.tile b { display: block; font-size: 1.5rem; line-height: 1.3; }
.tile span { color: var(--dim); font-size: .85rem; display: block; }
.problems { list-style: none; margin: 1rem 0; padding: 0; }
.problems li { border-left: 4px solid; border-radius: .25rem;
  padding: .45rem .75rem; margin: .4rem 0; }
.problems span { color: var(--text); }
.problems .warning { color: var(--warn); background: var(--warn-back); }
.problems .error { color: var(--bad); background: var(--bad-back); }
table { border-collapse: collapse; width: 100%; font-size: .87rem; }
th, td { text-align: right; padding: .3rem .7rem .3rem 0; vertical-align: top;
  border-bottom: 1px solid var(--line); font-variant-numeric: tabular-nums; }
th:last-child, td:last-child { padding-right: 0; }
th { font-weight: 600; color: var(--dim); vertical-align: bottom; }
th[title], abbr[title] { text-decoration: underline dotted var(--dim) 1px;
  text-underline-offset: .2em; cursor: help; }
td small { display: block; color: var(--dim); font-size: inherit; }
td .zero { color: var(--dim); opacity: .7; }
td small.zero { opacity: .7; }
th:first-child, td:first-child, .left { text-align: left; }
.cards th { overflow-wrap: normal; } .cards td { white-space: nowrap; }
.cards td.name { white-space: normal; min-width: 9rem; }
td.name { font-weight: 600; max-width: 16rem; } td.name small { font-weight: 400; }
tr.of th { color: var(--text); text-align: left; padding-top: .8rem; }
tr.of a { color: inherit; }
code { font: .92em/1.4 ui-monospace, "DejaVu Sans Mono", monospace; }
td code { white-space: pre-wrap; }
details { margin: .75rem 0; } td details { margin: .2rem 0 0; } summary { cursor: pointer; color: var(--link); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem;
  margin: .5rem 0; } dt { font-weight: 600; } dd { margin: 0; }
.functions { display: grid; gap: .75rem;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 24rem), 1fr)); }
.card { background: var(--panel); border: 1px solid var(--line);
  border-radius: .5rem; padding: .6rem .8rem; min-width: 0; }
.card h3 { font-size: 1rem; margin: 0 0 .3rem; }
.card dl { font-size: .87rem; gap: .25rem .8rem; margin: .6rem 0 0;
  grid-template-columns: 5rem minmax(0, 1fr); }
.card dt { color: var(--dim); font-weight: 400; }
.card small { display: block; color: var(--dim); font-size: inherit; }
.chart { margin: 0; font-size: .8rem; }
.chart svg { display: block; width: 100%; height: 5.5rem; }
.chart path { fill: var(--c); } .chart .at { fill: transparent; }
.chart .at:hover { fill: var(--text); fill-opacity: .12; }
.chart .grid { stroke: var(--line); vector-effect: non-scaling-stroke; }
.chart figcaption { display: flex; justify-content: space-between; gap: 1rem; }
.chart figcaption span:nth-child(2) { text-align: center; }
.legend { font-size: .85rem; } .legend span { margin-right: .8rem; }
.key { width: .7em; height: .7em; } .key rect { fill: var(--c); }
.o-hit { --c: var(--hit); } .o-collapsed { --c: var(--collapsed); }
.o-miss { --c: var(--miss); } .o-stale { --c: var(--stale); }
.o-stale_hit { --c: var(--stale-hit); }
.o-bypass { --c: var(--bypass); } .o-request { --c: var(--request); }
#live { float: right; margin: 0; padding: .2rem .3rem .2rem .8rem;
  border-radius: 2rem; font-size: .85rem; background: var(--panel);
  border: 1px solid var(--line); }
#live-text::before { content: "● "; color: var(--good); }
.paused #live-text::before { color: var(--warn); }
.lost { color: var(--bad); } .lost #live-text::before { color: var(--bad); }
#live button { font: inherit; color: var(--link); background: none; border: 0;
  cursor: pointer; padding: .1rem .5rem; }
.scroll { overflow-x: auto; } .narrow { display: none; } .groups th { border-bottom: 0; }
.groups th[colspan] { text-align: center; border-left: 1rem solid transparent;
  box-shadow: inset 0 -1px var(--line); }
.settings td { text-align: left; } .settings th { text-align: left; }
@media (max-width: 70rem) {
  .tiles { grid-template-columns: repeat(2, 1fr); }
  .cards thead { display: none; }
  .cards, .cards tbody { display: block; }
  .cards tr { display: grid; grid-template-columns: repeat(auto-fill,
    minmax(4.6rem, 1fr)); gap: .5rem .6rem; background: var(--panel);
    border: 1px solid var(--line); border-radius: .5rem; padding: .6rem .8rem;
    margin: .6rem 0; }
  .cards td { text-align: left; border: 0; padding: 0; }
  .cards td.name { grid-column: 1 / -1; max-width: none; }
  .cards td::before { content: attr(data-of); display: block; color: var(--dim);
    font-size: .8rem; }
  .cards td.name::before { content: none; }
}
@media (max-width: 40rem) {
  .wide { display: none; } .narrow { display: table-cell; }
  th, td { padding-right: .5rem; } td { white-space: nowrap; }
  .cards td, .settings td { white-space: normal; }
  .settings thead { display: none; }
  .settings tr, .settings td { display: block; border: 0; padding: 0; }
  .settings tr { border-bottom: 1px solid var(--line); padding: .35rem 0; }
  .settings td:first-child { font-weight: 600; }
  .settings td[data-of]::before { content: attr(data-of) ": ";
    color: var(--dim); }
  dl { grid-template-columns: 1fr; gap: 0; } dd { margin: 0 0 .5rem; }
}
)";

}  // namespace fncache::proxy::telemetry

#endif  // FNCACHE_PROXY_TELEMETRY_STATUS_PAGE_STYLE_H_
