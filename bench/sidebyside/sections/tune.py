# SPDX-License-Identifier: Apache-2.0
"""Tuning: what `tune: on` costs a hit and a miss, and what a hit across drift
costs.

Hits have daemons of their own, because the first run across drift would give
each entry another drift. Misses of both daemons are the same calls: the keys
are few, and each call has a drift of its own. Without tuning that is a new key.
With it the key is equal and its entry has other drift, and `tune_share: 0`
keeps the function from being asked.
"""

from typing import Callable, Dict, Optional

from .. import targets
from ..bench import WARM_SECONDS, Bench, Group
from ..processes import Failure
from ..profiles import (
    HIT_KEYS,
    ONE_EASY,
    PREPARATION,
    SHAPE_TITLES,
    SIXTEEN,
    Load,
    Profile,
)
from ..results import Series
from ..servers import Server

CACHE = ("--cache-memory", "1GiB")
# Full after the warm-up, as for other misses (forward.py).
SMALL_CACHE = ("--cache-memory", "64MiB")
TUNE = ("--tune", "on")
# Each run adds a question to the budget, so that all keys are soon proven.
ASK = (*TUNE, "--tune-share", "1")
ASK_NOTHING = (*TUNE, "--tune-share", "0")
# Calls one after the other: questions do not start while calls wait.
PROVING = Load(1, 1)
# A pass over the keys proves those whose questions had time and budget.
MOST_PASSES = 100
# A few passes are enough.
PROVING_SECONDS = 8

# Subject -> the outcome of its calls.
OUTCOMES = {
    "off": "hit",
    "on": "hit",
    "across": "hit",
    "off, miss": "miss",
    "drifted": "miss",
}
# Those whose calls have a drift of their own.
DRIFTING = ("across", "off, miss", "drifted")


def _loads(profile: Profile) -> list:
    return [load for load in profile.hit_loads if load != ONE_EASY]


def plan(profile: Profile) -> float:
    return sum(
        len(OUTCOMES)
        * (
            len(_loads(profile)) * profile.runs * profile.run_seconds(shape)
            + WARM_SECONDS
            + PREPARATION[shape]
        )
        + PROVING_SECONDS
        for shape in profile.tune_shapes
    )


def run(bench: Bench) -> None:
    if not bench.profile.tune_shapes:
        bench.skip("rows of tuning", "the shapes have no composed resources")
    for shape in bench.profile.tune_shapes:
        _shape(bench, shape)


def _shape(bench: Bench, shape: str) -> None:
    with bench.group() as group:
        function = group.limit().address
        servers = {
            "off": group.fncache("off", function, *CACHE),
            "on": group.fncache("tune: on", function, *TUNE, *CACHE),
            "across": group.fncache("across drift", function, *ASK, *CACHE),
            "off, miss": group.fncache("off, miss", function, *SMALL_CACHE),
            "drifted": group.fncache(
                "tune_share: 0", function, *ASK_NOTHING, *SMALL_CACHE
            ),
        }
        for name in ("off", "on", "drifted"):
            bench.fill(servers[name], shape, HIT_KEYS)
        _prove(bench, servers["across"], shape)
        bench.progress.spent(PROVING_SECONDS)
        for name, server in servers.items():
            bench.warm(server, _asker(bench, name), shape)
        group.count_from_here()

        contest = bench.contest()
        series: Dict[tuple, Series] = {}
        for load in _loads(bench.profile):
            for name, server in servers.items():
                series[load, name] = contest.enter(
                    f"tune/{shape}/{load.id}/{name}",
                    name,
                    f"{OUTCOMES[name]}, {SHAPE_TITLES[shape]}, {load.title}",
                    lambda _, name=name, server=server, load=load: _asker(
                        bench, name
                    )(server, shape, load),
                    OUTCOMES[name],
                    bench.profile.run_seconds(shape),
                )
        contest.go()
        for name, server in servers.items():
            mine = [s for (_, subject), s in series.items() if subject == name]
            group.check_counters(server, OUTCOMES[name], mine)
            wrong = complaint(name, group.rises(server))
            for one in mine if wrong else ():
                one.errors.append(wrong)
        for load in _loads(bench.profile):
            _rows(
                bench,
                shape,
                load,
                {n: s for (l, n), s in series.items() if l == load},
            )


def _asker(bench: Bench, name: str) -> Callable[..., dict]:
    def ask(server: Server, shape: str, load: Load, **how) -> dict:
        return bench.hits(
            server, shape, load, drifts=name in DRIFTING, **how
        )

    return ask


def _prove(bench: Bench, server: Server, shape: str) -> None:
    """Calls with drift until all keys are hits across drift."""
    for number in range(MOST_PASSES):
        bench.progress.say(f"proving {HIT_KEYS} keys, pass {number + 1}")
        run = bench.client.run(
            server.addresses,
            shape,
            PROVING,
            keys=HIT_KEYS,
            sequential=True,
            first_drift=bench.unique_drifts(),
            calls=HIT_KEYS,
        )
        if run["errors"]:
            raise Failure(f"proving: {run.get('complaint', '')}")
        if run["statuses"] == {"hit": HIT_KEYS}:
            return
    raise Failure(f"after {MOST_PASSES} passes calls were {run['statuses']}")


def complaint(name: str, rise: Callable[..., float]) -> Optional[str]:
    """Why the calls of a subject were not of its kind, or None. `rise` is the
    growth of a counter."""
    calls = rise("fncache_requests_total")
    across = calls if name == "across" else 0
    drifted = calls if name == "drifted" else 0
    for what, counted, wanted in (
        ("hits across drift", rise("fncache_tune_hits_total"), across),
        (
            "misses for drift",
            rise("fncache_misses_total", 'reason="drift"'),
            drifted,
        ),
        ("questions", rise("fncache_tune_questions_total"), 0),
    ):
        if counted != wanted:
            return f"of {calls:.0f} calls the server counts {counted:.0f} {what}"
    return None


def _rows(bench: Bench, shape: str, load, series: Dict[str, Series]) -> None:
    for id, measure, over, under, target in (
        (
            "hit",
            "server CPU per hit, tune: on over off",
            "on",
            "off",
            targets.TUNED_HIT_OVER_HIT,
        ),
        (
            "across",
            "server CPU per hit across drift, over a hit with tune: off",
            "across",
            "off",
            targets.HIT_ACROSS_DRIFT_OVER_HIT,
        ),
        (
            "miss",
            "server CPU per drifted miss, over a miss with tune: off",
            "drifted",
            "off, miss",
            targets.DRIFTED_MISS_OVER_MISS,
        ),
    ):
        bench.results.ratio(
            f"tune/{shape}/{load.id}/{id}",
            f"{SHAPE_TITLES[shape]}, {load.title}",
            measure,
            series[over],
            series[under],
            "cpu_us",
            target if shape == "17k" else None,
            beside={over: series[over], under: series[under]},
        )
