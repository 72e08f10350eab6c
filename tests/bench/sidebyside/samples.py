# SPDX-License-Identifier: Apache-2.0
"""Results as bench/run writes them, for the tests of what shows them; and the
way to its modules."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "bench"))

from sidebyside.results import Results, Target  # noqa: E402
from sidebyside.spread import estimate  # noqa: E402


def run(cpu_us=10.0, rate=1000.0, **more):
    return {
        "calls": 100,
        "errors": 0,
        "seconds": 0.1,
        "rate": rate,
        "cpu_us": cpu_us,
        "client_cpu_us": 3.0,
        "latency": {"p50": 50.0, "p90": 70.0, "p99": 90.0, "p99.9": 200.0},
        "statuses": {"hit": 100},
        **more,
    }


def header():
    return {
        "started": "2026-01-02T03:04:05Z",
        "profile": "quick",
        "command": "bench/run --profile quick",
        "runs": 7,
        "seconds_per_run": 0.5,
        "warmup_seconds": 0.1,
        "seconds": 60.0,
        "budget": {"hits": 60},
        "machine": {
            "cpu": "A CPU <fast>",
            "mhz": None,
            "cores": 2,
            "memory_gib": 8.0,
            "kernel": "6.1",
            "system": "Debian",
            "load_average": [0.1, 0.2, 0.3],
            "busy_share": 0.01,
        },
        "revision": {"commit": "0123456789abcdef", "dirty": False, "date": ""},
        "warnings": [],
        "subjects": {
            "limit": {
                "version": "of this revision",
                "command": "build/bench/limit_server",
                "configuration": "",
            },
            "nginx": {
                "version": "nginx version: nginx/1.22.1",
                "command": "nginx -c TMP/nginx.conf",
                "configuration": "events { # <&>\n}\n",
            },
        },
    }


def results(ours=12.5, jitter=0.01, target=Target(0.8, then=0.9, floor=0.3)):
    """Hits that cost `ours` where the limit's cost ten, and one latency."""
    made = Results(header())
    limit = made.add_series("hits/4k/c1m64/limit", "limit", "hits, 4 KB")
    content = made.add_series("hits/4k/c1m64/content", "content", "hits, 4 KB")
    for number in range(7):
        noise = 1 + jitter * (number - 3)
        limit.runs.append(run(cpu_us=10.0))
        content.runs.append(run(cpu_us=ours * noise))
    made.ratio(
        "hits/4k/c1m64/content/limit",
        "4 KB, one connection & <64> calls",
        "server CPU per hit, limit's over ours",
        limit,
        content,
        "cpu_us",
        target,
    )
    idle = made.add_series("latency/4k/idle/content", "content", "one client")
    idle.runs = [run() for _ in range(7)]
    made.value(
        "latency/4k/idle/content/p50",
        "content, 4 KB",
        "p50 of a lone call",
        "us",
        estimate([50.0] * 7),
        series={"content": idle},
    )
    return made
