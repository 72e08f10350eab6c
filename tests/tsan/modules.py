#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether the modules of without_threads.txt, and the tests in it, have no threads,
locks or atomics.

Prints each word that contradicts the list, exit code 1; else how many lines and
files it read."""

import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
WORDS = re.compile(r"std::(thread|jthread|atomic\w*|\w*mutex|\w*_lock|lock_guard|condition_variable\w*|async|future|promise|call_once)\b|"
                   r"absl::(call_once|Barrier|BlockingCounter)\b|__atomic_\w+|__sync_\w+|\bthread_local\b|"
                   r"\b(Mutex|MutexLock|ReaderMutexLock|CondVar|ThreadPool|Notification|pthread_\w+|Assistants|BackgroundWriter)\b")


def main():
    lines = files = faults = 0
    for line in (HERE / "without_threads.txt").read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        words, _, reason = line.partition(" # ")
        name, *allowed = words.split()
        lines += 1
        if name.endswith(".cc"):
            sources = [p for p in [ROOT / "tests" / name] if p.exists()]
        else:
            # Its tests are left out, so they must not have threads of their own.
            sources = sorted(p for top in (ROOT, ROOT / "tests") for p in (top / name).glob("*") if p.suffix in (".h", ".cc"))
        if not sources or not reason.strip():
            print(f"{name}: no sources, or no reason")
            faults += 1
        for path in sources:
            files += 1
            if path.name in allowed:
                continue
            for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                if WORDS.search(text.split("//")[0]):
                    print(f"{path.relative_to(ROOT)}:{number}: {text.strip()}")
                    faults += 1
    print(f"{lines} modules and tests without threads, {files} files read, {faults} faults")
    return 0 if lines and not faults else 1


if __name__ == "__main__":
    sys.exit(main())
