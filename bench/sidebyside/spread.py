# SPDX-License-Identifier: Apache-2.0
"""Medians, and how far they can be trusted.

Intervals are distribution-free: of n runs, sorted, the pair of order statistics
that lie symmetrically around the median and hold the true median with at least
the wanted confidence. Nothing is assumed about the noise of a shared machine
but that runs are independent. With seven runs that is smallest to largest
(98.4 %); with fewer than six no pair reaches 95 %, and the coverage says so.
"""

import math
from dataclasses import dataclass
from typing import List, Sequence

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Estimate:
    """A median with its interval, and the runs that it came from, in order."""

    median: float
    low: float
    high: float
    coverage: float
    runs: List[float]

    def to_json(self) -> dict:
        return {
            "median": self.median,
            "low": self.low,
            "high": self.high,
            "coverage": self.coverage,
            "runs": self.runs,
        }

    @staticmethod
    def from_json(value: dict) -> "Estimate":
        return Estimate(
            value["median"],
            value["low"],
            value["high"],
            value["coverage"],
            list(value["runs"]),
        )


def median(values: Sequence[float]) -> float:
    if not values:
        raise ValueError("no median of nothing")
    ordered = sorted(values)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2


def coverage(count: int, rank: int) -> float:
    """Confidence that the median lies between the rank-th smallest and the
    rank-th largest (from 1) of `count` independent runs."""
    if not 1 <= rank <= (count + 1) // 2:
        raise ValueError(f"rank {rank} of {count} runs")
    below = sum(math.comb(count, i) for i in range(rank))
    return max(0.0, 1 - 2 * below / 2**count)


def estimate(
    values: Sequence[float], confidence: float = CONFIDENCE
) -> Estimate:
    ordered = sorted(values)
    count = len(ordered)
    rank = 1
    while (
        rank + 1 <= (count + 1) // 2 and coverage(count, rank + 1) >= confidence
    ):
        rank += 1
    return Estimate(
        median(ordered),
        ordered[rank - 1],
        ordered[count - rank],
        coverage(count, rank),
        list(values),
    )


def paired_ratio(over: Sequence[float], under: Sequence[float]) -> Estimate:
    """over/under, run by run. Runs of one round stood side by side, so what the
    machine did to one it did to the other; a ratio of two medians would lose
    that."""
    if len(over) != len(under):
        raise ValueError(f"{len(over)} runs against {len(under)}")
    return estimate([a / b for a, b in zip(over, under)])


def paired_difference(
    minuend: Sequence[float], subtrahend: Sequence[float]
) -> Estimate:
    if len(minuend) != len(subtrahend):
        raise ValueError(f"{len(minuend)} runs against {len(subtrahend)}")
    return estimate([a - b for a, b in zip(minuend, subtrahend)])


def apart(a: Estimate, b: Estimate) -> bool:
    """Whether the two intervals share no point: they moved by more than the
    spread of both."""
    return a.low > b.high or b.low > a.high
