# SPDX-License-Identifier: Apache-2.0
"""Scale: entries, connections, functions.

Entries are those of 300-byte values. Two daemons stand side by side: one keeps
1,000 entries, the other is filled on and on; at each size both are measured in
turns, so that an hour's drift of the machine is not taken for the table's.
"""

import json
from typing import Dict

from .. import spread, targets
from ..bench import FILL_LOAD, Bench
from ..profiles import (
    HIT_KEYS,
    ONE_BUSY,
    SHAPE_TITLES,
    SIXTEEN,
    Load,
    Profile,
)
from ..processes import Failure, resident_bytes, run_tool
from ..results import Series
from ..servers import Server, scrape, total
from . import idle

SHAPE = "small"
CONNECTIONS_SHAPE = "4k"
# More than five million entries take.
CACHE = ("--cache-memory", "8GiB")
FILLS_A_SECOND = 15_000
VALUE_BYTES = 300
JUDGED_OVERHEAD = 100_000
# Kinds of drift in a usual request, and the most with which it is tuned.
EVIDENCE_KINDS = (10, 32)
JUDGED_RESIDENT = 1_000_000
JUDGED_CPU = 5_000_000
MANY, FEW = 2_000, 16
# Fraction of the peak at sixteen connections: the same load on few and on many.
SAME_LOAD_SHARE = 0.4


def plan(profile: Profile) -> float:
    runs = 2 * len(profile.entries)
    runs += 2 * len(profile.connections) + len(profile.functions)
    connecting = sum(profile.connections) / 2000 * 2 * profile.runs
    return (
        runs * profile.runs * profile.run_seconds(CONNECTIONS_SHAPE)
        + max(profile.entries) / FILLS_A_SECOND
        + connecting
        + idle.seconds(max(profile.connections))
        + 6
    )


def run(bench: Bench) -> None:
    _footprint(bench)
    _tuning(bench)
    _entries(bench)
    _connections(bench)
    idle.measure(bench, max(bench.profile.connections))
    _functions(bench)


def _footprint(bench: Bench) -> None:
    """The memory tier alone: what it asks of the allocator, and keeps."""
    bench.progress.say("memory_footprint")
    for found in _footprint_of(bench, bench.profile.entries):
        entries = found["entries"]
        title = f"{entries:,} entries of {VALUE_BYTES}-byte values, tier alone"
        bench.results.value(
            f"scale/footprint/{entries}/overhead",
            title,
            "bytes per entry beyond key and value, requested sizes",
            "B",
            spread.estimate([found["overhead_requested_per_entry"]]),
            # Below, what a table has at least is spread over too few.
            targets.OVERHEAD_BYTES if entries >= JUDGED_OVERHEAD else None,
        )
        bench.results.value(
            f"scale/footprint/{entries}/resident",
            title,
            "growth of the resident size over the counted bytes",
            "x",
            spread.estimate([found["resident_over_counted"]]),
            targets.RESIDENT_OVER_COUNTED
            if entries == JUDGED_RESIDENT
            else None,
        )


def _footprint_of(bench: Bench, entries, *more) -> list:
    sizes = ",".join(str(count) for count in entries)
    return _report(
        bench, "--value", VALUE_BYTES, "--entries", sizes, *more
    )


def _report(bench: Bench, *arguments):
    program = bench.servers.program("bench/memory_footprint")
    done = run_tool([program, *arguments], 300)
    if done.returncode:
        raise Failure(f"memory_footprint: {done.stderr.strip()}")
    return json.loads(done.stdout)


