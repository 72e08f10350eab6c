# SPDX-License-Identifier: Apache-2.0
"""Charts as inline SVG, made here: the report fetches nothing.

Colours are classes (s0, s1, ...) that the page's style sheet sets, for light
and for dark. Text in a chart has the page's font and its ink colours.
"""

import math
from dataclasses import dataclass
from html import escape
from typing import List, Optional, Sequence, Tuple

from .table import number

_WIDTH, _HEIGHT = 640, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 28, 14, 44


def ratio_bar(
    value: float,
    low: float,
    high: float,
    top: float,
    target: Optional[float],
    then: Optional[float],
    verdict: str,
) -> str:
    """A bar from zero to `top`, with the interval and the marks of targets."""
    width, height = 300, 20

    def x(v: float) -> float:
        return round(min(max(v, 0), top) / top * width, 1)

    parts = [
        f'<svg class="bar" viewBox="0 0 {width} {height}"'
        f' preserveAspectRatio="none" role="img" aria-label="{number(value)}">',
        f'<rect class="track" x="0" y="4" width="{width}" height="12"/>',
        f'<rect class="fill {verdict}" x="0" y="4" width="{x(value)}"'
        ' height="12"/>',
    ]
    if high > low:
        parts.append(
            f'<path class="whisker" d="M{x(low)} 10H{x(high)}'
            f'M{x(low)} 6V14M{x(high)} 6V14"/>'
        )
    for mark, name in ((target, "target"), (then, "then")):
        if mark is not None:
            parts.append(f'<path class="{name}" d="M{x(mark)} 0V{height}"/>')
    return "".join(parts) + "</svg>"


@dataclass
class Line:
    name: str
    # x, y, and y's interval.
    points: List[Tuple[float, float, float, float]]


def _log_ticks(low: float, high: float) -> List[float]:
    ticks = []
    for power in range(
        math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1
    ):
        for digit in (1, 2, 5):
            tick = digit * 10.0**power
            if low * 0.999 <= tick <= high * 1.001:
                ticks.append(tick)
    if len(ticks) > 7:
        ticks = [t for t in ticks if f"{t:e}"[0] == "1"]
    return ticks


def _linear_ticks(high: float) -> List[float]:
    step = 10 ** math.floor(math.log10(high))
    for factor in (0.2, 0.5, 1, 2, 5):
        if high / (step * factor) <= 5:
            step *= factor
            break
    return [i * step for i in range(int(high / step) + 1)]


def line_chart(
    title: str,
    unit: str,
    x_ticks: Sequence[Tuple[float, str]],
    lines: Sequence[Line],
    log_y: bool = False,
    x_title: str = "",
) -> str:
    """Lines over x positions that the caller chose (`x_ticks`), named below;
    intervals as thin whiskers."""
    lines = [line for line in lines if line.points]
    if not lines or not x_ticks:
        return ""
    xs = [x for x, _ in x_ticks]
    values = [v for line in lines for p in line.points for v in p[1:]]
    high = max(values)
    low = max(min(values), 1e-9)
    if log_y:
        low, high = low / 1.15, high * 1.15
        ticks = _log_ticks(low, high)
    else:
        high *= 1.1
        low, ticks = 0.0, _linear_ticks(high)
    span = (max(xs) - min(xs)) or 1
    inner_width = _WIDTH - _LEFT - _RIGHT
    inner_height = _HEIGHT - _TOP - _BOTTOM

    def px(x: float) -> float:
        return round(_LEFT + 12 + (x - min(xs)) / span * (inner_width - 24), 1)

    def share(v: float) -> float:
        if log_y:
            return math.log(max(v, low) / low) / math.log(high / low)
        return v / high

    def py(v: float) -> float:
        return round(_TOP + (1 - share(v)) * inner_height, 1)

    out = [
        f'<svg class="chart" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img"'
        f' aria-label="{escape(title)}">'
    ]
    for tick in ticks:
        y = py(tick)
        out.append(f'<path class="grid" d="M{_LEFT} {y}H{_WIDTH - _RIGHT}"/>')
        out.append(
            f'<text class="tick" x="{_LEFT - 8}" y="{y + 4}"'
            f' text-anchor="end">{_tick(tick)}</text>'
        )
    for x, label in x_ticks:
        out.append(
            f'<text class="tick" x="{px(x)}" y="{_HEIGHT - _BOTTOM + 18}"'
            f' text-anchor="middle">{escape(label)}</text>'
        )
    out.append(
        f'<text class="tick" x="{_LEFT + inner_width / 2}" y="{_HEIGHT - 5}"'
        f' text-anchor="middle">{escape(x_title)}</text>'
    )
    for index, line in enumerate(lines):
        path = "L".join(f"{px(x)} {py(y)}" for x, y, _, _ in line.points)
        out.append(f'<g class="s{index % 8}"><path class="line" d="M{path}"/>')
        for x, y, below, above in line.points:
            tip = f"{line.name}: {number(y)} {unit}"
            if above > below:
                tip += f" ({number(below)}..{number(above)})"
                out.append(
                    f'<path class="spread" d="M{px(x)} {py(below)}'
                    f'V{py(above)}"/>'
                )
            out.append(
                f'<circle cx="{px(x)}" cy="{py(y)}" r="4">'
                f"<title>{escape(tip)}</title></circle>"
            )
        out.append("</g>")
    out.append("</svg>")
    return (
        f"<figure><figcaption>{escape(title)}"
        f' <span class="unit">{escape(unit)}</span></figcaption>'
        + "".join(out)
        + _legend(lines)
        + "</figure>"
    )


def _legend(lines: Sequence[Line]) -> str:
    """Below the chart, where names have room on a phone, too."""
    items = "".join(
        f'<span><i class="s{index % 8}"></i>{escape(line.name)}</span>'
        for index, line in enumerate(lines)
    )
    return f'<div class="key">{items}</div>'


def _tick(value: float) -> str:
    if value >= 1e6:
        return f"{value / 1e6:g}M"
    if value >= 1e4:
        return f"{value / 1e3:g}k"
    return f"{value:g}"
