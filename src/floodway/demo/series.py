"""What was seen of a flow over time, and what follows from it for a summary and a picture."""

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from floodway.demo.drawing import Span
from floodway.demo.timing import Timed

RATE_S = 1.0
"""Rates are those of so long: micro-batches come to their end all at once."""


PROBES, CELL = 200, 10
"""So many probes there are in a second, and so many in a cell."""


class Phase(msgspec.Struct, frozen=True):
    """A stretch of time with a load of its own, in events per second."""

    name: str
    seconds: float
    per_second: int


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


def quantiles(ordered: Sequence[float]) -> dict[str, float]:
    """Return the percentiles of latencies that are in order; nothing if there are none.

    >>> quantiles([1.0, 2.0, 3.0, 4.0])
    {'p50': 2.0, 'p90': 4.0, 'p99': 4.0, 'max': 4.0}
    """
    shares = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0} if ordered else {}
    return {name: round(percentile(ordered, share), 3) for name, share in shares.items()}


class Latencies:
    """How long results took, by when their events were due, in seconds since the first one.

    Attributes
    ----------
    pairs
        When (s), and how long it took (ms), in order.

    Examples
    --------
    >>> late = Latencies.of([Timed(1_000, 30.0), Timed(1_200, 10.0), Timed(3_000, 5.0)], 1_000)
    >>> late.took(0, 1), late.over(1.0)[0]
    ([10.0, 30.0], Point(t=0.5, count=2, p50=10.0, p99=30.0))
    """

    def __init__(self, pairs: Iterable[tuple[float, float]]) -> None:
        self.pairs = sorted(pairs)
        self._at = [at for at, _ in self.pairs]

    @classmethod
    def of(cls, timed: Iterable[Timed], began_ms: int) -> "Latencies":
        """Return the latencies of results that were timed."""
        return Latencies(((due_ms - began_ms) / 1000, took_ms) for due_ms, took_ms in timed)

    def probed(self) -> "Latencies":
        """Return how long events took that were due at regular times, `PROBES` a second.

        A result is told as old as the latest event in it, and where a flow is slow there are few.
        So time is cut into cells of so many probes each. Where results are of events that were due
        in a cell, its probes took as long as those; otherwise until the first result of later ones.

        Examples
        --------
        >>> batches = Latencies([(0.01, 5.0), (0.19, 30.0)])  # the second at 0.22 s
        >>> [round(took) for _, took in batches.probed().pairs[::CELL]]
        [5, 145, 95, 30]
        """
        cells: dict[int, list[tuple[float, float]]] = {}
        length_s = CELL / PROBES
        for at, took in self.pairs:
            cells.setdefault(int(at / length_s), []).append((took, 1000 * at + took))
        found, over_ms = list[tuple[float, float]](), math.inf
        for cell in range(max(cells, default=-1), -1, -1):
            start = cell * length_s
            known = sorted(cells.get(cell, ()))
            over_ms = min([over_ms, *(came for _, came in known)])
            all_took = [took for took, _ in known] or [over_ms - 1000 * (start + length_s / 2)]
            for probe in range(CELL):
                at = start + probe / PROBES
                found.append((at, all_took[(2 * probe + 1) * len(all_took) // (2 * CELL)]))
        return Latencies(found)

    def took(self, start_s: float, stop_s: float) -> list[float]:
        """Return the latencies of events that were due in a stretch of time, in order (ms)."""
        first, last = bisect_left(self._at, start_s), bisect_left(self._at, stop_s)
        return sorted(took for _, took in self.pairs[first:last])

    def over(self, every_s: float) -> list[Point]:
        """Return the latency of each stretch of so long that has any."""
        found = []
        for number in range(int(self._at[-1] / every_s) + 1 if self._at else 0):
            took = self.took(number * every_s, (number + 1) * every_s)
            if took:
                middle = (number + 0.5) * every_s
                found.append(
                    Point(middle, len(took), percentile(took, 0.5), percentile(took, 0.99))
                )
        return found


def spans(samples: Sequence[Sample], operator: str) -> list[Span]:
    """Return in which paradigm an operator worked when.

    Examples
    --------
    >>> seen = [
    ...     Sample(t, 0, 0, 0, {}, {"views": "data" if t < 2 else "operation"}) for t in range(4)
    ... ]
    >>> [(span.start, span.stop, span.kind) for span in spans(seen, "views")]
    [(0, 2, 'data'), (2, 3, 'operation')]
    """
    found: list[Span] = []
    for sample in samples:
        paradigm = sample.paradigms.get(operator, "data")
        if found:
            found[-1] = msgspec.structs.replace(found[-1], stop=sample.t)
        if not found or found[-1].kind != paradigm:
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
        From when an event was due to its result: ``p50``, ``p90``, ``p99`` and ``max``.
    probes
        How many probes that is of; see `Latencies.probed`.
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
    phases: Sequence[Phase], samples: Sequence[Sample], late: Latencies
) -> list[PhaseFigures]:
    """Return what was measured in each phase."""
    found, start = [], 0.0
    for phase in phases:
        end = start + phase.seconds
        inside = [sample for sample in samples if start <= sample.t <= end]
        found.append(_figures(phase, inside, late.took(start, end)))
        start = end
    return found


def _figures(phase: Phase, inside: Sequence[Sample], took: Sequence[float]) -> PhaseFigures:
    passed = inside[-1].t - inside[0].t if len(inside) > 1 else 0.0
    return PhaseFigures(
        phase.name,
        phase.seconds,
        phase.per_second,
        (inside[-1].processed - inside[0].processed) / passed if passed else 0.0,
        quantiles(took),
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
