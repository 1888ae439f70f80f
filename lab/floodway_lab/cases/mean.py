"""Windowed aggregation: the mean of a value per key, in windows that overlap."""

import random
from collections import Counter
from typing import Any

import msgspec

from floodway.demo.sending.lines import HOLE, PREPARED
from floodway_lab.cases.base import Case, Shape
from floodway_lab.cases.keys import Keys
from floodway_lab.sending.sent import CaseSent
from floodway_lab.systems.events import SessionSeen

SIZE_MS, HOP_MS = 8_000, 4_000
"""The windows: eight seconds, a new one every four."""


class Mean(Case):
    """The mean session time per place: 160 places, windows of 8 s, a new one every 4 s."""

    name = "mean"
    title = "windowed aggregation: mean per key, 160 keys, windows of 8 s every 4 s"
    keys = Keys(160)

    def lines(self, shape: Shape) -> list[bytes]:
        """Return events of about 50 bytes: time, key, value."""
        rng = random.Random(shape.seed)
        numbers, end = (shape.keys or self.keys).draw(PREPARED, rng), shape.end()
        return [
            b'{"time":%s,"geo":%d,"seconds":%d' % (HOLE, number, rng.randrange(1, 3600)) + end
            for number in numbers
        ]

    def hints(self) -> dict[str, Any]:
        """Return the windows."""
        return {"size_ms": SIZE_MS, "hop_ms": HOP_MS}

    def expected(self, sent: CaseSent) -> dict[tuple[Any, int], Any]:
        """Add up per hop, and take two hops for each window."""
        decode = msgspec.json.Decoder(SessionSeen).decode
        events = [decode(line.replace(HOLE, b"0")) for line in sent.lines]
        keys = [event.geo for event in events]
        sums = sent.per_window(keys, [event.seconds for event in events], HOP_MS)
        counts = sent.per_window(keys, [1] * len(keys), HOP_MS)
        found: dict[tuple[Any, int], Any] = {}
        for start in {hop - back for hop in sums for back in range(0, SIZE_MS, HOP_MS)}:
            hops = [start + on for on in range(0, SIZE_MS, HOP_MS) if start + on in sums]
            whole = sum((sums[hop] for hop in hops), Counter[Any]())
            often = sum((counts[hop] for hop in hops), Counter[Any]())
            found.update({(key, start): whole[key] / often[key] for key in often})
        return found
