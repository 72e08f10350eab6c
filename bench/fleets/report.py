# SPDX-License-Identifier: Apache-2.0
"""The tables of bench/fleet."""

from typing import List

from sidebyside import table

from .memory import Size
from .runs import Fleet, rate

table.SECTION_TITLES.update(
    {
        "runs": "Function runs of a fleet",
        "shared": "A shared hit, answers of 13 KB",
        "memory": "Memory hits beside the tier",
        "stopped": "Misses beside a stopped server",
        "server": "The server",
    }
)


def fleets(found: List[Fleet]) -> str:
    alone = found[0]
    lines = [
        "| daemons | calls | function runs | of one daemon's | time-outs of look-ups | wrong | purge |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for fleet in found:
        title = fleet.title + (", server away" if fleet.away else "")
        lines.append(
            f"| {title} | {fleet.calls:,} | {fleet.runs:,} | {rate(fleet) / rate(alone):.2f}"
            f" | {fleet.timeouts:,} | {len(fleet.wrong) or 'none'} | {fleet.purge} |"
        )
    return "\n".join(lines) + "\n"


def sizes(found: List[Size]) -> str:
    lines = [
        "| answer | stored form | value | beyond it | server's memory for each entry | of the value |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for one in found:
        lines.append(
            f"| {one.name} | {one.disk:,} bytes | {one.value:,} bytes | {one.value - one.disk}"
            f" | {one.memory:,.0f} bytes | {one.memory / one.value:.2f} |"
        )
    return "\n".join(lines) + "\n"
