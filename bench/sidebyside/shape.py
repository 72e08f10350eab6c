# SPDX-License-Identifier: Apache-2.0
"""Whether a value that was read from JSON has the shape that is expected of it.

A shape is a type, or
- a dict: a dict that has these keys, with values of these shapes, and any
  others;
- a list of one shape: a list of such values;
- Each(shape): a dict of such values under any keys;
- Maybe(shape): that, or null;
- Optionally(shape), in a dict: that, if the key is there.
`float` is any finite number.
"""

import math
from dataclasses import dataclass
from typing import Optional


@dataclass(frozen=True)
class Each:
    shape: object


@dataclass(frozen=True)
class Maybe:
    shape: object


@dataclass(frozen=True)
class Optionally:
    shape: object


def misfit(value: object, shape: object, where: str = "") -> Optional[str]:
    """What does not fit, with where it is; None if all does."""
    if isinstance(shape, Maybe):
        return None if value is None else misfit(value, shape.shape, where)
    if isinstance(shape, type):
        fits = _is(value, shape)
        return None if fits else f"{where or 'it'} is not {_NAMES[shape]}"
    kind = list if isinstance(shape, list) else dict
    if not isinstance(value, kind):
        return f"{where or 'it'} is not {_NAMES[kind]}"
    if isinstance(shape, list):
        parts = [(v, shape[0], f"{where}[{i}]") for i, v in enumerate(value)]
    elif isinstance(shape, Each):
        parts = [(v, shape.shape, _below(where, k)) for k, v in value.items()]
    else:
        parts = []
        for name, part in shape.items():
            optional = isinstance(part, Optionally)
            if name in value:
                wanted = part.shape if optional else part
                parts.append((value[name], wanted, _below(where, name)))
            elif not optional:
                return f"{_below(where, name)} is missing"
    for part in parts:
        found = misfit(*part)
        if found:
            return found
    return None


_NAMES = {
    str: "a text",
    int: "a whole number",
    bool: "true or false",
    float: "a finite number",
    list: "a list",
    dict: "an object",
}


def _is(value: object, kind: type) -> bool:
    if isinstance(value, bool):
        return kind is bool
    if kind is float:
        return isinstance(value, (int, float)) and math.isfinite(value)
    return isinstance(value, kind)


def _below(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name
