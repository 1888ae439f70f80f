"""A data engine: a process of its own with a generator and a queue, from which a system pulls.

It is idle until the first system connects. Then every event is generated at its time and put into
the queue, and the system takes from the queue as much as it likes to, through a socket whose buffer
is small. So what a system has taken is known here, outside of it, and so is whether it keeps up.
"""

import os
import pkgutil
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import msgspec

from floodway.demo.sending.generating import Generator
from floodway.demo.sending.lines import Stretch
from floodway.demo.sending.outlets import Outlet
from floodway.demo.sending.queueing import Queue, Supply

CONNECT_S = 180.0
"""How long a system has to connect."""

BUFFER_BYTES = 128 * 1024
"""How much may be between the queue and the system; what it has not read from there counts as
taken."""

TELL_US = 100_000
"""How often it is told how far it is."""


class Named(msgspec.Struct, frozen=True):
    """Something that a data engine is to use: what makes it, as ``module:name``, with options."""

    name: str
    options: dict[str, Any] = {}

    @classmethod
    def of(cls, struct: msgspec.Struct) -> Self:
        """Return how to make a struct again, in another process."""
        kind = type(struct)
        return cls(f"{kind.__module__}:{kind.__qualname__}", msgspec.structs.asdict(struct))

    def make(self, *given: Any, **also: Any) -> Any:
        """Make it, of what the data engine gives, and with the options."""
        return pkgutil.resolve_name(self.name)(*given, **also, **self.options)


GENERATED = Named("floodway.demo.sending.generating:Generator")
"""Every event is generated at its time, and nobody looks at the queue."""

PULLED = Named("floodway.demo.sending.outlets:Pulled")
"""The system pulls its events."""


class Orders(msgspec.Struct, frozen=True, kw_only=True):
    """What a data engine does.

    Attributes
    ----------
    supply
        Which events: a `Supply`.
    schedule, seconds
        When how many are due: a `Schedule`; and for how long.
    generator
        What puts them into the queue: a `Generator`.
    outlet
        How they leave it: an `Outlet`.
    log
        The file for what was sent, as stretches of lines.
    """

    supply: Named
    schedule: Named
    seconds: float
    generator: Named = GENERATED
    outlet: Named = PULLED
    log: str | None = None


class Progress(msgspec.Struct, frozen=True, tag=True):
    """How far it is: when that was, since 1970, and how many events were generated and taken."""

    time_ms: int
    generated: int
    taken: int


class Ending(msgspec.Struct, frozen=True, tag=True):
    """The last word.

    Attributes
    ----------
    began_ms
        When the first event was due.
    generated, taken
        How many events there were, and how many of them the system has taken.
    drained
        Whether it has taken everything in the end.
    noted
        What the generator has noted.
    """

    began_ms: int
    generated: int
    taken: int
    drained: bool
    noted: dict[str, Any]


Said = Progress | Ending
Tell = Callable[[Any], None]


def run(orders: Orders, supply: Supply, client: socket.socket, tell: Tell) -> Ending:
    """Generate all events for a system that has connected; return the last word."""
    began_us, began_ms = _now_us(), time.time_ns() // 1_000_000
    queue = Queue(supply)
    generator: Generator = orders.generator.make(
        orders.schedule.make(), orders.seconds, queue, began_us=began_us, began_ms=began_ms
    )
    outlet: Outlet = orders.outlet.make(client, queue)
    told_us = deadline_us = began_us
    while True:
        next_us = generator.turn(_now_us())
        outlet.send()
        now_us = _now_us()
        if now_us >= told_us:
            told_us = now_us + TELL_US
            tell(Progress(time.time_ns() // 1_000_000, queue.put_in, queue.taken))
        if generator.over:
            if deadline_us == began_us:
                deadline_us = now_us + int(generator.drain_s * 1e6)
            if not queue.size or now_us >= deadline_us:
                break
            next_us = now_us + TELL_US
        outlet.wait(next_us - now_us)
    outlet.close()
    return Ending(began_ms, queue.put_in, queue.taken, not queue.size, generator.noted)


def serve(orders: Orders, supply: Supply, tell: Tell) -> None:
    """Wait for a system, give it everything, and say how that went."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER_BYTES)
        server.settimeout(CONNECT_S)
        tell(server.getsockname()[1])
        client, _ = server.accept()
    with client:
        ending = run(orders, supply, client, tell)
    if orders.log is not None:
        sent: list[Stretch] = getattr(supply, "sent", [])
        Path(orders.log).write_bytes(msgspec.msgpack.encode(sent))
    tell(ending)


def main() -> None:
    """Follow the orders in the argument, and end when standard input does."""

    def wait_for_the_end() -> None:
        os.read(0, 1)  # not sys.stdin, whose lock this thread would hold at the end
        os._exit(0)  # what else is going on is of no use to anybody

    def tell(what: Any) -> None:
        sys.stdout.buffer.write(msgspec.json.encode(what) + b"\n")
        sys.stdout.buffer.flush()

    threading.Thread(target=wait_for_the_end, daemon=True).start()
    orders = msgspec.json.decode(sys.argv[1], type=Orders)
    supply = orders.supply.make()
    with suppress(BrokenPipeError):  # nobody listens any more
        try:
            serve(orders, supply, tell)
        except OSError as error:  # the system has gone, or has never come
            sys.exit(f"the data engine was left alone: {error}")


def _now_us() -> int:
    return time.monotonic_ns() // 1000


if __name__ == "__main__":
    main()
