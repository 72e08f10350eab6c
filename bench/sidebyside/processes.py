# SPDX-License-Identifier: Apache-2.0
"""Child processes that never outlive the benchmark.

Every child leads a process group of its own, so that a Ctrl-C reaches this
program alone, which then ends its children in order; and the kernel kills a
child whose parent is gone (PR_SET_PDEATHSIG), should this program be killed
outright (nginx' workers, being its children, are then left to themselves).
"""

import ctypes
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import Callable, Dict, List, Optional, Sequence

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)

START_SECONDS = 30
STOP_SECONDS = 10
LAST_WORDS_SECONDS = 1


class Failure(Exception):
    """Something that was to be measured did not work."""


def _die_with_parent() -> None:
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def allow_many_files() -> None:
    """Thousands of connections need as many descriptors, on both sides."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def free_port() -> int:
    """A port that nobody had a moment ago, for programs that cannot take port
    0. The kernel does not hand it out again at once."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def threads_of(pid: int) -> List[int]:
    """The threads of a process."""
    try:
        return [int(name) for name in os.listdir(f"/proc/{pid}/task")]
    except FileNotFoundError:
        return []


def children_of(pid: int) -> List[int]:
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += [int(child) for child in task.read_text().split()]
        except OSError:
            pass
    return found


def _of_process(pid: int, what: str) -> str:
    try:
        return Path(f"/proc/{pid}/{what}").read_text()
    except OSError as error:
        raise Failure(f"process {pid} has ended") from error


def cpu_seconds(pids: Sequence[int]) -> float:
    """User and system time of all threads that live, from the scheduler's own
    clock (nanoseconds) where the kernel shows it, else in clock ticks."""
    total = 0.0
    for pid in pids:
        try:
            for task in os.listdir(f"/proc/{pid}/task"):
                text = Path(f"/proc/{pid}/task/{task}/schedstat").read_text()
                total += int(text.split()[0]) / 1e9
        except (OSError, ValueError, IndexError):
            fields = _of_process(pid, "stat").rpartition(")")[2]
            ticks = sum(int(v) for v in fields.split()[11:13])
            total += ticks / os.sysconf("SC_CLK_TCK")
    return total


def resident_bytes(pid: int) -> int:
    status = _of_process(pid, "status")
    match = re.search(r"^VmRSS:\s+(\d+) kB", status, re.MULTILINE)
    return int(match.group(1)) * 1024 if match else 0


class Child:
    """A process and what it said on stderr, the last lines of which explain a
    failure."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Optional[Dict[str, str]] = None,
        cwd: Optional[Path] = None,
    ):
        self.command = [str(part) for part in command]
        env = {k: v for k, v in os.environ.items() if "proxy" not in k.lower()}
        # Settings come from the command line alone.
        env = {k: v for k, v in env.items() if not k.startswith("FNCACHE_")}
        env.update(environment or {})
        self.started = time.monotonic()
        try:
            self._process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env=env,
                cwd=cwd,
                preexec_fn=_die_with_parent,
                start_new_session=True,
            )
        except OSError as error:
            raise Failure(f"{self.command[0]}: {error.strerror}") from error
        self._lines: List[str] = []
        self._changed = threading.Condition()
        self._closed = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def _read(self) -> None:
        for raw in self._process.stderr:
            with self._changed:
                self._lines.append(raw.decode(errors="replace").rstrip())
                del self._lines[:-2000]
                self._changed.notify_all()
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def wait_for_line(
        self, pattern: str, count: int = 1, seconds: float = START_SECONDS
    ) -> List["re.Match[str]"]:
        """The first `count` matches in what the child prints."""
        deadline = time.monotonic() + seconds
        with self._changed:
            while True:
                found = [
                    match
                    for match in (re.search(pattern, l) for l in self._lines)
                    if match
                ]
                if len(found) >= count:
                    return found[:count]
                left = deadline - time.monotonic()
                if self._closed or left <= 0:
                    raise Failure(
                        f"{Path(self.command[0]).name} "
                        + ("ended" if self._closed else "did not start")
                        + f" before it said /{pattern}/: {self.last_words()}"
                    )
                self._changed.wait(left)

    def last_words(self) -> str:
        with self._changed:
            # Its last words may still be in the pipe.
            self._changed.wait_for(lambda: self._closed, LAST_WORDS_SECONDS)
            return " | ".join(self._lines[-3:]) or "it said nothing"

    def alive(self) -> bool:
        return self._process.poll() is None

    def stop(self, hard: bool = False) -> None:
        """Asks politely, then does not."""
        first = signal.SIGKILL if hard else signal.SIGTERM
        for sign, seconds in ((first, STOP_SECONDS), (signal.SIGKILL, 5)):
            try:
                os.killpg(self.pid, sign)
            except ProcessLookupError:
                break
            try:
                self._process.wait(seconds)
                break
            except subprocess.TimeoutExpired:
                continue
        # Grandchildren that outlived the leader.
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
        self._process.wait()
        self._reader.join(1)


def wait_for_port(child: Child, port: int) -> None:
    """For servers that do not say when they are ready."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            if not child.alive():
                break
            time.sleep(0.005)
    raise Failure(
        f"{Path(child.command[0]).name} does not listen: {child.last_words()}"
    )


