# SPDX-License-Identifier: Apache-2.0
"""What is measured, and the time that it may take.

A profile fixes runs and seconds; the sections derive their budget from it
(`bench/run --plan` prints it). The measured part of a run is short because a
median of many short interleaved runs says more on a shared machine than one
long run does.
"""

from dataclasses import dataclass, field, replace
from typing import Dict, Tuple

# Requests as the load generator makes them; the answer has 13 KB.
SHAPES = ("4k", "17k", "130k", "1m")
SHAPE_TITLES = {
    "4k": "4 KB",
    "17k": "17 KB",
    "130k": "130 KB",
    "1m": "1 MB",
    "small": "300 B",
}
# Those with composed resources, whose drift the load client changes.
DRIFT_SHAPES = ("17k", "130k")
# Seconds that the load client needs to start and to prepare its requests.
PREPARATION = {"small": 0.05, "4k": 0.05, "17k": 0.1, "130k": 0.25, "1m": 1.1}
# Keys among which hits are drawn.
HIT_KEYS = 256


@dataclass(frozen=True)
class Load:
    """A closed loop: `streams` calls at once on each of `connections`."""

    connections: int
    streams: int

    @property
    def id(self) -> str:
        return f"c{self.connections}m{self.streams}"

    @property
    def title(self) -> str:
        if self.connections == 1:
            return f"one connection, {self.streams} calls at once"
        return f"{self.connections:,} connections, {self.streams} calls each"


ONE_BUSY = Load(1, 64)
ONE_EASY = Load(1, 8)
SIXTEEN = Load(16, 4)


@dataclass(frozen=True)
class Profile:
    name: str
    runs: int
    seconds: float
    warmup: float
    sections: Tuple[str, ...]
    shapes: Tuple[str, ...] = SHAPES
    hit_loads: Tuple[Load, ...] = (ONE_BUSY, SIXTEEN, ONE_EASY)
    forward_shapes: Tuple[str, ...] = ("4k", "17k", "130k")
    forward_loads: Tuple[Load, ...] = (ONE_BUSY, SIXTEEN)
    tune_shapes: Tuple[str, ...] = ("17k",)
    vary_shapes: Tuple[str, ...] = ("130k",)
    nginx: bool = True
    haproxy: bool = True
    latency_shapes: Tuple[str, ...] = ("4k", "17k", "130k")
    cost_shapes: Tuple[str, ...] = ("4k", "17k", "130k")
    instruction_shapes: Tuple[str, ...] = ("4k", "130k")
    entries: Tuple[int, ...] = (1_000, 100_000, 1_000_000, 5_000_000)
    connections: Tuple[int, ...] = (1, 16, 256, 2_000)
    functions: Tuple[int, ...] = (1, 100)
    start_gib: Tuple[float, ...] = (1,)
    start_runs: int = 7
    disk_keys: int = 20_000
    digest_seconds: float = 0.2
    seconds_allowed: int = 0

    def run_seconds(self, shape: str) -> float:
        """What one run takes from the plan."""
        return self.seconds + self.warmup + PREPARATION[shape]


ALL_SECTIONS = (
    "hits",
    "forward",
    "tune",
    "vary",
    "disk",
    "latency",
    "cost",
    "scale",
    "start",
    "digest",
)

_standard = Profile(
    name="standard",
    runs=7,
    seconds=0.7,
    warmup=0.2,
    sections=ALL_SECTIONS,
    seconds_allowed=30 * 60,
)

PROFILES: Dict[str, Profile] = {
    # Does everything run? Says nothing about speed.
    "smoke": replace(
        _standard,
        name="smoke",
        runs=2,
        seconds=0.1,
        warmup=0.05,
        shapes=("4k",),
        hit_loads=(ONE_BUSY,),
        forward_shapes=("4k",),
        forward_loads=(ONE_BUSY,),
        latency_shapes=("4k",),
        cost_shapes=("4k",),
        instruction_shapes=("4k",),
        entries=(1_000, 10_000),
        connections=(1, 16),
        functions=(1, 10),
        start_gib=(0.01,),
        start_runs=2,
        disk_keys=1_000,
        digest_seconds=0.01,
        seconds_allowed=3 * 60,
    ),
    "quick": replace(
        _standard,
        name="quick",
        seconds=0.2,
        warmup=0.06,
        sections=("digest", "hits", "forward"),
        shapes=("4k", "17k", "130k"),
        hit_loads=(ONE_BUSY,),
        forward_shapes=("4k",),
        forward_loads=(ONE_BUSY,),
        haproxy=False,
        digest_seconds=0.01,
        seconds_allowed=60,
    ),
    "standard": _standard,
    # 10 GiB are made and removed again: this takes minutes, and space on the
    # disk.
    "full": replace(
        _standard, name="full", start_gib=(1, 10), seconds_allowed=45 * 60
    ),
}
