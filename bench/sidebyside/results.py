# SPDX-License-Identifier: Apache-2.0
"""Series, rows and verdicts: what a results file holds.

A series is what one subject did under one load: its runs, in the order of the
rounds. A row is an answer: a ratio of two series (run by run), or a value of
one, with its interval, its target and whether that was reached. Rows name the
errors of the series that they rest on; a row with errors has failed, whatever
its figure says.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable, Dict, List, Optional, Union

from . import spread
from .shape import Each, Maybe, Optionally, misfit
from .spread import Estimate

FORMAT = "fncache-bench/1"

PASS, MISS, FAILED, REPORTED = "pass", "miss", "failed", "reported"

# The fields of a results file that a program reads.
SHAPE = {
    "started": str,
    "profile": str,
    "command": str,
    "runs": int,
    "seconds_per_run": float,
    "warmup_seconds": float,
    "seconds": float,
    "machine": {
        "cpu": str,
        "cores": int,
        "memory_gib": float,
        "kernel": str,
        "system": str,
        "load_average": [float],
        "busy_share": float,
    },
    "revision": {"commit": str, "dirty": bool},
    "warnings": [str],
    "subjects": Each({"version": str, "command": str, "configuration": str}),
    "rows": [
        {
            "id": str,
            "section": str,
            "title": str,
            "measure": str,
            "kind": str,
            "unit": str,
            "estimate": Maybe(
                {
                    "median": float,
                    "low": float,
                    "high": float,
                    "coverage": float,
                    "runs": [float],
                }
            ),
            "target": Maybe(
                {
                    "bound": float,
                    "at_least": bool,
                    "then": Maybe(float),
                    "floor": Maybe(float),
                }
            ),
            "verdict": str,
            "errors": [str],
            "figures": Each(Each(float)),
        }
    ],
    "series": Each(
        {
            "subject": str,
            "workload": str,
            "runs": [
                {
                    "rate": Optionally(float),
                    "cpu_us": Optionally(float),
                    "gbps": Optionally(float),
                    "latency": Optionally(Each(float)),
                }
            ],
        }
    ),
    "errors": [str],
    "skipped": [str],
}

# A figure of a run: its name, or a function of the run.
Figure = Union[str, Callable[[dict], float]]


@dataclass(frozen=True)
class Target:
    """`bound` is required, `then` is where it should end up; `floor` is what
    --check insists on: far below, so that only a collapse meets it."""

    bound: float
    at_least: bool = True
    then: Optional[float] = None
    floor: Optional[float] = None

    def reached(self, value: float) -> bool:
        return value >= self.bound if self.at_least else value <= self.bound

    def to_json(self) -> dict:
        return {
            "bound": self.bound,
            "at_least": self.at_least,
            "then": self.then,
            "floor": self.floor,
        }


@dataclass
class Series:
    id: str
    subject: str
    workload: str
    runs: List[dict] = field(default_factory=list)
    errors: List[str] = field(default_factory=list)

    def values(self, figure: Figure) -> List[float]:
        if callable(figure):
            return [figure(run) for run in self.runs]
        if figure.startswith("latency."):
            return [run["latency"][figure[8:]] for run in self.runs]
        return [run[figure] for run in self.runs]

    def median(self, figure: Figure) -> float:
        return spread.median(self.values(figure))

    def to_json(self) -> dict:
        return {
            "subject": self.subject,
            "workload": self.workload,
            "runs": self.runs,
            "errors": self.errors,
        }


class Results:
    """Filled by the sections, written once."""

    def __init__(self, header: Optional[dict] = None):
        self.header = dict(header or {})
        self.series: Dict[str, Series] = {}
        self.rows: List[dict] = []
        # These say what did not work at all, and what was left out, with the reason.
        self.errors: List[str] = []
        self.skipped: List[str] = []

    def add_series(self, id: str, subject: str, workload: str) -> Series:
        if id in self.series:
            raise ValueError(f"series {id} twice")
        series = Series(id, subject, workload)
        self.series[id] = series
        return series

    def ratio(
        self,
        id: str,
        title: str,
        measure: str,
        over: Series,
        under: Series,
        figure: Figure,
        target: Optional[Target] = None,
        beside: Optional[Dict[str, Series]] = None,
        under_figure: Optional[Figure] = None,
    ) -> None:
        """A row of over/under, run by run; the series' own figures are
        reported beside it."""
        errors = over.errors + under.errors
        value = None
        try:
            value = spread.paired_ratio(
                over.values(figure), under.values(under_figure or figure)
            )
        except (ValueError, ZeroDivisionError, KeyError) as error:
            errors = errors or [f"no figure: {error}"]
        self._row(
            id,
            title,
            measure,
            "ratio",
            "x",
            value,
            target,
            errors,
            beside or {over.subject: over, under.subject: under},
        )

    def value(
        self,
        id: str,
        title: str,
        measure: str,
        unit: str,
        estimate: Estimate,
        target: Optional[Target] = None,
        series: Optional[Dict[str, Series]] = None,
        errors: Optional[List[str]] = None,
    ) -> None:
        series = series or {}
        said = list(errors or [])
        for one in series.values():
            said += one.errors
        self._row(
            id, title, measure, "value", unit, estimate, target, said, series
        )

    def _row(
        self,
        id: str,
        title: str,
        measure: str,
        kind: str,
        unit: str,
        estimate: Optional[Estimate],
        target: Optional[Target],
        errors: List[str],
        series: Dict[str, Series],
    ) -> None:
        if any(row["id"] == id for row in self.rows):
            raise ValueError(f"row {id} twice")
        if errors or estimate is None:
            verdict = FAILED
        elif target is None:
            verdict = REPORTED
        else:
            verdict = PASS if target.reached(estimate.median) else MISS
        self.rows.append(
            {
                "id": id,
                "section": id.partition("/")[0],
                "title": title,
                "measure": measure,
                "kind": kind,
                "unit": unit,
                "estimate": estimate.to_json() if estimate else None,
                "target": target.to_json() if target else None,
                "verdict": verdict,
                "errors": errors,
                "figures": {
                    name: _figures(one) for name, one in series.items()
                },
            }
        )

    def to_json(self) -> dict:
        return {
            "format": FORMAT,
            **self.header,
            "rows": self.rows,
            "series": {id: s.to_json() for id, s in self.series.items()},
            "errors": self.errors,
            "skipped": self.skipped,
        }


def _figures(series: Series) -> dict:
    if not series.runs:
        return {}
    shown = {}
    for name in ("rate", "cpu_us", "client_cpu_us"):
        if all(name in run for run in series.runs):
            shown[name] = series.median(name)
    if all(run.get("latency") for run in series.runs):
        for percentile in ("p50", "p99", "p99.9"):
            shown[percentile] = series.median(f"latency.{percentile}")
    return shown


class NotResults(Exception):
    """A file that bench/run did not write."""


def read(path: Path) -> dict:
    try:
        value = json.loads(path.read_text())
    except OSError as error:
        raise NotResults(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise NotResults(f"{path}: not JSON: {error}") from error
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise NotResults(f"{path}: not results of bench/run ({FORMAT})")
    damage = _damage(value)
    if damage:
        raise NotResults(f"{path}: damaged: {damage}")
    return value


def _damage(results: dict) -> Optional[str]:
    found = misfit(results, SHAPE)
    if found:
        return found
    for row in results["rows"]:
        judged = row["verdict"] in (PASS, MISS)
        if judged and (row["estimate"] is None or row["target"] is None):
            return f"row {row['id']} is judged without a figure or a target"
    return None


def write(results: dict, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(results, indent=1) + "\n")


def below_floor(results: dict) -> List[dict]:
    """Rows that --check turns down."""
    found = []
    for row in results["rows"]:
        target, value = row["target"], row["estimate"]
        if not target or target["floor"] is None or value is None:
            continue
        median, floor = value["median"], target["floor"]
        if median < floor if target["at_least"] else median > floor:
            found.append(row)
    return found


def failures(results: dict) -> List[str]:
    said = list(results["errors"])
    for row in results["rows"]:
        if row["verdict"] == FAILED:
            said.append(f"{row['id']}: {'; '.join(row['errors']) or 'no value'}")
    return said
