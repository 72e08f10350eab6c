# SPDX-License-Identifier: Apache-2.0
"""Latency: at half of each one's peak, and of a single idle client.

Open loop: calls start when they are due, whether or not earlier ones are back,
and latency counts from when a call was due. So a server that stalls pays for
all the calls that it kept waiting (no coordinated omission).
"""

from typing import Callable, Dict

from .. import spread
from ..bench import WARM_SECONDS, Bench
from ..profiles import (
    HIT_KEYS,
    PREPARATION,
    SHAPE_TITLES,
    SIXTEEN,
    Load,
    Profile,
)
from ..results import Series

SHARE = 0.5
# As many calls at once as it takes.
OPEN = Load(16, 64)
IDLE = Load(1, 1)
CACHE = ("--cache-memory", "1GiB")
PERCENTILES = ("p50", "p99", "p99.9")
OUTCOMES = {"content": "hit", "tag": "hit", "on": "miss", "off": "bypass"}
# limit: at half of its own peak. "limit, same rate": at the rate of content.
OPEN_SUBJECTS = (
    "limit",
    "limit-same-rate",
    "content",
    "tag",
    "on",
    "nginx",
    "haproxy",
)
IDLE_SUBJECTS = ("limit", "content", "tag", "on", "off", "nginx", "haproxy")


def plan(profile: Profile) -> float:
    subjects = len(OPEN_SUBJECTS)
    seconds = 0.0
    for shape in profile.latency_shapes:
        opened = subjects * profile.run_seconds(shape)
        idle = len(IDLE_SUBJECTS) * _idle(profile, shape)
        warm = len(IDLE_SUBJECTS) * (WARM_SECONDS + PREPARATION[shape])
        seconds += profile.runs * (opened + idle) + warm + 1
        if "hits" not in profile.sections:
            seconds += 6 * profile.run_seconds(shape)
    return seconds


def _idle(profile: Profile, shape: str) -> float:
    return profile.run_seconds(shape) - profile.seconds / 2


def run(bench: Bench) -> None:
    for shape in bench.profile.latency_shapes:
        _shape(bench, shape)


def _shape(bench: Bench, shape: str) -> None:
    with bench.group() as group:
        limit = group.limit()
        started = {
            "limit": limit,
            "content": group.fncache("content", limit.address, *CACHE),
            "tag": group.fncache("tag", limit.address, "--key", "tag", *CACHE),
            "on": group.fncache("on", limit.address),
            "off": group.fncache("off", limit.address, "--mode", "off"),
            "nginx": group.nginx(limit.address),
            "haproxy": group.haproxy(limit.address),
        }
        servers = {n: s for n, s in started.items() if s is not None}
        for name in ("content", "tag"):
            bench.fill(servers[name], shape, HIT_KEYS)
        for name, server in servers.items():
            ask = bench.misses if name == "on" else bench.hits
            bench.warm(server, ask, shape)

        def call(name: str, load: Load, **how) -> dict:
            ask = bench.misses if name == "on" else bench.hits
            return ask(servers[name], shape, load, **how)

        peaks = {
            name: _peak(bench, shape, name, call)
            for name in servers
            if name != "off"
        }
        rates = {name: SHARE * peak for name, peak in peaks.items()}
        contest = bench.contest()
        opened: Dict[str, Series] = {}
        for subject in OPEN_SUBJECTS:
            name = "limit" if subject == "limit-same-rate" else subject
            if name not in servers:
                continue
            rate = rates["content" if subject == "limit-same-rate" else name]
            opened[subject] = contest.enter(
                f"latency/{shape}/open/{subject}",
                subject,
                f"{SHAPE_TITLES[shape]}, {rate:,.0f} calls/s",
                lambda _, name=name, rate=rate: call(name, OPEN, rate=rate),
                OUTCOMES.get(subject),
                bench.profile.run_seconds(shape),
            )
        idle = {
            name: contest.enter(
                f"latency/{shape}/idle/{name}",
                name,
                f"{SHAPE_TITLES[shape]}, one client, one call at a time",
                lambda _, name=name: call(
                    name, IDLE, seconds=bench.profile.seconds / 2
                ),
                OUTCOMES.get(name),
                _idle(bench.profile, shape),
            )
            for name in IDLE_SUBJECTS
            if name in servers
        }
        contest.go()
    _rows(bench, shape, opened, idle)


def _peak(
    bench: Bench, shape: str, name: str, call: Callable[..., dict]
) -> float:
    """What it did with sixteen connections earlier in this very run, or what
    it does now, where those sections were left out."""
    section = "hits" if name in ("limit", "content", "tag") else "forward"
    known = bench.results.series.get(f"{section}/{shape}/{SIXTEEN.id}/{name}")
    if known and known.runs and not known.errors:
        return known.median("rate")
    bench.progress.say(f"peak of {name}, {SHAPE_TITLES[shape]}")
    return call(name, SIXTEEN)["rate"]


def _rows(
    bench: Bench, shape: str, opened: Dict[str, Series], idle: Dict[str, Series]
) -> None:
    for subject, series in opened.items():
        for percentile in PERCENTILES:
            _value(
                bench,
                f"latency/{shape}/open/{subject}/{percentile}",
                f"{subject}, {series.workload}",
                f"{percentile} at half of "
                + ("content's" if subject == "limit-same-rate" else "its")
                + " peak",
                series,
                percentile,
            )
    for percentile in PERCENTILES:
        _added(
            bench,
            f"latency/{shape}/open/added/{percentile}",
            opened["content"].workload,
            f"{percentile} of a hit, added over the limit's at the same rate",
            opened["content"],
            opened["limit-same-rate"],
            percentile,
        )
    for name, series in idle.items():
        _value(
            bench,
            f"latency/{shape}/idle/{name}/p50",
            f"{name}, {series.workload}",
            "p50 of a lone call",
            series,
            "p50",
        )
    for name in ("content", "tag"):
        _added(
            bench,
            f"latency/{shape}/idle/added/{name}",
            f"{name}, {idle[name].workload}",
            "p50 of a lone hit, added over the limit's",
            idle[name],
            idle["limit"],
            "p50",
        )


def _value(bench, id, title, measure, series: Series, percentile: str) -> None:
    values = series.values(f"latency.{percentile}")
    if values:
        bench.results.value(
            id,
            title,
            measure,
            "us",
            spread.estimate(values),
            series={series.subject: series},
        )
    else:
        bench.results.errors.append(f"{id}: {'; '.join(series.errors)}")


def _added(
    bench, id, title, measure, ours: Series, limit: Series, percentile: str
) -> None:
    figure = f"latency.{percentile}"
    try:
        difference = spread.paired_difference(
            ours.values(figure), limit.values(figure)
        )
    except ValueError as error:
        bench.results.errors.append(f"{id}: {error}")
        return
    bench.results.value(
        id,
        title,
        measure,
        "us",
        difference,
        series={"fncache": ours, "limit": limit},
    )
