"""From the start of a process to its first hit, with much on disk."""

import random
import string
import time

from .. import spread, targets
from ..bench import Bench
from ..http2 import call
from ..processes import Failure
from ..profiles import Load, Profile
from ..servers import Server, scrape, total
from .disk import wait_for_writes

SHAPE = "4k"
FILL = Load(4, 64)
# Below what the write-behind queue takes for ever, so that nothing is dropped.
FILLS_A_SECOND = 6_000
ENTRY_BYTES = 13_000
JUDGED_GIB = 10
# Of the cache: the tiers must not make room while they are filled.
MEMORY = ("--cache-memory", "64MiB")


def plan(profile: Profile) -> float:
    filling = sum(_keys(gib) / FILLS_A_SECOND for gib in profile.start_gib)
    return filling + len(profile.start_gib) * (profile.start_runs * 0.6 + 4)


def _keys(gib: float) -> int:
    return int(gib * 2**30 / ENTRY_BYTES)


def dense_answer(size: int) -> bytes:
    """A response whose bytes do not shrink, as the database compresses: a
    GiB of answers shall be a GiB of files. Field numbers are those of proto/."""

    def field(number: int, value: bytes) -> bytes:
        size = len(value)
        length = bytes([size] if size < 128 else [size & 127 | 128, size >> 7])
        return bytes([number << 3 | 2]) + length + value

    day = b"\x08\x80\xa3\x05"
    meta = field(1, field(1, b"0" * 64) + field(2, day))
    words = random.Random(1)
    text = "".join(words.choices(string.ascii_letters + string.digits, k=size))
    result = b"\x08\x03" + field(2, text.encode())
    return meta + field(3, result)


def run(bench: Bench) -> None:
    for gib in bench.profile.start_gib:
        _size(bench, gib)


def _size(bench: Bench, gib: float) -> None:
    directory = bench.nursery.directory / f"start-{gib}"
    request = bench.nursery.directory / "start.request"
    cache = (*MEMORY, "--cache-dir", str(directory), "--cache-disk")
    cache = (*cache, f"{int(gib * 1.3 * 1024) + 1024}MiB")
    title = f"{gib:g} GiB on disk"
    with bench.group() as group:
        answer = bench.nursery.directory / "dense.response"
        answer.write_bytes(dense_answer(ENTRY_BYTES))
        function = group.limit(answer)
        filler = group.fncache("start", function.address, *cache)
        bench.progress.say(f"filling {title}")
        keys = _keys(gib)
        run = bench.client.run(
            [filler.address],
            SHAPE,
            FILL,
            keys=keys,
            pick="sequential",
            calls=keys,
            rate=FILLS_A_SECOND,
            answer=answer,
        )
        if run["errors"]:
            raise Failure(f"filling the disk: {run.get('complaint')}")
        wait_for_writes(filler)
        samples = scrape(filler)
        dropped = total(samples, "fncache_fills_dropped_total")
        if dropped > 0.02 * keys:
            raise Failure(f"{dropped:.0f} of {keys} fills were dropped")
        bench.progress.spent(keys / FILLS_A_SECOND)
        # Among the first keys: far from what memory or the log's end holds.
        bench.client.write_request(SHAPE, request, key=7)
        group.remove(filler)
        on_disk = sum(f.stat().st_size for f in directory.rglob("*") if f.is_file())

        series = bench.results.add_series(
            f"start/{gib:g}", "fncache", f"start to first hit, {title}"
        )
        framed = request.read_bytes()
        for number in range(bench.profile.start_runs):
            bench.progress.say(f"{title}, start {number + 1}")
            try:
                series.runs.append(_start(group, function, cache, framed))
            except Failure as failure:
                series.errors.append(f"start {number + 1}: {failure}")
            bench.progress.spent(0.6)
        group.stop()
    values = series.values("first_hit_seconds")
    if not values:
        raise Failure("; ".join(series.errors))
    bench.results.value(
        f"start/{gib:g}/first-hit",
        f"{title} ({on_disk / 2**30:.2f} GiB of files, in the page cache)",
        "process start to first hit",
        "s",
        spread.estimate(values),
        targets.START_SECONDS if gib >= JUDGED_GIB else None,
        {"fncache": series},
    )


def _start(group, function: Server, cache, framed: bytes) -> dict:
    server = group.fncache("start", function.address, *cache)
    ready = time.monotonic() - server.child.started
    answer = call(server.address, framed)
    first_hit = time.monotonic() - server.child.started
    try:
        if len(answer) < ENTRY_BYTES * 0.9:
            raise Failure(f"an answer of {len(answer)} bytes")
        samples = scrape(server)
        hits = total(samples, "fncache_requests_total", 'outcome="hit"')
        if hits != 1:
            raise Failure("the first call was no hit")
    finally:
        group.remove(server)
    return {"ready_seconds": ready, "first_hit_seconds": first_hit}
