# SPDX-License-Identifier: Apache-2.0
"""Hits by hint: `vary: on` beside `key: tag`, behind a function that says that
its responses depend on two fields of the composite."""

from typing import Dict

from .. import targets
from ..bench import WARM_SECONDS, Bench
from ..profiles import (
    HIT_KEYS,
    ONE_BUSY,
    PREPARATION,
    SHAPE_TITLES,
    Profile,
)
from ..results import Series

CACHE = ("--cache-memory", "1GiB")
HINT = (
    'reads=("observed.composite.resource.metadata.name"'
    ' "observed.composite.resource.spec.parameters.region")'
)
SUBJECTS = {"tag": ("--key", "tag"), "hint": ("--vary", "on")}


def plan(profile: Profile) -> float:
    return sum(
        len(SUBJECTS)
        * (
            profile.runs * profile.run_seconds(shape)
            + WARM_SECONDS
            + PREPARATION[shape]
        )
        for shape in profile.vary_shapes
    )


def run(bench: Bench) -> None:
    for shape in bench.profile.vary_shapes:
        _shape(bench, shape)


def _shape(bench: Bench, shape: str) -> None:
    with bench.group() as group:
        function = group.limit("13k", "--hint", HINT).address
        servers = {
            name: group.fncache(name, function, *flags, *CACHE)
            for name, flags in SUBJECTS.items()
        }
        for server in servers.values():
            bench.fill(server, shape, HIT_KEYS)
            bench.warm(server, bench.hits, shape)
        group.count_from_here()

        contest = bench.contest()
        series: Dict[str, Series] = {
            name: contest.enter(
                f"vary/{shape}/{ONE_BUSY.id}/{name}",
                name,
                f"hits, {SHAPE_TITLES[shape]}, {ONE_BUSY.title}",
                lambda _, server=server: bench.hits(server, shape, ONE_BUSY),
                "hit",
                bench.profile.run_seconds(shape),
            )
            for name, server in servers.items()
        }
        contest.go()
        for name, server in servers.items():
            group.check_counters(server, "hit", [series[name]])
            rise = group.rises(server)
            calls = rise("fncache_requests_total")
            hits = rise("fncache_vary_hits_total")
            if hits != (calls if name == "hint" else 0):
                series[name].errors.append(
                    f"of {calls:.0f} calls the server counts {hits:.0f} hits"
                    " by hint"
                )
    bench.results.ratio(
        f"vary/{shape}/{ONE_BUSY.id}/hit",
        f"{SHAPE_TITLES[shape]}, {ONE_BUSY.title}",
        "server CPU per hit by hint, over a hit with key: tag",
        series["hint"],
        series["tag"],
        "cpu_us",
        targets.HIT_BY_HINT_OVER_TAG if shape == "130k" else None,
        beside=series,
    )
