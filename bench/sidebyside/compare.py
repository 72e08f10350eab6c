# SPDX-License-Identifier: Apache-2.0
"""bench/compare: what moved between two results files by more than the spread
of both."""

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, List, Optional, Tuple

from . import results as results_module
from . import spread
from .results import MISS, PASS, NotResults
from .spread import Estimate
from .table import number, with_unit

SAME, MOVED, USAGE = 0, 1, 2

DESCRIPTION = """\
Says what moved between two results files of bench/run by more than the spread
of both: where the intervals of the medians have no point in common. Rows are
ratios taken within one run, so they can be compared between machines that
differ a little; absolute figures (--absolute: rates, CPU time, latency of every
subject) only on one machine in one state."""

EPILOG = """\
Exit codes: 0 when no row moved for the worse; 1 when one did, failed, or is
gone; 2 for a wrong command line or a file that bench/run did not write."""

# A figure that is counted once has no spread; so small a change is no move.
COUNTED = 0.01
# Figures of series for --absolute, and whether more of them is better.
_FIGURES: Tuple[Tuple[str, str, Optional[bool]], ...] = (
    ("rate", "calls/s", True),
    ("cpu_us", "us CPU", False),
    ("gbps", "GB/s", True),
    ("latency.p50", "us p50", False),
    ("latency.p99", "us p99", False),
)


@dataclass(frozen=True)
class Move:
    name: str
    unit: str
    old: Estimate
    new: Estimate
    # None: neither direction is better.
    better: Optional[bool]

    @property
    def change(self) -> float:
        if self.old.median == 0:
            return float("inf")
        return self.new.median / self.old.median - 1


def _more_is_better(row: dict) -> Optional[bool]:
    """As the target says; without one, a ratio of ours over something is
    better when it grows unless it is one of costs or times."""
    if row["target"] is not None:
        return row["target"]["at_least"]
    if row["unit"] in ("us", "s", "B"):
        return False
    if row["unit"] == "GB/s" or "/s over" in row["measure"]:
        return True
    if "limit's over ours" in row["measure"] or "digest over" in row["measure"]:
        return True
    return False


def _judge(
    name: str, unit: str, old: Estimate, new: Estimate, up: Optional[bool]
) -> Optional[Move]:
    if not spread.apart(old, new):
        return None
    counted = min(len(old.runs), len(new.runs)) == 1
    if counted and abs(new.median - old.median) <= COUNTED * abs(old.median):
        return None
    better = None if up is None else (new.median > old.median) == up
    return Move(name, unit, old, new, better)


def moved_rows(old: dict, new: dict) -> List[Move]:
    before = {row["id"]: row for row in old["rows"]}
    moves = []
    for row in new["rows"]:
        was = before.get(row["id"])
        if not was or not was["estimate"] or not row["estimate"]:
            continue
        move = _judge(
            row["id"],
            row["unit"],
            Estimate.from_json(was["estimate"]),
            Estimate.from_json(row["estimate"]),
            _more_is_better(row),
        )
        if move:
            moves.append(move)
    return moves


def _values(series: dict, figure: str) -> List[float]:
    found = []
    for run in series["runs"]:
        if figure.startswith("latency."):
            value = run.get("latency", {}).get(figure[8:])
        else:
            value = run.get(figure)
        if value is not None:
            found.append(value)
    return found


def moved_series(old: dict, new: dict) -> List[Move]:
    moves = []
    for id, series in new["series"].items():
        was = old["series"].get(id)
        if was is None:
            continue
        for figure, unit, up in _FIGURES:
            before, after = _values(was, figure), _values(series, figure)
            if not before or not after or not any(before):
                continue
            move = _judge(
                f"{id} {figure}",
                unit,
                spread.estimate(before),
                spread.estimate(after),
                up,
            )
            if move:
                moves.append(move)
    return moves


def verdict_changes(old: dict, new: dict) -> List[str]:
    before = {row["id"]: row["verdict"] for row in old["rows"]}
    judged = {PASS, MISS, results_module.FAILED}
    return [
        f"{row['id']}: {before[row['id']]} -> {row['verdict']}"
        for row in new["rows"]
        if row["id"] in before
        and before[row["id"]] != row["verdict"]
        and {before[row["id"]], row["verdict"]} <= judged
    ]


def newly_failed(old: dict, new: dict) -> List[str]:
    before: Dict[str, str] = {r["id"]: r["verdict"] for r in old["rows"]}
    return [
        row["id"]
        for row in new["rows"]
        if row["verdict"] == results_module.FAILED
        and before.get(row["id"]) != results_module.FAILED
    ]


def gone(old: dict, new: dict) -> List[str]:
    """Rows that were there, of sections that were measured again."""
    ids = {row["id"] for row in new["rows"]}
    sections = {row["section"] for row in new["rows"]}
    if old["profile"] != new["profile"]:
        return []
    return [
        row["id"]
        for row in old["rows"]
        if row["id"] not in ids and row["section"] in sections
    ]


def _line(move: Move, width: int) -> str:
    word = {True: "better", False: "worse", None: "moved"}[move.better]
    old, new = move.old, move.new
    return (
        f"  {word:<6}  {move.name.ljust(width)}"
        f"  {with_unit(old.median, move.unit)}"
        f" ({number(old.low)}..{number(old.high)})"
        f" -> {with_unit(new.median, move.unit)}"
        f" ({number(new.low)}..{number(new.high)})  {move.change:+.1%}"
    )


def _section(title: str, lines: List[str]) -> None:
    if lines:
        print(title)
        for line in lines:
            print(line)


def _state(results: dict) -> str:
    revision = results["revision"]
    dirty = " with changes" if revision["dirty"] else ""
    return (
        f"{revision['commit'][:12]}{dirty}, {results['started']},"
        f" {results['machine']['cpu']}, {results['profile']}"
    )


def main(argv: Optional[List[str]] = None) -> int:
    made = argparse.ArgumentParser(
        prog="bench/compare",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("old", type=Path, metavar="OLD.json")
    made.add_argument("new", type=Path, metavar="NEW.json")
    made.add_argument(
        "--absolute",
        action="store_true",
        help="compare the figures of every subject, too",
    )
    arguments = made.parse_args(argv)
    try:
        old = results_module.read(arguments.old)
        new = results_module.read(arguments.new)
    except NotResults as error:
        print(f"bench/compare: {error}", file=sys.stderr)
        return USAGE

    print(f"old: {_state(old)}\nnew: {_state(new)}")
    if old["machine"]["cpu"] != new["machine"]["cpu"]:
        print("note: the machines differ; absolute figures say nothing")
    rows = moved_rows(old, new)
    moves = rows + (moved_series(old, new) if arguments.absolute else [])
    width = max((len(move.name) for move in moves), default=0)
    _section(
        "moved by more than the spread of both:",
        [_line(move, width) for move in moves],
    )
    _section(
        "other verdict:", [f"  {t}" for t in verdict_changes(old, new)]
    )
    failed, missing = newly_failed(old, new), gone(old, new)
    _section("failed now:", [f"  {id}" for id in failed])
    _section("gone:", [f"  {id}" for id in missing])
    if not moves:
        common = {r["id"] for r in old["rows"]} & {r["id"] for r in new["rows"]}
        print(f"none of {len(common)} rows moved by more than the spread")
    worse = any(move.better is False for move in rows)
    return MOVED if worse or failed or missing else SAME
