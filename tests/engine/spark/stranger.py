"""Another user of the machine, who tries to read a flow and to stop it.

``python stranger.py`` takes its orders as JSON from standard input, becomes the user it is told to,
tries everything there is, and prints what it could do. It knows only what everybody can find out:
ports, processes and folders. It imports nothing but the standard library, because that is loaded
before it becomes somebody who may not read it.
"""

import encodings.idna  # noqa: F401 - which is looked for when it is too late
import fcntl
import json
import os
import signal
import socket
import struct
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

PATIENCE_S = 10.0
LARGEST = 1 << 28
CROWD = 40
NONSENSE = bytes(range(256)) * 256
BLOCKS = [f"broadcast_{number}_piece0" for number in range(12)]

# Message types of Spark's network protocol.
CHUNK_REQUEST, CHUNK, RPC, ANSWER, STREAM_REQUEST, STREAM, ONE_WAY = 0, 1, 3, 4, 6, 7, 9


class Wire:
    """A connection to a port of Spark, which has not said who it is."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), PATIENCE_S)

    def __enter__(self) -> "Wire":
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, kind: int, head: bytes, body: bytes = b"") -> None:
        """Send a message."""
        length = 9 + len(head) + len(body)
        self._socket.sendall(struct.pack(">QB", length, kind) + head + body)

    def receive(self) -> tuple[int, bytes]:
        """Return the type of the next message, and the rest of it."""
        length, kind = struct.unpack(">QB", self._exactly(9))
        if not 9 <= length < LARGEST:
            raise ConnectionError("this is no Spark")
        return kind, self._exactly(length - 9)

    def _exactly(self, count: int) -> bytes:
        parts = b""
        while len(parts) < count:
            part = self._socket.recv(count - len(parts))
            if not part:
                raise ConnectionError("closed")
            parts += part
        return parts

    def ends(self) -> None:
        """Wait until the other side has read everything and has nothing to say."""
        self._socket.shutdown(socket.SHUT_WR)
        while self._socket.recv(4096):
            pass


def text(value: str) -> bytes:
    data = value.encode()
    return struct.pack(">i", len(data)) + data


def fetch_block(port: int, block: str) -> bytes:
    """Return a block of Spark's block manager: broadcast 0 holds a task, and that the plan."""
    with Wire(port) as wire:
        order = b"\0" + text("app") + text("driver") + struct.pack(">i", 1) + text(block)
        wire.send(RPC, struct.pack(">qi", 1, len(order)), order)
        kind, answer = wire.receive()
        if kind != ANSWER:
            raise PermissionError(answer[12:200].decode(errors="replace"))
        (stream,) = struct.unpack(">q", answer[13:21])
        wire.send(CHUNK_REQUEST, struct.pack(">qi", stream, 0))
        kind, answer = wire.receive()
        if kind != CHUNK:
            raise PermissionError(answer[12:200].decode(errors="replace"))
        return answer[12:]


def fetch_file(port: int, name: str) -> bytes:
    """Return a file that the driver offers to its executors."""
    with Wire(port) as wire:
        wire.send(STREAM_REQUEST, text(name))
        kind, answer = wire.receive()
        if kind != STREAM:
            raise PermissionError(answer[:200].decode(errors="replace"))
        return answer


def order_driver(port: int, message: bytes) -> None:
    """Send the scheduler of a local Spark a message, which Java has serialised."""
    with Wire(port) as wire:
        name = b"LocalSchedulerBackendEndpoint"
        receiver = b"\1" + struct.pack(">H", 9) + b"127.0.0.1" + struct.pack(">i", port)
        body = b"\0" + receiver + struct.pack(">H", len(name)) + name + message
        wire.send(ONE_WAY, struct.pack(">i", len(body)), body)
        wire.ends()


def ask_py4j(port: int) -> bytes:
    """Ask Java for a class as PySpark does, without its token."""
    with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as client:
        client.sendall(b"r\nu\njava.lang.System\nrj\ne\n")
        answer = client.recv(100)
        if not answer.startswith(b"!yc"):
            raise PermissionError(answer.decode(errors="replace"))
        return answer


