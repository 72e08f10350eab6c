# SPDX-License-Identifier: Apache-2.0
"""Runs of several subjects, in turns.

A B C A B C ...: what happens to the machine during a round happens to all of
them, and ratios are taken round by round. A run that fails does not end the
contest: its series takes the error, and so do the rows made of it.
"""

from typing import Callable, List, Optional, Tuple

from .processes import Failure
from .progress import Progress
from .results import Results, Series

# Makes run number N of a series.
Runner = Callable[[int], dict]


def complaint(run: dict, expected: Optional[str]) -> Optional[str]:
    """Why a run cannot be believed, or None. `expected` is the outcome that
    the cache-status of every call must have."""
    if run["calls"] <= 0:
        return "no call was answered"
    if run["errors"]:
        said = run.get("complaint")
        return f"{run['errors']} of {run['calls']} calls failed" + (
            f": {said}" if said else ""
        )
    if expected is not None:
        statuses = run["statuses"]
        right = statuses.get(expected, 0)
        if right < run["calls"] or set(statuses) - {expected}:
            return f"expected {run['calls']} times {expected}, got {statuses}"
    return None


class Contest:
    def __init__(self, results: Results, progress: Progress, runs: int):
        self._results = results
        self._progress = progress
        self._runs = runs
        self._entries: List[Tuple[Series, Runner, Optional[str], float]] = []

    def enter(
        self,
        id: str,
        subject: str,
        workload: str,
        runner: Runner,
        expected: Optional[str] = None,
        seconds: float = 0.0,
    ) -> Series:
        """`seconds` is what the plan gave one run."""
        series = self._results.add_series(id, subject, workload)
        self._entries.append((series, runner, expected, seconds))
        return series

    def go(self) -> None:
        for number in range(self._runs):
            for series, runner, expected, seconds in self._entries:
                self._progress.say(
                    f"{series.id}, run {number + 1} of {self._runs}"
                )
                try:
                    run = runner(number)
                    wrong = complaint(run, expected)
                    if wrong:
                        series.errors.append(f"run {number + 1}: {wrong}")
                    series.runs.append(run)
                except Failure as failure:
                    series.errors.append(f"run {number + 1}: {failure}")
                self._progress.spent(seconds)
