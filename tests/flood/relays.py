# SPDX-License-Identifier: Apache-2.0
"""Callers and functions that are hostile together. With calls that are relayed,
which is every method but RunFunction, one side sends as much as windows allow,
the other takes nothing; calls of RunFunction are whole, and the function never
answers."""

import socket
import struct
import threading
import time

from frames import (
    ACK, DATA, END_HEADERS, END_STREAM, HEADERS, PING, PREFACE, RST, SETTINGS, WINDOW,
    answer, distinct_request, field, frame, header_block, metadata, read_frames, request,
)

PATH = "/flood.Relayed/Stream"
CONNECTIONS, STREAMS = 32, 1024  # of each of two callers
WINDOW_SIZE = 64 << 10
LARGE_WINDOW = struct.pack(">HI", 4, 2**30)
NO_WINDOW = struct.pack(">HI", 4, 0)


class Side:
    """One end of a connection, by which `unit` bytes are sent at a time on each
    stream, as far as windows allow."""

    def __init__(self, connection, over, count, unit=16384):
        self.socket, self.over, self.count, self.unit = connection, over, count, unit
        self.connection_window = 65535
        self.windows = {}
        self.open = set()  # a caller's streams; an answer's end and a reset may both come

    def ended(self, stream):
        """Whether this is the first that says so."""
        if stream not in self.open:
            return False
        self.open.discard(stream)
        return True

    def send(self, bytes_):
        self.socket.sendall(bytes_)

    def pump(self, stream):
        while not self.over():
            now = min(self.windows.get(stream, 0), self.connection_window, self.unit)
            if now <= 0:
                return
            batch = 1 if self.unit > 1000 else min(500, self.windows[stream] // now, self.connection_window // now)
            self.windows[stream] -= now * batch
            self.connection_window -= now * batch
            self.send(frame(DATA, 0, stream, bytes(now)) * batch)
            self.count(batch)

    def read(self, on_headers, on_end, first_preface=False):
        """Serves what comes until the connection ends."""
        for kind, flags, stream, body in read_frames(self.socket, preface=first_preface):
            if self.over():
                return
            if kind == SETTINGS and not flags & ACK:
                self.send(frame(SETTINGS, ACK, 0))
            elif kind == PING and not flags & ACK:
                self.send(frame(PING, ACK, 0, body))
            elif kind == WINDOW:
                more = struct.unpack(">I", body)[0]
                if stream == 0:
                    self.connection_window += more
                    for one in list(self.windows):
                        self.pump(one)
                elif stream in self.windows:
                    self.windows[stream] += more
                    self.pump(stream)
            elif kind == RST or (kind in (HEADERS, DATA) and flags & END_STREAM):
                self.windows.pop(stream, None)
                on_end(stream)
            elif kind == HEADERS:
                on_headers(stream)


def on_connections(address, over, connections, serve):
    """`serve(connection, index)` on so many at once, each opened again when it
    ends."""
    host, _, port = address.rpartition(":")

    def one(index):
        while not over():
            try:
                with socket.create_connection((host, int(port)), 5) as connection:
                    serve(connection, index)
            except OSError:
                time.sleep(0.05)

    threads = [threading.Thread(target=one, args=(i,), daemon=True) for i in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def call(address, over, count, settings=b"", unit=16384, more=b"", deaf=False, sends=True, trailers=b""):
    """Opens all streams that it may on many connections, and opens one again for
    each that ends."""
    block = request(more, path=PATH)

    def serve(connection):
        connection.settimeout(5)
        side = Side(connection, over, count, unit)
        side.send(PREFACE + frame(SETTINGS, 0, 0, settings))
        side.next = 1

        def open_one(_=0):
            stream, side.next = side.next, side.next + 2
            side.open.add(stream)
            side.send(header_block(stream, block))
            if trailers:
                count(1)
                return side.send(frame(DATA, 0, stream, bytes(5)) + header_block(stream, trailers, END_STREAM))
            if not sends:
                return side.send(frame(DATA, END_STREAM, stream, bytes(5)))
            side.windows[stream] = WINDOW_SIZE

        for _ in range(STREAMS):
            open_one()
        for stream in list(side.windows):
            side.pump(stream)
        if deaf:
            while not over():
                time.sleep(0.1)
            return

        def again(stream):
            if not side.ended(stream):
                return
            time.sleep(0.001)
            open_one()
            side.pump(side.next - 2)

        side.read(lambda _: None, again)
        time.sleep(0.05)

    on_connections(address, over, CONNECTIONS, lambda connection, _: serve(connection))


def run_function(address, over, count, size, connections, streams, distinct=True, trailers=b""):
    """So many requests at once on each connection, as far as windows let them
    come, and another for each that ends."""
    block = request()

    def serve(connection, index):
        connection.settimeout(5)
        side = Side(connection, over, count)
        side.send(PREFACE + frame(SETTINGS, 0, 0, LARGE_WINDOW))
        bodies, side.next = {}, 1
        same = memoryview(distinct_request(0, size))

        def pump(stream):
            body = bodies.get(stream)
            while body is not None and not over():
                now = min(side.windows[stream], side.connection_window, 16384, len(body))
                if now <= 0:
                    break
                side.windows[stream] -= now
                side.connection_window -= now
                last = now == len(body)
                side.send(frame(DATA, END_STREAM if last and not trailers else 0, stream, bytes(body[:now])))
                if last and trailers:
                    side.send(header_block(stream, trailers, END_STREAM))
                count(1)
                body = bodies[stream] = body[now:] if now < len(body) else None

        def open_one(_=0):
            stream, side.next = side.next, side.next + 2
            number = index << 40 | int(time.monotonic() * 1000) % 2**20 << 20 | stream
            bodies[stream] = memoryview(distinct_request(number, size)) if distinct else same
            side.open.add(stream)
            side.windows[stream] = WINDOW_SIZE - 1
            side.send(frame(HEADERS, END_HEADERS, stream, block))
            pump(stream)

        def again(stream):
            if not side.ended(stream):
                return
            bodies.pop(stream, None)
            time.sleep(0.001)
            open_one()

        side.pump = pump
        for _ in range(streams):
            open_one()
        side.read(lambda _: None, again)

    on_connections(address, over, connections, serve)


def takes_nothing(connection, over, count):
    """Reads frames, and opens no window."""
    side = Side(connection, over, lambda _: None)
    side.send(frame(SETTINGS, 0, 0, struct.pack(">HI", 3, 2**31 - 1)))
    side.read(lambda _: None, lambda _: None, first_preface=True)


def reads_nothing(connection, over, count):
    connection.sendall(frame(SETTINGS, 0, 0, struct.pack(">HI", 3, 2**31 - 1) + LARGE_WINDOW) + frame(SETTINGS, ACK, 0)
                       + frame(WINDOW, 0, 0, struct.pack(">I", 2**30)))
    while not over():
        time.sleep(0.1)


def once(begin):
    """A call's half-close comes with its one message; a reset may follow."""
    begun = set()

    def on_end(stream):
        if stream not in begun:
            begun.add(stream)
            begin(stream)

    return on_end


def answers_endlessly(connection, over, count):
    side = Side(connection, over, count)
    side.send(frame(SETTINGS, 0, 0, struct.pack(">HI", 3, 2**31 - 1)))

    def begin(stream):
        side.send(frame(HEADERS, END_HEADERS, stream, answer()))
        side.windows[stream] = WINDOW_SIZE
        side.pump(stream)

    side.read(lambda _: None, once(begin), first_preface=True)


def answers_in_part(connection, over, count):
    """As much of an answer of 1 MB as windows allow, and never its end."""
    side = Side(connection, over, count)
    side.send(frame(SETTINGS, 0, 0, struct.pack(">HI", 3, 2**31 - 1)))

    def begin(stream):
        side.send(frame(HEADERS, END_HEADERS, stream, answer()) + frame(DATA, 0, stream, struct.pack(">BI", 0, 1 << 20)))
        side.windows[stream] = WINDOW_SIZE - 5
        side.connection_window -= 5
        side.pump(stream)

    side.read(lambda _: None, once(begin), first_preface=True)


def answers_and_ends(connection, over, count):
    """Whole answers, as large as a window."""
    side = Side(connection, over, count)
    side.send(frame(SETTINGS, 0, 0, struct.pack(">HI", 3, 2**31 - 1)))

    def begin(stream):
        side.send(frame(HEADERS, END_HEADERS, stream, answer()))
        side.windows[stream] = WINDOW_SIZE
        side.pump(stream)
        side.windows.pop(stream, None)
        side.send(frame(HEADERS, END_HEADERS | END_STREAM, stream, field("grpc-status", b"0")))

    side.read(lambda _: None, once(begin), first_preface=True)


# Name: how callers call, and what the function does.
RELAYS = {
    "bodies without a window": (call, takes_nothing),
    "bodies that are not read": (call, reads_nothing),
    "bodies byte by byte": (lambda a, o, c: call(a, o, c, unit=1), takes_nothing),
    "much metadata": (lambda a, o, c: call(a, o, c, more=metadata(7)), takes_nothing),
    "metadata behind requests": (
        lambda a, o, c: call(a, o, c, sends=False, trailers=metadata(7)), takes_nothing),
    "metadata behind misses": (
        lambda a, o, c: run_function(a, o, c, 50, CONNECTIONS // 2, 100, trailers=metadata(7)), takes_nothing),
    "endless answers without a window": (
        lambda a, o, c: call(a, o, c, settings=NO_WINDOW, sends=False), answers_endlessly),
    "endless answers that are not read": (
        lambda a, o, c: call(a, o, c, settings=LARGE_WINDOW, sends=False, deaf=True), answers_endlessly),
    "whole answers without a window": (
        lambda a, o, c: call(a, o, c, settings=NO_WINDOW, sends=False), answers_and_ends),
    "misses of 60 KB, the function hangs": (
        lambda a, o, c: run_function(a, o, c, 60_000, CONNECTIONS // 2, 100), takes_nothing),
    "misses of 1 MB, the function hangs": (
        lambda a, o, c: run_function(a, o, c, 1 << 20, CONNECTIONS // 2, 20), takes_nothing),
    "misses of 100 MB, the function hangs": (
        lambda a, o, c: run_function(a, o, c, 100 << 20, 2, 2), takes_nothing),
    "all ask for the same 60 KB, the function hangs": (
        lambda a, o, c: run_function(a, o, c, 60_000, CONNECTIONS // 2, 100, distinct=False), takes_nothing),
    "answers in part, the function hangs": (
        lambda a, o, c: run_function(a, o, c, 50, CONNECTIONS // 2, 25), answers_in_part),
    "idle streams": (lambda a, o, c: call(a, o, c, unit=0), takes_nothing),
}
