"""Linear Road as the thesis has it (figure 4.10), as a flow that can be planned and run at a rate.

The *spout* hands raw lines on, *parse* reads them and drops what is not valid, *agg* takes the
average speed per segment and minute, *block* is told of the traffic, *mv* takes the average of five
minutes and *toll* makes a price of that. As in the workload `road`, a minute lasts a second. Spout
and parse are one stage, since records pass between them unmoved, and so are mv and toll.
"""

import random
from dataclasses import dataclass
from typing import Any, ClassVar

import floodway as fw
from floodway.connectors.base import Lag, Raw, Reader, SinkConnector, SourceConnector, Split
from floodway.connectors.discard import DiscardSink
from floodway.connectors.rate import Schedule
from floodway_lab.cases.road import MINUTE_MS, toll
from floodway_lab.systems.flows import speeds

LINES = 10_000
"""So many lines are made up; then they come again."""

POSITION = 0
"""What kind of report it is."""

NOT_ASKED = [-1] * 6
"""What a report says where others have a question: which one, and about what."""

FASTEST, LANES, SEGMENTS, SEGMENT_FEET = 100, 5, 100, 5_280
"""The bounds of what a report may say."""

NOWHERE = DiscardSink()
FIELDS = 15
PLANNED_PER_S = 100_000
"""With so many reports per second, a minute of the road is a second of the run. With more, a slow
machine would not come to the end of a minute while it finds out what the flow costs."""


@dataclass(frozen=True)
class RoadSource(SourceConnector):
    """Gives raw position reports, however fast they are taken (an open loop).

    Attributes
    ----------
    per_second
        How many per second; as many as are taken if not given.

    Examples
    --------
    >>> RoadSource().open(Split()).poll(1)
    [(0, None, '0,0,37303,14,0,2,0,17,90725,-1,-1,-1,-1,-1,-1')]
    """

    replayable: ClassVar[bool] = True
    most = None

    per_second: float | None = None

    @property
    def timed(self) -> bool:
        """A report has the time of its number."""
        return True

    def open(self, split: Split, position: Any = None) -> Reader:
        """Return a reader of every n-th report."""
        return _RoadReader(Schedule(split, self.per_second, None, position or 0), self.per_second)


class _RoadReader(Reader):
    keyed = True

    def __init__(self, schedule: Schedule, per_second: float | None) -> None:
        self._schedule, self._lines = schedule, made_up()
        self._per_ms = max(int((per_second or PLANNED_PER_S) / 1000), 1)

    def poll(self, limit: int) -> Raw | None:
        lines, per_ms = self._lines, self._per_ms
        return [(n // per_ms, None, lines[n % LINES]) for n in self._schedule.take(limit)]

    def position(self) -> Any:
        return self._schedule.done

    def lag(self) -> Lag:
        return self._schedule.lag()


def made_up(*, seed: int = 1) -> list[str]:
    """Return lines as Linear Road has them; one of 100 is not valid."""
    rng, lines = random.Random(seed), []
    for number in range(LINES):
        segment = rng.randrange(SEGMENTS)
        fields = (
            POSITION,
            number // 100,
            rng.randrange(50_000),
            -1 if number % 100 == 99 else rng.randrange(10, 30 + segment % 60),
            0,
            rng.randrange(LANES),
            0,
            segment,
            segment * SEGMENT_FEET + rng.randrange(SEGMENT_FEET),
            *NOT_ASKED,
        )
        lines.append(",".join(map(str, fields)))
    return lines


class Report(fw.Record, frozen=True):
    """A position report."""

    car: int
    segment: int
    speed: int


def linear_road(
    source: SourceConnector | None,
    *,
    block: SinkConnector | str = NOWHERE,
    tolls: SinkConnector | str = NOWHERE,
) -> fw.Flow:
    """Return the flow; `block` gets the traffic of each minute, `tolls` every toll."""
    flow = fw.Flow("linear-road", retention=MINUTE_MS)
    lines = flow.source("spout", source, schema=str)
    agg, mv = speeds(lines.flat_map(read_report, schema=Report, name="parse"))
    agg.to(block, name=None if isinstance(block, str) else "block")
    prices = mv.map(_toll, schema=float, name="toll")
    prices.to(tolls, name=None if isinstance(tolls, str) else "tolls")
    return flow


def read_report(line: str) -> list[Report]:
    """Return the report that a line is, if it is a valid one.

    >>> read_report("0,7,44,61,0,2,0,36,190842,-1,-1,-1,-1,-1,-1")
    [Report(car=44, segment=36, speed=61)]
    >>> read_report("0,7,44,-1,0,2,0,36,190842,-1,-1,-1,-1,-1,-1")
    []
    """
    fields = line.split(",")
    if len(fields) != FIELDS:
        return []
    kind, time, car, speed, way, lane, direction, segment, position, *query = map(int, fields)
    valid = (
        kind == POSITION
        and time >= 0
        and car >= 0
        and 0 <= speed <= FASTEST
        and way >= 0
        and 0 <= lane < LANES
        and direction in (0, 1)
        and 0 <= segment < SEGMENTS
        and position // SEGMENT_FEET == segment
        and query == NOT_ASKED
    )
    return [Report(car, segment, speed)] if valid else []


def _toll(change: Any) -> float:
    return toll(change.value)
