# SPDX-License-Identifier: Apache-2.0
"""The command line of bench/run."""

import argparse
import datetime
import math
import os
import signal
import sys
import tempfile
import time
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Dict, List, Optional

from . import machine, markdown, results as results_module, table
from .bench import Bench
from .load import LoadClient
from .processes import Failure, Nursery, allow_many_files
from .profiles import ALL_SECTIONS, DRIFT_SHAPES, PROFILES, SHAPES, Profile
from .progress import Progress, clock
from .results import NotResults, Results, below_floor, failures
from .servers import Servers

ROOT = Path(__file__).resolve().parents[2]
OK, FAILURES, USAGE = 0, 1, 2

DESCRIPTION = """\
Measures the release build beside a bare gRPC server (the limit), nginx and
haproxy: interleaved runs, medians with intervals, verdicts against the targets.
Prints a table and writes results (JSON)."""

EPILOG = """\
Exit codes: 0 when everything was measured; 1 when a run had errors, when
something could not be written, or, with --check, when a row fell below its
floor (far below its target: a collapse); 2 for a wrong command line or a file
that bench/run did not write. A missed target alone is no failure: it is said.

Examples:
  bench/run --profile quick
  bench/run --only hits,forward --shapes 4k --runs 3
  bench/run --plan
  bench/run --from build/bench/results.json --update docs/performance.md
"""


def section_module(name: str):
    return import_module(f"{__package__}.sections.{name}")


def plan(profile: Profile) -> Dict[str, float]:
    return {s: section_module(s).plan(profile) for s in profile.sections}


def plan_text(profile: Profile) -> str:
    lines = [
        f"profile {profile.name}: {profile.runs} runs of {profile.seconds:g} s"
        f" after {profile.warmup:g} s of warm-up"
    ]
    budget = plan(profile)
    for name, seconds in budget.items():
        lines.append(f"  {name:<9} {clock(seconds):>6}")
    lines.append(
        f"  {'in all':<9} {clock(sum(budget.values())):>6}"
        f" of {clock(profile.seconds_allowed)}"
    )
    return "\n".join(lines)


def names_of(allowed):
    def parse(text: str) -> List[str]:
        names = text.split(",")
        for name in names:
            if name not in allowed:
                raise argparse.ArgumentTypeError(
                    f"{name!r} is none of {', '.join(allowed)}"
                )
        return names

    return parse


def positive(kind):
    def parse(text: str):
        try:
            value = kind(text)
        except ValueError:
            value = 0
        if not 0 < value < math.inf:
            raise argparse.ArgumentTypeError(f"{text!r} is not above zero")
        return value

    return parse


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="bench/run",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    what = made.add_argument_group("what is measured")
    what.add_argument("--profile", choices=list(PROFILES), default="standard")
    what.add_argument(
        "--only",
        type=names_of(ALL_SECTIONS),
        metavar="SECTION,...",
        help="of " + ", ".join(ALL_SECTIONS),
    )
    what.add_argument(
        "--shapes",
        type=names_of(SHAPES),
        metavar="SHAPE,...",
        help="of " + ", ".join(SHAPES),
    )
    what.add_argument(
        "--no-peers", action="store_true", help="without nginx and haproxy"
    )
    what.add_argument("--runs", type=positive(int), help="of every subject")
    what.add_argument(
        "--seconds", type=positive(float), help="measured, of every run"
    )
    what.add_argument(
        "--build",
        type=Path,
        default=ROOT / "build" / "release",
        help="where the programs are (build/release)",
    )
    what.add_argument(
        "--plan", action="store_true", help="print the budget, measure nothing"
    )
    out = made.add_argument_group("what becomes of it")
    out.add_argument(
        "--json",
        type=Path,
        default=ROOT / "build" / "bench" / "results.json",
        help="results (build/bench/results.json)",
    )
    out.add_argument(
        "--from",
        dest="source",
        type=Path,
        metavar="FILE",
        help="show these results instead of measuring",
    )
    out.add_argument(
        "--markdown", action="store_true", help="print tables in Markdown"
    )
    out.add_argument(
        "--update",
        type=Path,
        metavar="PAGE",
        help="write the tables between the marks of this page",
    )
    out.add_argument(
        "--check",
        action="store_true",
        help="fail when a row fell below its floor",
    )
    out.add_argument(
        "--keep",
        action="store_true",
        help="leave the temporary directory, for looking into",
    )
    return made


def chosen_profile(arguments) -> Profile:
    profile = PROFILES[arguments.profile]
    if arguments.only:
        profile = replace(profile, sections=tuple(arguments.only))
    if arguments.shapes:
        shapes = tuple(arguments.shapes)
        profile = replace(
            profile,
            tune_shapes=tuple(s for s in shapes if s in DRIFT_SHAPES),
            **{
                name: tuple(s for s in shapes if s != "1m" or name == "shapes")
                for name in (
                    "shapes",
                    "forward_shapes",
                    "vary_shapes",
                    "latency_shapes",
                    "cost_shapes",
                    "instruction_shapes",
                )
            },
        )
    if arguments.no_peers:
        profile = replace(profile, nginx=False, haproxy=False)
    if arguments.runs:
        profile = replace(
            profile, runs=arguments.runs, start_runs=arguments.runs
        )
    if arguments.seconds:
        profile = replace(profile, seconds=arguments.seconds)
    return profile


