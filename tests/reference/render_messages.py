# SPDX-License-Identifier: Apache-2.0
"""RenderRequest and RenderResponse (proto/render.proto) as bytes.

Debian's Python has no protobuf unless a package is installed, and these need little of
it: a Struct, and messages of texts and Structs.
"""
import json
import struct


def varint(number):
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def field(number, payload):
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def value(tree):
    if tree is None:
        return b"\x08\x00"
    if isinstance(tree, bool):
        return b"\x20" + (b"\x01" if tree else b"\x00")
    if isinstance(tree, (int, float)):
        return b"\x11" + struct.pack("<d", tree)
    if isinstance(tree, str):
        return field(3, tree.encode())
    if isinstance(tree, dict):
        return field(5, to_struct(tree))
    return field(6, b"".join(field(1, value(one)) for one in tree))


def to_struct(tree):
    return b"".join(field(1, field(1, key.encode()) + field(2, value(one))) for key, one in tree.items())


def request(parts, address):
    """A RenderRequest with a CompositeInput of `parts`, whose functions are all at `address`."""
    composite = field(1, to_struct(parts["composite"])) + field(2, to_struct(parts["composition"]))
    for name in parts["functions"]:
        composite += field(3, field(1, name.encode()) + field(2, address.encode()))
    for number, key in ((4, "observed"), (5, "required"), (6, "credentials"), (7, "schemas")):
        composite += b"".join(field(number, to_struct(one)) for one in parts.get(key, []))
    if parts.get("definition") is not None:
        composite += field(8, to_struct(parts["definition"]))
    return field(1, b"") + field(2, composite)


def fields(data):
    """The fields of a message: (number, bytes) or (number, int)."""
    at = 0

    def read():
        nonlocal at
        number = shift = 0
        while True:
            byte = data[at]
            at += 1
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return number

    while at < len(data):
        key = read()
        kind = key & 7
        if kind == 0:
            yield key >> 3, read()
        elif kind == 1:
            at += 8
            yield key >> 3, data[at - 8:at]
        elif kind == 2:
            size = read()
            at += size
            yield key >> 3, data[at - size:at]
        else:
            raise ValueError(f"wire type {kind}")


def from_value(data):
    tree = None
    for number, payload in fields(data):
        if number == 2:
            tree = struct.unpack("<d", payload)[0]
        elif number == 3:
            tree = payload.decode()
        elif number == 4:
            tree = bool(payload)
        elif number == 5:
            tree = from_struct(payload)
        elif number == 6:
            tree = [from_value(one) for _, one in fields(payload)]
    return tree


def from_struct(data):
    tree = {}
    for _, entry in fields(data):
        parts = dict(fields(entry))
        tree[parts.get(1, b"").decode()] = from_value(parts.get(2, b""))
    return tree


def stable(tree):
    """Times of now are left out: those of conditions that are the runner's own."""
    if isinstance(tree, dict):
        return {key: "NOW" if key == "lastTransitionTime" and isinstance(one, str) else stable(one)
                for key, one in tree.items()}
    return [stable(one) for one in tree] if isinstance(tree, list) else tree


def response(data):
    """The CompositeOutput of a RenderResponse; lists whose order is random are sorted."""
    output = {"composite": [], "composed": [], "deleted": [], "events": [], "resources": [], "schemas": []}
    for number, payload in fields(data):
        if number != 2:
            continue
        for part, one in fields(payload):
            if part == 4:
                output["events"].append(sorted((n, t.decode()) for n, t in fields(one)))
            else:
                name = {1: "composite", 2: "composed", 3: "deleted", 5: "resources", 6: "schemas"}[part]
                output[name].append(stable(from_struct(one)))
    for key in ("composed", "deleted", "events", "resources", "schemas"):
        output[key].sort(key=lambda one: json.dumps(one, sort_keys=True))
    return output
