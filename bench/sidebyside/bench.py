# SPDX-License-Identifier: Apache-2.0
"""What every section works with: the profile, servers, clients, results."""

from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Dict, Iterator, List, Optional, Sequence, Union

from .contest import Contest
from .load import LoadClient
from .processes import Failure, Nursery
from .profiles import HIT_KEYS, PREPARATION, SIXTEEN, Load, Profile
from .progress import Progress
from .results import Results, Series
from .servers import Server, Servers, scrape, total

# Wide enough for fills to be quick, narrow enough for none to be refused.
FILL_LOAD = Load(4, 16)
# For a server to have met its peak load once.
WARM_SECONDS = 0.4
# Far apart, so that no two runs of unique keys ever meet.
KEY_STRIDE = 1_000_000_000
# More calls than a run makes. A thousand runs have drifts of their own
# (WriteDrift in request_encoding.h).
DRIFT_STRIDE = 100_000_000


@dataclass
class Bench:
    profile: Profile
    root: Path
    build: Path
    nursery: Nursery
    servers: Servers
    client: LoadClient
    results: Results
    progress: Progress
    answers: Dict[str, Path]

    def __post_init__(self) -> None:
        self._keys_used = 0
        self._drifts_used = 0

    def contest(self, runs: Optional[int] = None) -> Contest:
        return Contest(self.results, self.progress, runs or self.profile.runs)

    @contextmanager
    def group(self) -> Iterator["Group"]:
        """Servers that are measured together and end together."""
        group = Group(self)
        try:
            yield group
        finally:
            group.stop()

    def unique_keys(self) -> int:
        """First of a stretch of keys that nothing asked for before."""
        self._keys_used += 1
        return self._keys_used * KEY_STRIDE

    def unique_drifts(self) -> int:
        """First of a stretch of drifts that no request had before."""
        self._drifts_used += 1
        return self._drifts_used * DRIFT_STRIDE

    def skip(self, what: str, why: str) -> None:
        self.results.skipped.append(f"{what}: {why}")

    def fill(
        self, server: Server, shape: str, keys: int, first_key: int = 0
    ) -> None:
        """Asks for every key once, in order, so that all are there."""
        for address in server.addresses:
            run = self.client.run(
                [address],
                shape,
                FILL_LOAD,
                keys=keys,
                first_key=first_key,
                sequential=True,
                calls=keys,
            )
            if run["errors"]:
                raise Failure(
                    f"filling {server.name}: {run['errors']} of {run['calls']}"
                    f" calls failed: {run.get('complaint', '')}"
                )

    def warm(self, server: Server, ask: Callable[..., dict], shape: str) -> None:
        """One run that counts for nothing: a process' first calls pay for its
        heap, and would be the first round's."""
        self.progress.say(f"warming {server.name} up, {shape}")
        run = ask(server, shape, SIXTEEN, seconds=WARM_SECONDS)
        if run["errors"]:
            raise Failure(
                f"warming {server.name} up: {run['errors']} of {run['calls']}"
                f" calls failed: {run.get('complaint', '')}"
            )
        self.progress.spent(WARM_SECONDS + PREPARATION[shape])

    def hits(
        self,
        server: Server,
        shape: str,
        load: Load,
        keys: int = HIT_KEYS,
        rate: Optional[float] = None,
        seconds: Optional[float] = None,
        drifts: bool = False,
    ) -> dict:
        """A run over keys that are there (to a server without a cache:
        the very same calls). With `drifts` each request has its own."""
        return self.client.run(
            server.addresses,
            shape,
            load,
            keys=keys,
            first_drift=self.unique_drifts() if drifts else None,
            seconds=seconds or self.profile.seconds,
            warmup=self.profile.warmup,
            rate=rate,
            pids=server.pids,
        )

    def misses(
        self,
        server: Server,
        shape: str,
        load: Load,
        rate: Optional[float] = None,
        seconds: Optional[float] = None,
    ) -> dict:
        """A run in which every call has a key of its own."""
        return self.client.run(
            [server.address],
            shape,
            load,
            keys=KEY_STRIDE,
            first_key=self.unique_keys(),
            sequential=True,
            seconds=seconds or self.profile.seconds,
            warmup=self.profile.warmup,
            rate=rate,
            pids=server.pids,
        )


class Group:
    def __init__(self, bench: Bench):
        self._bench = bench
        self._servers: List[Server] = []
        self._before: Dict[str, Dict[str, float]] = {}

    def add(self, server: Optional[Server]) -> Optional[Server]:
        if server is not None:
            self._servers.append(server)
        return server

    def limit(
        self, answer: Union[str, Path] = "13k", *arguments: str
    ) -> Server:
        servers, answers = self._bench.servers, self._bench.answers
        path = answer if isinstance(answer, Path) else answers[answer]
        return self.add(servers.limit(path, arguments))

    def fncache(
        self, name: str, upstream: Union[str, Sequence[str]], *arguments: str
    ) -> Server:
        return self.add(
            self._bench.servers.fncache(name, upstream, arguments)
        )

    def nginx(self, upstream: str) -> Optional[Server]:
        return self._peer("nginx", upstream)

    def haproxy(self, upstream: str) -> Optional[Server]:
        return self._peer("haproxy", upstream)

    def _peer(self, name: str, upstream: str) -> Optional[Server]:
        """None where it shall not be, or is not there."""
        if not getattr(self._bench.profile, name):
            return None
        server = self.add(getattr(self._bench.servers, name)(upstream))
        if server is None:
            self._bench.skip(f"rows against {name}", "it is not installed")
        return server

    def remove(self, server: Server) -> None:
        self._servers.remove(server)
        self._bench.servers.stop(server)

    def stop(self) -> None:
        while self._servers:
            self.remove(self._servers[-1])

    def count_from_here(self) -> None:
        for server in self._servers:
            if server.admin:
                self._before[server.address] = scrape(server)

    def rises(self, server: Server) -> Callable[..., float]:
        """By how much a counter grew since count_from_here."""
        after, before = scrape(server), self._before[server.address]

        def rise(name: str, *labels: str) -> float:
            return total(after, name, *labels) - total(before, name, *labels)

        return rise

    def check_counters(
        self, server: Server, outcome: str, series: Sequence[Series]
    ) -> None:
        """The server's own word: since count_from_here it answered at least
        the calls of these series with that outcome, and no other call. A miss
        asked the function once; a hit did not."""
        rise = self.rises(server)
        calls = sum(run["calls"] for one in series for run in one.runs)
        right = rise("fncache_requests_total", f'outcome="{outcome}"')
        other = rise("fncache_requests_total") - right
        upstream = rise("fncache_upstream_requests_total")
        wrong = None
        if right < calls:
            wrong = f"{calls} calls, but the server counts {right:.0f} {outcome}"
        elif other:
            wrong = f"the server counts {other:.0f} calls that were no {outcome}"
        elif outcome == "hit" and upstream:
            wrong = f"{upstream:.0f} hits asked the function"
        elif outcome != "hit" and upstream < calls:
            wrong = f"{calls} calls, but the function was asked {upstream:.0f} times"
        if wrong:
            for one in series:
                one.errors.append(wrong)
