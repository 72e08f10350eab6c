# SPDX-License-Identifier: Apache-2.0
"""What a hit costs besides time: allocations and instructions.

CPU time per hit is a figure of the hits' rows. Both of these are counted over
a number of calls that is known, after the cache is warm, and neither depends on
what else the machine does; so one count is enough.

Allocations: a library that counts them is preloaded (bench/allocation_counter.cc).
Instructions: by the hardware's counter where `perf stat` has one (virtual
machines often have none), else under valgrind, which counts those of user space.
"""

import re
import sys
from pathlib import Path
from typing import Callable, Dict, Optional, Tuple

from .. import spread, targets
from ..bench import Bench
from ..processes import Failure, run_tool
from ..profiles import HIT_KEYS, SHAPE_TITLES, Load, Profile
from ..servers import Server, first_program

SUBJECTS: Dict[str, Tuple[str, ...]] = {
    "limit": (),
    "content": ("--cache-memory", "1GiB"),
    "tag": ("--key", "tag", "--cache-memory", "1GiB"),
}
LOAD = Load(1, 8)
ALLOCATION_CALLS = 20_000
# Under valgrind a call takes some fifty times as long.
INSTRUCTION_CALLS = {"4k": 2_000, "17k": 1_000, "130k": 400}


def plan(profile: Profile) -> float:
    return 6.0 * len(profile.cost_shapes) + 45.0 * len(
        profile.instruction_shapes
    )


def run(bench: Bench) -> None:
    _allocations(bench)
    _instructions(bench)


def _start(bench: Bench, group, name: str, upstream: Optional[Server], **how):
    if name == "limit":
        return group.add(bench.servers.limit(bench.answers["13k"], **how))
    return group.add(
        bench.servers.fncache(name, upstream.address, SUBJECTS[name], **how)
    )


def _hits(bench: Bench, server: Server, shape: str, calls: int) -> None:
    run = bench.client.run(
        server.addresses, shape, LOAD, keys=HIT_KEYS, calls=calls
    )
    if run["errors"] or run["calls"] != calls:
        raise Failure(f"{run['calls']} of {calls} calls, {run['errors']} errors")
    if server.admin and run["statuses"].get("hit") != calls:
        raise Failure(f"{calls} calls were {run['statuses']}")


def _warm(bench: Bench, server: Server, shape: str) -> None:
    if server.admin:
        bench.fill(server, shape, HIT_KEYS)
    _hits(bench, server, shape, 2 * HIT_KEYS)


def _allocations(bench: Bench) -> None:
    library = bench.build / "bench" / "liballocation_counter.so"
    if not library.exists():
        raise Failure("bench/liballocation_counter.so is not built")
    for shape in bench.profile.cost_shapes:
        counts = {}
        for name in SUBJECTS:
            bench.progress.say(f"allocations of {name}, {SHAPE_TITLES[shape]}")
            counts[name] = _count(bench, name, shape, library)
            bench.progress.spent(2)
        for name in ("content", "tag"):
            bench.results.value(
                f"cost/{shape}/allocations/{name}",
                f"{SHAPE_TITLES[shape]}, key: {name}"
                f" ({counts[name]:.2f}; limit {counts['limit']:.2f})",
                "allocations per hit, more than the limit's",
                "",
                spread.estimate([counts[name] - counts["limit"]]),
                targets.ALLOCATIONS_ABOVE_LIMIT,
            )


def _count(bench: Bench, name: str, shape: str, library: Path) -> float:
    with bench.group() as group:
        upstream = None if name == "limit" else group.limit()
        file = bench.nursery.directory / f"allocations-{shape}-{name}"
        server = _start(
            bench,
            group,
            name,
            upstream,
            environment={
                "LD_PRELOAD": str(library),
                "ALLOCATION_COUNTER": str(file),
            },
        )
        _warm(bench, server, shape)
        before = _so_far(file)
        _hits(bench, server, shape, ALLOCATION_CALLS)
        return (_so_far(file) - before) / ALLOCATION_CALLS


def _so_far(file: Path) -> int:
    return int.from_bytes(file.read_bytes()[:8], sys.byteorder)


def _instructions(bench: Bench) -> None:
    method = _hardware() or _valgrind()
    if method is None:
        bench.skip(
            "instructions per hit",
            "no hardware counter, and valgrind is not installed",
        )
        return
    for shape in bench.profile.instruction_shapes:
        counts = {}
        for name in SUBJECTS:
            bench.progress.say(f"instructions of {name}, {SHAPE_TITLES[shape]}")
            counts[name] = method(bench, name, shape)
            bench.progress.spent(15)
        for name, count in counts.items():
            bench.results.value(
                f"cost/{shape}/instructions/{name}",
                f"{SHAPE_TITLES[shape]}, {_TITLES[name]}",
                f"instructions per hit, {method.__doc__}",
                "",
                spread.estimate([count]),
            )


_TITLES = {"limit": "limit", "content": "key: content", "tag": "key: tag"}


def _hardware() -> Optional[Callable[[Bench, str, str], float]]:
    perf = first_program(("perf",))
    if perf is None:
        return None
    probe = run_tool([perf, "stat", "-x,", "-e", "instructions:u", "true"], 20)
    if probe.returncode or not _EVENTS.search(probe.stderr):
        return None

    def count(bench: Bench, name: str, shape: str) -> float:
        """of user space, by the hardware's counter"""
        with bench.group() as group:
            upstream = None if name == "limit" else group.limit()
            server = _start(bench, group, name, upstream)
            _warm(bench, server, shape)
            calls = ALLOCATION_CALLS
            command = [perf, "stat", "-x,", "-e", "instructions:u"]
            command += ["-p", str(server.child.pid), "--"]
            command += bench.client.command(
                server.addresses, shape, LOAD, keys=HIT_KEYS, calls=calls
            )
            done = run_tool(command, 120)
            match = _EVENTS.search(done.stderr)
            if done.returncode or not match:
                raise Failure(f"perf stat: {done.stderr.strip()[-300:]}")
            return int(match.group(1)) / calls

    return count


_EVENTS = re.compile(r"^(\d+),[^,]*,instructions", re.MULTILINE)
_TOTALS = re.compile(r"^(?:totals|summary): (\d+)", re.MULTILINE)


def _valgrind() -> Optional[Callable[[Bench, str, str], float]]:
    valgrind = first_program(("valgrind",))
    control = first_program(("callgrind_control",))
    if valgrind is None or control is None:
        return None

    def count(bench: Bench, name: str, shape: str) -> float:
        """of user space, counted by valgrind"""
        with bench.group() as group:
            upstream = None if name == "limit" else group.limit()
            out = bench.nursery.directory / f"callgrind-{shape}-{name}"
            prefix = [valgrind, "--tool=callgrind"]
            prefix += [f"--callgrind-out-file={out}"]
            server = _start(bench, group, name, upstream, prefix=prefix)
            _warm(bench, server, shape)
            calls = INSTRUCTION_CALLS[shape]
            pid = str(server.child.pid)
            _control(control, "-z", pid)
            _hits(bench, server, shape, calls)
            _control(control, "-d", pid)
            # Parts are numbered from 1.
            match = _TOTALS.search(Path(f"{out}.1").read_text())
            if not match:
                raise Failure(f"{out}.1 has no totals")
            return int(match.group(1)) / calls

    return count


def _control(program: str, flag: str, pid: str) -> None:
    done = run_tool([program, flag, pid], 60)
    if done.returncode:
        raise Failure(f"callgrind_control: {done.stderr.strip()[-300:]}")
