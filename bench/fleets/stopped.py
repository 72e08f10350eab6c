# SPDX-License-Identifier: Apache-2.0
"""Misses beside a server that is stopped (SIGSTOP), and without the tier."""

import os
import signal
import time

from sidebyside import spread
from sidebyside.results import Target

from .lab import EIGHT, TIMEOUT_MS, Lab, Redis

P99_FIRST_MS = Target(TIMEOUT_MS + 10, at_least=False)
LATER = Target(1.05, at_least=False)
# Misses a second in the first second.
RATE = 500
KEYS = 10_000_000
# It is full after the warm-up.
MEMORY = "32MiB"
WARM_CALLS = 4000


def run(lab: Lab) -> None:
    plan = lab.plan
    redis = Redis(lab.nursery)
    function = lab.function()
    daemons = {
        "with": lab.daemon(function, lab.tier(redis.url), MEMORY),
        "without": lab.daemon(function, [], MEMORY),
    }
    found = {f"{name} {what}": [] for name in daemons for what in ("first", "cpu", "p50")}

    def misses(name: str, **how) -> dict:
        return lab.ask(
            daemons[name], EIGHT, "miss", keys=KEYS, first_key=lab.keys(KEYS), sequential=True, **how
        )

    for name in daemons:
        misses(name, calls=WARM_CALLS)
    for number in range(plan.stops):
        lab.say(f"a stopped server, {number + 1} of {plan.stops}")
        lab.wait_up(daemons["with"])
        without = misses("without", seconds=1, rate=RATE)
        os.kill(redis.child.pid, signal.SIGSTOP)
        stopped = time.monotonic()
        try:
            with_tier = misses("with", seconds=1, rate=RATE)
            found["without first"].append(without["latency"]["p99"] / 1e3)
            found["with first"].append(with_tier["latency"]["p99"] / 1e3)
            # The rows are about what follows the second second.
            time.sleep(max(0.0, stopped + 2 - time.monotonic()))
            order = list(daemons)
            for pair in range(2 * plan.rounds // plan.stops + 1):
                for name in order if pair % 2 else reversed(order):
                    later = misses(name, seconds=plan.seconds)
                    found[f"{name} cpu"].append(later["cpu_us"])
                    found[f"{name} p50"].append(later["latency"]["p50"])
        finally:
            os.kill(redis.child.pid, signal.SIGCONT)
    lab.end(*daemons.values())
    lab.nursery.end(redis.child, hard=True)
    first = [found["with first"], found["without first"]]
    lab.results.value(
        "stopped/first",
        f"p99 of misses in the first second ({spread.median(first[0]):.1f} ms), beyond that without the tier"
        f" ({spread.median(first[1]):.1f} ms)",
        "differences", "ms", spread.paired_difference(*first), P99_FIRST_MS,
    )
    for what in ("cpu", "p50"):
        with_tier, without = found[f"with {what}"], found[f"without {what}"]
        lab.results.value(
            f"stopped/{what}",
            f"{what.replace('cpu', 'CPU')} of a miss from the third second on ({spread.median(with_tier):.1f} us),"
            f" over without the tier ({spread.median(without):.1f} us)",
            "ratios", "x", spread.paired_ratio(with_tier, without), LATER,
        )