def shown_command(arguments) -> str:
    """What was measured, without where it was written."""
    parts = ["bench/run", "--profile", arguments.profile]
    for name in ("only", "shapes", "runs", "seconds"):
        value = getattr(arguments, name)
        if value is not None:
            text = ",".join(value) if isinstance(value, list) else f"{value:g}"
            parts += [f"--{name}", text]
    if arguments.no_peers:
        parts.append("--no-peers")
    return " ".join(parts)


def header(profile: Profile, command: str) -> dict:
    about = machine.describe()
    return {
        "started": datetime.datetime.now(datetime.timezone.utc).strftime(
            "%Y-%m-%dT%H:%M:%SZ"
        ),
        "profile": profile.name,
        "command": command,
        "runs": profile.runs,
        "seconds_per_run": profile.seconds,
        "warmup_seconds": profile.warmup,
        "budget": {n: round(s) for n, s in plan(profile).items()},
        "machine": about,
        "revision": machine.revision(ROOT),
        "warnings": machine.warnings(about),
    }


def measure(profile: Profile, build: Path, keep: bool, head: dict) -> dict:
    results = Results(head)
    started = time.monotonic()
    progress = Progress(plan(profile))
    # These signals end us as Ctrl-C does: with all processes that we started.
    for sign in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(sign, signal.default_int_handler)
    for text in head["warnings"]:
        print(f"warning: {text}", file=sys.stderr)
    allow_many_files()
    with Nursery(keep) as nursery:
        servers = Servers(nursery, build, ROOT / "bench" / "peers")
        client = LoadClient(servers.program("bench/load"), {})
        answers = {}
        for answer in ("13k", "small"):
            answers[answer] = nursery.directory / f"{answer}.response"
            client.write_answer(answer, answers[answer])
        client.answers = answers
        bench = Bench(
            profile=profile,
            root=ROOT,
            build=build,
            nursery=nursery,
            servers=servers,
            client=client,
            results=results,
            progress=progress,
            answers=answers,
        )
        for name in profile.sections:
            progress.section(name)
            try:
                section_module(name).run(bench)
            except Failure as failure:
                # The other sections can still be measured.
                results.errors.append(f"{name}: {servers.plain(str(failure))}")
        progress.end()
        if keep:
            print(f"kept: {nursery.directory}", file=sys.stderr)
    results.header["seconds"] = round(time.monotonic() - started, 1)
    results.header["subjects"] = servers.descriptions
    results.errors = list(dict.fromkeys(results.errors))
    results.skipped = list(dict.fromkeys(results.skipped))
    return results.to_json()


def check_writable(path: Path) -> None:
    """Fails now what would fail after half an hour of measuring."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            if path.is_dir() or not os.access(path, os.W_OK):
                raise Failure(f"{path}: cannot be written")
        else:
            tempfile.TemporaryFile(dir=path.parent).close()
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}") from error


def check_outputs(arguments) -> None:
    if not arguments.source:
        check_writable(arguments.json)
    if arguments.update:
        markdown.check_marks(arguments.update)
        check_writable(arguments.update)


def deliver(found: dict, arguments) -> bool:
    """Writes and prints each form that can be written; true if all could."""
    written = done = True
    if not arguments.source:
        try:
            results_module.write(found, arguments.json)
        except OSError as error:
            print(
                f"bench/run: {arguments.json}: {error.strerror}",
                file=sys.stderr,
            )
            written = done = False
    if arguments.markdown:
        print(markdown.render(found), end="")
    else:
        print(table.render(found), end="")
    if arguments.update:
        try:
            markdown.update(arguments.update, found)
        except (OSError, Failure) as error:
            print(f"bench/run: {error}", file=sys.stderr)
            done = False
    if written and not arguments.source:
        print(f"results: {arguments.json}")
    return done


def main(argv: Optional[List[str]] = None) -> int:
    argv = sys.argv[1:] if argv is None else argv
    made = parser()
    arguments = made.parse_args(argv)
    profile = chosen_profile(arguments)
    if arguments.plan:
        print(plan_text(profile))
        return OK
    try:
        check_outputs(arguments)
        if arguments.source:
            found = results_module.read(arguments.source)
        else:
            found = measure(
                profile,
                arguments.build.resolve(),
                arguments.keep,
                header(profile, shown_command(arguments)),
            )
    except NotResults as error:
        print(f"bench/run: {error}", file=sys.stderr)
        return USAGE
    except Failure as failure:
        print(f"bench/run: {failure}", file=sys.stderr)
        return FAILURES
    except KeyboardInterrupt:
        print("bench/run: interrupted; nothing was written", file=sys.stderr)
        return 130
    delivered = deliver(found, arguments)
    return exit_code(found, arguments.check) if delivered else FAILURES


def exit_code(found: dict, check: bool) -> int:
    code = FAILURES if failures(found) else OK
    if check:
        for row in below_floor(found):
            print(
                f"bench/run: {row['id']}: {row['estimate']['median']:.2f},"
                f" its floor is {row['target']['floor']:g}",
                file=sys.stderr,
            )
            code = FAILURES
    return code
