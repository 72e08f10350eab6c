# SPDX-License-Identifier: Apache-2.0
"""Callers and functions that are hostile together, with calls that are relayed:
every method but RunFunction. One side sends as much as windows allow, the other
takes nothing."""

import socket
import struct
import threading
import time

from frames import (
    ACK, DATA, END_HEADERS, END_STREAM, HEADERS, PING, PREFACE, RST, SETTINGS, WINDOW,
    answer, field, frame, read_frames, request,
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


def call(address, over, count, settings=b"", unit=16384, more=b"", deaf=False, sends=True):
    """Opens all streams that it may on many connections, and opens one again for
    each that ends."""
    host, _, port = address.rpartition(":")
    block = request(more, path=PATH)

    def one():
        while not over():
            try:
                with socket.create_connection((host, int(port)), 5) as connection:
                    serve(connection)
            except OSError:
                time.sleep(0.05)

    def serve(connection):
        connection.settimeout(5)
        side = Side(connection, over, count, unit)
        side.send(PREFACE + frame(SETTINGS, 0, 0, settings))
        side.next = 1

        def open_one(_=0):
            stream, side.next = side.next, side.next + 2
            pieces = [block[i:i + 16384] for i in range(0, len(block), 16384)]
            side.send(b"".join(
                frame(HEADERS if i == 0 else 9, END_HEADERS if i == len(pieces) - 1 else 0, stream, piece)
                for i, piece in enumerate(pieces)))
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

        def again(_):
            time.sleep(0.001)
            open_one()
            side.pump(side.next - 2)

        side.read(lambda _: None, again)
        time.sleep(0.05)

    threads = [threading.Thread(target=one, daemon=True) for _ in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


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
    "much metadata": (lambda a, o, c: call(a, o, c, more=b"".join(
        field("x-%d" % i, b"v" * 8000) for i in range(7))), takes_nothing),
    "endless answers without a window": (
        lambda a, o, c: call(a, o, c, settings=NO_WINDOW, sends=False), answers_endlessly),
    "endless answers that are not read": (
        lambda a, o, c: call(a, o, c, settings=LARGE_WINDOW, sends=False, deaf=True), answers_endlessly),
    "whole answers without a window": (
        lambda a, o, c: call(a, o, c, settings=NO_WINDOW, sends=False), answers_and_ends),
    "idle streams": (lambda a, o, c: call(a, o, c, unit=0), takes_nothing),
}
