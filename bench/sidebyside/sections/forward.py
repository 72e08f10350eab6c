# SPDX-License-Identifier: Apache-2.0
"""Forwarded calls, every key unique, all in front of the instant function."""

from typing import Dict

from .. import targets
from ..bench import WARM_SECONDS, Bench
from ..profiles import PREPARATION, SHAPE_TITLES, Profile
from ..results import Series

OUTCOMES = {"on": "miss", "off": "bypass"}
# Small enough to be full after the warm-up: entries then take the memory of
# those that they push out, as in a daemon that has run for a while, and not
# pages that the machine has to clear first.
CACHE = ("--cache-memory", "64MiB")


def _subjects(profile: Profile) -> list:
    peers = [name for name in ("nginx", "haproxy") if getattr(profile, name)]
    return ["on", "off", *peers]


def plan(profile: Profile) -> float:
    runs = len(profile.forward_loads) * len(_subjects(profile)) * profile.runs
    return sum(
        runs * profile.run_seconds(shape)
        + len(_subjects(profile)) * (WARM_SECONDS + PREPARATION[shape])
        + 1
        for shape in profile.forward_shapes
    )


def run(bench: Bench) -> None:
    for shape in bench.profile.forward_shapes:
        _shape(bench, shape)


def _shape(bench: Bench, shape: str) -> None:
    with bench.group() as group:
        function = group.limit()
        started = {
            "on": group.fncache("on", function.address, *CACHE),
            "off": group.fncache("off", function.address, "--mode", "off"),
            "nginx": group.nginx(function.address),
            "haproxy": group.haproxy(function.address),
        }
        servers = {n: s for n, s in started.items() if s is not None}
        for server in servers.values():
            bench.warm(server, bench.misses, shape)
        group.count_from_here()

        contest = bench.contest()
        series: Dict[tuple, Series] = {}
        for load in bench.profile.forward_loads:
            for name, server in servers.items():
                series[load, name] = contest.enter(
                    f"forward/{shape}/{load.id}/{name}",
                    name,
                    f"unique misses, {SHAPE_TITLES[shape]}, {load.title}",
                    lambda _, server=server, load=load: bench.misses(
                        server, shape, load
                    ),
                    OUTCOMES.get(name),
                    bench.profile.run_seconds(shape),
                )
        contest.go()
        for name, outcome in OUTCOMES.items():
            group.check_counters(
                servers[name],
                outcome,
                [s for (_, subject), s in series.items() if subject == name],
            )
        for load in bench.profile.forward_loads:
            _rows(
                bench,
                shape,
                load,
                {n: s for (l, n), s in series.items() if l == load},
            )


def _rows(bench: Bench, shape: str, load, series: Dict[str, Series]) -> None:
    title = f"{SHAPE_TITLES[shape]}, {load.title}"
    for ours, peer, wanted, measure in (
        ("on", "nginx", targets.MISSES_NGINX, "misses/s over nginx's calls/s"),
        ("on", "off", targets.MISSES_OFF, "misses/s over those of mode: off"),
        ("on", "haproxy", {}, "misses/s over haproxy's calls/s"),
        ("off", "nginx", {}, "mode: off, calls/s over nginx's"),
        (
            "off",
            "haproxy",
            targets.OFF_HAPROXY,
            "mode: off, calls/s over haproxy's",
        ),
    ):
        if peer in series:
            bench.results.ratio(
                f"forward/{shape}/{load.id}/{ours}/{peer}",
                title,
                measure,
                series[ours],
                series[peer],
                "rate",
                wanted.get(shape),
                beside={ours: series[ours], peer: series[peer]},
            )
    for ours, wanted in (("on", targets.MISSES_NGINX_CPU), ("off", {})):
        if "nginx" in series:
            bench.results.ratio(
                f"forward/{shape}/{load.id}/{ours}/nginx/cpu",
                title,
                "CPU of the proxy per miss, nginx's over ours"
                if ours == "on"
                else "CPU of the proxy per call of mode: off, nginx's over ours",
                series["nginx"],
                series[ours],
                "cpu_us",
                wanted.get(shape),
                beside={ours: series[ours], "nginx": series["nginx"]},
            )
