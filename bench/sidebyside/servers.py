# SPDX-License-Identifier: Apache-2.0
"""What is measured, started: the limit, the daemon and its peers.

All of them listen on loopback, on a port that was free. Each is a Server: an
address, the processes whose CPU time counts, and what the report shows of its
configuration.
"""

import http.client
import os
import re
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Dict, List, Optional, Sequence, Union

from . import machine
from .processes import (
    Child,
    Failure,
    Nursery,
    children_of,
    free_port,
    threads_of,
    wait_for_all,
    wait_for_port,
)

_LISTENING = r"listening on ([^\s\"']+:\d+)"
NGINX_PATHS = ("nginx", "/usr/sbin/nginx")
HAPROXY_PATHS = ("haproxy", "/usr/sbin/haproxy")


@dataclass
class Server:
    name: str
    child: Child
    # One for each function of a daemon with several, else one.
    addresses: List[str]
    workers: List[int] = field(default_factory=list)
    admin: Optional[str] = None

    @property
    def address(self) -> str:
        return self.addresses[0]

    @property
    def pids(self) -> List[int]:
        return [self.child.pid, *self.workers]


def first_program(names: Sequence[str]) -> Optional[str]:
    for name in names:
        folders = os.environ.get("PATH", "").split(os.pathsep)
        paths = [Path(name)] if "/" in name else [Path(f) / name for f in folders]
        for path in paths:
            if os.access(path, os.X_OK):
                return str(path)
    return None


