# SPDX-License-Identifier: Apache-2.0
"""A second opinion: hits as h2load sees them, one message over and over."""

from typing import Dict

from ..bench import Bench
from ..load import run_h2load
from ..profiles import ONE_BUSY, SHAPE_TITLES, SIXTEEN, Profile
from ..results import Series
from ..servers import first_program

SHAPES = ("4k", "17k", "130k")
LOADS = (ONE_BUSY, SIXTEEN)
SUBJECTS = ("limit", "content", "tag")
# A run is so many calls as take about this long.
SECONDS = 0.4


def _shapes(profile: Profile) -> list:
    return [shape for shape in SHAPES if shape in profile.shapes]


def plan(profile: Profile) -> float:
    runs = len(LOADS) * len(SUBJECTS) * profile.runs * (SECONDS + 0.1)
    return len(_shapes(profile)) * (runs + 4)


def run(bench: Bench) -> None:
    program = first_program(("h2load",))
    if program is None:
        bench.skip("h2load's second opinion", "h2load is not installed")
        return
    for shape in _shapes(bench.profile):
        _shape(bench, program, shape)


def _shape(bench: Bench, program: str, shape: str) -> None:
    request = bench.nursery.directory / f"h2load-{shape}.request"
    bench.client.write_request(shape, request)
    answer_bytes = bench.answers["13k"].stat().st_size
    with bench.group() as group:
        limit = group.limit()
        cache = ("--cache-memory", "1GiB")
        servers = {
            "limit": limit,
            "content": group.fncache("content", limit.address, *cache),
            "tag": group.fncache("tag", limit.address, "--key", "tag", *cache),
        }

        def ask(server, load, calls) -> dict:
            return run_h2load(
                program, server, request, load, calls, answer_bytes
            )

        calls = {}
        for name, server in servers.items():
            # The first one fills, the second says how fast it goes.
            ask(server, ONE_BUSY, 64)
            rate = ask(server, ONE_BUSY, 1000)["rate"]
            calls[name] = max(500, int(rate * SECONDS))
        group.count_from_here()
        contest = bench.contest()
        series: Dict[tuple, Series] = {}
        for load in LOADS:
            for name, server in servers.items():
                series[load, name] = contest.enter(
                    f"h2load/{shape}/{load.id}/{name}",
                    name,
                    f"hits of one message, {SHAPE_TITLES[shape]}, {load.title}",
                    lambda _, server=server, load=load, name=name: ask(
                        server, load, calls[name]
                    ),
                    seconds=SECONDS + 0.1,
                )
        contest.go()
        for name in ("content", "tag"):
            group.check_counters(
                servers[name],
                "hit",
                [s for (_, n), s in series.items() if n == name],
            )
    for load in LOADS:
        for name in ("content", "tag"):
            bench.results.ratio(
                f"h2load/{shape}/{load.id}/{name}/limit",
                f"{SHAPE_TITLES[shape]}, {load.title}, key: {name}",
                "server CPU per hit, limit's over ours (h2load)",
                series[load, "limit"],
                series[load, name],
                "cpu_us",
                beside={
                    "fncache": series[load, name],
                    "limit": series[load, "limit"],
                },
            )
