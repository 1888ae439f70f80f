"""Which systems there are, and how each is started."""

import os
import sys
from pathlib import Path

import msgspec

from floodway.bench.systems.flows import FLOWS
from floodway.bench.systems.installing import installed, python_of
from floodway.bench.systems.loop import STEPS
from floodway.core.errors import OptionError


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
    requirements
        What its environment has, exactly; a system without any runs in that of Floodway.
    options
        What it is told besides its task.
    """

    name: str
    title: str
    program: str
    cases: frozenset[str]
    requirements: tuple[str, ...] = ()
    options: dict[str, str] = {}

    def command(self, task: Path) -> list[str]:
        """Return how it is started for a task."""
        if not self.requirements:
            return [sys.executable, "-m", self.program, str(task)]
        return [str(python_of(self.name)), str(_HERE / "peers" / self.program), str(task)]

    def environment(self) -> dict[str, str]:
        """Return the environment variables that it is started with."""
        if not self.requirements:
            return dict(os.environ)
        return {**os.environ, "PYTHONPATH": str(_HERE)}

    @property
    def ready(self) -> bool:
        """Whether it can be started."""
        return not self.requirements or installed(self.name, self.requirements)


_HERE = Path(__file__).parent


def _floodway(mode: str, title: str) -> System:
    return System(
        f"floodway-{mode}",
        f"Floodway, {title}",
        "floodway.bench.systems.flows",
        frozenset(FLOWS),
        options={"mode": mode},
    )


SYSTEMS: dict[str, System] = {
    system.name: system
    for system in (
        _floodway("dual", "as flows run by default"),
        _floodway("data", "record by record, b_out 1000"),
        _floodway("unbatched", "record by record, b_out 1, no fusion"),
        _floodway("operation", "micro-batches only"),
        System(
            "loop",
            "a Python loop by hand, one process",
            "floodway.bench.systems.loop",
            frozenset(STEPS),
        ),
        System(
            "loops",
            "a Python loop by hand, several processes",
            "floodway.bench.systems.loops",
            frozenset({"ads"}),
        ),
        System(
            "bytewax",
            "Bytewax 0.21.1",
            "on_bytewax.py",
            frozenset({"ads", "mean"}),
            ("bytewax==0.21.1", "msgspec==0.22.0"),
        ),
    )
}
"""All there are, by name."""


def needs(name: str) -> bool:
    """Return whether a system has to be installed before it can be started."""
    return bool(SYSTEMS[name].requirements)


def system_named(name: str, case: str) -> System:
    """Return a system that can do a workload."""
    system = SYSTEMS.get(name)
    if system is None:
        raise OptionError(f"there is no system {name!r}", remedy=f"use one of {', '.join(SYSTEMS)}")
    if case not in system.cases:
        raise OptionError(
            f"{name} is not written for the workload {case!r}",
            remedy=f"it can do {', '.join(sorted(system.cases))}",
        )
    if not system.ready:
        raise OptionError(
            f"{name} is not installed", remedy=f"run `floodway bench install {name}` first"
        )
    return system
