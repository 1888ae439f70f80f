"""deduplicate: one of the records that tell the same thing, in event time and bounded memory."""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from floodway.core.duration import show_ms
from floodway.operators.base import LATE, MAIN, Fact, Kernel, Operator, Outputs
from floodway.operators.code import Snippet, grouping
from floodway.operators.facts import Facts, State, passing
from floodway.operators.history import Expiry
from floodway.operators.keyed import Space
from floodway.operators.lag import Held
from floodway.operators.lookup_facts import NEVER
from floodway.operators.on_error import ErrorHandler, OnError
from floodway.operators.partitioning import Hash, Partitioning

Keep = Literal["first", "last"]


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class Deduplicate(Operator):
    """Drops records that have the same key as another less than ``ttl`` away, in event time.

    What stays leaves as it came, with the key that the stream had. Null is a key like any other.
    Dropped records are counted as ``duplicates``. A record older than stream time minus the
    retention is late, and nobody's duplicate.

    ``first``
        A record is sent at once, unless one of its key was sent less than ``ttl`` before or after
        its timestamp. So no two results of a key are closer than that, and none is ever taken back:
        an earlier record that comes after a later one was sent is a duplicate. One at exactly
        ``ttl`` is none. Of equal timestamps the record that comes first stays.
    ``last``
        A record is dropped if another follows it by less than ``ttl``, whether or not that one is
        followed itself: a key is sent when it has paused, and one that never pauses, at the end of
        the input. A result is sent once stream time minus the retention has passed its timestamp by
        ``ttl``, when no other can follow, so any order of arrival gives an equivalent result. Of
        equal timestamps the record that comes last stays.

    A key is forgotten when stream time minus the retention has passed its records by ``ttl``.

    Examples
    --------
    >>> from floodway import Flow
    >>> from floodway.testing import run
    >>> words = Flow("words").source("words", schema=str)
    >>> heard = [(1, "hi"), (5, "hi"), (2, "yo"), (9, "hi"), (11, "hi")]
    >>> run(words.deduplicate("value", ttl=10), heard)
    [(1, 'hi'), (2, 'yo'), (11, 'hi')]
    >>> words = Flow("words").source("words", schema=str)
    >>> run(words.deduplicate("value", ttl=10, keep="last"), heard)
    [(2, 'yo'), (11, 'hi')]
    """

    group: tuple[Snippet, ...]
    keep: Keep
    ttl_ms: int
    retention_ms: int
    on_error: OnError = "fail"

    @property
    def _held(self) -> Held | None:
        """The last of a key is sent when no other can follow."""
        return Held(self.ttl_ms + self.retention_ms) if self.keep == "last" else None

    @property
    def facts(self) -> Facts:
        """Records meet by what they are compared by, and not by the key that they leave with."""
        return passing(keys="scattered", away="no", held=self._held, emit=None, joins=None)

    def state(self, *, versioned: bool = False) -> State:
        """Remember when records were sent, or those that wait."""
        return State(kernel=KERNELS[self.keep], layout="", versions=False, inputs="nothing")

    def details(self) -> Mapping[str, str]:
        """Return what is compared, which record stays, and the times."""
        return {
            "by": ", ".join(snippet.text for snippet in self.group),
            "keep": self.keep,
            "ttl": show_ms(self.ttl_ms),
            "retention": show_ms(self.retention_ms),
        }

    def partitioning(self, port: int) -> Partitioning:
        """Return what brings records that may be the same together."""
        return Hash(self.group)

    def kernel(self, outputs: Outputs, *, versioned: bool = False) -> Kernel:
        """Return a kernel that keeps the first or the last."""
        return KERNELS[self.keep](self, outputs)


class DeduplicateKernel(Kernel):
    """What both kernels have in common: late records, groups, and what is to be looked at when."""

    remembers = ("state", "_expiry", "_horizon")
    keyed = ("state",)
    derived = ("_expiry",)

    def __init__(self, operator: Deduplicate, outputs: Outputs) -> None:
        self._group = grouping(operator.group)
        self._ttl, self._retention = operator.ttl_ms, operator.retention_ms
        self._out, self._late = outputs[MAIN], outputs[LATE]
        self.handlers = [ErrorHandler(operator, operator.on_error, outputs)]
        self.state: Space[Any, Any] = Space()
        self._expiry = Expiry()
        self._horizon = NEVER

    def process(self, port: int, rows: Sequence[Fact]) -> None:
        """Compare each record with those of its group."""
        for fact in rows:
            if fact[0] < self._horizon:
                self._late.append(fact)
                continue
            try:
                group = self._group(fact[2], fact[1])
            except Exception as error:
                self.handlers[0](error, *fact)
                continue
            self._take(group, fact)

    def _take(self, group: Any, fact: Fact) -> None:
        raise TypeError(f"{type(self).__name__} takes no record")  # pragma: no cover


