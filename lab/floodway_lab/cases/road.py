"""Linear Road, as in Figure 4.10 of the thesis: position, average speed, traffic, toll.

Cars report where they are and how fast. Invalid reports are dropped; *agg* takes the average speed
per segment and minute; *block* tells how many reports that were; *mv* takes the average of the last
five minutes of agg, anew every minute; *toll* makes a price of it. A minute lasts a second here:
otherwise a run would have to last for half an hour.
"""

import random
from typing import Any

import msgspec

from floodway.demo.sending.lines import HOLE, PREPARED
from floodway_lab.cases.base import Case, Shape
from floodway_lab.cases.keys import Keys
from floodway_lab.sending.sent import CaseSent
from floodway_lab.systems.events import Report

MINUTE_MS = 1_000
"""How long a minute lasts."""

MINUTES = 5
"""So many minutes go into the moving average."""

CROWDED = 40.0
"""Below this average speed a segment costs a toll."""


class Road(Case):
    """The traffic per segment and minute, and the toll per segment and five minutes."""

    name = "road"
    title = "Linear Road: average speed per segment and minute, traffic, toll of five minutes"
    keys = Keys(100)
    open_ms = (MINUTES + 2) * MINUTE_MS

    def lines(self, shape: Shape) -> list[bytes]:
        """Return events of about 110 bytes; one of 100 is not valid."""
        rng = random.Random(shape.seed)
        numbers, end = (shape.keys or self.keys).draw(PREPARED, rng), shape.end()
        return [
            b'{"type":0,"time":%s,"car":%d,"speed":%d,"expressway":0,"lane":%d,"direction":0,'
            b'"segment":%d,"position":%d'
            % (
                HOLE,
                rng.randrange(50_000),
                -1 if number % 100 == 0 else rng.randrange(10, 30 + segment % 60),
                rng.randrange(5),
                segment,
                segment * 5_280 + rng.randrange(5_280),
            )
            + end
            for number, segment in enumerate(numbers)
        ]

    def hints(self) -> dict[str, Any]:
        """Return the windows, and when there is a toll."""
        return {"minute_ms": MINUTE_MS, "minutes": MINUTES, "crowded": CROWDED}

    def expected(self, sent: CaseSent) -> dict[tuple[Any, int], Any]:
        """Add up per minute; then take every five minutes."""
        decode = msgspec.json.Decoder(Report).decode
        reports = [decode(line.replace(HOLE, b"0")) for line in sent.lines]
        keys = [report.segment if report.speed >= 0 else None for report in reports]
        sums = sent.per_window(keys, [report.speed for report in reports], MINUTE_MS)
        counts = sent.per_window(keys, [1] * len(keys), MINUTE_MS)
        found: dict[tuple[Any, int], Any] = {}
        for minute, often in counts.items():
            found |= {(f"block-{segment}", minute): count for segment, count in often.items()}
        whole = MINUTES * MINUTE_MS
        for start in {m - back for m in counts for back in range(0, whole, MINUTE_MS)}:
            speeds: dict[int, list[float]] = {}
            for minute in range(start, start + whole, MINUTE_MS):
                for segment, count in counts.get(minute, {}).items():
                    speeds.setdefault(segment, []).append(sums[minute][segment] / count)
            for segment, means in speeds.items():
                found[f"toll-{segment}", start] = toll(sum(means) / len(means))
        return found


def toll(speed: float) -> float:
    """Return what a segment costs.

    >>> toll(50.0), toll(30.0)
    (0.0, 200.0)
    """
    return 2 * (CROWDED - speed) ** 2 if speed < CROWDED else 0.0