class Servers:
    """Starts servers below a nursery and remembers how, for the report."""

    def __init__(self, nursery: Nursery, build: Path, peers: Path):
        self._nursery = nursery
        self._build = build
        self._peers = peers
        self._counter = 0
        # name -> {"version", "command", "configuration"}
        self.descriptions: Dict[str, Dict[str, object]] = {}

    def _directory(self, name: str) -> Path:
        self._counter += 1
        directory = self._nursery.directory / f"{name}-{self._counter}"
        directory.mkdir()
        return directory

    def _remember(
        self,
        name: str,
        version: Optional[str],
        command: Sequence[str],
        configuration: str = "",
    ) -> None:
        self.descriptions.setdefault(
            name,
            {
                "version": version or "unknown",
                "command": self.plain(" ".join(str(c) for c in command)),
                "configuration": self.plain(configuration),
            },
        )

    def plain(self, text: str) -> str:
        """Without the paths of this machine."""
        text = text.replace(str(self._nursery.directory), "TMP")
        return text.replace(str(self._build), "build")

    def program(self, relative: str) -> str:
        path = self._build / relative
        if not os.access(path, os.X_OK):
            raise Failure(f"{relative} is not built")
        return str(path)

    def stop(self, server: Server, hard: bool = True) -> None:
        self._nursery.end(server.child, hard)

    def limit(
        self,
        response: Path,
        arguments: Sequence[str] = (),
        prefix: Sequence[str] = (),
        environment: Optional[Dict[str, str]] = None,
    ) -> Server:
        """The bare gRPC server; behind a proxy it is the instant function."""
        command = [
            *prefix,
            self.program("bench/limit_server"),
            "--listen",
            "127.0.0.1:0",
            "--response",
            str(response),
            *arguments,
        ]
        child = self._nursery.adopt(Child(command, environment))
        (match,) = child.wait_for_line(_LISTENING)
        self._remember("limit", "of this revision", command)
        return Server("limit", child, [match.group(1)])

    def fncache(
        self,
        name: str,
        upstream: Union[str, Sequence[str]],
        arguments: Sequence[str] = (),
        prefix: Sequence[str] = (),
        environment: Optional[Dict[str, str]] = None,
    ) -> Server:
        """A daemon in front of `upstream`, with its admin endpoint. In front
        of several, each is a function of its own, with its own listener."""
        command = [
            *prefix,
            self.program("fncache"),
            "serve",
            "--admin",
            "127.0.0.1:0",
            "--log-level",
            "info",
        ]
        configuration = ""
        functions = 1
        if isinstance(upstream, str):
            command += ["--listen", "127.0.0.1:0", "--upstream", upstream]
            command += ["--function", "bench", "--generation", "bench"]
        else:
            functions = len(upstream)
            lines = ["functions:"]
            for index, one in enumerate(upstream):
                lines += [
                    f"- name: bench-{index}",
                    "  listen: 127.0.0.1:0",
                    f"  upstream: {one}",
                    "  generation: bench",
                ]
            configuration = "\n".join(lines) + "\n"
            path = self._directory(name) / "config.yaml"
            path.write_text(configuration)
            command += ["--config", str(path)]
        if "--tls-dir" not in arguments:
            command.append("--insecure")
        command += arguments
        child = self._nursery.adopt(Child(command, environment))
        # The admin endpoint says so, too; which line is whose, the line tells.
        matches = child.wait_for_line(_LISTENING, functions + 1, 120)
        addresses, admin = [], None
        for match in matches:
            if "(admin: " in match.string:
                admin = match.group(1)
            else:
                addresses.append(match.group(1))
        if admin is None or len(addresses) != functions:
            raise Failure(f"unexpected start: {child.last_words()}")
        self._remember(
            name,
            machine.version_of(self.program("fncache"), "--version"),
            command,
            configuration,
        )
        return Server(name, child, addresses, admin=admin)

    def nginx(self, upstream: str) -> Optional[Server]:
        """nginx with grpc_pass, or None where it is not installed."""
        program = first_program(NGINX_PATHS)
        if program is None:
            return None
        directory, port = self._directory("nginx"), free_port()
        text = self._fill("nginx.conf.in", port, upstream, directory)
        (directory / "nginx.conf").write_text(text)
        # Where it logs before it has read its configuration.
        command = [program, "-p", str(directory), "-e", "stderr"]
        command += ["-c", str(directory / "nginx.conf")]
        child = self._nursery.adopt(Child(command))
        wait_for_port(child, port)
        workers = wait_for_all(child, "workers", children_of, machine.cores())
        self._remember("nginx", machine.version_of(program, "-v"), command, text)
        return Server("nginx", child, [f"127.0.0.1:{port}"], workers)

    def haproxy(self, upstream: str) -> Optional[Server]:
        """haproxy, HTTP/2 on both sides, or None where it is not installed."""
        program = first_program(HAPROXY_PATHS)
        if program is None:
            return None
        directory, port = self._directory("haproxy"), free_port()
        text = self._fill("haproxy.cfg.in", port, upstream, directory)
        (directory / "haproxy.cfg").write_text(text)
        command = [program, "-q", "-db", "-f", str(directory / "haproxy.cfg")]
        child = self._nursery.adopt(Child(command))
        wait_for_port(child, port)
        wait_for_all(child, "threads", threads_of, machine.cores())
        self._remember(
            "haproxy", machine.version_of(program, "-v"), command, text
        )
        return Server("haproxy", child, [f"127.0.0.1:{port}"])

    def _fill(
        self, template: str, port: int, upstream: str, directory: Path
    ) -> str:
        text = (self._peers / template).read_text()
        for name, value in (
            ("PORT", str(port)),
            ("UPSTREAM", upstream),
            ("DIR", str(directory)),
        ):
            text = text.replace(f"@{name}@", value)
        return text


_SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? ([^ ]+)$")


def parse_metrics(text: str) -> Dict[str, float]:
    """Samples of the Prometheus text format, `name{labels}` as they stand."""
    samples = {}
    for line in text.splitlines():
        match = _SAMPLE.match(line)
        if match:
            name, labels, value = match.groups()
            samples[f"{name}{{{labels}}}" if labels else name] = float(value)
    return samples


def scrape(server: Server) -> Dict[str, float]:
    if server.admin is None:
        return {}
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"http://{server.admin}/metrics", timeout=30) as page:
            return parse_metrics(page.read().decode())
    except (OSError, http.client.HTTPException) as error:
        raise Failure(
            f"{server.name} does not tell its metrics: {error};"
            f" last words: {server.child.last_words()}"
        ) from error


def total(samples: Dict[str, float], name: str, *labels: str) -> float:
    """Sum of the samples of a name whose labels contain all of `labels`."""
    return sum(
        value
        for key, value in samples.items()
        if key.partition("{")[0] == name and all(l in key for l in labels)
    )
