"""The results of a run over time: latency, and what was taken at the queues."""

from bisect import bisect_left
from collections.abc import Sequence

from floodway.demo.sending.engine import Progress
from floodway.demo.series import Latencies, percentile
from floodway.demo.timing import Timed
from floodway_lab.runs.experiment import Latency

SHARES = (0.5, 0.9, 0.99, 0.999)
CDF = (*(n / 100 for n in range(1, 100)), *(0.99 + n / 1000 for n in range(1, 11)))
"""The shares of which a distribution is told."""


def taken_per_s(histories: Sequence[Sequence[Progress]], warm_s: float) -> float:
    """Return how many events a second were taken after the warm-up, as long as there were any."""
    whole = 0.0
    for history in histories:
        if len(history) < 2:
            continue
        times = [each.time_ms for each in history]
        warm_ms = min(1000 * warm_s, (times[-1] - times[0]) / 2)  # a run may end before that
        first = min(bisect_left(times, times[0] + warm_ms), len(times) - 2)
        last = next((n for n, e in enumerate(history) if e.taken == history[-1].taken), -1)
        last = max(last, first + 1)
        passed = times[last] - times[first]
        whole += (history[last].taken - history[first].taken) / max(passed, 1) * 1000
    return whole


def queue_growth(
    histories: Sequence[Sequence[Progress]], warm_s: float, seconds: float
) -> tuple[int, int]:
    """Return how many events waited at the end, and how many more than after the warm-up.

    Systems that take much at a time have a queue that goes up and down. So it is the shortest of a
    fifth of the time that counts, at both ends.
    """
    fifth = (seconds - warm_s) / 5
    early = sum(_shortest(history, warm_s, warm_s + fifth) for history in histories)
    late = sum(_shortest(history, seconds - fifth, seconds) for history in histories)
    return late, late - early


def _shortest(history: Sequence[Progress], start_s: float, stop_s: float) -> int:
    """Return how many events waited in a stretch of time when there were the fewest."""
    times = [each.time_ms for each in history]
    began_ms = times[0] if times else 0  # a data engine that nobody has connected to says nothing
    first, last = (bisect_left(times, began_ms + 1000 * s) for s in (start_s, stop_s))
    return min((each.generated - each.taken for each in history[first:last]), default=0)


class Series(Latencies):
    """The results of a run over time; seconds are since the first event was due."""

    def __init__(self, timed: Sequence[Timed], began_ms: int, seconds: float) -> None:
        super().__init__(Latencies.of(timed, began_ms).pairs)
        self._seconds = seconds

    def latency(self, start_s: float, stop_s: float) -> Latency | None:
        """Return the latency of events that were due in a stretch of time."""
        took = self.took(start_s, stop_s)
        if not took:
            return None
        p50, p90, p99, p999 = (round(percentile(took, share), 3) for share in SHARES)
        return Latency(p50, p90, p99, p999, round(took[-1], 3), len(took))

    def cdf(self, start_s: float, stop_s: float) -> list[float]:
        """Return the latencies within which each of `CDF` lies."""
        took = self.took(start_s, stop_s)
        return [round(percentile(took, min(share, 1.0)), 3) for share in CDF] if took else []

    def growth(self, warm_s: float) -> tuple[float, float] | None:
        """Return the latency at the beginning, in seconds, and by how much it has grown at the end.

        What a system has taken and not processed shows in nothing else. Each is half of the results
        of a fifth of the time; None if there are none.
        """
        fifth = (self._seconds - warm_s) / 5
        first = self.took(warm_s, warm_s + fifth)
        last = self.took(self._seconds - fifth, self._seconds)
        if not first or not last:
            return None
        early, late = percentile(first, 0.5) / 1000, percentile(last, 0.5) / 1000
        return early, late - early

    def over_time(self, histories: Sequence[Sequence[Progress]]) -> list[dict[str, float]]:
        """Return latency, rate and queue for every second."""
        found = []
        for second in range(int(self._seconds)):
            took = self.took(second, second + 1)
            row: dict[str, float] = {"t": second}
            if took:
                row |= {"p50": percentile(took, 0.5), "p99": percentile(took, 0.99)}
            ends = [_at_second(history, second + 1) for history in histories]
            before = [_at_second(history, second) for history in histories]
            row["taken"] = sum(e.taken for e in ends) - sum(b.taken for b in before)
            row["queued"] = sum(e.generated - e.taken for e in ends)
            found.append({name: round(value, 3) for name, value in row.items()})
        return found


def _at_second(history: Sequence[Progress], second: float) -> Progress:
    if not history:
        return Progress(0, 0, 0)
    times = [each.time_ms for each in history]
    return history[min(bisect_left(times, times[0] + 1000 * second), len(history) - 1)]
