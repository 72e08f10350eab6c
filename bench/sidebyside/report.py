# SPDX-License-Identifier: Apache-2.0
"""Results as one HTML page that needs nothing else: styles and charts are in
it, nothing is fetched."""

import math
from html import escape
from pathlib import Path
from typing import Dict, List, Optional

from . import charts, table
from .charts import Line
from .profiles import SHAPE_TITLES
from .results import FAILED, MISS, PASS
from .spread import estimate

_PERCENTILES = ("p50", "p90", "p99", "p99.9", "max")
# In the order in which lines get their colours, the same in every chart.
_LATENCY_SUBJECTS = {
    "content": "fncache",
    "tag": "fncache, key: tag",
    "limit": "limit",
    "on": "fncache, misses",
    "nginx": "nginx",
    "haproxy": "haproxy",
    "off": "fncache, off",
}


def write(results: dict, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(render(results))


def render(results: dict) -> str:
    style = (Path(__file__).parent / "report.css").read_text()
    body = [
        "<h1>fncache, side by side</h1>",
        f'<p class="soft">{escape(results["started"])}, profile'
        f" {escape(results['profile'])}</p>",
        f'<p class="tally">{escape(table.tally(results))}</p>',
        _notes(results),
        _about(results),
        _key(results),
    ]
    for title, measures in table.by_section(results):
        body.append(f"<h2>{escape(title)}</h2>")
        section = next(iter(measures.values()))[0]["section"]
        drawn = _CHARTS.get(section, lambda _: "")(results)
        if drawn:
            body.append(f'<div class="charts">{drawn}</div>')
        for measure, rows in measures.items():
            body.append(_measure(measure, rows))
    body += ["<h2>What was run, and how</h2>", *_subjects(results)]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>fncache, side by side</title><style>{style}</style></head>"
        f"<body><main>{''.join(body)}</main></body></html>\n"
    )


def _notes(results: dict) -> str:
    items = [f"<li>{escape(t)}</li>" for t in results.get("warnings", [])]
    items += [f"<li>left out: {escape(t)}</li>" for t in results["skipped"]]
    said = [
        f"{row['id']}: {text}"
        for row in results["rows"]
        for text in row["errors"]
    ]
    for text in said + results["errors"]:
        items.append(f'<li class="bad">failed: {escape(text)}</li>')
    if not items:
        return ""
    return f'<div class="card"><ul class="notes">{"".join(items)}</ul></div>'


def _about(results: dict) -> str:
    about, revision = results["machine"], results["revision"]
    load = ", ".join(f"{v:.2f}" for v in about["load_average"])
    facts = {
        "machine": f"{about['cpu']}, {about['cores']} cores,"
        f" {about['memory_gib']:g} GiB",
        "system": f"{about['system']}, Linux {about['kernel']}",
        "load at the start": f"{load} ({float(about['busy_share']):.0%} busy)",
        "revision": revision["commit"]
        + (" with changes" if revision["dirty"] else ""),
        "command": results["command"],
        "runs": f"{results['runs']} of {results['seconds_per_run']:g} s each,"
        f" after {results['warmup_seconds']:g} s of warm-up;"
        f" {results['seconds'] / 60:.1f} minutes in all",
    }
    items = "".join(
        f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>"
        for name, text in facts.items()
    )
    return f'<div class="card"><dl>{items}</dl></div>'


def _key(results: dict) -> str:
    runs = results["runs"]
    sample = estimate([float(i) for i in range(max(1, runs))])
    return (
        '<div class="card"><p>Subjects took turns, run by run; each figure is'
        f" the median of {runs} runs. Intervals are free of assumptions about"
        " the noise: order statistics that hold the true median with"
        f" {sample.coverage:.1%} confidence.</p>"
        '<div class="key">'
        '<span><svg viewBox="0 0 26 14"><rect class="fill pass" y="2"'
        ' width="26" height="10"/></svg> target reached</span>'
        '<span><svg viewBox="0 0 26 14"><rect class="fill miss" y="2"'
        ' width="26" height="10"/></svg> target missed</span>'
        '<span><svg viewBox="0 0 26 14"><rect class="fill" y="2" width="26"'
        ' height="10"/></svg> no target</span>'
        '<span><svg viewBox="0 0 26 14"><path class="target" d="M13 0V14"/>'
        "</svg> target</span>"
        '<span><svg viewBox="0 0 26 14"><path class="then" d="M13 0V14"/>'
        "</svg> where it should end up</span>"
        '<span><svg viewBox="0 0 26 14"><path class="whisker"'
        ' d="M3 7H23M3 3V11M23 3V11"/></svg> interval</span></div></div>'
    )


