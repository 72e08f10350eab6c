# SPDX-License-Identifier: Apache-2.0
"""The digest alone, on one core, against the obvious way to key a request."""

import json
from typing import Dict, List

from .. import spread, targets
from ..bench import Bench
from ..processes import Failure, run_tool
from ..profiles import SHAPE_TITLES, Profile
from ..results import Series

SHAPES = ("4k", "17k", "130k", "1m")
# Those of which the targets speak: 17 KB and above.
JUDGED = ("17k", "130k", "1m")
# As whom digest_benchmark writes requests of these sizes besides as Go.
ENCODER_SHAPES = ("4k", "130k")
ENCODERS = {
    "prost": "Rust (prost)",
    "ts-proto": "TypeScript (ts-proto)",
    "protobufjs-defaults": "protobufjs with defaults",
    "reversed": "fields in reverse order",
}
BENCHMARKS = 5 * len(SHAPES) + len(ENCODER_SHAPES) * (1 + len(ENCODERS))
FILTER = "^(digest|digest_encoder|digest_masked|digest_tuned|parse_serialize_hash|xxh3)/"


def plan(profile: Profile) -> float:
    # Google-benchmark looks for the number of iterations first.
    return BENCHMARKS * (profile.runs + 2) * profile.digest_seconds + 2


def parse(text: str) -> Dict[str, List[float]]:
    """GB/s of every repetition, by benchmark. Repetitions are interleaved, so
    the n-th of one stood beside the n-th of another."""
    try:
        found: Dict[str, List[float]] = {}
        for one in json.loads(text)["benchmarks"]:
            if one.get("run_type") != "iteration":
                continue
            name = "/".join(
                part
                for part in one["name"].split("/")
                if not part.startswith(("repeats:", "min_time:"))
            )
            found.setdefault(name, []).append(one["bytes_per_second"] / 1e9)
        return found
    except (ValueError, KeyError, TypeError) as error:
        raise Failure(f"unexpected report of digest_benchmark: {error!r}")


def run(bench: Bench) -> None:
    program = bench.servers.program("bench/digest_benchmark")
    bench.progress.say("digest_benchmark")
    done = run_tool(
        [
            program,
            f"--benchmark_filter={FILTER}",
            f"--benchmark_repetitions={bench.profile.runs}",
            "--benchmark_enable_random_interleaving=true",
            f"--benchmark_min_time={bench.profile.digest_seconds}",
            "--benchmark_format=json",
        ],
        60 + 10 * plan(bench.profile),
        # Where it finds its requests.
        cwd=bench.root,
    )
    if done.returncode:
        raise Failure(f"digest_benchmark: {done.stderr.strip()[-300:]}")
    speeds = parse(done.stdout)
    series = {}
    for name, values in speeds.items():
        one = bench.results.add_series(f"digest/{name}", name, "one core")
        one.runs = [{"gbps": value} for value in values]
        series[name] = one
    if not any(name.startswith("digest/") for name in series):
        raise Failure("digest_benchmark measured no digest")
    for shape in SHAPES:
        _rows(bench, shape, series)
    for shape in ENCODER_SHAPES:
        _encoder_rows(bench, shape, series)


def _rows(bench: Bench, shape: str, series: Dict[str, Series]) -> None:
    parse_all = series.get(f"parse_serialize_hash/{shape}")
    for order in ("shuffled", "sorted"):
        digest = series.get(f"digest/{shape}/{order}")
        if digest is None:
            # A clone has requests of some sizes only (tests/data).
            bench.skip(
                f"digest of {SHAPE_TITLES[shape]}, maps {order}",
                "digest_benchmark has no such requests",
            )
            continue
        judged = order == "shuffled" and shape in JUDGED
        title = f"{SHAPE_TITLES[shape]}, maps {order}"
        bench.results.value(
            f"digest/{shape}/{order}/speed",
            title,
            "content digest, one core",
            "GB/s",
            spread.estimate(digest.values("gbps")),
            targets.DIGEST_GBPS if judged else None,
            {"digest": digest},
        )
        if parse_all is not None:
            bench.results.ratio(
                f"digest/{shape}/{order}/parse",
                title,
                "digest over parse + deterministic serialize + XXH3",
                digest,
                parse_all,
                "gbps",
                targets.DIGEST_OVER_PARSE if judged else None,
            )
    digest = series.get(f"digest/{shape}/shuffled")
    for name, title, target in (
        ("masked", "a masked digest", targets.DIGEST_MASKED_OVER_PLAIN),
        ("tuned", "a digest with tuning", targets.DIGEST_TUNED_OVER_PLAIN),
    ):
        other = series.get(f"digest_{name}/{shape}/shuffled")
        if digest is None or other is None:
            continue
        bench.results.ratio(
            f"digest/{shape}/{name}",
            SHAPE_TITLES[shape],
            f"cost of {title} over that of a plain one",
            digest,
            other,
            "gbps",
            target,
        )
    xxh3 = series.get(f"xxh3/{shape}")
    if xxh3 is not None:
        bench.results.value(
            f"digest/{shape}/xxh3",
            SHAPE_TITLES[shape],
            "raw XXH3-128 over the same bytes, for orientation",
            "GB/s",
            spread.estimate(xxh3.values("gbps")),
            series={"xxh3": xxh3},
        )


def _encoder_rows(bench: Bench, shape: str, series: Dict[str, Series]) -> None:
    go = series.get(f"digest_encoder/{shape}/go")
    for encoder, title in ENCODERS.items():
        other = series.get(f"digest_encoder/{shape}/{encoder}")
        if go is None or other is None:
            continue
        # Both are counted in Go's bytes: how often the one is faster is how
        # much the other one costs.
        bench.results.ratio(
            f"digest/{shape}/encoder/{encoder}",
            f"{SHAPE_TITLES[shape]}, written by {title}",
            "cost of the digest over that of Go's encoding",
            go,
            other,
            "gbps",
            targets.DIGEST_ENCODER_OVER_GO,
        )
