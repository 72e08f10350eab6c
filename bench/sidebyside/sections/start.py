# SPDX-License-Identifier: Apache-2.0
"""From the start of a process to its first hit, with much on disk."""

import json
import random
import shutil
import string
import time
from pathlib import Path

from .. import spread, targets
from ..bench import Bench
from ..http2 import call
from ..processes import Failure, run_tool
from ..profiles import Profile
from ..servers import Server, scrape, total

SHAPE = "4k"
ENTRY_BYTES = 13_000
JUDGED_GIB = 10
MEMORY = ("--cache-memory", "64MiB")
# Seconds that fill_disk takes for a GiB, about.
FILL_SECONDS = 3


def plan(profile: Profile) -> float:
    return sum(
        gib * FILL_SECONDS + profile.start_runs * 0.5 + 1
        for gib in profile.start_gib
    )


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


def _fill(bench: Bench, gib: float, directory: Path, answer: Path) -> dict:
    command = [bench.servers.program("bench/fill_disk"), "--dir", directory]
    command += ["--gib", f"{gib:g}", "--shape", SHAPE]
    command += ["--response", answer]
    command += ["--function", "bench", "--generation", "bench"]
    done = run_tool(command, 60 + 60 * gib)
    if done.returncode:
        raise Failure(done.stderr.strip())
    return json.loads(done.stdout)


def _size(bench: Bench, gib: float) -> None:
    directory = bench.nursery.directory / f"start-{gib:g}"
    request = bench.nursery.directory / "start.request"
    answer = bench.nursery.directory / "dense.response"
    answer.write_bytes(dense_answer(ENTRY_BYTES))
    bench.progress.say(f"filling {gib:g} GiB")
    filled = _fill(bench, gib, directory, answer)
    bench.progress.spent(gib * FILL_SECONDS)
    cache = (*MEMORY, "--cache-dir", str(directory), "--cache-disk")
    cache = (*cache, f"{filled['capacity'] // 2**20 + 1}MiB")
    title = f"{gib:g} GiB on disk, {filled['entries']:,} entries"
    # One of the first keys: the log's end may have the last ones.
    bench.client.write_request(SHAPE, request, key=7)
    with bench.group() as group:
        function = group.limit(answer)
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
            bench.progress.spent(0.5)
    shutil.rmtree(directory, ignore_errors=True)
    values = series.values("first_hit_seconds")
    if not values:
        raise Failure("; ".join(series.errors))
    bench.results.value(
        f"start/{gib:g}/first-hit",
        f"{title} (in the page cache, where it fits)",
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
