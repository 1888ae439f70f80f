"""The functions of Flink's DataStream workloads; its workers import this."""

import uuid
from collections.abc import Iterable
from typing import Any

from kit import Results, Task
from pyflink.common import Types
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import (
    AggregateFunction,
    FlatMapFunction,
    KeyedProcessFunction,
    ProcessWindowFunction,
    RuntimeContext,
)
from pyflink.datastream.state import ListStateDescriptor, MapStateDescriptor


class HandOver(FlatMapFunction):
    """Hands results over, in the process in which they come out; nothing comes after it."""

    def __init__(self, task: Task, *, tally: bool = False) -> None:
        self._task, self._tally = task, tally

    def open(self, context: RuntimeContext) -> None:
        # The number of the subtask is not known in thread mode.
        self._results = Results(self._task, uuid.uuid4().hex)
        self._take = self._results.tally if self._tally else self._results.put

    def flat_map(self, value: Any) -> Iterable[Any]:
        self._take((value,))
        return ()

    def close(self) -> None:
        self._results.close()


class Counting(KeyedProcessFunction):
    """How many a key has, by window."""

    def open(self, context: RuntimeContext) -> None:
        kind = MapStateDescriptor("counts", Types.LONG(), Types.LONG())
        self._counts = context.get_map_state(kind)

    def process_element(self, value: Any, context: Any) -> Iterable[Any]:
        key, window, more, time_ms = value
        count = (self._counts.get(window) or 0) + more
        self._counts.put(window, count)
        return ((key, window, count, time_ms),)


class Averaging(KeyedProcessFunction):
    """The mean of a key, by window; windows overlap."""

    def __init__(self, size: int, hop: int) -> None:
        self._backs = range(0, size, hop)

    def open(self, context: RuntimeContext) -> None:
        kind = MapStateDescriptor("sums", Types.LONG(), Types.TUPLE([Types.LONG(), Types.LONG()]))
        self._sums = context.get_map_state(kind)

    def process_element(self, value: Any, context: Any) -> Iterable[Any]:
        (geo, hop), added, often, time_ms = value
        for back in self._backs:
            whole, number = self._sums.get(hop - back) or (0, 0)
            whole, number = whole + added, number + often
            self._sums.put(hop - back, (whole, number))
            yield geo, hop - back, whole / number, time_ms


class Joining(KeyedProcessFunction):
    """Offers and sales of an item that are not far apart: PyFlink has no interval join."""

    def __init__(self, within: int) -> None:
        self._within = within

    def open(self, context: RuntimeContext) -> None:
        kind = Types.TUPLE([Types.LONG(), Types.LONG()])
        self._sides = [
            context.get_list_state(ListStateDescriptor(name, kind)) for name in ("offers", "sales")
        ]

    def process_element(self, value: Any, context: Any) -> Iterable[Any]:
        _, sold, time_ms, price = value
        for other_ms, other in self._sides[1 - sold]:
            if abs(time_ms - other_ms) <= self._within:
                yield price - other if sold else other - price, max(time_ms, other_ms)
        self._sides[sold].add((time_ms, price))
        context.timer_service().register_event_time_timer(time_ms + self._within)

    def on_timer(self, timestamp: int, context: Any) -> Iterable[Any]:
        for side in self._sides:
            held = list(side)
            kept = [each for each in held if each[0] + self._within > timestamp]
            if len(kept) < len(held):
                side.update(kept)
        return ()


class Clicks(AggregateFunction):
    """How many clicks, and the time of the last."""

    def create_accumulator(self) -> Any:
        return 0, 0, 0

    def add(self, value: Any, accumulator: Any) -> Any:
        user, time_ms = value
        return user, accumulator[1] + 1, max(time_ms, accumulator[2])

    def get_result(self, accumulator: Any) -> Any:
        return accumulator

    def merge(self, one: Any, other: Any) -> Any:
        return max(one[0], other[0]), one[1] + other[1], max(one[2], other[2])


class Speeds(AggregateFunction):
    """A sum, how many, and the latest time."""

    def create_accumulator(self) -> Any:
        return 0.0, 0, 0

    def add(self, value: Any, accumulator: Any) -> Any:
        _, whole, number, time_ms = value
        return accumulator[0] + whole, accumulator[1] + number, max(accumulator[2], time_ms)

    def get_result(self, accumulator: Any) -> Any:
        return accumulator

    def merge(self, one: Any, other: Any) -> Any:
        return one[0] + other[0], one[1] + other[1], max(one[2], other[2])


class OfWindow(ProcessWindowFunction):
    """Adds the key and the beginning of the window."""

    def process(self, key: int, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        return [(key, context.window().start, *each) for each in elements]


class Blocks(HandOver):
    """Hands over how many reports there were; the average speed goes on."""

    def flat_map(self, value: Any) -> Iterable[Any]:
        segment, start, whole, number, time_ms = value
        self._take(((f"block-{segment}", start, number, time_ms),))
        return ((segment, whole / number, 1, time_ms),)


class Field(TimestampAssigner):
    """The time of an event is in a field of it."""

    def __init__(self, number: int) -> None:
        self._number = number

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return value[self._number]
