# SPDX-License-Identifier: Apache-2.0
"""HTTP/2 frames made by hand (RFC 9113), for peers that mean no good."""

import socket
import struct
import threading
import zlib

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION = range(10)
END_STREAM, END_HEADERS, ACK = 1, 4, 1
PATH = "/apiextensions.fn.proto.v1.FunctionRunnerService/RunFunction"


def frame(kind: int, flags: int, stream: int, body: bytes = b"") -> bytes:
    return struct.pack(">I", len(body))[1:] + struct.pack(">BBI", kind, flags, stream) + body


def field(name: str, value: bytes, first: int = 0) -> bytes:
    """A literal field without indexing (RFC 7541, 6.2.2), or as `first` says."""

    def text(raw: bytes) -> bytes:
        size = len(raw)
        if size < 127:
            return bytes([size]) + raw
        out, size = b"\x7f", size - 127
        while size >= 128:
            out, size = out + bytes([size & 127 | 128]), size >> 7
        return out + bytes([size]) + raw

    return bytes([first]) + text(name.encode()) + text(value)


def metadata(fields: int) -> bytes:
    """So many fields of 8 KB."""
    return b"".join(field("x-%d" % i, b"v" * 8000) for i in range(fields))


def request(more: bytes = b"", path: str = PATH) -> bytes:
    fields = (
        (":method", "POST"),
        (":scheme", "http"),
        (":path", path),
        (":authority", "flood"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    )
    return b"".join(field(name, value.encode()) for name, value in fields) + more


def answer(more: bytes = b"") -> bytes:
    return b"\x88" + field("content-type", b"application/grpc") + more


def message(body: bytes, compressed: int = 0, announced: int = -1) -> bytes:
    return struct.pack(">BI", compressed, len(body) if announced < 0 else announced) + body


def header_block(stream: int, block: bytes, flags: int = 0) -> bytes:
    """In as many frames as it needs; `flags` are the first one's."""
    pieces = [block[at : at + 16384] for at in range(0, len(block), 16384)]
    return b"".join(
        frame(CONTINUATION if i else HEADERS,
              (0 if i else flags) | (END_HEADERS if i == len(pieces) - 1 else 0), stream, piece)
        for i, piece in enumerate(pieces))


def data_frames(stream: int, body: bytes, end: bool) -> bytes:
    out = []
    for at in range(0, max(len(body), 1), 16384):
        last = at + 16384 >= len(body)
        out.append(frame(DATA, END_STREAM if end and last else 0, stream, body[at : at + 16384]))
    return b"".join(out)


# observed.composite.resource, empty: without it a request is an operation's, for
# which nothing is looked up or stored.
COMPOSITE = b"\x12\x04\n\x02\n\x00"


def distinct_request(number: int, size: int) -> bytes:
    """A composite's request of some `size` bytes whose key is its number's: a
    field that nobody knows counts."""
    content = struct.pack(">Q", number) + bytes(size)
    length, size = b"", len(content)
    while size >= 128:
        length, size = length + bytes([size & 127 | 128]), size >> 7
    return message(COMPOSITE + b"\x7a" + length + bytes([size]) + content)


def bomb(size: int) -> bytes:
    """A gzip file that unpacks to so many zeros."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    zeros = bytes(1 << 20)
    return b"".join(packer.compress(zeros) for _ in range(size >> 20)) + packer.flush()


def empty_blocks(size: int) -> bytes:
    """A gzip file of blocks whose codes are there (RFC 1951, 3.2.7) and nothing
    else: it unpacks to nothing, and takes longest."""
    bits = []

    def put(value, count):
        bits.extend(value >> i & 1 for i in range(count))

    for _ in range(8):  # which end where a byte does
        for value, count in ((0, 1), (2, 2), (0, 5), (0, 5), (14, 4)):
            put(value, count)
        for symbol in (16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1):
            put(int(symbol in (18, 1)), 3)
        # 256 lengths of none, that of the block's end, and of one distance; the end.
        for value, count in ((1, 1), (127, 7), (1, 1), (107, 7), (0, 1), (0, 1), (0, 1)):
            put(value, count)
    blocks = bytes(sum(bits[i + j] << j for j in range(8)) for i in range(0, len(bits), 8))
    return bytes.fromhex("1f8b08000000000000ff") + blocks * (size // len(blocks))


class Peer:
    """A client's connection. What comes is read and dropped, unless `deaf`."""

    def __init__(self, address: str, settings: bytes = b"", deaf: bool = False, preface: bool = True):
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), 5)
        self.socket.settimeout(5)
        if preface:
            self.send(PREFACE + frame(SETTINGS, 0, 0, settings))
        if not deaf:
            threading.Thread(target=self._drain, daemon=True).start()

    def _drain(self) -> None:
        try:
            while self.socket.recv(65536):
                pass
        except OSError:
            pass
        self.close()

    def send(self, bytes_: bytes) -> None:
        self.socket.sendall(bytes_)

    def close(self) -> None:
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.socket.close()


def read_frames(connection: socket.socket, preface: bool = True):
    """Yields (kind, flags, stream, body) of a peer, a client's `preface` first."""
    stream = connection.makefile("rb")
    if preface and stream.read(len(PREFACE)) != PREFACE:
        return
    while True:
        head = stream.read(9)
        if len(head) < 9:
            return
        kind, flags, number = struct.unpack(">BBI", head[3:])
        yield kind, flags, number, stream.read(int.from_bytes(head[:3], "big"))
