# SPDX-License-Identifier: Apache-2.0
"""What a connection takes of a daemon's memory while it stands idle after a
call, as most of those of a cluster do. Part of the scale section."""

import socket
import ssl
import time
from pathlib import Path
from typing import Dict, List, Optional

from .. import spread, targets
from ..bench import Bench
from ..http2 import call_on, connect
from ..processes import Failure, resident_bytes, run_tool
from ..servers import Server, first_program

# The first ones pay for what the process has once.
FIRST = 100
# A call without a message's bytes: what is measured is the connection.
EMPTY = b"\0" * 5
# For the daemon to have written, and given back, what it does at once.
SETTLED_SECONDS = 0.3
CONNECTIONS_A_SECOND = 700


def seconds(connections: int) -> float:
    return 2 * (FIRST + connections) / CONNECTIONS_A_SECOND + 3


def measure(bench: Bench, connections: int) -> None:
    with bench.group() as group:
        function = group.limit()
        _row(bench, group.fncache("idle", function.address), connections)
    certificates = _certificates(bench)
    if certificates is None:
        bench.skip("idle connections over TLS", "openssl is not installed")
        return
    with bench.group() as group:
        function = group.limit()
        server = group.fncache(
            "idle over TLS", function.address, "--tls-dir", str(certificates)
        )
        _row(bench, server, connections, certificates)


def _row(
    bench: Bench,
    server: Server,
    connections: int,
    certificates: Optional[Path] = None,
) -> None:
    kind = "tls" if certificates else "plaintext"
    bench.progress.say(f"{connections:,} idle connections, {kind}")
    context = None
    if certificates:
        context = ssl.create_default_context(cafile=certificates / "tls.crt")
        context.set_alpn_protocols(["h2"])
    opened: List[socket.socket] = []
    resident: Dict[int, int] = {}
    try:
        for count in (FIRST, FIRST + connections):
            while len(opened) < count:
                opened.append(_connect(server.address, context))
                call_on(opened[-1], server.address, EMPTY)
            time.sleep(SETTLED_SECONDS)
            resident[len(opened)] = resident_bytes(server.child.pid)
    except OSError as error:
        raise Failure(f"connection {len(opened):,}: {error}") from error
    finally:
        for connection in opened:
            connection.close()
    bench.progress.spent(seconds(connections) / 2)
    grown = resident[FIRST + connections] - resident[FIRST]
    bench.results.value(
        f"scale/idle/{kind}",
        f"{'TLS' if certificates else 'plaintext'}, {connections:,} connections",
        "resident size per connection that is idle after a call",
        "B",
        spread.estimate([grown / connections]),
        targets.IDLE_BYTES[kind],
    )


def _connect(
    address: str, context: Optional[ssl.SSLContext]
) -> socket.socket:
    connection = connect(address)
    if context is None:
        return connection
    return context.wrap_socket(connection, server_hostname="localhost")


def _certificates(bench: Bench) -> Optional[Path]:
    """A folder with a certificate of its own; None: nothing here makes one."""
    folder = bench.nursery.directory / "certificates"
    folder.mkdir()
    openssl = first_program(["openssl"])
    if openssl is None:
        return None
    command = [openssl, "req", "-x509", "-newkey", "ec"]
    command += ["-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-days", "2", "-subj", "/CN=localhost"]
    command += ["-addext", "subjectAltName=DNS:localhost"]
    command += ["-keyout", folder / "tls.key", "-out", folder / "tls.crt"]
    done = run_tool(command, 30)
    if done.returncode:
        raise Failure(f"openssl: {done.stderr.strip()}")
    return folder
