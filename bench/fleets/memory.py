# SPDX-License-Identifier: Apache-2.0
"""Memory hits with the tier, and the size of values on the server."""

from dataclasses import dataclass
from pathlib import Path
from typing import List

from sidebyside import spread
from sidebyside.processes import Failure
from sidebyside.results import Target

from .lab import EIGHT, PATIENT, SIZES, Lab, Redis

CPU_WITH_TIER = Target(1.03, at_least=False)
P99_WITH_TIER = Target(1.2, at_least=False)
BYTES_BEYOND_DISK = Target(128, at_least=False)
HIT_KEYS = 256
# Hits a second in the open loop whose p99 counts.
RATE = 2000
# The start of the disk's stored form, and where its lengths are
# (docs/storage-format.md).
MAGIC = b"fncache"
LENGTHS = (16, 20, 24)
FIXED = 28


def hits(lab: Lab) -> None:
    plan = lab.plan
    redis = Redis(lab.nursery)
    function = lab.function()
    daemons = {"with": lab.daemon(function, lab.tier(redis.url)), "without": lab.daemon(function, [])}
    first = lab.keys(HIT_KEYS)
    for daemon in daemons.values():
        lab.each(daemon, EIGHT, "miss", first, HIT_KEYS)
    found = {f"{name} {what}": [] for name in daemons for what in ("cpu", "p99")}
    # Ratios near 1 need more rounds than others, in both orders.
    rounds = 2 * plan.rounds
    for number in range(-1, rounds):
        lab.say(f"memory hits, round {number + 1} of {rounds}")
        order = list(daemons.items())
        for name, daemon in order if number % 2 else reversed(order):
            how = {"keys": HIT_KEYS, "first_key": first, "seconds": plan.seconds, "warmup": 0.1}
            closed = lab.ask(daemon, EIGHT, "hit", **how)
            opened = lab.ask(daemon, EIGHT, "hit", rate=RATE, **how)
            if number >= 0:
                found[f"{name} cpu"].append(closed["cpu_us"])
                found[f"{name} p99"].append(opened["latency"]["p99"])
    lab.end(*daemons.values())
    lab.nursery.end(redis.child, hard=True)
    for what, target in (("cpu", CPU_WITH_TIER), ("p99", P99_WITH_TIER)):
        with_tier, without = found[f"with {what}"], found[f"without {what}"]
        lab.results.value(
            f"memory/{what}",
            f"{what.replace('cpu', 'CPU')} of a memory hit with the tier ({spread.median(with_tier):.1f} us),"
            f" over without ({spread.median(without):.1f} us)",
            "ratios", "x", spread.paired_ratio(with_tier, without), target,
        )


@dataclass
class Size:
    name: str
    answer: int
    disk: int  # the disk's stored form
    value: int  # on the server
    memory: float  # of the server for each entry


def stored_sizes(folder: Path) -> List[int]:
    """The sizes of the stored forms in a disk tier's files."""
    found = []
    for path in folder.rglob("*"):
        if path.suffix not in (".log", ".sst", ".blob"):
            continue
        data = path.read_bytes()
        at = data.find(MAGIC)
        while at >= 0:
            if data[at + len(MAGIC)] in (1, 2):
                found.append(FIXED + sum(int.from_bytes(data[at + n : at + n + 4], "little") for n in LENGTHS))
            at = data.find(MAGIC, at + 1)
    return found


def sizes(lab: Lab) -> List[Size]:
    table = []
    for name, size in SIZES.items():
        lab.say(f"values of {name}")
        redis = Redis(lab.nursery)
        function = lab.function(name)
        daemon = lab.daemon(function, lab.tier(redis.url, *PATIENT))
        folder = lab.nursery.directory / f"disk-{size}"
        on_disk = lab.daemon(function, ["--cache-dir", str(folder)])
        lab.fill(daemon, lab.keys(16), 16, name)
        before = redis.info("used_memory")
        lab.fill(daemon, lab.keys(lab.plan.entries), lab.plan.entries, name)
        memory = (redis.info("used_memory") - before) / lab.plan.entries
        value = max(int(redis.ask("STRLEN", redis.a_name())) for _ in range(8))
        lab.each(on_disk, EIGHT, "miss", lab.keys(1), 1, name)
        lab.servers.stop(on_disk, hard=False)
        stored = stored_sizes(folder)
        if not stored:
            raise Failure(f"no stored form in the disk tier's files ({name})")
        table.append(Size(name, size, min(stored), value, memory))
        lab.end(daemon)
        lab.nursery.end(redis.child, hard=True)
    lab.results.value(
        "server/bytes",
        "bytes of a value beyond the disk's stored form, at 1, 13 and 100 KB",
        "values", "bytes",
        spread.estimate([one.value - one.disk for one in table]),
        BYTES_BEYOND_DISK,
    )
    return table
