# SPDX-License-Identifier: Apache-2.0
"""bench/load and h2load, run against a server, and what they found as one
record: a run.

A run is a plain dict, as it stands in the results file:
  calls, errors, seconds, rate (calls/s), bytes, cpu_us (server CPU time per
  call), client_cpu_us, latency (microseconds by percentile), statuses (how
  often each cache-status came).
"""

import json
import re
from pathlib import Path
from typing import Dict, List, Optional, Sequence

from . import processes
from .processes import Failure
from .profiles import DISTINCT, ORDERS, Load

PERCENTILES = ("p50", "p90", "p99", "p99.9")
PATH = "/apiextensions.fn.proto.v1.FunctionRunnerService/RunFunction"
SEED = 1


def call_seconds(value: float) -> str:
    """A duration as the load client's flags take it."""
    return f"{value * 1000:.0f}ms"


def parse(text: str) -> Dict[str, object]:
    """The load client's report as a run."""
    try:
        report = json.loads(text)
        latency = report["latency_us"]
        cpu = report.get("server_cpu_us_per_call") or {}
        values = cpu.values() if isinstance(cpu, dict) else cpu
        return {
            "calls": int(report["calls"]),
            "errors": int(report["errors"]),
            "seconds": float(report["seconds"]),
            "rate": float(report["rate"]),
            "bytes": int(report["bytes_received"]),
            "cpu_us": float(sum(values)),
            "client_cpu_us": float(report.get("client_cpu_us_per_call", 0)),
            "latency": {
                key: float(value)
                for key, value in latency.items()
                if isinstance(value, (int, float))
            },
            "statuses": {
                key: int(value)
                for key, value in report.get("cache_status", {}).items()
            },
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Failure(f"unexpected report of the load client: {error!r}")


class LoadClient:
    """Our own client: prepared requests, open and closed loop."""

    def __init__(self, program: str, answers: Dict[str, Path]):
        self._program = program
        # Shape of the answer ("13k", "small") -> file with its bytes.
        self.answers = answers

    def command(
        self,
        targets: Sequence[str],
        shape: str,
        load: Load,
        *,
        keys: int,
        first_key: int = 0,
        pick: str = "random",
        seconds: Optional[float] = None,
        warmup: float = 0,
        calls: Optional[int] = None,
        rate: Optional[float] = None,
        pids: Sequence[int] = (),
        answer: Optional[Path] = None,
    ) -> List[str]:
        usual = self.answers["small" if shape == "small" else "13k"]
        command = [self._program]
        for target in targets:
            command += ["--target", target]
        command += ["--shape", shape, "--seed", str(SEED)]
        command += ["--distinct", str(DISTINCT)]
        command += ["--orders", str(ORDERS[shape])]
        command += ["--keys", str(keys), "--first-key", str(first_key)]
        command += ["--pick", pick]
        command += ["--connections", str(load.connections)]
        command += ["--streams", str(load.streams)]
        command += ["--expect-response", str(answer or usual)]
        if rate is not None:
            command += ["--rate", f"{rate:.1f}"]
        if calls is not None:
            command += ["--calls", str(calls)]
        if seconds is not None:
            command += ["--duration", call_seconds(seconds)]
        if warmup:
            command += ["--warmup", call_seconds(warmup)]
        for pid in pids:
            command += ["--server-pid", str(pid)]
        return command

    def run(self, targets: Sequence[str], shape: str, load: Load, **how) -> dict:
        limit = 60 + 3 * (how.get("seconds") or 0)
        if how.get("calls"):
            limit += how["calls"] / 500
        done = processes.run_tool(
            self.command(targets, shape, load, **how), limit
        )
        if not done.stdout.strip():
            raise Failure(
                f"load ended with {done.returncode}: {done.stderr.strip()}"
            )
        run = parse(done.stdout)
        if done.returncode and not run["errors"]:
            raise Failure(
                f"load ended with {done.returncode}: {done.stderr.strip()}"
            )
        if run["errors"]:
            run["complaint"] = done.stderr.strip()[-300:]
        return run

    def write_answer(self, answer: str, path: Path) -> None:
        """What the instant function says; it may be kept for a day, so that
        no entry ends while it is measured."""
        self._write(["--response", answer, "--ttl", "24h"], "response", path)

    def write_request(self, shape: str, path: Path, key: int = 0) -> None:
        """One request, framed, for clients that send the same bytes always."""
        self._write(
            ["--shape", shape, "--seed", str(SEED), "--first-key", str(key)],
            "request",
            path,
        )

    def _write(self, arguments: List[str], what: str, path: Path) -> None:
        done = processes.run_tool(
            [self._program, *arguments, f"--write-{what}", str(path)], 60
        )
        if done.returncode:
            raise Failure(f"load: {done.stderr.strip()}")


_H2LOAD_DONE = re.compile(
    r"requests: (\d+) total, \d+ started, (\d+) done, (\d+) succeeded, "
    r"(\d+) failed, (\d+) errored, (\d+) timeout"
)
_H2LOAD_RATE = re.compile(r"finished in ([\d.]+)(us|ms|s|m), ([\d.]+) req/s")
_H2LOAD_DATA = re.compile(r"traffic: .*\((\d+)\) data$", re.MULTILINE)
_H2LOAD_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0}


def parse_h2load(text: str, answer_bytes: int, cpu_seconds: float) -> dict:
    """h2load counts any HTTP answer as a success, an UNAVAILABLE too: what
    tells is how many bytes of DATA came."""
    done = _H2LOAD_DONE.search(text)
    rate = _H2LOAD_RATE.search(text)
    data = _H2LOAD_DATA.search(text)
    if not (done and rate and data):
        raise Failure(f"unexpected report of h2load: {text[-300:]!r}")
    calls = int(done.group(2))
    received = int(data.group(1))
    errors = calls - int(done.group(3)) + sum(int(done.group(i)) for i in (4,))
    missing = calls * answer_bytes - received
    if missing > 0:
        errors = max(errors, -(-missing // answer_bytes))
    return {
        "calls": calls,
        "errors": errors,
        "seconds": float(rate.group(1)) * _H2LOAD_SECONDS[rate.group(2)],
        "rate": float(rate.group(3)),
        "bytes": received,
        "cpu_us": cpu_seconds * 1e6 / max(1, calls),
        "client_cpu_us": 0.0,
        "latency": {},
        "statuses": {},
    }


def run_h2load(
    program: str,
    server,
    request: Path,
    load: Load,
    calls: int,
    answer_bytes: int,
) -> dict:
    before = processes.cpu_seconds(server.pids)
    done = processes.run_tool(
        [
            program,
            f"-c{load.connections}",
            f"-m{load.streams}",
            f"-n{calls}",
            # One stream's answer fits its window, as our own client has it.
            "-w",
            "20",
            "-W",
            "24",
            "-d",
            str(request),
            "-H",
            "content-type: application/grpc",
            "-H",
            "te: trailers",
            f"http://{server.address}{PATH}",
        ],
        120,
    )
    spent = processes.cpu_seconds(server.pids) - before
    if done.returncode:
        raise Failure(f"h2load: {done.stderr.strip()[-300:]}")
    return parse_h2load(done.stdout, answer_bytes, spent)