class FirstKernel(DeduplicateKernel):
    """Keeps for each group, in order, the timestamps of the records that it has sent."""

    def _take(self, group: Any, fact: Fact) -> None:
        timestamp, times = fact[0], self.state.get(group) or []
        # They are at least the ttl apart: only the one before and the one after can be near.
        after = bisect_right(times, timestamp)
        if (after and timestamp - times[after - 1] < self._ttl) or (
            after < len(times) and times[after] - timestamp < self._ttl
        ):
            self.duplicates += 1
            return
        times.insert(after, timestamp)
        self.state[group] = times
        self._expiry.add(timestamp + self._ttl, group)
        self._out.append(fact)

    def advance(self, stream_time: int) -> None:
        """Forget the timestamps that no record which may still come is near to."""
        self._horizon = stream_time - self._retention
        for _, group in self._expiry.due(self._horizon):
            times = self.state.get(group) or []
            past = bisect_right(times, self._horizon - self._ttl)
            if past and past == len(times):
                del self.state[group]
            elif past:
                del times[:past]
                self.state.touch(group)

    def loaded(self, name: str, namespace: Any, key: Any, row: list[int]) -> None:
        """See that the timestamps of a group are back."""
        for timestamp in row:
            self._expiry.add(timestamp + self._ttl, key)


class LastKernel(DeduplicateKernel):
    """Keeps the runs of each group in order: where one starts, and the last record of it.

    In a run each record follows another by less than the ttl.
    """

    def _take(self, group: Any, fact: Fact) -> None:
        timestamp, runs = fact[0], self.state.get(group) or []
        # They are at least the ttl apart: only the one before and the one after can be near.
        first = end = bisect_right(runs, timestamp, key=_first)
        if first and timestamp - runs[first - 1][1][0] < self._ttl:
            first -= 1
        if end < len(runs) and runs[end][0] - timestamp < self._ttl:
            end += 1
        near = runs[first:end]
        starts = not near or timestamp < near[0][0]
        start = timestamp if starts else near[0][0]
        last = near[-1][1] if near and near[-1][1][0] > timestamp else fact
        self.duplicates += len(near)
        runs[first:end] = [(start, last)]
        self.state[group] = runs
        if starts:
            self._expiry.add(last[0] + self._ttl, (group, start))

    def advance(self, stream_time: int) -> None:
        """Send the last records of the runs that are over."""
        self._horizon = stream_time - self._retention
        over = [self._look(*each) for _, each in self._expiry.due(self._horizon)]
        self._out.extend(sorted((last for last in over if last is not None), key=_first))

    def _look(self, group: Any, start: int) -> Fact | None:
        """Forget a run that is over, and return its last record; look at others again later."""
        runs = self.state.get(group) or []
        place = bisect_left(runs, start, key=_first)
        if place == len(runs) or runs[place][0] != start:
            return None  # it has become part of another
        last: Fact = runs[place][1]
        if last[0] + self._ttl > self._horizon:
            self._expiry.add(last[0] + self._ttl, (group, start))
            return None
        if len(runs) == 1:
            del self.state[group]
        else:
            del runs[place]
            self.state.touch(group)
        return last

    def loaded(self, name: str, namespace: Any, key: Any, row: list[tuple[int, Fact]]) -> None:
        """See that the runs of a group are back."""
        for start, last in row:
            self._expiry.add(last[0] + self._ttl, (key, start))

    def finish(self) -> None:
        """Nothing follows any more: send the last records of all runs."""
        last = [last for _, runs in self.state.everything() for _, last in runs]
        self.state.clear()
        self._out.extend(sorted(last, key=_first))


KERNELS: dict[Keep, type[DeduplicateKernel]] = {"first": FirstKernel, "last": LastKernel}


def _first(each: tuple[Any, ...]) -> Any:
    return each[0]
