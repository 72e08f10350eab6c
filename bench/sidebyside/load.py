# SPDX-License-Identifier: Apache-2.0
"""bench/load, run against a server, and what it found as one record: a run.

A run is a plain dict, as it stands in the results file:
  calls, errors, seconds, rate (calls/s), cpu_us (server CPU time per call),
  client_cpu_us, latency (microseconds by percentile), statuses (how often each
  cache-status came).
"""

import json
from pathlib import Path
from typing import Dict, List, Optional, Sequence

from . import processes
from .processes import Failure
from .profiles import Load


def call_seconds(value: float) -> str:
    """A duration as the load client's flags take it."""
    return f"{value * 1000:.0f}ms"


def parse(text: str) -> Dict[str, object]:
    """The load client's report as a run."""
    try:
        report = json.loads(text)
        latency = report["latency_us"]
        return {
            "calls": int(report["calls"]),
            "errors": int(report["errors"]),
            "seconds": float(report["seconds"]),
            "rate": float(report["rate"]),
            "cpu_us": float(report["server_cpu_us_per_call"]),
            "client_cpu_us": float(report["client_cpu_us_per_call"]),
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
        sequential: bool = False,
        first_drift: Optional[int] = None,
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
        command += ["--shape", shape]
        command += ["--keys", str(keys), "--first-key", str(first_key)]
        command += ["--sequential"] if sequential else []
        if first_drift is not None:
            command += ["--drift", "--first-drift", str(first_drift)]
        command += ["--connections", str(load.connections)]
        command += ["--streams", str(load.streams)]
        command += ["--expect-response", str(answer or usual)]
        if rate is not None:
            command += ["--rate", f"{rate:.0f}"]
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
            ["--shape", shape, "--first-key", str(key)], "request", path
        )

    def _write(self, arguments: List[str], what: str, path: Path) -> None:
        done = processes.run_tool(
            [self._program, *arguments, f"--write-{what}", str(path)], 60
        )
        if done.returncode:
            raise Failure(f"load: {done.stderr.strip()}")
