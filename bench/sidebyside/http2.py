# SPDX-License-Identifier: Apache-2.0
"""One gRPC call over a connection, with nothing but a socket: what a caller sees
that waits for a daemon to start. Not for load: bench/load is."""

import socket
import struct

from .processes import Failure

_PATH = "/apiextensions.fn.proto.v1.FunctionRunnerService/RunFunction"
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _RST, _SETTINGS, _PING, _GOAWAY, _WINDOW = 0, 1, 3, 4, 6, 7, 8
_END_STREAM, _END_HEADERS, _ACK = 1, 4, 1
_BIG_WINDOW = 2**30


def _frame(kind: int, flags: int, stream: int, body: bytes = b"") -> bytes:
    return struct.pack(">I", len(body))[1:] + struct.pack(
        ">BBI", kind, flags, stream
    ) + body


def _header(name: str, value: str) -> bytes:
    """A literal that the receiver's table keeps, as callers' libraries send
    them (RFC 7541, 6.2.1), for short strings."""

    def text(part: str) -> bytes:
        raw = part.encode()
        if len(raw) < 127:
            return bytes([len(raw)]) + raw
        return b"\x7f" + bytes([len(raw) - 127]) + raw

    return b"\x40" + text(name) + text(value)


def request_headers(authority: str) -> bytes:
    return b"".join(
        _header(name, value)
        for name, value in (
            (":method", "POST"),
            (":scheme", "http"),
            (":path", _PATH),
            (":authority", authority),
            ("content-type", "application/grpc"),
            ("te", "trailers"),
        )
    )


def connect(address: str, seconds: float = 30) -> socket.socket:
    host, _, port = address.rpartition(":")
    return socket.create_connection((host, int(port)), seconds)


def call(address: str, framed: bytes, seconds: float = 30) -> bytes:
    """The message that answers `framed` (a gRPC frame)."""
    try:
        with connect(address, seconds) as connection:
            return call_on(connection, address, framed)
    except OSError as error:
        raise Failure(f"calling {address}: {error}") from error


def call_on(connection: socket.socket, address: str, framed: bytes) -> bytes:
    """The same as the first call of a connection, which stays open."""
    # INITIAL_WINDOW_SIZE; the requests fit into the server's first window.
    settings = struct.pack(">HI", 4, _BIG_WINDOW)
    out = _PREFACE + _frame(_SETTINGS, 0, 0, settings)
    out += _frame(_WINDOW, 0, 0, struct.pack(">I", _BIG_WINDOW))
    out += _frame(_HEADERS, _END_HEADERS, 1, request_headers(address))
    for at in range(0, len(framed), 16384):
        part = framed[at : at + 16384]
        last = at + 16384 >= len(framed)
        out += _frame(_DATA, _END_STREAM if last else 0, 1, part)
    connection.sendall(out)
    stream = connection.makefile("rb")
    body = b""
    while True:
        head = stream.read(9)
        if len(head) < 9:
            raise Failure("the connection ended before the answer")
        size = int.from_bytes(head[:3], "big")
        kind, flags, number = struct.unpack(">BBI", head[3:])
        payload = stream.read(size)
        if kind == _SETTINGS and not flags & _ACK:
            connection.sendall(_frame(_SETTINGS, _ACK, 0))
        elif kind == _PING and not flags & _ACK:
            connection.sendall(_frame(_PING, _ACK, 0, payload))
        elif kind in (_RST, _GOAWAY):
            raise Failure("the server gave the call up")
        elif kind == _DATA and number == 1:
            body += payload
        if number == 1 and kind in (_DATA, _HEADERS) and flags & _END_STREAM:
            break
    if len(body) < 5 or len(body) != 5 + int.from_bytes(body[1:5], "big"):
        raise Failure(f"no message in the answer ({len(body)} bytes)")
    return body[5:]