def _measure(measure: str, rows: List[dict]) -> str:
    out = [f'<div class="card"><h3>{escape(_sentence(measure))}</h3>']
    bars = any(row["kind"] == "ratio" or row["target"] for row in rows)
    ends = []
    for row in rows:
        if row["estimate"]:
            ends.append(row["estimate"]["high"])
        if row["target"]:
            ends += [row["target"]["bound"], row["target"]["then"] or 0]
    top = max(ends, default=0) * 1.05 or 1
    for row in rows:
        out.append(_row(row, top, bars))
    return "".join(out) + "</div>"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _row(row: dict, top: float, bars: bool) -> str:
    value, interval = table.estimate_cells(row)
    verdict = {PASS: "pass", MISS: "miss", FAILED: "failed"}.get(
        row["verdict"], ""
    )
    parts = [f'<div class="row{"" if bars else " plain"}">']
    parts.append(f'<div class="title">{escape(row["title"])}</div>')
    if bars:
        parts.append(f"<div>{_bar(row, top, verdict)}</div>")
    parts.append(f'<div class="value">{escape(value)}</div>')
    aside = [escape(t) for t in (interval, table.target_text(row)) if t]
    if table.verdict_text(row):
        aside.append(
            f'<span class="verdict {verdict}">'
            f"{escape(table.verdict_text(row))}</span>"
        )
    parts.append(f'<div class="aside">{" &middot; ".join(aside)}</div>')
    beside = table.figures_text(row)
    if beside:
        parts.append(f'<div class="beside">{escape(beside)}</div>')
    return "".join(parts) + "</div>"


def _bar(row: dict, top: float, verdict: str) -> str:
    estimated, target = row["estimate"], row["target"] or {}
    if estimated is None:
        return ""
    return charts.ratio_bar(
        estimated["median"],
        estimated["low"],
        estimated["high"],
        top,
        target.get("bound"),
        target.get("then"),
        verdict,
    )


def _point(x: float, runs: List[float]) -> Optional[tuple]:
    if not runs:
        return None
    found = estimate(runs)
    return x, found.median, found.low, found.high


def _latency_charts(results: dict) -> str:
    out = []
    shapes = [s for s in SHAPE_TITLES if _series(results, f"latency/{s}/")]
    for kind, title in (
        ("open", "open loop at half of each one's peak"),
        ("idle", "one client, one call at a time"),
    ):
        for shape in shapes:
            found = _series(results, f"latency/{shape}/{kind}/")
            lines = []
            for subject, name in _LATENCY_SUBJECTS.items():
                runs = found.get(subject, {}).get("runs", [])
                points = []
                for index, percentile in enumerate(_PERCENTILES[:4]):
                    point = _point(
                        index, [run["latency"][percentile] for run in runs]
                    )
                    if point:
                        points.append(point)
                lines.append(Line(name, points))
            out.append(
                charts.line_chart(
                    f"{SHAPE_TITLES[shape]}, {title}",
                    "us",
                    list(enumerate(_PERCENTILES[:4])),
                    lines,
                    log_y=True,
                )
            )
    return "".join(out)


def _series(results: dict, prefix: str) -> Dict[str, dict]:
    """What follows the prefix in the ids of series -> the series."""
    return {
        id[len(prefix) :]: series
        for id, series in results["series"].items()
        if id.startswith(prefix)
    }


def _by_number(results: dict, prefix: str, suffix: str = "") -> List[tuple]:
    points = []
    for rest, series in _series(results, prefix).items():
        if not rest.endswith(suffix):
            continue
        count = int(rest[: len(rest) - len(suffix)])
        point = _point(
            math.log10(count), [run["cpu_us"] for run in series["runs"]]
        )
        if point:
            points.append((count, point))
    return [point for _, point in sorted(points)]


def _number_ticks(*lines: Line) -> List[tuple]:
    xs = sorted({point[0] for line in lines for point in line.points})
    return [(x, f"{round(10 ** x):,}") for x in xs]


def _scale_charts(results: dict) -> str:
    many = Line(
        "that many entries", _by_number(results, "scale/entries/", "/many")
    )
    few = Line("1,000 entries", _by_number(results, "scale/entries/", "/few"))
    closed = Line(
        "one call on each", _by_number(results, "scale/connections/closed/")
    )
    opened = Line("same rate", _by_number(results, "scale/connections/open/"))
    return charts.line_chart(
        "Server CPU per hit by entries, 300-byte values",
        "us",
        _number_ticks(many, few),
        [many, few],
        x_title="entries in memory",
    ) + charts.line_chart(
        "Server CPU per hit by connections, 4 KB",
        "us",
        _number_ticks(closed, opened),
        [closed, opened],
        x_title="connections",
    )


_CHARTS = {"latency": _latency_charts, "scale": _scale_charts}


def _subjects(results: dict) -> List[str]:
    out = []
    for name, one in results.get("subjects", {}).items():
        configuration = one["configuration"]
        out.append(
            f"<details><summary>{escape(name)}"
            f' <span class="unit">{escape(one["version"])}</span></summary>'
            f"<p><code>{escape(one['command'])}</code></p>"
            + (f"<pre>{escape(configuration)}</pre>" if configuration else "")
            + "</details>"
        )
    return out
