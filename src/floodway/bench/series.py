"""What was seen of a flow over time, and what follows from it for a summary and a picture."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from floodway.bench.flooding import Phase
from floodway.bench.timing import Timed

RATE_S = 1.0
"""Rates are those of so long: micro-batches come to their end all at once."""


class Sample(msgspec.Struct, frozen=True):
    """A flow at a moment.

    Attributes
    ----------
    t
        Seconds since the first event was due.
    due, taken, processed
        How many events should have been sent, were taken by a socket, and were processed.
    queue
        How many records wait inside of the flow, by stage.
    paradigms
        How each operator works.
    """

    t: float
    due: int
    taken: int
    processed: int
    queue: dict[str, int]
    paradigms: dict[str, str]


class Point(msgspec.Struct, frozen=True):
    """The latency of the events that were due about a moment, in milliseconds."""

    t: float
    count: int
    p50: float
    p99: float


class Span(msgspec.Struct, frozen=True):
    """A time in which an operator worked in one paradigm."""

    start: float
    end: float
    paradigm: str


def rates(samples: Sequence[Sample], what: str) -> list[tuple[float, float]]:
    """Return how fast a number has grown: times, and events per second.

    Examples
    --------
    >>> seen = [Sample(t / 4, 0, 0, 100 * t, {}, {}) for t in range(6)]
    >>> rates(seen, "processed")[-1]
    (1.25, 400.0)
    """
    times = [sample.t for sample in samples]
    found = []
    for place, sample in enumerate(samples):
        before = samples[max(bisect_left(times, sample.t - RATE_S), 0)]
        if place and sample.t > before.t:
            grown = getattr(sample, what) - getattr(before, what)
            found.append((sample.t, grown / (sample.t - before.t)))
    return found


def percentile(ordered: Sequence[float], share: float) -> float:
    """Return a percentile of numbers in order.

    >>> percentile([1, 2, 3, 4], 0.5), percentile([1, 2, 3, 4], 0.99)
    (2, 4)
    """
    return ordered[max(0, -int(-len(ordered) * share // 1) - 1)]


def latencies(timed: Iterable[Timed], began_ms: int, *, every_s: float) -> list[Point]:
    """Return the latency over time: that of the events due in each stretch."""
    stretches: dict[int, list[float]] = {}
    for due_ms, took_ms in timed:
        stretches.setdefault(int((due_ms - began_ms) / 1000 / every_s), []).append(took_ms)
    found = []
    for number, values in sorted(stretches.items()):
        values.sort()
        middle = (number + 0.5) * every_s
        found.append(Point(middle, len(values), percentile(values, 0.5), percentile(values, 0.99)))
    return found


def spans(samples: Sequence[Sample], operator: str) -> list[Span]:
    """Return in which paradigm an operator worked when.

    Examples
    --------
    >>> seen = [
    ...     Sample(t, 0, 0, 0, {}, {"views": "data" if t < 2 else "operation"}) for t in range(4)
    ... ]
    >>> [(span.start, span.end, span.paradigm) for span in spans(seen, "views")]
    [(0, 2, 'data'), (2, 3, 'operation')]
    """
    found: list[Span] = []
    for sample in samples:
        paradigm = sample.paradigms.get(operator, "data")
        if found:
            found[-1] = msgspec.structs.replace(found[-1], end=sample.t)
        if not found or found[-1].paradigm != paradigm:
            found.append(Span(sample.t, sample.t, paradigm))
    return found


class PhaseFigures(msgspec.Struct, frozen=True):
    """What was measured of the events that were due in a phase.

    Attributes
    ----------
    name, seconds, per_second
        The phase, and the events that were due in a second.
    processed_per_s
        How many events were processed in a second of it.
    latency_ms
        From when a probe was due to its result: ``p50``, ``p90``, ``p99`` and ``max``.
    probes
        How many probes there were.
    waiting
        The most events that were due and not processed.
    paradigms
        For each operator, the share of the time in each paradigm.
    """

    name: str
    seconds: float
    per_second: int
    processed_per_s: float
    latency_ms: dict[str, float]
    probes: int
    waiting: int
    paradigms: dict[str, dict[str, float]]


def figures(
    phases: Sequence[Phase], samples: Sequence[Sample], timed: Sequence[Timed], began_ms: int
) -> list[PhaseFigures]:
    """Return what was measured in each phase."""
    found, start = [], 0.0
    for phase in phases:
        end = start + phase.seconds
        inside = [sample for sample in samples if start <= sample.t <= end]
        took = sorted(t.took_ms for t in timed if start <= (t.due_ms - began_ms) / 1000 < end)
        found.append(_figures(phase, inside, took))
        start = end
    return found


def _figures(phase: Phase, inside: Sequence[Sample], took: Sequence[float]) -> PhaseFigures:
    quantiles = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}
    passed = inside[-1].t - inside[0].t if len(inside) > 1 else 0.0
    return PhaseFigures(
        phase.name,
        phase.seconds,
        phase.per_second,
        (inside[-1].processed - inside[0].processed) / passed if passed else 0.0,
        {name: round(percentile(took, share), 2) for name, share in quantiles.items()}
        if took
        else {},
        len(took),
        max((sample.due - sample.processed for sample in inside), default=0),
        _shares(inside),
    )


def _shares(inside: Sequence[Sample]) -> dict[str, dict[str, float]]:
    seen: dict[str, Counter[str]] = {}
    for sample in inside:
        for operator, paradigm in sample.paradigms.items():
            seen.setdefault(operator, Counter())[paradigm] += 1
    return {
        operator: {paradigm: round(n / counts.total(), 3) for paradigm, n in counts.items()}
        for operator, counts in seen.items()
    }
