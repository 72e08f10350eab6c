# SPDX-License-Identifier: Apache-2.0
"""Hits: fncache, keyed by content and by tag, against the limit and nginx."""

from typing import Dict

from .. import targets
from ..bench import WARM_SECONDS, Bench
from ..profiles import (
    HIT_KEYS,
    ONE_EASY,
    PREPARATION,
    SHAPE_TITLES,
    Profile,
)
from ..results import Series

CACHE = ("--cache-memory", "1GiB")


def _subjects(profile: Profile, shape: str, load) -> list:
    with_nginx = (
        profile.nginx
        and load != ONE_EASY
        and shape in targets.HITS_NGINX_CONTENT
    )
    return ["limit", "content", "tag"] + (["nginx"] if with_nginx else [])


def plan(profile: Profile) -> float:
    seconds = 0.0
    for shape in profile.shapes:
        runs = profile.runs * sum(
            len(_subjects(profile, shape, load)) for load in profile.hit_loads
        )
        seconds += runs * profile.run_seconds(shape) + 1
        seconds += 4 * (WARM_SECONDS + PREPARATION[shape])
    return seconds


def run(bench: Bench) -> None:
    for shape in bench.profile.shapes:
        _shape(bench, shape)


def _shape(bench: Bench, shape: str) -> None:
    with bench.group() as group:
        limit = group.limit()
        servers = {
            "limit": limit,
            "content": group.fncache("content", limit.address, *CACHE),
            "tag": group.fncache("tag", limit.address, "--key", "tag", *CACHE),
        }
        if shape in targets.HITS_NGINX_CONTENT:
            nginx = group.nginx(limit.address)
            if nginx:
                servers["nginx"] = nginx
        for name in ("content", "tag"):
            bench.fill(servers[name], shape, HIT_KEYS)
        for server in servers.values():
            bench.warm(server, bench.hits, shape)
        group.count_from_here()

        contest = bench.contest()
        series: Dict[tuple, Series] = {}
        for load in bench.profile.hit_loads:
            for name in _subjects(bench.profile, shape, load):
                if name not in servers:
                    continue
                series[load, name] = contest.enter(
                    f"hits/{shape}/{load.id}/{name}",
                    name,
                    f"hits, {SHAPE_TITLES[shape]}, {load.title}",
                    lambda _, server=servers[name], load=load: bench.hits(
                        server, shape, load
                    ),
                    "hit" if name in ("content", "tag") else None,
                    bench.profile.run_seconds(shape),
                )
        contest.go()
        for name in ("content", "tag"):
            group.check_counters(
                servers[name],
                "hit",
                [s for (_, subject), s in series.items() if subject == name],
            )
        for load in bench.profile.hit_loads:
            _rows(
                bench,
                shape,
                load,
                {n: s for (l, n), s in series.items() if l == load},
            )


def _rows(bench: Bench, shape: str, load, series: Dict[str, Series]) -> None:
    judged = load != ONE_EASY
    content = (
        targets.HITS_CONTENT_ONE
        if load.connections == 1
        else targets.HITS_CONTENT_MANY
    )
    for name, cpu, rates in (
        ("content", content, targets.HITS_NGINX_CONTENT),
        ("tag", targets.HITS_TAG, targets.HITS_NGINX_TAG),
    ):
        title = f"{SHAPE_TITLES[shape]}, {load.title}, key: {name}"
        bench.results.ratio(
            f"hits/{shape}/{load.id}/{name}/limit",
            title,
            "server CPU per hit, limit's over ours",
            series["limit"],
            series[name],
            "cpu_us",
            cpu.get(shape) if judged else None,
            beside={"fncache": series[name], "limit": series["limit"]},
        )
        if "nginx" in series:
            bench.results.ratio(
                f"hits/{shape}/{load.id}/{name}/nginx",
                title,
                "hits/s over nginx's calls/s",
                series[name],
                series["nginx"],
                "rate",
                rates.get(shape),
                beside={"fncache": series[name], "nginx": series["nginx"]},
            )
