# SPDX-License-Identifier: Apache-2.0
"""What hostile functions do, each with its connection and the streams that were
opened there."""

import struct
import time

import callers
from frames import (
    CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PING, PRIORITY, RST, SETTINGS, WINDOW,
    answer, data_frames, field, frame, message,
)

BATCH = 500


def _until(over, send, count, bytes_, frames=BATCH):
    while not over():
        send(bytes_)
        count(frames)


def continuation(send, stream, over, count):
    send(frame(HEADERS, 0, stream, answer()))
    _until(over, send, count, frame(CONTINUATION, 0, stream, field("x", b"v" * 16000)), 1)


def hpack_bomb(send, stream, over, count):
    fill = field("x", b"v" * 4000, first=0x40)
    send(frame(HEADERS, END_HEADERS, stream, answer(fill + b"\xbe" * 12000)))
    count(1)


def settings(send, stream, over, count):
    _until(over, send, count, frame(SETTINGS, 0, 0) * BATCH)


def ping(send, stream, over, count):
    _until(over, send, count, frame(PING, 0, 0, b"12345678") * BATCH)


def empty_data(send, stream, over, count):
    send(frame(HEADERS, END_HEADERS, stream, answer()))
    _until(over, send, count, frame(DATA, 0, stream) * BATCH)


def window_update(send, stream, over, count):
    _until(over, send, count, frame(WINDOW, 0, 0, struct.pack(">I", 1)) * BATCH)


def priority(send, stream, over, count):
    _until(over, send, count, frame(PRIORITY, 0, stream, struct.pack(">IB", 0, 15)) * BATCH)


def endless_answer(send, stream, over, count):
    send(frame(HEADERS, END_HEADERS, stream, answer()))
    send(frame(DATA, 0, stream, message(b"", announced=2**32 - 1)))
    _until(over, send, count, frame(DATA, 0, stream, bytes(16384)), 1)


def two_messages(send, stream, over, count):
    send(frame(HEADERS, END_HEADERS, stream, answer())
         + data_frames(stream, message(b"a") + message(b"b"), False))
    count(1)


def refused(send, stream, over, count):
    send(frame(RST, 0, stream, struct.pack(">I", 7)))
    count(1)


def goaway(send, stream, over, count):
    send(frame(GOAWAY, 0, 0, struct.pack(">II", 0, 0)))
    count(1)
    raise ConnectionError


def mute(send, stream, over, count):
    count(1)


def closes(send, stream, over, count):
    count(1)
    raise ConnectionError


def gzip_bomb(send, stream, over, count):
    send(frame(HEADERS, END_HEADERS, stream, answer(field("grpc-encoding", b"gzip"))))
    body = callers.the_bomb()
    send(data_frames(stream, body[:65000], False))
    time.sleep(0.05)
    send(data_frames(stream, body[65000:], False))
    send(frame(HEADERS, END_HEADERS | END_STREAM, stream, field("grpc-status", b"0")))
    count(1)


def large_status(send, stream, over, count):
    block = field("grpc-status", b"2") + field("grpc-message", b"m" * 100_000)
    parts = [block[i : i + 16384] for i in range(0, len(block), 16384)]
    send(frame(HEADERS, END_HEADERS, stream, answer()))
    send(frame(HEADERS, END_STREAM, stream, parts[0]))
    for part in parts[1:-1]:
        send(frame(CONTINUATION, 0, stream, part))
    send(frame(CONTINUATION, END_HEADERS, stream, parts[-1]))
    count(1)


BEHAVIOURS = {
    "CONTINUATION": continuation,
    "HPACK bombs": hpack_bomb,
    "SETTINGS": settings,
    "PING": ping,
    "empty DATA": empty_data,
    "WINDOW_UPDATE": window_update,
    "PRIORITY": priority,
    "an endless answer": endless_answer,
    "two messages": two_messages,
    "every stream refused": refused,
    "GOAWAY at once": goaway,
    "never answers": mute,
    "closes at once": closes,
    "1 MB that unpacks to 1 GB": gzip_bomb,
    "a status of 100 KB": large_status,
}
