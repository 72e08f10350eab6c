# SPDX-License-Identifier: Apache-2.0
"""Disk hits and fills, and what they do to memory hits beside them."""

import threading
import time
from typing import Dict, List

from .. import spread, targets
from ..bench import Bench
from ..processes import Failure
from ..profiles import HIT_KEYS, ONE_BUSY, SHAPE_TITLES, SIXTEEN, Load, Profile
from ..results import Series
from ..servers import Server, scrape, total

SHAPE = "4k"
LOADS = (ONE_BUSY, SIXTEEN)
# Far too small: some 70 of the answers.
TINY = ("--cache-memory", "1MiB")
# Room for the hot keys many times over, not for the cold ones.
MIXED = ("--cache-memory", "64MiB")
# Shares of the peaks: the question is what disk hits do to others, not what a
# machine does that is full. Calls that come one by one cost three times the CPU
# of calls that come by the dozen, as at the peaks, and two clients take as much
# again: with a fifth each, two cores were full.
HOT_SHARE = COLD_SHARE = 0.1
# A p99 is made of the few worst calls, and a machine of several tenants stalls
# some times a second: many short rounds, most of which see no stall, say more
# than a few long ones that all do.
BESIDE_ROUNDS = 3  # for each run of the profile
BESIDE_SECONDS = 0.2  # at least
HOT_FIRST_KEY = 10_000_000
OPEN = Load(16, 64)


def plan(profile: Profile) -> float:
    closed = 2 * len(LOADS) + 3
    run_seconds = profile.run_seconds(SHAPE)
    beside = BESIDE_ROUNDS * (3 * _beside_run_seconds(profile) + 2 * 0.8)
    filling = 4 * profile.disk_keys / 8000
    return profile.runs * (closed * run_seconds + beside) + filling + 4


def _beside_seconds(profile: Profile) -> float:
    return max(profile.seconds / BESIDE_ROUNDS, BESIDE_SECONDS)


def _beside_run_seconds(profile: Profile) -> float:
    return profile.run_seconds(SHAPE) - profile.seconds + _beside_seconds(profile)


def run(bench: Bench) -> None:
    _hits(bench)
    _beside(bench)
    _fills(bench)


def fill_disk(
    bench: Bench, server: Server, shape: str, keys: int, first_key: int = 0
) -> None:
    """Fills until no fill was dropped: writes go behind the answer, through a
    bounded queue that a load without think time may overflow."""
    for _ in range(6):
        before = total(scrape(server), "fncache_fills_dropped_total")
        bench.fill(server, shape, keys, first_key)
        wait_for_writes(server)
        if total(scrape(server), "fncache_fills_dropped_total") == before:
            return
    raise Failure("fills of the disk tier kept being dropped")


