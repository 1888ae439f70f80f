"""Windowed join: offers and sales of the same item that are not far apart in time.

An item is offered once and sold once. Lines are sent again and again, so the number of the lap is
part of an item's: two events match as often as they come, not as often as the square of that.
"""

import random
from collections.abc import Sequence
from typing import Any

import msgspec

from floodway.demo.sending.lines import HOLE, PREPARED
from floodway_lab.cases.base import Case, Shape, Tally
from floodway_lab.cases.keys import Keys
from floodway_lab.sending.lines import LAP
from floodway_lab.sending.sent import CaseSent
from floodway_lab.systems.events import Trade

WITHIN_MS = 2_000
"""How far apart an offer and a sale may be."""

APART = 2_000
"""An item is sold within so many lines after or before it was offered."""

PAIRS = PREPARED // 2


class Join(Case):
    """What a sale has brought above what was offered, of all sales within two seconds."""

    name = "join"
    title = "windowed join: offers and sales of the same item within 2 s"
    keys = Keys(PAIRS)

    def lines(self, shape: Shape) -> list[bytes]:
        """Return events of about 70 bytes: time, kind, item, price."""
        end = shape.end()
        return [
            b'{"time":%s,"kind":"%s","item":%s%05d,"price":%d' % (HOLE, kind, LAP, item, price)
            + end
            for kind, item, price in _events(shape.seed)
        ]

    def hints(self) -> dict[str, Any]:
        """Return how far apart two events may be."""
        return {"within_ms": WITHIN_MS}

    def expected(self, sent: CaseSent) -> dict[tuple[Any, int], Any]:
        """Look at both events of each item, in each lap."""
        pairs = {part.seed: _pairs(part.lines) for part in sent.parts}
        tally = Tally()
        for lap in sent.laps():
            times = lap.times_ms
            for offered, sold, gain in pairs[lap.part.seed]:
                if offered < len(times) and sold < len(times):
                    first, second = times[offered], times[sold]
                    if abs(first - second) <= WITHIN_MS:
                        tally.add(gain, max(first, second))
        return tally.found()


def _events(seed: int) -> list[tuple[bytes, int, int]]:
    """Return kind, item and price of each line; both lines of an item are near each other."""
    rng = random.Random(seed)
    places: list[tuple[float, bytes, int, int]] = []
    for item in range(PAIRS):
        at = rng.uniform(0, PREPARED)
        places.append((at, b"offer", item, rng.randrange(100, 200)))
        places.append((at + rng.uniform(-APART, APART), b"sale", item, rng.randrange(100, 300)))
    return [(kind, item, price) for _, kind, item, price in sorted(places)]


def _pairs(lines: Sequence[bytes]) -> list[tuple[int, int, int]]:
    """Return of each item the line of the offer, that of the sale, and what was gained."""
    decode = msgspec.json.Decoder(Trade).decode
    sides: dict[str, dict[int, tuple[int, int]]] = {"offer": {}, "sale": {}}
    for line, text in enumerate(lines):
        trade = decode(text.replace(HOLE, b"0").replace(LAP, b"1"))
        sides[trade.kind][trade.item] = line, trade.price
    sales = sides["sale"]
    return [
        (line, sales[item][0], sales[item][1] - price)
        for item, (line, price) in sides["offer"].items()
    ]
