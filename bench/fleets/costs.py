# SPDX-License-Identifier: Apache-2.0
"""What a shared hit costs the daemon, and a fill the server.

Daemon A fills keys. Daemons B (plaintext) and T (TLS) have the same secret and
ask for each key once: these are shared hits. They also ask for a few hot keys:
memory hits. The difference is what the tier adds. Their memory is small and
full, so an entry that comes replaces another. redis-benchmark GETs one of the
very values, and SETs values of that size.
"""

from statistics import median
from typing import Dict, List

from sidebyside import spread
from sidebyside.results import Target

from .lab import EIGHT, LONE, PATIENT, Lab, Redis, certificates

CPU_OVER_GET = Target(3.5, at_least=False)
P50_OVER_GET = Target(5.0, at_least=False)
TLS_OVER_PLAIN = Target(2.0, at_least=False)
FILL_OVER_SET = Target(5.0, at_least=False)
HOT_KEYS = 64
# The readers' memory has fewer entries than the warm-up asks for.
MEMORY = "16MiB"
SET = ("SET", "other:__rand_int__")


def run(lab: Lab) -> None:
    plan = lab.plan
    redis = Redis(lab.nursery, certificates(lab.nursery.directory / "tls"))
    function = lab.function()
    hot = lab.keys(HOT_KEYS)
    filler = lab.daemon(function, lab.tier(redis.url, *PATIENT))
    readers = {
        "plain": lab.daemon(function, lab.tier(redis.url, *PATIENT), MEMORY),
        "tls": lab.daemon(
            function, lab.tier(redis.tls_url, *PATIENT, "--shared-tls-dir", str(redis.tls / "client")), MEMORY
        ),
    }
    for reader in readers.values():
        lab.ask(reader, EIGHT, None, keys=HOT_KEYS, first_key=hot, sequential=True, calls=4 * HOT_KEYS)
    found: Dict[str, List[float]] = {}

    def note(name: str, value: float) -> None:
        found.setdefault(name, []).append(value)

    def one() -> None:
        first = lab.keys(plan.keys + plan.lone_keys)
        lone = first + plan.keys
        busy = redis.cpu()
        lab.fill(filler, first, plan.keys)
        fill = (redis.cpu() - busy) / plan.keys
        lab.fill(filler, lone, plan.lone_keys)
        name = redis.a_name()
        size = int(redis.ask("STRLEN", name))
        value = "x" * size
        busy = redis.cpu()
        redis.benchmark(8, plan.keys, "-r", "1000000000", *SET, value)
        store = (redis.cpu() - busy) / plan.keys
        runs = {}
        for kind, reader in readers.items():
            runs[kind, "shared"] = lab.all_from(reader, "shared", EIGHT, first, plan.keys)
            runs[kind, "memory"] = lab.all_from(reader, "memory", EIGHT, hot, HOT_KEYS, plan.keys)
            runs[kind, "shared", "lone"] = lab.all_from(reader, "shared", LONE, lone, plan.lone_keys)
            runs[kind, "memory", "lone"] = lab.all_from(reader, "memory", LONE, hot, HOT_KEYS, plan.lone_keys)
        gets = {kind: redis.benchmark(8, plan.benchmark_calls, "GET", name, tls=kind == "tls") for kind in readers}
        lones = {kind: redis.benchmark(1, plan.benchmark_calls // 4, "GET", name, tls=kind == "tls") for kind in readers}
        note("size", size)
        note("fill", fill * 1e6)
        note("set", store * 1e6)
        for kind in readers:
            note(f"{kind} shared cpu", runs[kind, "shared"]["cpu_us"])
            note(f"{kind} memory cpu", runs[kind, "memory"]["cpu_us"])
            note(f"{kind} cpu", runs[kind, "shared"]["cpu_us"] - runs[kind, "memory"]["cpu_us"])
            note(f"{kind} shared p50", runs[kind, "shared", "lone"]["latency"]["p50"])
            note(f"{kind} memory p50", runs[kind, "memory", "lone"]["latency"]["p50"])
            note(f"{kind} p50", found[f"{kind} shared p50"][-1] - found[f"{kind} memory p50"][-1])
            note(f"{kind} get cpu", gets[kind]["cpu_us"])
            note(f"{kind} get p50", lones[kind]["p50_us"])

    # The first calls of processes pay for their heaps.
    lab.rounds("shared hits, warming up", 2, one)
    found.clear()
    lab.rounds("shared hits", plan.rounds, one)
    lab.end(filler, *readers.values())
    lab.nursery.end(redis.child, hard=True)

    def us(name: str) -> str:
        return f"{median(found[name]):.1f} us"

    def row(id: str, title: str, over: str, under: str, target: Target) -> None:
        ratio = spread.paired_ratio(found[over], found[under])
        lab.results.value(id, title, "ratios", "x", ratio, target)

    for kind, said in (("plain", ""), ("tls", ", TLS")):
        for what, other in (("cpu", "redis-benchmark's for a GET"), ("p50", "redis-benchmark's")):
            title = (
                f"{what.replace('cpu', 'CPU')} of a shared hit ({us(f'{kind} shared {what}')}) beyond a memory hit's"
                f" ({us(f'{kind} memory {what}')}), over {other} ({us(f'{kind} get {what}')}){said}"
            )
            target = {"cpu": CPU_OVER_GET, "p50": P50_OVER_GET}[what] if kind == "plain" else None
            row(f"shared/{kind}/{what}", title, f"{kind} {what}", f"{kind} get {what}", target)
    for what in ("cpu", "p50"):
        row(
            f"shared/over-plain/{what}",
            f"{what.replace('cpu', 'CPU')} beyond a memory hit with TLS, over plaintext",
            f"tls {what}", f"plain {what}", TLS_OVER_PLAIN,
        )
    row(
        "server/fill",
        f"server's CPU for a fill ({us('fill')}) over a SET of {median(found['size']):,.0f} bytes ({us('set')})",
        "fill", "set", FILL_OVER_SET,
    )
