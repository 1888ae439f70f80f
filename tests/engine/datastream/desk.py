"""A runner without sockets, threads and a clock of its own, and a driver that is a test."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

from floodway.engine.control.messages import Go, Message, Start, from_frame, to_frame
from floodway.engine.datastream.aside import Aside
from floodway.engine.datastream.chosen import MakePolicy
from floodway.engine.datastream.fifo import Fifo
from floodway.engine.datastream.settings import Settings
from floodway.engine.transport.frame import KIND, Header, Kind, parse
from floodway.engine.worker.runner import DRIVER, Runner
from floodway.plan import Plan
from tests.engine.datastream.fakes import Hands, Shelf

Kinds = TypeVar("Kinds", bound=Message)


class Wire:
    """A mailbox in memory."""

    def __init__(self) -> None:
        self.address = "here"
        self.bad_frames = self.sent_again = 0
        self.ways: dict[int, str] = {}
        self.inbox: list[bytes] = []
        self.sent: list[tuple[int, bytes]] = []
        self.broken: dict[int, float] = {}

    def connect(self, number: int, address: str) -> None:
        self.ways[number] = address

    def send(self, number: int, frame: bytes) -> None:
        self.sent.append((number, frame))

    def drain(self, most: int) -> Iterator[tuple[Header, bytes]]:
        while self.inbox:
            frame = self.inbox.pop(0)
            yield parse(frame), frame

    def down(self) -> dict[int, float]:
        return self.broken

    def pending(self, number: int) -> bool:
        return number in self.broken

    def watch(self, descriptor: int) -> None:
        """Do nothing."""

    def unwatch(self, descriptor: int) -> None:
        """Do nothing."""


class Around:
    """What a runner finds around it, here: a clock that a test moves, and hands that are quick."""

    def __init__(self, scratch: Path, vault: Shelf | None) -> None:
        self.post = Wire()
        self.vault = vault
        self.scratch = scratch
        self.clock = 1_000_000
        self.alone, self.sees = False, True
        self.hands: list[Hands] = []

    def now(self) -> int:
        return self.clock

    def aside(self, name: str) -> Aside:
        self.hands.append(Hands())
        return self.hands[-1]

    def orphaned(self) -> bool:
        return self.alone


class Desk:
    """A runner, and a driver that says what a test wants said."""

    def __init__(
        self,
        scratch: Path,
        plan: Plan,
        *,
        task: int = 0,
        vault: Shelf | None = None,
        launch: int = 0,
        policy: MakePolicy = Fifo,
        **settings: Any,
    ) -> None:
        self.around = Around(scratch, vault)
        self.post = self.around.post
        stages = [(stage.name, index) for stage in plan.stages for index in range(stage.dop)]
        self.count = len(stages)
        options = Settings(**({"metrics": False} | settings))
        self.runner = Runner(
            plan, *stages[task], self.around, options, launch=launch, policy=policy
        )

    def tell(self, *messages: Message) -> None:
        self.post.inbox += [to_frame(message) for message in messages]
        self.turn()

    def start(self, attempt: int = 1, *, go: bool = True, **options: Any) -> None:
        attempts = options.pop("attempts", [attempt] * self.count)
        addresses = [f"at {number}" for number in range(self.count)]
        self.tell(Start(addresses, attempts, **options))
        if go:
            self.tell(Go(["numbers"]))

    def turn(self, times: int = 6) -> None:
        for _ in range(times):
            if not self.runner.over:
                self.around.clock += 2000
                self.runner.turn()

    def said(self, kind: type[Kinds]) -> list[Kinds]:
        """Return what the driver was told, of a kind."""
        found = (from_frame(frame) for number, frame in self.post.sent if number == DRIVER)
        return [message for message in found if isinstance(message, kind)]

    def frames(self, number: int) -> list[tuple[Kind, int]]:
        """Return kind and attempt of what was sent to a task."""
        headers = [parse(frame) for target, frame in self.post.sent if target == number]
        return [(Kind(header[KIND]), header[4]) for header in headers]
