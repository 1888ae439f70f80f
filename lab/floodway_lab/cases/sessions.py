"""Sessionization: how many clicks a visitor makes before pausing.

Visitors come, click ten times or so, and do not come back: the number of the lap is part of a
visitor's, so there are new ones all the time. A result comes when a session is over, not before.
"""

import random
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from floodway.demo.sending.lines import HOLE, PREPARED
from floodway_lab.cases.base import Case, Shape, Tally
from floodway_lab.cases.keys import Keys
from floodway_lab.sending.lines import LAP
from floodway_lab.sending.sent import CaseSent
from floodway_lab.systems.events import Click

GAP_MS = 1_000
"""A session is over when nothing has come for so long."""

VISITORS = 2_000
"""So many visitors come in a lap."""

SPREAD = 400
"""The clicks of a visitor are within so many lines."""

PRIME = 9_973
"""Clicks are added up with a weight for each visitor: the number modulo this, and 1."""


class Sessions(Case):
    """Clicks per session, added up for each second in which a session had its last."""

    name = "sessions"
    title = "sessionization: clicks of a visitor until a pause of 1 s"
    keys = Keys(VISITORS)
    open_ms = 3 * GAP_MS

    def lines(self, shape: Shape) -> list[bytes]:
        """Return events of about 50 bytes: time, visitor, page."""
        end = shape.end()
        return [
            b'{"time":%s,"user":%s%05d,"page":%d' % (HOLE, LAP, visitor, line % 97) + end
            for line, visitor in enumerate(_visitors(shape))
        ]

    def hints(self) -> dict[str, Any]:
        """Return the pause, and how clicks are added up."""
        return {"gap_ms": GAP_MS, "prime": PRIME}

    def expected(self, sent: CaseSent) -> dict[tuple[Any, int], Any]:
        """Cut the clicks of each visitor in each lap where there is a pause."""
        clicks = {part.seed: _clicks(part.lines) for part in sent.parts}
        tally = Tally()
        for lap in sent.laps():
            for visitor, lines in clicks[lap.part.seed].items():
                times = sorted(lap.times_ms[line] for line in lines if line < len(lap.times_ms))
                weight = (lap.number * 100_000 + visitor) % PRIME + 1
                for count, last_ms in _cut(times):
                    tally.add(count * weight, last_ms)
        return tally.found()


def _visitors(shape: Shape) -> list[int]:
    """Return whose click each line is."""
    rng = random.Random(shape.seed)
    drawn = (shape.keys or Sessions.keys).draw(PREPARED, rng)
    begin = [rng.uniform(0, PREPARED) for _ in range(max(drawn) + 1)]
    return [who for _, who in sorted((begin[who] + rng.uniform(0, SPREAD), who) for who in drawn)]


def _clicks(lines: Sequence[bytes]) -> dict[int, list[int]]:
    """Return the lines of each visitor."""
    decode = msgspec.json.Decoder(Click).decode
    found: dict[int, list[int]] = {}
    for line, text in enumerate(lines):
        user = decode(text.replace(HOLE, b"0").replace(LAP, b"1")).user
        found.setdefault(user - 100_000, []).append(line)
    return found


def _cut(times: list[int]) -> Iterator[tuple[int, int]]:
    """Return of each session how many clicks it has, and when the last one was.

    >>> list(_cut([0, 900, 1_900, 3_000]))
    [(3, 1900), (1, 3000)]
    """
    count = 0
    for number, time_ms in enumerate(times):
        count += 1
        if number + 1 == len(times) or times[number + 1] - time_ms > GAP_MS:
            yield count, time_ms
            count = 0
