"""Tuning: what a user says about how an operator runs, never about what it computes."""

from typing import Literal, get_args

import msgspec

from floodway.core.duration import Duration
from floodway.core.errors import OptionError

Batching = Literal["distinct", "shared"]

Paradigm = Literal["data", "operation"]
"""How a stage works: record by record as they come, or in micro-batches on Spark."""

Pin = Literal["auto", "data", "operation"]
"""The paradigm a user wants: record by record, in micro-batches, or whichever suits the load."""


class Tuning(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """How an operator runs; None leaves a choice to the configuration.

    Attributes
    ----------
    dop
        The degree of parallelism: how many tasks share the operator's work.
    b_out
        The output batch size: the most records that travel in one frame.
    linger
        The longest a record may wait for its batch to fill; with zero, the task sends what it has
        whenever it has nothing else to do.
    batching
        With several consumers: ``distinct`` buffers for each of their tasks, or ``shared`` ones,
        encoded once for all consumers (thesis, section 3.4).
    isolate
        Whether the operator gets a stage of its own instead of being fused with its neighbours.
    paradigm
        ``data`` (record by record) or ``operation`` (in micro-batches on Spark) pins the operator;
        with ``auto`` the scheduler chooses, and chooses again as the load changes. Operators with
        different pins are not fused.
    """

    dop: int | None = None
    b_out: int | None = None
    linger: Duration | None = None
    batching: Batching | None = None
    isolate: bool = False
    paradigm: Pin | None = None

    def over(self, other: "Tuning") -> "Tuning":
        """Return this tuning, completed by another where it leaves a choice."""
        return Tuning(
            dop=self.dop if self.dop is not None else other.dop,
            b_out=self.b_out if self.b_out is not None else other.b_out,
            linger=self.linger if self.linger is not None else other.linger,
            batching=self.batching or other.batching,
            isolate=self.isolate or other.isolate,
            paradigm=self.paradigm or other.paradigm,
        )

    def check(self) -> None:
        """Refuse what makes no sense."""
        for option in ("dop", "b_out"):
            value = getattr(self, option)
            if value is not None and (type(value) is not int or value < 1):
                raise OptionError(
                    f"{option}={value!r} is not a number of at least 1",
                    remedy=f"give {option} as a whole number, 1 or more",
                )
        if self.batching is not None and self.batching not in get_args(Batching):
            raise OptionError(
                f"batching={self.batching!r} is not a batching scheme",
                remedy=f"use one of: {', '.join(get_args(Batching))}",
            )
        if self.paradigm is not None and self.paradigm not in get_args(Pin):
            raise OptionError(
                f"paradigm={self.paradigm!r} is not a paradigm",
                remedy=f"use one of: {', '.join(get_args(Pin))}",
            )
