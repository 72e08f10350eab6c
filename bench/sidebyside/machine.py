# SPDX-License-Identifier: Apache-2.0
"""On what, and of what, the figures were taken."""

import os
import platform
import re
import subprocess
import time
from pathlib import Path
from typing import Dict, List, Optional


def _first_match(pattern: str, text: str) -> Optional[str]:
    match = re.search(pattern, text, re.MULTILINE)
    return match.group(1).strip() if match else None


def _read(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""


def cores() -> int:
    return len(os.sched_getaffinity(0))


def _busy_ticks() -> List[int]:
    fields = [int(v) for v in _read("/proc/stat").split("\n")[0].split()[1:]]
    idle = fields[3] + fields[4]
    return [sum(fields[:8]) - idle, sum(fields[:8])]


def busy_share(seconds: float = 0.5) -> float:
    """Share of all cores' time that anything ran, measured just now: the load
    average remembers a minute, a benchmark cares about this moment."""
    busy, total = _busy_ticks()
    time.sleep(seconds)
    busy_after, total_after = _busy_ticks()
    return (busy_after - busy) / max(1, total_after - total)


def describe() -> Dict[str, object]:
    cpu = _read("/proc/cpuinfo")
    memory = _first_match(r"^MemTotal:\s+(\d+) kB", _read("/proc/meminfo"))
    release = _first_match(r'^PRETTY_NAME="(.*)"', _read("/etc/os-release"))
    return {
        "cpu": _first_match(r"^model name\s*:\s*(.*)$", cpu)
        or platform.machine(),
        "mhz": _first_match(r"^cpu MHz\s*:\s*(.*)$", cpu),
        "cores": cores(),
        "memory_gib": round(int(memory or 0) / 2**20, 1),
        "kernel": platform.release(),
        "system": release or platform.system(),
        "load_average": list(os.getloadavg()),
        "busy_share": round(busy_share(), 3),
    }


def warnings(machine: Dict[str, object]) -> List[str]:
    said = []
    busy = float(machine["busy_share"])
    if busy > 0.1:
        said.append(
            f"the machine was not idle at the start: {busy:.0%} of its cores"
            " were busy"
        )
    load = machine["load_average"][0]
    if load > 0.5 * int(machine["cores"]):
        said.append(
            f"load average {load:.2f} at the start on"
            f" {machine['cores']} cores: something else ran in the last minute"
        )
    return said


def _git(root: Path, *arguments: str) -> Optional[str]:
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments],
            capture_output=True,
            text=True,
            timeout=20,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def revision(root: Path) -> Dict[str, object]:
    changed = _git(root, "status", "--porcelain", "--untracked-files=no")
    return {
        "commit": _git(root, "rev-parse", "HEAD") or "unknown",
        "dirty": bool(changed) if changed is not None else None,
        "date": _git(root, "log", "-1", "--format=%cI"),
    }


def version_of(*command: str) -> Optional[str]:
    """First line that the program prints about itself, or None without it."""
    try:
        done = subprocess.run(
            list(command), capture_output=True, text=True, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = (done.stdout + done.stderr).strip().splitlines()
    return lines[0].strip() if lines else None