def wait_for_writes(server: Server, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while total(scrape(server), "fncache_queue_depth", 'queue="disk_fills"'):
        if time.monotonic() > deadline:
            raise Failure("the disk tier did not catch up with its fills")
        time.sleep(0.02)


def _directory(bench: Bench, name: str) -> str:
    return str(bench.nursery.directory / name)


def _hits(bench: Bench) -> None:
    keys = bench.profile.disk_keys
    with bench.group() as group:
        function = group.limit()
        memory = group.fncache(
            "memory", function.address, "--cache-memory", "1GiB"
        )
        disk = group.fncache(
            "disk",
            function.address,
            *TINY,
            "--cache-dir",
            _directory(bench, "disk-hits"),
        )
        bench.fill(memory, SHAPE, keys)
        fill_disk(bench, disk, SHAPE, keys)
        for server in (memory, disk):
            bench.warm(server, bench.hits, SHAPE)
        group.count_from_here()
        contest = bench.contest()
        series: Dict[tuple, Series] = {}
        for load in LOADS:
            for name, server in (("memory", memory), ("disk", disk)):
                series[load, name] = contest.enter(
                    f"disk/{SHAPE}/{load.id}/{name}",
                    name,
                    f"hits among {keys:,} keys, {SHAPE_TITLES[SHAPE]},"
                    f" {load.title}",
                    lambda _, server=server, load=load: bench.hits(
                        server, SHAPE, load, keys
                    ),
                    "hit",
                    bench.profile.run_seconds(SHAPE),
                )
        contest.go()
        for name, server in (("memory", memory), ("disk", disk)):
            group.check_counters(
                server, "hit", [s for (_, n), s in series.items() if n == name]
            )
    for load in LOADS:
        bench.results.ratio(
            f"disk/{SHAPE}/{load.id}/disk/memory",
            f"{SHAPE_TITLES[SHAPE]}, {load.title}",
            "disk hits/s over memory hits/s",
            series[load, "disk"],
            series[load, "memory"],
            "rate",
            targets.DISK_OVER_MEMORY,
        )


def _beside(bench: Bench) -> None:
    """Memory hits of one daemon: alone, while it answers from disk, and while
    it answers as many others from memory, which is what the load does."""
    keys = bench.profile.disk_keys
    seconds = _beside_seconds(bench.profile)
    planned = _beside_run_seconds(bench.profile)

    def peak(name: str) -> float:
        return bench.results.series[f"disk/{SHAPE}/{SIXTEEN.id}/{name}"].median(
            "rate"
        )

    hot_rate, cold_rate = HOT_SHARE * peak("memory"), COLD_SHARE * peak("disk")
    with bench.group() as group:
        function = group.limit()
        server = group.fncache(
            "memory and disk",
            function.address,
            *MIXED,
            "--cache-dir",
            _directory(bench, "disk-beside"),
        )
        fill_disk(bench, server, SHAPE, keys)
        bench.fill(server, SHAPE, HIT_KEYS, HOT_FIRST_KEY)

        # Each key once before one comes again, which by then is on disk only:
        # the same few thousand keys, run by run, would be in memory soon.
        cold_keys = min(int(cold_rate * (planned + 0.6)), keys)

        def cold(run: int) -> dict:
            first = cold_keys * (run % (keys // cold_keys))
            return {"keys": cold_keys, "first_key": first, "sequential": True}

        def hot() -> dict:
            return bench.client.run(
                [server.address],
                SHAPE,
                OPEN,
                keys=HIT_KEYS,
                first_key=HOT_FIRST_KEY,
                seconds=seconds,
                warmup=bench.profile.warmup,
                rate=hot_rate,
                pids=server.pids,
            )

        def beside(**others) -> dict:
            found: List[dict] = []

            def load() -> None:
                try:
                    found.append(
                        bench.client.run(
                            [server.address],
                            SHAPE,
                            OPEN,
                            # It must be there for all of the other's run.
                            seconds=planned + 0.6,
                            rate=cold_rate,
                            **others,
                        )
                    )
                except Failure as failure:
                    found.append({"errors": str(failure)})

            other = threading.Thread(target=load)
            other.start()
            try:
                time.sleep(0.3)
                run = hot()
            finally:
                other.join()
            if found[0]["errors"]:
                raise Failure(f"the hits beside: {found[0]['errors']}")
            if found[0]["statuses"].get("hit", 0) < found[0]["calls"]:
                raise Failure(f"no hits beside: {found[0]['statuses']}")
            return run

        # The hot keys have been asked for before they are measured.
        bench.hits(server, SHAPE, SIXTEEN, 1)
        hot()
        contest = bench.contest(BESIDE_ROUNDS * bench.profile.runs)
        workload = f"memory hits, {SHAPE_TITLES[SHAPE]}, {hot_rate:,.0f} calls/s"
        alone = contest.enter(
            "disk/beside/alone",
            "alone",
            workload,
            lambda _: hot(),
            "hit",
            planned,
        )
        disk = contest.enter(
            "disk/beside/disk",
            "beside disk hits",
            f"{workload}, beside {cold_rate:,.0f} disk hits/s",
            lambda run: beside(**cold(run)),
            "hit",
            planned + 0.8,
        )
        memory = contest.enter(
            "disk/beside/memory",
            "beside memory hits",
            f"{workload}, beside {cold_rate:,.0f} other memory hits/s",
            lambda _: beside(keys=HIT_KEYS, first_key=HOT_FIRST_KEY),
            "hit",
            planned + 0.8,
        )
        contest.go()
    for name, measure, under in (
        ("p99", "p99 of memory hits, beside disk hits over alone", alone),
        (
            "p99-of-load",
            "p99 of memory hits, beside disk hits over beside as many others"
            " from memory",
            memory,
        ),
    ):
        bench.results.ratio(
            f"disk/beside/{name}",
            f"{SHAPE_TITLES[SHAPE]}, {hot_rate:,.0f} memory hits/s beside"
            f" {cold_rate:,.0f} disk hits/s",
            measure,
            disk,
            under,
            "latency.p99",
            targets.P99_BESIDE_DISK,
        )


def _fills(bench: Bench) -> None:
    """Every call a new key, kept in memory and on disk."""
    with bench.group() as group:
        function = group.limit()
        servers = {
            "disk fills": group.fncache(
                "disk fills",
                function.address,
                "--cache-dir",
                _directory(bench, "disk-fills"),
            ),
            "memory fills": group.fncache("memory fills", function.address),
            "off": group.fncache("off", function.address, "--mode", "off"),
        }
        group.count_from_here()

        def fill(server: Server) -> dict:
            name = "fncache_fills_dropped_total"
            before = total(scrape(server), name) if server.admin else 0
            run = bench.misses(server, SHAPE, ONE_BUSY)
            run["dropped"] = total(scrape(server), name) - before
            return run

        contest = bench.contest()
        series = {
            name: contest.enter(
                f"disk/fills/{ONE_BUSY.id}/{name.replace(' ', '-')}",
                name,
                f"new keys, {SHAPE_TITLES[SHAPE]}, {ONE_BUSY.title}",
                lambda _, server=server: fill(server),
                "bypass" if name == "off" else "miss",
                bench.profile.run_seconds(SHAPE),
            )
            for name, server in servers.items()
        }
        contest.go()
        for name, one in series.items():
            outcome = "bypass" if name == "off" else "miss"
            group.check_counters(servers[name], outcome, [one])
    title = f"{SHAPE_TITLES[SHAPE]}, {ONE_BUSY.title}"
    fills = series["disk fills"]
    for other in ("off", "memory fills"):
        bench.results.ratio(
            f"disk/fills/{other.replace(' ', '-')}",
            title,
            "fills/s of memory and disk over "
            + ("forwarded calls/s, mode: off" if other == "off" else
               "fills/s of memory alone"),
            fills,
            series[other],
            "rate",
        )
    dropped = [run["dropped"] / run["calls"] for run in fills.runs]
    if dropped:
        bench.results.value(
            "disk/fills/dropped",
            title,
            "fills that a full queue kept from the disk, share of calls",
            "",
            spread.estimate(dropped),
            series={"disk fills": fills},
        )
