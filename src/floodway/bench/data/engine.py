"""A data engine: a process of its own with a generator and a queue, from which a system pulls.

It is idle until the first system connects. Then every event is generated at its time and put into
the queue, and the system takes from the queue as much as it likes to, through a socket whose buffer
is small. So what a system has taken is known here, outside of it, and so is whether it keeps up.

With a Kafka topic in between, the connection only says that the system is ready, and is closed when
everything is in the topic.
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
from typing import Any

import msgspec

from floodway.bench.data.generating import Generator, Jitter
from floodway.bench.data.judging import Sustaining
from floodway.bench.data.lines import Stretch
from floodway.bench.data.outlets import Filled, Outlet, Pulled
from floodway.bench.data.queueing import Queue, Supply
from floodway.bench.data.schedules import Schedule

CONNECT_S = 180.0
"""How long a system has to connect."""

BUFFER_BYTES = 128 * 1024
"""How much may be between the queue and the system; what it has not read from there counts as
taken."""

TELL_US = 100_000
"""How often it is told how far it is."""

DRAIN_S = 60.0
"""How long a system has to take what is left when everything has been generated."""


class Topic(msgspec.Struct, frozen=True):
    """A partition of a Kafka topic."""

    servers: str
    name: str
    partition: int


class Orders(msgspec.Struct, frozen=True, kw_only=True):
    """What a data engine does.

    Attributes
    ----------
    supply, options
        Which events: something that can be called with the options, and makes a `Supply`.
    schedule, seconds
        When how many are due, and for how long.
    acceptable, tolerated
        The limits of the queue, in events; without them nobody looks at it.
    warm_s
        Nobody looks at it before: systems need some time to get going.
    topic
        Where events go to; without, the system pulls them.
    log
        The file for what was sent, as stretches of lines.
    """

    supply: str
    options: dict[str, Any] = {}
    schedule: Schedule
    seconds: float
    acceptable: int | None = None
    tolerated: int | None = None
    warm_s: float = 0.0
    topic: Topic | None = None
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
    sustained, why
        Whether the system has kept up; why not.
    drained
        Whether it has taken everything in the end.
    jitter
        How late events were generated.
    """

    began_ms: int
    generated: int
    taken: int
    sustained: bool
    why: str
    drained: bool
    jitter: Jitter


Said = Progress | Ending
Tell = Callable[[Any], None]


def run(orders: Orders, supply: Supply, client: socket.socket, tell: Tell) -> Ending:
    """Generate all events for a system that has connected; return the last word."""
    began_us, began_ms = _now_us(), time.time_ns() // 1_000_000
    queue, judge = Queue(supply), _judge(orders)
    generator = Generator(
        orders.schedule,
        orders.seconds,
        queue,
        began_us=began_us,
        began_ms=began_ms,
        judge=judge,
        warm_s=orders.warm_s,
    )
    outlet = _outlet(orders, client, queue)
    told_us = deadline_us = began_us
    while True:
        next_us = generator.turn(_now_us())
        outlet.send()
        now_us = _now_us()
        if now_us >= told_us:
            told_us = now_us + TELL_US
            tell(Progress(time.time_ns() // 1_000_000, queue.put_in, queue.taken))
        if generator.over:
            deadline_us = deadline_us if deadline_us > began_us else now_us + int(DRAIN_S * 1e6)
            if not queue.size or now_us > deadline_us or (judge and not judge.sustained):
                break
            next_us = now_us + TELL_US
        outlet.wait(next_us - now_us)
    outlet.close()
    return Ending(
        began_ms,
        queue.put_in,
        queue.taken,
        judge is None or judge.sustained,
        judge.why if judge is not None else "",
        not queue.size,
        generator.jitter,
    )


def _judge(orders: Orders) -> Sustaining | None:
    if orders.acceptable is None or orders.tolerated is None:
        return None
    return Sustaining(orders.acceptable, orders.tolerated)


def _outlet(orders: Orders, client: socket.socket, queue: Queue) -> Outlet:
    if orders.topic is None:
        return Pulled(client, queue)
    topic = orders.topic
    return Filled(topic.servers, topic.name, topic.partition, queue)


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
    supply = pkgutil.resolve_name(orders.supply)(**orders.options)
    with suppress(BrokenPipeError):  # nobody listens any more
        try:
            serve(orders, supply, tell)
        except OSError as error:  # the system has gone, or has never come
            sys.exit(f"the data engine was left alone: {error}")


def _now_us() -> int:
    return time.monotonic_ns() // 1000


if __name__ == "__main__":
    main()
