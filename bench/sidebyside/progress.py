# SPDX-License-Identifier: Apache-2.0
"""What is running, and how long it will go on."""

import sys
import time
from typing import Dict, TextIO


def clock(seconds: float) -> str:
    seconds = max(0, int(round(seconds)))
    return f"{seconds // 60}:{seconds % 60:02d}"


class Progress:
    """Knows the planned seconds of every section; as sections turn out slower
    or faster than planned, so do the remaining ones."""

    def __init__(self, plan: Dict[str, float], out: TextIO = sys.stderr):
        self._plan = plan
        self._out = out
        self._started = time.monotonic()
        self._section = ""
        self._done = 0.0
        self._within = 0.0
        self._open_line = False

    def section(self, name: str) -> None:
        self._done += self._plan.get(self._section, 0.0)
        self._section, self._within = name, 0.0

    def spent(self, planned_seconds: float) -> None:
        """So much of the section's plan has been done."""
        self._within = min(
            self._within + planned_seconds, self._plan.get(self._section, 0.0)
        )

    def left(self) -> float:
        total = sum(self._plan.values())
        done = self._done + self._within
        elapsed = time.monotonic() - self._started
        pace = elapsed / done if done > 0.03 * total and done > 0 else 1.0
        return (total - done) * pace

    def say(self, text: str) -> None:
        elapsed = time.monotonic() - self._started
        line = (
            f"[{clock(elapsed)}, {clock(self.left())} left]"
            f" {self._section}: {text}"
        )
        if self._out.isatty():
            self._out.write(f"\r\x1b[K{line[:118]}")
            self._open_line = True
        else:
            self._out.write(line + "\n")
        self._out.flush()

    def end(self) -> None:
        if self._open_line:
            self._out.write("\r\x1b[K")
            self._out.flush()
        self._open_line = False
