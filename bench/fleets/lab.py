# SPDX-License-Identifier: Apache-2.0
"""Servers, daemons and loads that all rows of bench/fleet use.

The Redis server is that of Debian's redis-tools: a link named `redis-server` to
redis-check-rdb starts it. It keeps nothing on disk.
"""

import base64
import csv
import io
import os
import resource
import secrets
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Dict, List, Optional, Sequence, Tuple

from sidebyside.contest import complaint
from sidebyside.load import LoadClient
from sidebyside.processes import (
    Child,
    Failure,
    Nursery,
    cpu_seconds,
    free_port,
    run_tool,
    wait_for_port,
)
from sidebyside.profiles import Load
from sidebyside.results import Results
from sidebyside.servers import Server, Servers, scrape, total

SERVER_PROGRAM = "redis-check-rdb"
# The sizes of the function's answers. Their random text is as large on the server, because
# it does not compress.
SIZES = {"1 KB": 1 << 10, "13 KB": 13 << 10, "100 KB": 100 << 10}
USUAL = "13 KB"
SHAPE = "4k"
LONE, EIGHT = Load(1, 1), Load(1, 8)
# The write-behind queue of a daemon takes 32 MiB.
FILL_BYTES = 16 << 20
WAIT_SECONDS = 30
# On a loaded machine some look-ups take longer than the default.
PATIENT = ("--shared-timeout", "1s")
# That default.
TIMEOUT_MS = 50


@dataclass(frozen=True)
class Plan:
    """How much is measured."""

    rounds: int
    keys: int  # of a round's passes with eight calls at once
    lone_keys: int  # and with one
    benchmark_calls: int
    seconds: float  # of one run of hits or misses
    stops: int
    run_seconds: float  # of a load on a fleet
    away_seconds: float
    fleets: Tuple[int, ...]
    entries: int  # of each size


QUICK = Plan(3, 1000, 300, 20_000, 0.4, 2, 16, 4, (3,), 200)
FULL = Plan(9, 5000, 1500, 100_000, 1.0, 5, 90, 10, (3, 8), 1000)


def varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def answer(size: int, ttl_seconds: int) -> bytes:
    """A RunFunctionResponse of this size with a tag, a TTL and one result."""
    meta = field(1, b"0" * 64) + field(2, b"\x08" + varint(ttl_seconds))
    head = field(1, meta)
    text = base64.b64encode(secrets.token_bytes(size))[: size - len(head) - 10]
    return head + field(3, b"\x08\x03" + field(2, text))