def _tuning(bench: Bench) -> None:
    """What `tune: on` adds to an entry, and to a key that it follows."""
    bench.progress.say("memory_footprint, tuning")
    entries = min(JUDGED_OVERHEAD, max(bench.profile.entries))
    without, with_digest = (
        _footprint_of(bench, [entries], "--drift", drift)[0]
        for drift in (0, 1)
    )
    for kind in ("requested", "counted"):
        name = f"overhead_{kind}_per_entry"
        bench.results.value(
            f"scale/tuning/entry/{kind}",
            f"the drift digest of an entry, {kind} bytes",
            "memory of tuning",
            "B",
            spread.estimate([round(with_digest[name] - without[name], 2)]),
            targets.DRIFT_DIGEST_BYTES if entries >= JUDGED_OVERHEAD else None,
        )
    for kinds in EVIDENCE_KINDS:
        found = _report(bench, "--evidence", kinds)
        bench.results.value(
            f"scale/tuning/evidence/{kinds}",
            f"the evidence of a key with {kinds} kinds of drift,"
            f" counted bytes ({found['requested_per_key']:.0f} requested)",
            "memory of tuning",
            "B",
            spread.estimate([found["counted_per_key"]]),
            targets.EVIDENCE_BYTES,
        )


def _memory(server: Server) -> Dict[str, float]:
    samples = scrape(server)
    return {
        "entries": total(samples, "fncache_tier_entries", 'tier="memory"'),
        "bytes": total(samples, "fncache_tier_bytes", 'tier="memory"'),
        "resident": resident_bytes(server.child.pid),
    }


def _entries(bench: Bench) -> None:
    few = min(bench.profile.entries)
    with bench.group() as group:
        function = group.limit("small")
        small = group.fncache("few entries", function.address, *CACHE)
        large = group.fncache("many entries", function.address, *CACHE)
        at_start = _memory(large)
        bench.fill(small, SHAPE, few)
        bench.warm(small, bench.hits, SHAPE)
        filled = 0
        for entries in bench.profile.entries:
            bench.progress.say(f"filling up to {entries:,} entries")
            bench.fill(large, SHAPE, entries - filled, filled)
            bench.progress.spent((entries - filled) / FILLS_A_SECOND)
            filled = entries
            _at(bench, group, small, large, entries, few, at_start)


def _at(
    bench: Bench,
    group,
    small: Server,
    large: Server,
    entries: int,
    few: int,
    at_start: Dict[str, float],
) -> None:
    group.count_from_here()
    memory = _memory(large)
    contest = bench.contest()
    series: Dict[str, Series] = {}
    for name, server, keys in (("few", small, few), ("many", large, entries)):
        series[name] = contest.enter(
            f"scale/entries/{entries}/{name}",
            f"{keys:,} entries",
            f"hits, 300-byte values, {SIXTEEN.title}",
            lambda _, server=server, keys=keys: bench.hits(
                server, SHAPE, SIXTEEN, keys
            ),
            "hit",
            bench.profile.run_seconds(SHAPE),
        )
    contest.go()
    group.check_counters(small, "hit", [series["few"]])
    group.check_counters(large, "hit", [series["many"]])
    title = f"{entries:,} entries of 300-byte values"
    if entries != few:
        bench.results.ratio(
            f"scale/entries/{entries}/cpu",
            title,
            f"server CPU per hit over that at {few:,} entries",
            series["many"],
            series["few"],
            "cpu_us",
            targets.CPU_MANY_ENTRIES if entries >= JUDGED_CPU else None,
        )
    if memory["entries"] != entries:
        series["many"].errors.append(
            f"the memory tier counts {memory['entries']:.0f} entries"
        )
    beside = {"fncache": series["many"]}
    counted = memory["bytes"] / entries
    bench.results.value(
        f"scale/entries/{entries}/bytes",
        title,
        "memory tier, counted bytes per entry",
        "B",
        spread.estimate([counted]),
        series=beside,
    )
    grown = memory["resident"] - at_start["resident"]
    bench.results.value(
        f"scale/entries/{entries}/resident",
        title,
        "growth of the resident size over the counted bytes",
        "x",
        spread.estimate([grown / memory["bytes"]]),
        # Below, a process' own growth hides the tier's.
        targets.RESIDENT_OVER_COUNTED if entries == JUDGED_RESIDENT else None,
        beside,
    )


