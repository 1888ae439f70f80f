"""From how long tasks have worked, to what a record and a batch cost.

In every stretch of time a task has worked for so long on so many records, which came and left in so
many batches. With batches of several sizes, that is as many equations of the form of 3.8 of the
thesis, ``busy = c_cpu * records + c_fetch * batches in + c_emit * batches out``; the costs are
those that fit best. A task that waits has to wake up, which is work, too, and which a task at its
capacity does not have; so it has a cost of its own and does not add to the others.
"""

import random
from collections.abc import Iterator, Sequence
from itertools import combinations
from operator import add
from typing import Self

import msgspec
import numpy as np

DRAWS = 200
"""So many times stretches are drawn anew, to see how much costs depend on chance."""

SHARE = 0.95
"""Of so many of those draws, an interval has the costs."""

LEAST = 4
"""From fewer stretches nothing follows."""


class WorkStretch(msgspec.Struct, frozen=True):
    """What a task has done in a stretch of time.

    Attributes
    ----------
    busy_s
        How long it worked.
    records, records_out, bytes_out
        What it has processed and sent.
    frames_in, frames_out
        In how many batches that came and left.
    sleeps
        How often it waited.
    """

    busy_s: float
    records: int
    records_out: int
    bytes_out: int
    frames_in: int
    frames_out: int
    sleeps: int

    def __add__(self, later: Self) -> Self:
        return type(self)(*map(add, *map(msgspec.structs.astuple, (self, later))))


class Estimate(msgspec.Struct, frozen=True):
    """A figure, and the bounds within which it lies in 95 of 100 cases."""

    value: float
    low: float
    high: float


class Fitted(msgspec.Struct, frozen=True):
    """What an operator of the model costs, in nanoseconds, and what comes out of it.

    Attributes
    ----------
    c_cpu_ns, c_fetch_ns, c_emit_ns
        For a record, for a batch that comes, for a batch that leaves.
    selectivity, record_bytes
        Records that leave for each that comes, and how large they are.
    error
        By which share the time that follows from the costs differs from the measured one, on
        average.
    records
        How many records that was found with.
    """

    c_cpu_ns: Estimate
    c_fetch_ns: Estimate
    c_emit_ns: Estimate
    selectivity: Estimate
    record_bytes: float
    error: float
    records: int


def fit(
    stretches: Sequence[WorkStretch], *, fetches: bool, emits: bool, seed: int = 1
) -> Fitted | None:
    """Return the costs that fit best; None if too little has happened.

    Parameters
    ----------
    stretches
        What the task has done.
    fetches, emits
        Whether batches come to it and leave it; a source fetches none and a sink emits none.
    seed
        Of what is left to chance in the intervals.

    Examples
    --------
    A record costs 2,000 ns, a batch that leaves 5,000 ns:

    >>> found = fit(
    ...     [
    ...         WorkStretch(
    ...             records * 2e-6 + batches * 5e-6, records, records, records * 8, 0, batches, 0
    ...         )
    ...         for records, batches in [(1000, 1000), (5000, 500), (9000, 9), (7000, 70)]
    ...     ],
    ...     fetches=False,
    ...     emits=True,
    ... )
    >>> round(found.c_cpu_ns.value), round(found.c_emit_ns.value), found.c_fetch_ns.value
    (2000, 5000, 0.0)
    """
    useful = [each for each in _whole(stretches) if each.busy_s > 0]
    if len(useful) < LEAST:
        return None
    given = _equations(useful, fetches=fetches, emits=emits)
    best = _solved(given)
    rng = random.Random(seed)
    draws = [rng.choices(range(len(useful)), k=len(useful)) for _ in range(DRAWS)]
    costs = np.array([_solved(given[draw]) for draw in draws])
    cpu, fetch, emit, _ = (_estimate(best[n], costs[:, n]) for n in range(4))
    passed = np.array([(each.records, each.records_out) for each in useful], dtype=float)
    ratios = np.array([_ratio(passed[draw]) for draw in draws])
    sent = sum(each.records_out for each in useful)
    return Fitted(
        c_cpu_ns=cpu,
        c_fetch_ns=fetch,
        c_emit_ns=emit,
        selectivity=_estimate(_ratio(passed), ratios),
        record_bytes=sum(each.bytes_out for each in useful) / sent if sent else 0.0,
        error=float(np.mean(np.abs(given @ best / 1e9 - 1))),
        records=sum(each.records for each in useful),
    )


def _whole(stretches: Sequence[WorkStretch]) -> Iterator[WorkStretch]:
    """Join stretches without a record to the next that has some.

    A task is told of when it has worked on a batch. If that took several stretches, all of them
    were work on it.
    """
    so_far: WorkStretch | None = None
    for each in stretches:
        so_far = each if so_far is None else so_far + each
        if so_far.records > 0:
            yield so_far
            so_far = None


def _equations(stretches: Sequence[WorkStretch], *, fetches: bool, emits: bool) -> np.ndarray:
    """Return what a nanosecond of work was for; so every stretch counts the same, however long."""
    rows = [
        (
            each.records / each.busy_s,
            each.frames_in / each.busy_s if fetches else 0.0,
            each.frames_out / each.busy_s if emits else 0.0,
            each.sleeps / each.busy_s,
        )
        for each in stretches
    ]
    return np.array(rows)


def _solved(given: np.ndarray) -> np.ndarray:
    """Return the costs, in nanoseconds, that fit best of those of which none is below zero.

    Where the best have one below zero, others are zero in the best that have none: there are so few
    that all ways are tried. A record always costs something, whatever noise says of it.
    """
    size = np.linalg.norm(given, axis=0)
    there = [n for n in range(given.shape[1]) if size[n]]
    wanted = np.full(len(given), 1e9)
    best, least = np.zeros(given.shape[1]), float("inf")
    for count in range(len(there), 0, -1):
        for some in combinations(there, count):
            columns = list(some)
            found = np.linalg.lstsq(given[:, columns] / size[columns], wanted, rcond=None)[0]
            off = float(np.linalg.norm(given[:, columns] / size[columns] @ found - wanted))
            if some[0] == there[0] and off < least and found[0] > 0 and (found >= 0).all():
                best = np.zeros(given.shape[1])
                best[columns], least = found / size[columns], off
        if least < float("inf") and count == len(there):
            break  # nothing that leaves one out fits better
    return best


def _ratio(passed: np.ndarray) -> float:
    return float(passed[:, 1].sum() / passed[:, 0].sum())


def _estimate(value: float, draws: np.ndarray) -> Estimate:
    tail = 50 * (1 - SHARE)
    low, high = np.percentile(draws, (tail, 100 - tail))
    return Estimate(float(value), float(min(low, value)), float(max(high, value)))
