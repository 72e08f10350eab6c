# SPDX-License-Identifier: Apache-2.0
"""Results as Markdown: tables for docs/performance.md, which is written anew
from a results file and never typed."""

from pathlib import Path
from typing import List, Tuple

from . import table
from .processes import Failure
from .results import FAILED

BEGIN = "<!-- bench/run --update: begin -->"
END = "<!-- bench/run --update: end -->"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _machine(results: dict) -> List[str]:
    about, revision = results["machine"], results["revision"]
    subjects = results.get("subjects", {})
    versions = [
        f"{name} {one['version']}"
        for name, one in subjects.items()
        if name in ("nginx", "haproxy")
    ]
    lines = [
        "### The run",
        "",
        "| | |",
        "| --- | --- |",
        f"| date | {results['started']} |",
        f"| revision | `{revision['commit'][:12]}`"
        + (" with changes" if revision["dirty"] else "")
        + " |",
        f"| machine | {about['cpu']}, {about['cores']} cores,"
        f" {about['memory_gib']:g} GiB |",
        f"| system | {about['system']}, Linux {about['kernel']} |",
        f"| load average at the start |"
        f" {', '.join(f'{v:.2f}' for v in about['load_average'])}"
        f" ({float(about['busy_share']):.0%} busy) |",
        f"| peers | {'; '.join(versions) or 'none'} |",
        f"| command | `{results['command']}` |",
        f"| runs | {results['runs']} of {results['seconds_per_run']:g} s each,"
        f" after {results['warmup_seconds']:g} s of warm-up;"
        f" {results['seconds'] / 60:.0f} minutes in all |",
        f"| outcome | {table.tally(results)} |",
        "",
    ]
    for text in results.get("warnings", []) + results["skipped"]:
        lines += [f"- {text}"]
    return lines


def render(results: dict) -> str:
    lines = _machine(results)
    for title, measures in table.by_section(results):
        lines += ["", f"### {title}"]
        for measure, rows in measures.items():
            lines += ["", f"{measure[0].upper()}{measure[1:]}:", ""]
            beside = any(table.figures_text(row) for row in rows)
            head = ["", "median", "interval", "target", ""]
            head += ["beside it"] if beside else []
            lines.append("| " + " | ".join(head) + " |")
            lines.append("| " + " | ".join("---" for _ in head) + " |")
            for row in rows:
                value, interval = table.estimate_cells(row)
                verdict = table.verdict_text(row)
                if row["verdict"] in ("miss", FAILED):
                    verdict = f"**{verdict}**"
                cells = [row["title"], value, interval]
                cells += [table.target_text(row), verdict]
                cells += [table.figures_text(row)] if beside else []
                lines.append("| " + " | ".join(_cell(c) for c in cells) + " |")
    return "\n".join(lines) + "\n"


def _marks(page: Path) -> Tuple[str, int, int]:
    """The page, and where what is written anew begins and ends."""
    try:
        text = page.read_text()
    except OSError as error:
        raise Failure(f"{page}: {error.strerror}") from error
    begin, end = text.find(BEGIN), text.find(END)
    if begin < 0 or end < begin:
        raise Failure(f"{page}: no marks {BEGIN} ... {END}")
    return text, begin + len(BEGIN), end


def check_marks(page: Path) -> None:
    _marks(page)


def update(page: Path, results: dict) -> None:
    text, begin, end = _marks(page)
    page.write_text(
        text[:begin] + "\n\n" + render(results) + "\n" + text[end:]
    )