def _connections(bench: Bench) -> None:
    """Closed loop with one call on each connection, and an open loop at one
    rate for all: in the former more connections also mean more calls at
    once, in the latter nothing differs but their number."""
    shape = CONNECTIONS_SHAPE
    with bench.group() as group:
        function = group.limit()
        server = group.fncache(
            "content", function.address, "--cache-memory", "1GiB"
        )
        bench.fill(server, shape, HIT_KEYS)
        rate = SAME_LOAD_SHARE * bench.hits(server, shape, SIXTEEN)["rate"]
        group.count_from_here()
        contest = bench.contest()
        series: Dict[str, Dict[int, Series]] = {"closed": {}, "open": {}}
        for count in bench.profile.connections:
            seconds = bench.profile.run_seconds(shape) + count / 2000
            for kind in series:
                # The open loop may have to catch up on few connections.
                load = Load(count, 1 if kind == "closed" or count > 64 else 64)
                series[kind][count] = contest.enter(
                    f"scale/connections/{kind}/{count}",
                    _connected(count),
                    f"hits, {SHAPE_TITLES[shape]}, {_connected(count)}, "
                    + (
                        "one call each"
                        if kind == "closed"
                        else f"{rate:,.0f} calls/s in all"
                    ),
                    lambda _, load=load, kind=kind: bench.hits(
                        server,
                        shape,
                        load,
                        rate=rate if kind == "open" else None,
                    ),
                    "hit",
                    seconds,
                )
        contest.go()
        everything = [s for k in series.values() for s in k.values()]
        group.check_counters(server, "hit", everything)
    for kind, title in (
        ("closed", "one call at a time on each"),
        ("open", f"{rate:,.0f} calls/s in all"),
    ):
        for count, one in series[kind].items():
            if count == FEW:
                continue
            bench.results.ratio(
                f"scale/connections/{kind}/{count}/cpu",
                f"{_connected(count)}, {SHAPE_TITLES[shape]}, {title}",
                f"server CPU per hit over that at {FEW} connections",
                one,
                series[kind][FEW],
                "cpu_us",
                targets.CPU_MANY_CONNECTIONS[kind] if count == MANY else None,
            )


def _functions(bench: Bench) -> None:
    shape = CONNECTIONS_SHAPE
    with bench.group() as group:
        # No two functions of a daemon may share one upstream.
        upstreams = [
            group.limit("13k", "--workers", "1").address
            for _ in range(max(bench.profile.functions))
        ]
        servers = {}
        for count in bench.profile.functions:
            server = group.fncache(
                f"{count} functions",
                upstreams[:count],
                "--cache-memory",
                "1GiB",
            )
            bench.fill(server, shape, HIT_KEYS)
            servers[count] = server
        group.count_from_here()
        most = max(bench.profile.functions)
        # As many connections to the one as to all of the many.
        load_of = {c: Load(max(1, most // c), 1) for c in servers}
        contest = bench.contest()
        series = {
            count: contest.enter(
                f"scale/functions/{count}",
                f"{count} functions" if count > 1 else "1 function",
                f"hits, {SHAPE_TITLES[shape]}, {most} connections in all,"
                " one call each",
                lambda _, server=server, count=count: bench.hits(
                    server, shape, load_of[count]
                ),
                "hit",
                bench.profile.run_seconds(shape),
            )
            for count, server in servers.items()
        }
        contest.go()
        for count, one in series.items():
            group.check_counters(servers[count], "hit", [one])
    few = min(series)
    for count, one in series.items():
        if count != few:
            bench.results.ratio(
                f"scale/functions/{count}/cpu",
                f"{count} functions, {SHAPE_TITLES[shape]},"
                f" {most} connections in all",
                f"server CPU per hit over that with {few} function",
                one,
                series[few],
                "cpu_us",
            )


def _connected(count: int) -> str:
    return "1 connection" if count == 1 else f"{count:,} connections"
