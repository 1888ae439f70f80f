"""What faults take: servers that can be killed, a cluster, a relay, and clocks that can be set."""

import os
import shutil
from collections.abc import Collection
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from floodway.core.errors import OptionError
from floodway.testing.servers import KafkaServer, RedisServer, Server, ServerUnavailable
from floodway_lab.chaos import clocks
from floodway_lab.chaos.cluster import LoopbackCluster
from floodway_lab.chaos.kinds import Kind
from floodway_lab.chaos.relay import Relay
from floodway_lab.chaos.workload import ECHOED, LETTERS

PARTITIONS = 4
"""Every topic has so many."""

DELAY_S = 0.005
"""The relay takes so long over everything: then a reset finds something on its way."""

FOR_EVER = {"retention.ms": "-1"}
"""Items are dated by their numbers, long ago: a broker would delete them at once."""


class Means:
    """All that the faults of a run take; a context manager.

    Servers end with the thread that has started them, so one thread of its own deals with them.

    Parameters
    ----------
    kinds
        The kinds of faults that are wanted.
    folder
        Where things may be kept.
    tasks
        How many tasks the flow has, at most.
    optional
        The kinds to do without if their servers cannot be had; others are refused then.

    Attributes
    ----------
    without
        The kinds that cannot be had, and why.
    """

    def __init__(
        self, kinds: set[Kind], folder: Path, *, tasks: int, optional: Collection[Kind] = ()
    ) -> None:
        self._kinds, self._folder, self._tasks = kinds, folder, tasks
        self._optional = frozenset(optional)
        self.without: dict[Kind, str] = {}
        self._stack = ExitStack()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="floodway-chaos-servers")
        self._revivals: dict[Server, Future[None]] = {}
        self.kafka: KafkaServer | None = None
        self.redis: RedisServer | None = None
        self.cluster: LoopbackCluster | None = None
        self.relay: Relay | None = None
        self.clocks: Path | None = None

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self._close()
            raise
        return self

    def _start(self) -> None:
        if "broker" in self._kinds:
            kafka = KafkaServer()
            if self._serves(kafka, "broker"):
                self.kafka = kafka
                for topic in (LETTERS, ECHOED):
                    kafka.create_topic(topic, partitions=PARTITIONS, settings=FOR_EVER)
        if "redis" in self._kinds:
            redis = RedisServer(keep=True)
            self.redis = redis if self._serves(redis, "redis") else None
        if "clock" in self._kinds:
            self.clocks = self._folder / "clocks"
            (self.clocks / "site").mkdir(parents=True)
            shutil.copy(clocks.__file__, self.clocks / "site" / "sitecustomize.py")
        if "executor" in self._kinds:
            folder = self._folder / "cluster"
            cluster = LoopbackCluster(folder, cores=self._tasks + 2, environment=self.environment)
            self.cluster = self._stack.enter_context(cluster)
        if "reset" in self._kinds:
            self.relay = self._stack.enter_context(Relay())
            self.relay.delay_s = DELAY_S

    def _serves(self, server: Server, kind: Kind) -> bool:
        """Start a server; return whether it can be had."""
        try:
            self._thread.submit(server.start).result()
        except ServerUnavailable as error:
            if kind not in self._optional:
                raise OptionError(
                    f"{server.name} cannot be killed, since it cannot be had: {error.reason}",
                    remedy=f"install it, or leave out --{kind}-kills",
                ) from None
            self.without[kind] = error.reason
            return False
        self._stack.callback(lambda: self._thread.submit(server.close).result())
        return True

    @property
    def environment(self) -> dict[str, str]:
        """What the flow's processes find in their environment."""
        found: dict[str, str] = {}
        if self.cluster is not None:
            found |= self.cluster.environment
        if self.clocks is not None:
            path = os.environ.get("PYTHONPATH")
            found["PYTHONPATH"] = os.pathsep.join(
                [str(self.clocks / "site"), *([path] if path else [])]
            )
            found[clocks.VARIABLE] = str(self.clocks)
        return found

    def ready(self, server: Server) -> bool:
        """Return whether a server is there, and not only about to be."""
        revival = self._revivals.get(server)
        return server.running and (revival is None or revival.done())

    def revive(self, server: Server) -> "Future[None]":
        """Start a server again on what it had; return at once, with something to wait for."""
        revival = self._revivals[server] = self._thread.submit(server.start)
        return revival

    def bring_back(self) -> None:
        """Start the servers again that are away: who wants to see what is in them needs them."""
        for server in filter(None, (self.kafka, self.redis)):
            self.revive(server).result()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close()

    def _close(self) -> None:
        try:
            self._stack.close()
        finally:
            self._thread.shutdown()
