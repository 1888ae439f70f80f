"""What epochs cost: throughput and latency with recovery or a checkpoint against none, in turns.

Machines are noisy, so each figure is taken with and without within one round, in changing order,
and the ratios of the rounds are what to look at.
"""

import statistics
import tempfile
from collections.abc import Callable
from typing import Any, Literal

import msgspec

from floodway_lab.figures import micro
from floodway_lab.figures.machine import Machine
from floodway_lab.figures.micro import Progress

KEYS = 10_000
"""How many keys the count has."""

PER_SECOND = 1000.0
"""The load under which latency is measured."""

Kept = Literal["recovery", "checkpoint"]
"""What a flow keeps: what every flow does by default, or a checkpoint that outlives it."""

AIMS: dict[Kept, tuple[float, float]] = {"recovery": (0.93, 1.2), "checkpoint": (0.85, 2.0)}
"""What the ratios of throughput are to be at least, and of latency at most."""

Measure = Callable[[dict[str, Any]], float]
"""Takes options of a run, and returns a figure."""


class Round(msgspec.Struct, frozen=True):
    """A figure with epochs off and on, one right after the other."""

    off: float
    on: float
    ratio: float


class Comparison(msgspec.Struct, frozen=True):
    """A figure with epochs off and on.

    Attributes
    ----------
    better
        Whether more or less is better.
    aim
        What the ratio is to be at least, or at most.
    off, on, ratio
        The middle of all rounds, each by itself.
    """

    what: str
    unit: str
    better: Literal["more", "less"]
    aim: float
    rounds: list[Round]
    off: float
    on: float
    ratio: float


class EpochsFigure(msgspec.Struct, frozen=True):
    """All comparisons of one run; epochs are committed once a second."""

    machine: Machine
    kept: Kept
    comparisons: list[Comparison]


def epochs(
    progress: Progress, *, scale: float = 1.0, rounds: int = 5, kept: Kept = "checkpoint"
) -> EpochsFigure:
    """Measure everything; `scale` shortens the runs."""
    machine = Machine.here()
    rate, latency = AIMS[kept]
    counted = f"{KEYS:,} keys counted"
    return EpochsFigure(
        machine,
        kept,
        [
            compare("ad pipeline", ads_rate(scale), progress, rounds=rounds, kept=kept, aim=rate),
            compare(counted, count_rate(scale), progress, rounds=rounds, kept=kept, aim=rate),
            compare(
                f"p99 latency at {PER_SECOND:,.0f}/s",
                latency_p99(scale),
                progress,
                rounds=rounds,
                kept=kept,
                unit="ms",
                better="less",
                aim=latency,
            ),
        ],
    )


def compare(
    what: str,
    measure: Measure,
    progress: Progress,
    *,
    rounds: int,
    unit: str = "records/s",
    better: Literal["more", "less"] = "more",
    kept: Kept = "checkpoint",
    aim: float = AIMS["checkpoint"][0],
) -> Comparison:
    """Take a figure without and with epochs, so many times."""
    taken = []
    for number in range(rounds):
        progress(f"{what}, round {number + 1} of {rounds}")
        figures: dict[bool, float] = {}
        for on in (False, True) if number % 2 == 0 else (True, False):
            with tempfile.TemporaryDirectory(prefix="floodway-") as folder:
                figures[on] = measure(_options(kept, folder) if on else {"recovery": False})
        ratio = round(figures[True] / figures[False], 3)
        taken.append(Round(figures[False], figures[True], ratio))
    return Comparison(
        what,
        unit,
        better,
        aim,
        taken,
        statistics.median(each.off for each in taken),
        statistics.median(each.on for each in taken),
        round(statistics.median(each.ratio for each in taken), 3),
    )


def _options(kept: Kept, folder: str) -> dict[str, Any]:
    return {"checkpoint": folder} if kept == "checkpoint" else {}


def ads_rate(scale: float) -> Measure:
    """Return how to measure events per second through the ad pipeline."""

    def measure(options: dict[str, Any]) -> float:
        figure = micro.measure_ads(seconds=max(5 * scale, 1), **options)
        _require(right=figure.correct, what="the ad pipeline")
        return figure.events_per_second

    return measure


def count_rate(scale: float) -> Measure:
    """Return how to measure records per second through a count with many keys."""

    def measure(options: dict[str, Any]) -> float:
        records = int(6_000_000 * scale)
        figure = micro.measure_count(records, dop=1, keys=KEYS, **options)
        _require(right=figure.exact, what="the count")
        return figure.records_per_second

    return measure


def latency_p99(scale: float) -> Measure:
    """Return how to measure the latency that almost no record exceeds."""

    def measure(options: dict[str, Any]) -> float:
        seconds = max(12 * scale, 3)
        figure = micro.measure_latency(per_second=PER_SECOND, seconds=seconds, **options)
        return figure.p99_ms

    return measure


def _require(*, right: bool, what: str) -> None:
    if not right:
        raise AssertionError(f"{what} has a wrong result")
