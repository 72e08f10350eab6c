# SPDX-License-Identifier: Apache-2.0
"""RunFunctionRequests made by hand, for scripts that call functions without a
library for protobuf or gRPC."""

import struct

PATH = "/apiextensions.fn.proto.v1.FunctionRunnerService/RunFunction"


def varint(number):
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def field(number, content):
    return varint(number << 3 | 2) + varint(len(content)) + content


def value(of):
    if isinstance(of, dict):
        return field(5, struct_of(of))
    if isinstance(of, list):
        return field(6, b"".join(field(1, value(item)) for item in of))
    return field(3, of.encode())


def struct_of(fields):
    return b"".join(
        field(1, field(1, name.encode()) + field(2, value(of)))
        for name, of in fields.items()
    )


def request(tag, composite, context=None):
    """A request as gRPC frames it, of a composite (its fields), for the template
    of `fncache function`, which renders a bucket."""
    bucket = {"apiVersion": "s3.example.org/v1", "kind": "Bucket"}
    template = {
        "apiVersion": "function.fncache.dev/v1alpha1",
        "kind": "Template",
        "spec": {"resources": [{"name": "bucket", "base": bucket}]},
    }
    message = field(1, field(1, tag.encode()))
    message += field(2, field(1, field(1, struct_of(composite))))
    message += field(4, struct_of(template))
    if context:
        message += field(5, struct_of(context))
    return b"\0" + struct.pack(">I", len(message)) + message
