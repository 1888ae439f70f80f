"""What a system under test is, and how it is started."""

import os
import sys
from pathlib import Path
from typing import Literal

import msgspec

from floodway_lab.systems.installing import installed, python_of

_HERE = Path(__file__).parent

Link = Literal["tcp", "kafka"]
"""How events come to a system: it pulls from a socket, or reads a Kafka topic."""


class System(msgspec.Struct, frozen=True):
    """A system under test.

    Attributes
    ----------
    name, title
        What it is called.
    program
        What Python runs: a module of Floodway, or a file in `peers`.
    cases
        The workloads it is written for.
    tuning
        How it is set up, in words.
    cannot
        Why it is not written for others, by workload.
    requirements, jars
        What its environment has, exactly, from pip and from Maven; a system without any runs in
        that of Floodway.
    home
        Whose environment that is, if it shares one.
    links
        What it can read, the best first.
    first_rate
        The rate with which the search for the highest one begins, events per second. More than is
        likely to be sustained: what a system takes then is a good guess, and soon known. With a
        topic in between it is not, and the search begins below.
    starts_s
        How much longer than the others it takes until it works as it does for the rest of its life;
        searches and comparisons add that to its warm-up.
    ends
        Whether it is told that there will be no more events, and lets everything out then.
    options
        What it is told besides its task.
    sources
        The folders that its modules are taken from, if they are not those that are installed.
    """

    name: str
    title: str
    program: str
    cases: frozenset[str]
    tuning: str = ""
    cannot: dict[str, str] = {}
    requirements: tuple[str, ...] = ()
    jars: tuple[str, ...] = ()
    home: str = ""
    links: tuple[Link, ...] = ("tcp",)
    first_rate: float = 2_000_000.0
    starts_s: float = 0.0
    ends: bool = True
    options: dict[str, str] = {}
    sources: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """The name of its environment."""
        return self.home or self.name

    def command(self, task: Path) -> list[str]:
        """Return how it is started for a task."""
        if not self.requirements:
            return [sys.executable, "-m", self.program, str(task)]
        return [str(python_of(self.place)), str(_HERE / "peers" / self.program), str(task)]

    def environment(self) -> dict[str, str]:
        """Return the environment variables that it is started with."""
        if self.requirements:
            return {**os.environ, "PYTHONPATH": str(_HERE)}
        if self.sources:
            return {**os.environ, "PYTHONPATH": os.pathsep.join(self.sources)}
        return dict(os.environ)

    @property
    def ready(self) -> bool:
        """Whether it can be started."""
        if self.sources:
            return (Path(self.sources[0]) / "floodway").is_dir()
        return not self.requirements or installed(self.place, self.requirements, self.jars)