def wait_until(what: str, true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not true():
        if time.monotonic() > deadline:
            raise Failure(f"{what}: not within {WAIT_SECONDS} s")
        time.sleep(0.01)


class Redis:
    """A Redis server on free ports, in plaintext and over TLS."""

    def __init__(self, nursery: Nursery, tls: Optional[Path] = None):
        program = shutil.which(SERVER_PROGRAM)
        if program is None or shutil.which("redis-benchmark") is None:
            raise Failure("redis-tools is not installed")
        folder = Path(nursery.directory) / f"redis-{secrets.token_hex(4)}"
        folder.mkdir()
        link = folder / "redis-server"
        link.symlink_to(program)
        self.port = free_port()
        command = [link, "--port", self.port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", folder]
        self.tls_port = None
        if tls is not None:
            self.tls_port = free_port()
            command += ["--tls-port", self.tls_port, "--tls-auth-clients", "no"]
            for name, file in (("ca-cert", "ca.crt"), ("cert", "tls.crt"), ("key", "tls.key")):
                command += [f"--tls-{name}-file", tls / file]
        self.child = nursery.adopt(Child(command))
        self.tls = tls
        wait_for_port(self.child, self.port)
        self.ask("PING")

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    @property
    def tls_url(self) -> str:
        return f"rediss://127.0.0.1:{self.tls_port}"

    def ask(self, *command: str) -> str:
        done = run_tool(["redis-cli", "-p", str(self.port), *command], 30)
        if done.returncode:
            raise Failure(f"redis-cli: {done.stderr.strip()}")
        return done.stdout.strip()

    def info(self, name: str) -> int:
        for line in self.ask("INFO", "everything").splitlines():
            key, _, value = line.partition(":")
            if key == name:
                return int(value)
        raise Failure(f"INFO has no {name}")

    def cpu(self) -> float:
        return cpu_seconds([self.child.pid])

    def a_name(self) -> str:
        """The name of some entry. The record of bans never expires."""
        while True:
            name = self.ask("RANDOMKEY")
            if name.startswith("fncache:1:") and int(self.ask("PTTL", name)) > 0:
                return name

    def benchmark(self, clients: int, calls: int, *command: str, tls: bool = False) -> dict:
        """`cpu_us` is what redis-benchmark itself used for a call."""
        port = self.tls_port if tls else self.port
        more = ["--tls", "--cacert", str(self.tls / "ca.crt")] if tls else []
        before = _children_cpu()
        done = run_tool(
            ["redis-benchmark", "-h", "127.0.0.1", "-p", str(port), *more, "-c", str(clients), "-P", "1", "-n", str(calls), "--csv", *command],
            120,
        )
        spent = _children_cpu() - before
        rows = list(csv.DictReader(io.StringIO(done.stdout)))
        if done.returncode or len(rows) != 1:
            raise Failure(f"redis-benchmark: {(done.stderr or done.stdout).strip()[-300:]}")
        return {"cpu_us": spent / calls * 1e6, "p50_us": float(rows[0]["p50_latency_ms"]) * 1e3}


def _children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def certificates(folder: Path) -> Path:
    """An authority and a certificate for 127.0.0.1."""
    folder.mkdir()
    subject = ["-subj", "/CN=fncache bench"]
    new = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject]
    steps = [
        [*new, "-keyout", folder / "ca.key", "-out", folder / "ca.crt"],
        ["openssl", "req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=127.0.0.1", "-keyout", folder / "tls.key", "-out", folder / "tls.csr"],
        ["openssl", "x509", "-req", "-in", folder / "tls.csr", "-CA", folder / "ca.crt", "-CAkey", folder / "ca.key",
         "-CAcreateserial", "-days", "2", "-extfile", folder / "names", "-out", folder / "tls.crt"],
    ]
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1\n")
    for step in steps:
        done = run_tool(step, 60)
        if done.returncode:
            raise Failure(f"openssl: {done.stderr.strip()[-300:]}")
    client = folder / "client"
    client.mkdir()
    shutil.copy(folder / "ca.crt", client / "ca.crt")
    return folder


class Lab:
    def __init__(self, nursery: Nursery, build: Path, plan: Plan, results: Results, say: Callable[[str], None]):
        self.nursery = nursery
        self.build = build
        self.plan = plan
        self.results = results
        self.say = say
        self.servers = Servers(nursery, build, Path("/nonexistent"))
        self.answers: Dict[str, Path] = {}
        for size, count in SIZES.items():
            path = nursery.directory / f"{size.replace(' ', '')}.answer"
            path.write_bytes(answer(count, 24 * 3600))
            self.answers[size] = path
        self.client = LoadClient(self.servers.program("bench/load"), {"13k": self.answers[USUAL]})
        self.secret = nursery.directory / "secret"
        self.secret.write_text(secrets.token_hex(32))
        self._keys = 0
        self._functions: Dict[str, str] = {}

    def keys(self, count: int) -> int:
        """First of `count` keys that nothing asked for before."""
        self._keys += count
        return self._keys - count

    def function(self, size: str = USUAL) -> str:
        """The address of a function that answers at once with this size."""
        if size not in self._functions:
            self._functions[size] = self.servers.limit(self.answers[size], ["--workers", "1"]).address
        return self._functions[size]

    def tier(self, url: str, *more: str) -> List[str]:
        return ["--shared-url", url, "--shared-secret-file", str(self.secret), *more]

    def daemon(self, upstream: str, arguments: Sequence[str], memory: str = "4GiB", wait: bool = True) -> Server:
        """A daemon whose shared tier is up, if it has one. Without `wait` it
        has only started."""
        socket = self.nursery.directory / f"{secrets.token_hex(4)}.sock"
        server = self.servers.fncache(
            "fncache", upstream, ["--admin-socket", str(socket), "--cache-memory", memory, *arguments]
        )
        server.socket = socket
        if wait and "--shared-url" in arguments:
            self.wait_up(server)
        return server

    def rounds(self, what: str, count: int, one: Callable[[], None]) -> None:
        """Runs `one` until it has succeeded `count` times. Other programs of the
        machine may spoil a round: time-outs end look-ups and fills."""
        spoilt = 0
        number = 0
        while number < count:
            self.say(f"{what}, round {number + 1} of {count}")
            try:
                one()
                number += 1
            except Failure as failure:
                spoilt += 1
                if spoilt > count:
                    raise
                self.results.header["warnings"].append(f"{what}, a round that does not count: {failure}")

    def wait_up(self, server: Server) -> None:
        wait_until(
            "the shared tier is up",
            lambda: total(scrape(server), "fncache_tier_up", 'tier="shared"') == 1,
        )

    def end(self, *servers: Server) -> None:
        for server in servers:
            self.servers.stop(server)

    def ask(self, server: Server, load: Load, expected: Optional[str], **how) -> dict:
        run = self.client.run([server.address], SHAPE, load, pids=server.pids, **how)
        wrong = complaint(run, expected)
        if wrong:
            raise Failure(wrong)
        return run

    def each(self, server: Server, load: Load, expected: str, first: int, keys: int, size: str = USUAL) -> dict:
        """One call for each of the keys."""
        return self.ask(
            server, load, expected, keys=keys, first_key=first, sequential=True, calls=keys, answer=self.answers[size]
        )

    def fill(self, server: Server, first: int, keys: int, size: str = USUAL) -> None:
        """Misses, each of which is then on the server."""
        step = max(1, FILL_BYTES // SIZES[size])
        for at in range(0, keys, step):
            count = min(step, keys - at)
            stored, ended = self.writes(server)
            self.each(server, EIGHT, "miss", first + at, count, size)
            wait_until("the fills", lambda: self.writes(server)[1] >= ended + count)
            missing = stored + count - self.writes(server)[0]
            if missing:
                raise Failure(f"{missing:g} of {count} fills were not stored")

    @staticmethod
    def writes(server: Server) -> Tuple[float, float]:
        """Fills that were stored, and all that have ended."""
        samples = scrape(server)
        name = "fncache_shared_writes_total"
        return total(samples, name, 'result="stored"'), total(samples, name)

    @staticmethod
    def lookups(server: Server, result: str) -> float:
        return total(scrape(server), "fncache_shared_lookups_total", f'result="{result}"')

    def all_from(self, server: Server, tier: str, load: Load, first: int, keys: int, calls: int = 0) -> dict:
        """Hits of these keys, one each or `calls`, all from `tier`: "shared" or
        "memory"."""
        calls = calls or keys
        before = self.lookups(server, "hit")
        run = self.ask(server, load, "hit", keys=keys, first_key=first, sequential=True, calls=calls)
        came = self.lookups(server, "hit") - before
        if came != (calls if tier == "shared" else 0):
            raise Failure(f"{calls} hits from {tier}: {came:g} came from the shared tier")
        return run