def wait_for_all(
    child: Child, what: str, find: Callable[[int], List[int]], count: int
) -> List[int]:
    """For servers that listen before they have started all that serves:
    `count` workers or threads, which `find` gives for the process."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        found = find(child.pid) if child.alive() else []
        if len(found) >= count:
            return found
        if not child.alive() or time.monotonic() >= deadline:
            name = Path(child.command[0]).name
            raise Failure(
                f"{name} has {len(found)} {what} on {count} cores: "
                f"{child.last_words()}"
            )
        time.sleep(0.005)


class Nursery:
    """Owns children and the temporary directory; leaving it ends all of them
    and removes it, whatever happened inside."""

    def __init__(self, keep: bool = False):
        self._children: List[Child] = []
        self._keep = keep
        self.directory = Path(tempfile.mkdtemp(prefix="fncache-bench-"))

    def __enter__(self) -> "Nursery":
        return self

    def __exit__(self, *_) -> None:
        # A second Ctrl-C would leave processes behind that have not ended yet.
        # Ending them takes no time.
        handlers = {
            sign: signal.signal(sign, signal.SIG_IGN)
            for sign in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        }
        try:
            self._end_all()
        finally:
            for sign, handler in handlers.items():
                signal.signal(sign, handler)

    def _end_all(self) -> None:
        for child in reversed(self._children):
            child.stop(hard=True)
        if not self._keep:
            shutil.rmtree(self.directory, ignore_errors=True)

    def adopt(self, child: Child) -> Child:
        self._children.append(child)
        return child

    def end(self, child: Child, hard: bool = False) -> None:
        child.stop(hard)
        self._children.remove(child)


def run_tool(
    command: Sequence[str],
    seconds: float,
    environment: Optional[Dict[str, str]] = None,
    on_start: Optional[Callable[[int], None]] = None,
    cwd: Optional[Path] = None,
) -> "subprocess.CompletedProcess[str]":
    """Runs a program to its end; never raises for its exit code."""
    command = [str(part) for part in command]
    env = dict(os.environ)
    env.update(environment or {})
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=env,
            cwd=cwd,
            preexec_fn=_die_with_parent,
            start_new_session=True,
        )
    except OSError as error:
        raise Failure(f"{command[0]}: {error.strerror}") from error
    try:
        if on_start:
            on_start(process.pid)
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired as error:
        raise Failure(
            f"{Path(command[0]).name} did not end within {seconds:.0f} s"
        ) from error
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return subprocess.CompletedProcess(command, process.returncode, out, err)
