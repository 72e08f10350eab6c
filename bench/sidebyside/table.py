# SPDX-License-Identifier: Apache-2.0
"""Results on the terminal: one line a row, aligned."""

from typing import List

from .results import FAILED, MISS, PASS

SECTION_TITLES = {
    "hits": "Hits",
    "forward": "Forwarded calls, every key unique",
    "tune": "Tuning",
    "vary": "Hits by hint",
    "disk": "Disk tier",
    "latency": "Latency",
    "cost": "Cost of a hit",
    "scale": "Scale",
    "start": "Start to first hit",
    "digest": "The digest alone",
}


def number(value: float) -> str:
    """Three digits that matter, no more."""
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 1000:
        return f"{value:,.0f}"
    if size >= 100:
        return f"{value:.0f}"
    if size >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if size >= 0.1 else f"{value:.2g}"


def with_unit(value: float, unit: str) -> str:
    return f"{number(value)}{'' if unit == 'x' else ' '}{unit}".strip()


def target_text(row: dict) -> str:
    target = row["target"]
    if target is None:
        return ""
    sign = ">=" if target["at_least"] else "<="
    text = f"{sign} {number(target['bound'])}"
    if target["then"] is not None:
        text += f", then {number(target['then'])}"
    return text


def verdict_text(row: dict) -> str:
    verdict, target = row["verdict"], row["target"]
    if verdict == PASS and target["then"] is not None:
        value, then = row["estimate"]["median"], target["then"]
        if value >= then if target["at_least"] else value <= then:
            return "pass, and then"
    return verdict if verdict in (PASS, MISS) else (
        "FAILED" if verdict == FAILED else ""
    )


def figures_text(row: dict) -> str:
    parts = []
    for name, figures in row["figures"].items():
        said = []
        if "cpu_us" in figures and figures["cpu_us"]:
            said.append(f"{number(figures['cpu_us'])} us")
        if "rate" in figures:
            said.append(f"{number(figures['rate'])}/s")
        if said and row["kind"] == "ratio":
            parts.append(f"{name} {' '.join(said)}")
    return "; ".join(parts)


def estimate_cells(row: dict) -> List[str]:
    estimate = row["estimate"]
    if estimate is None:
        return ["-", ""]
    unit = row["unit"]
    interval = ""
    if len(estimate["runs"]) > 1:
        interval = f"{number(estimate['low'])}..{number(estimate['high'])}"
    return [with_unit(estimate["median"], unit), interval]


def by_section(results: dict) -> List[tuple]:
    sections: dict = {}
    for row in results["rows"]:
        sections.setdefault(row["section"], {}).setdefault(
            row["measure"], []
        ).append(row)
    return [
        (SECTION_TITLES.get(name, name), measures)
        for name, measures in sections.items()
    ]


def tally(results: dict) -> str:
    verdicts = [row["verdict"] for row in results["rows"]]
    judged = verdicts.count(PASS) + verdicts.count(MISS)
    text = f"{verdicts.count(PASS)} of {judged} targets reached"
    if verdicts.count(FAILED):
        text += f", {verdicts.count(FAILED)} rows FAILED"
    return text


def render(results: dict) -> str:
    lines: List[str] = []
    for title, measures in by_section(results):
        lines += ["", title]
        for measure, rows in measures.items():
            lines.append(f"  {measure}")
            cells = [
                [
                    row["title"],
                    *estimate_cells(row),
                    target_text(row),
                    verdict_text(row),
                    figures_text(row),
                ]
                for row in rows
            ]
            widths = [max(len(c[i]) for c in cells) for i in range(5)]
            for cell in cells:
                lines.append(
                    "    "
                    + "  ".join(
                        (
                            cell[0].ljust(widths[0]),
                            cell[1].rjust(widths[1]),
                            cell[2].rjust(widths[2]),
                            cell[3].ljust(widths[3]),
                            cell[4].ljust(widths[4]),
                            cell[5],
                        )
                    ).rstrip()
                )
    lines.append("")
    for text in results.get("warnings", []):
        lines.append(f"warning: {text}")
    for text in results["skipped"]:
        lines.append(f"left out: {text}")
    for row in results["rows"]:
        for text in row["errors"]:
            lines.append(f"FAILED {row['id']}: {text}")
    for text in results["errors"]:
        lines.append(f"FAILED {text}")
    lines.append(
        f"{tally(results)}; median of {results['runs']} runs, interval of at"
        f" least 95 % where runs allow; {results['seconds']:.0f} s"
    )
    return "\n".join(lines).lstrip("\n") + "\n"
