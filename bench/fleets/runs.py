# SPDX-License-Identifier: Apache-2.0
"""Function runs of a fleet that is called round robin, beside those of one
daemon that gets all calls.

All fleets run side by side, each with a function and, with the tier, a server
of its own. A load asks each for the same keys (Zipf) at the same rate. Between
two stretches of the load one daemon is restarted, until each was. Each answer
has a stamp: the load finds answers to other requests, expired ones, and those
that a purge should have removed.

`away`: the server is stopped for a while in the middle. Meanwhile one daemon
gets a purge of all, which it must keep at once. The others must keep it once
they have read the record.
"""

import os
import signal
import threading
import time
from dataclasses import dataclass, field
from typing import List, Optional

from sidebyside import spread
from sidebyside.load import parse
from sidebyside.processes import Child, Failure, run_tool
from sidebyside.results import Target
from sidebyside.servers import Server

from .lab import SHAPE, Lab, Redis

RUNS_OVER_ONE = Target(1.10, at_least=False)
KEYS = 500
RATE = 150
TTL_SECONDS = 10
SLEEP = "50ms"
# A loaded machine may take this between the stamp and the arrival of an answer.
SLACK_SECONDS = 1
# A daemon connects again and reads the record within this time.
LEARNED_SECONDS = 4


@dataclass
class Fleet:
    daemons: int
    tier: bool
    away: bool = False
    calls: int = 0
    runs: int = 0
    wrong: List[str] = field(default_factory=list)
    timeouts: int = 0  # of look-ups in the tier
    purge: str = ""

    @property
    def title(self) -> str:
        return f"{self.daemons} with the tier" if self.tier else f"{self.daemons} without"


class Trial:
    """One fleet under its load."""

    def __init__(self, lab: Lab, fleet: Fleet):
        self.lab = lab
        self.fleet = fleet
        self.redis = Redis(lab.nursery) if fleet.tier else None
        self.function = lab.nursery.adopt(
            Child([lab.servers.program("bench/stamping_function"), "--ttl", f"{TTL_SECONDS}s", "--sleep", SLEEP])
        )
        self.upstream = self.function.wait_for_line(r"listening on (\S+)")[0].group(1)
        self.daemons = [self.start() for _ in range(fleet.daemons)]
        self.seed = 0

    def start(self) -> Server:
        return self.lab.daemon(self.upstream, self.lab.tier(self.redis.url) if self.redis else [], wait=False)

    def restart(self, number: int) -> None:
        self.end(self.daemons[number])
        self.daemons[number] = self.start()

    def end(self, daemon: Server) -> None:
        self.fleet.timeouts += int(self.lab.lookups(daemon, "timeout"))
        self.lab.servers.stop(daemon, hard=False)

    def load(self, seconds: float, daemons: Optional[List[Server]] = None, since: float = 0) -> None:
        self.seed += 1
        daemons = daemons or self.daemons
        command = [self.lab.servers.program("bench/load"), "--shape", SHAPE, "--zipf", "--keys", str(KEYS)]
        for daemon in daemons:
            command += ["--target", daemon.address]
        command += ["--connections", str(len(daemons)), "--rate", str(RATE), "--seed", str(self.seed)]
        command += ["--duration", f"{seconds:.3f}s", "--stamped", f"{TTL_SECONDS + SLACK_SECONDS}s"]
        command += ["--not-before", str(int(since * 1e9))]
        done = run_tool(command, 60 + 3 * seconds)
        if not done.stdout.strip():
            raise Failure(f"load ended with {done.returncode}: {done.stderr.strip()}")
        run = parse(done.stdout)
        self.fleet.calls += run["calls"]
        if done.returncode or run["errors"]:
            self.fleet.wrong += done.stderr.strip().splitlines()

    def stretches(self, seconds: float) -> None:
        each = seconds / (len(self.daemons) + 1)
        for number in range(len(self.daemons)):
            self.load(each)
            self.restart(number)
        self.load(each)

    def purge(self) -> None:
        done = run_tool(
            [self.lab.servers.program("fncache"), "admin", "--socket", self.daemons[0].socket, "purge", "--all"], 60
        )
        said = (done.stderr or done.stdout).strip().splitlines()[-1].rpartition(".sock: ")[2]
        self.fleet.purge = f"exit code {done.returncode}: {said}"

    def server_away(self, seconds: float) -> None:
        os.kill(self.redis.child.pid, signal.SIGSTOP)
        try:
            ended = time.monotonic() + seconds
            self.load(seconds / 4)
            asked = time.time()
            self.purge()
            # This daemon knows; the others may still answer from their memory.
            self.load(seconds / 4, [self.daemons[0]], since=asked)
            self.load(max(0.1, ended - time.monotonic()))
        finally:
            os.kill(self.redis.child.pid, signal.SIGCONT)
        self.load(LEARNED_SECONDS)
        self.load(seconds / 2, since=asked)

    def run(self, seconds: float, away: float) -> None:
        if self.fleet.away:
            self.stretches(seconds / 2)
            self.server_away(away)
            self.load(max(1, seconds / 2 - 2 * away))
        else:
            self.stretches(seconds)
        for daemon in self.daemons:
            self.end(daemon)
        self.function.stop()
        self.fleet.runs = int(self.function.wait_for_line(r"stopped runs=(\d+)")[0].group(1))


def run(lab: Lab) -> List[Fleet]:
    plan = lab.plan
    fleets = [Fleet(1, True), Fleet(1, False)]
    for count in plan.fleets:
        fleets += [Fleet(count, True), Fleet(count, False), Fleet(count, True, away=True)]
    trials = [Trial(lab, fleet) for fleet in fleets]
    failures: List[Exception] = []

    def one(trial: Trial) -> None:
        try:
            trial.run(plan.run_seconds, plan.away_seconds)
        except Exception as failure:  # pylint: disable=broad-except
            failures.append(failure)

    lab.say(f"function runs: {len(trials)} fleets side by side, {plan.run_seconds:g} s")
    threads = [threading.Thread(target=one, args=(trial,), daemon=True) for trial in trials]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    # A restart costs one daemon with the tier nothing, so this is the least.
    alone = fleets[0]
    for fleet in fleets:
        for line in fleet.wrong:
            lab.results.errors.append(f"runs, {fleet.title}{', server away' if fleet.away else ''}: {line}")
        if fleet.daemons == 1 or not fleet.tier or fleet.away:
            continue
        lab.results.value(
            f"runs/{fleet.daemons}",
            f"function runs of {fleet.daemons} daemons ({rate(fleet):.3f} a call), over those of one ({rate(alone):.3f})",
            "ratios", "x", spread.estimate([rate(fleet) / rate(alone)]), RUNS_OVER_ONE,
        )
    return fleets


def rate(fleet: Fleet) -> float:
    """Function runs for each call."""
    return fleet.runs / max(1, fleet.calls)
