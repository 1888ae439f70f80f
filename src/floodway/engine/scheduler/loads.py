"""What the scheduler sees: the stages and their links, and what was measured of each stage."""

from math import isfinite
from typing import Self, TypeVar

import msgspec

from floodway.core.errors import EngineError
from floodway.engine.control.report import port_name
from floodway.engine.opstream.halves import takes_partials
from floodway.model.tuning import Paradigm, Pin
from floodway.operators.base import MAIN
from floodway.operators.sink import Sink
from floodway.plan.stages import Plan

DIGITS = 4
"""So many digits of a measured number mean something; more would only make the story longer."""

S = TypeVar("S", bound=msgspec.Struct)


class OutletLoad(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a stage hands on of one of its operators, over all exchanges that carry it.

    Attributes
    ----------
    operator, b_out
        Whose output it is, and its present batch size.
    records_per_s, frames_per_s
        What is handed on; every reading stage's copy counts.
    """

    operator: str
    b_out: int
    records_per_s: float = 0.0
    frames_per_s: float = 0.0

    @property
    def batch(self) -> float:
        """The records in one frame on average (thesis, definition 36); 0 if nothing was sent."""
        return self.records_per_s / self.frames_per_s if self.frames_per_s else 0.0


class StageLoad(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is measured of a stage at a moment, over all its tasks.

    What is None has not been measured yet; `Settings` has a first guess for each.

    Attributes
    ----------
    stage, paradigm, pin
        Which stage it is, how it works now, and what a user wants.
    able, why_not
        Whether it can be switched, that is, whether it has a remote half; if not, why.
    tasks, slots
        How many tasks it has, and how many processes there are for micro-batches.
    arrival_per_s
        V: the records that arrive.
    queue_records
        L: the records that wait: in input caches, in batches that are out, and outside as far as
        the source can tell.
    saturated
        Whether a source's connector always had more while its tasks were never idle. Then there is
        a queue outside that nobody can see, and L counts as unbounded.
    data_per_s
        P_D: records processed per second of busy time, times the degree of parallelism.
    operation_per_s
        P_O: records processed per second of the time that jobs take beyond `schedule_s`.
    out_per_in
        Lambda: the records handed on to other stages for each one processed, all copies counted.
    returned
        How many records come back to the owner for each one that goes to a micro-batch.
    transmit_data_s, transmit_operation_s, schedule_s, interval_s
        t_dt, t_ot, t_s, T.
    fetch_ns, cpu_ns, emit_ns
        What one record costs in the data paradigm, as it is with the present batch sizes.
    busy, blocked
        Which share of the time it is at work, and without room for output.
    outlets
        What it hands on.
    handed
        The records a second that leave through each port of its operators; every reading stage's
        copy counts.
    """

    stage: str
    paradigm: Paradigm = "data"
    pin: Pin = "auto"
    able: bool = True
    why_not: str | None = None
    tasks: int = 1
    slots: int = 2
    arrival_per_s: float = 0.0
    queue_records: int = 0
    saturated: bool = False
    data_per_s: float | None = None
    operation_per_s: float | None = None
    out_per_in: float | None = None
    returned: float = 0.0
    transmit_data_s: float | None = None
    transmit_operation_s: float | None = None
    schedule_s: float | None = None
    interval_s: float | None = None
    fetch_ns: float = 0.0
    cpu_ns: float = 0.0
    emit_ns: float = 0.0
    busy: float = 0.0
    blocked: float = 0.0
    outlets: tuple[OutletLoad, ...] = ()
    handed: dict[str, float] = {}

    @property
    def idle(self) -> float:
        """The share of the time without input."""
        return max(0.0, 1.0 - self.busy - self.blocked)

    @property
    def cost_ns(self) -> float:
        """What one record costs (thesis, equation 3.8)."""
        return self.fetch_ns + self.cpu_ns + self.emit_ns

    @property
    def free(self) -> bool:
        """Whether the scheduler may switch it."""
        return self.able and self.pin == "auto"

    def outlet(self, operator: str) -> OutletLoad | None:
        """Return what it hands on of an operator."""
        return next((outlet for outlet in self.outlets if outlet.operator == operator), None)

    def rounded(self) -> Self:
        """Return the load as it is decided on, and told: with few digits."""
        return msgspec.structs.replace(
            rounded(self),
            outlets=tuple(map(rounded, self.outlets)),
            handed={port: _short(rate) for port, rate in self.handed.items()},
        )


def rounded(struct: S) -> S:
    """Return a struct with short numbers.

    Examples
    --------
    >>> rounded(OutletLoad("views", 10, 123456.7, 12345.67))
    OutletLoad(operator='views', b_out=10, records_per_s=123500.0, frames_per_s=12350.0)
    """
    short = {
        name: _short(value)
        for name, value in msgspec.structs.asdict(struct).items()
        if isinstance(value, float)
    }
    return msgspec.structs.replace(struct, **short)


def _short(value: float) -> float:
    return float(f"{value:.{DIGITS}g}") if isfinite(value) else 0.0


class Link(msgspec.Struct, frozen=True, omit_defaults=True):
    """An edge between stages: who sends what to whom, through which port of an operator.

    `combines` says whether micro-batches of the sender do the receiver's first half: then what
    they hand on is already combined, and much less.
    """

    sender: str
    receiver: str
    operator: str
    combines: bool = False
    port: str = MAIN

    @property
    def name(self) -> str:
        """The port that it leaves through, as reports call it."""
        return port_name(self.operator, self.port)


class Topology(msgspec.Struct, frozen=True):
    """The stages of a flow and how they are linked; any graph without circles.

    Attributes
    ----------
    stages
        Each stage after those it reads from.
    links
        The edges between them. An operator that several stages read has one for each.
    sources, sinks
        The stages that read from outside, and those that contain nothing but sinks.

    Raises
    ------
    EngineError
        If a link leads back, or to where there is no stage.
    """

    stages: tuple[str, ...]
    links: tuple[Link, ...] = ()
    sources: frozenset[str] = frozenset()
    sinks: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        place = {stage: number for number, stage in enumerate(self.stages)}
        for link in self.links:
            if place.get(link.sender, len(place)) >= place.get(link.receiver, -1):
                raise EngineError(
                    f"stage {link.receiver!r} cannot read from {link.sender!r}",
                    remedy="name every stage once, each after those it reads from",
                )

    @classmethod
    def of(cls, plan: Plan) -> Self:
        """Return the topology of a plan."""
        links = (
            Link(e.sender, e.receiver, e.edge.operator.name, takes_partials(plan, e), e.edge.port)
            for e in plan.exchanges
        )
        return cls(
            stages=tuple(stage.name for stage in plan.stages),
            links=tuple(dict.fromkeys(links)),
            sources=frozenset(stage.name for stage in plan.stages if stage.sources),
            sinks=frozenset(
                stage.name
                for stage in plan.stages
                if all(isinstance(operator, Sink) for operator in stage.operators)
            ),
        )

    def leaving(self, stage: str) -> tuple[Link, ...]:
        """Return the links over which a stage sends."""
        return tuple(link for link in self.links if link.sender == stage)

    def entering(self, stage: str) -> tuple[Link, ...]:
        """Return the links over which a stage receives."""
        return tuple(link for link in self.links if link.receiver == stage)