def ask_endpoint(port: int) -> bytes:
    """Ask for metrics and for all else that the endpoint has."""
    answers = b""
    for path in ("/status.json", "/metrics", "/story", "/healthz"):
        with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as client:
            client.sendall(f"GET {path} HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
            answer = b""
            while part := client.recv(65536):
                answer += part
        if not answer.startswith(b"HTTP/"):
            raise PermissionError(answer[:100].decode(errors="replace"))
        answers += answer
    return answers


def connect(path: str) -> None:
    """Connect to a Unix socket."""
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(path)


def lock(path: str) -> None:
    """Lock a file that may only be read."""
    with open(path) as file:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)


def listed(folder: str) -> Iterator[str]:
    """Return all that is in a folder, as far as it can be entered."""
    for inside, _, names in os.walk(folder):
        yield from (f"{inside}/{name}" for name in names)


class Tries:
    """What was tried, and how it ended."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.refused: dict[str, str] = {}
        self.loot: list[str] = []

    def attempt(self, what: str, act: Callable[..., Any], *arguments: Any) -> OSError | None:
        """Try something, and note whether it could be done; return why not."""
        try:
            result = act(*arguments)
        except OSError as error:
            self.refused[what] = f"{type(error).__name__}: {error}"
            return error
        self.done.append(what)
        if isinstance(result, bytes):
            self.loot.append(result.decode("latin-1"))
        return None


def everything(orders: dict[str, Any]) -> Tries:
    """Try all there is."""
    tries = Tries()
    at_every_port(orders, partial(ask, tries, orders["offered"]))
    for path in orders["sockets"]:
        tries.attempt(f"connect to {path}", connect, path)
    for path in orders["locks"]:
        tries.attempt(f"lock {path}", lock, path)
    for path in [*orders["files"], *chain.from_iterable(map(listed, orders["folders"]))]:
        tries.attempt(f"read {path}", Path(path).read_bytes)
    for folder in orders["folders"]:
        tries.attempt(f"list {folder}", os.listdir, folder)
    for pid in orders["processes"]:
        for name in ("cmdline", "environ", "maps", "mem"):
            path = f"/proc/{pid}/{name}"
            tries.attempt(f"read {name}", Path(path).read_bytes)
        tries.attempt("list fd", os.listdir, f"/proc/{pid}/fd")
        tries.attempt("signal", os.kill, pid, signal.SIGTERM)
    # What these could do is seen at the flow.
    with ExitStack() as held:
        at_every_port(orders, partial(crowd, held))
        at_every_port(orders, partial(command, orders["messages"]))
    return tries


def at_every_port(orders: dict[str, Any], act: Callable[[int], None]) -> None:
    """Do something at all ports at once: most of it is waiting."""
    with ThreadPoolExecutor(len(orders["ports"])) as pool:
        list(pool.map(act, orders["ports"]))


def ask(tries: Tries, offered: list[str], port: int) -> None:
    """Ask a port for all that somebody may have behind it."""
    for block in BLOCKS:
        reason = tries.attempt(f"fetch {block}", fetch_block, port, block)
        if isinstance(reason, ConnectionError | TimeoutError):
            break  # nobody here speaks of blocks
    for name in offered:
        tries.attempt(f"fetch {name}", fetch_file, port, name)
    tries.attempt("ask Py4J", ask_py4j, port)
    tries.attempt("ask the endpoint", ask_endpoint, port)


def crowd(held: ExitStack, port: int) -> None:
    """Talk nonsense on many connections to a port, and keep them."""
    for _ in range(CROWD):
        with suppress(OSError):
            client = held.enter_context(socket.create_connection(("127.0.0.1", port), PATIENCE_S))
            client.setblocking(False)
            client.send(NONSENSE)


def command(messages: list[str], port: int) -> None:
    """Tell a port to kill tasks."""
    for message in messages:
        with suppress(OSError):
            order_driver(port, bytes.fromhex(message))


def main() -> None:
    """Do as standard input says."""
    orders = json.load(sys.stdin)
    if orders["uid"] is not None:
        os.setgroups([])
        os.setresgid(*[orders["uid"]] * 3)
        os.setresuid(*[orders["uid"]] * 3)
        os.chdir("/")
    tries = everything(orders)
    json.dump({"done": tries.done, "refused": tries.refused, "loot": tries.loot}, sys.stdout)


if __name__ == "__main__":
    main()
