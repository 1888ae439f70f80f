"""Events without end, as lines that are made beforehand.

Making events takes longer than a flow takes to process them. So their lines are made beforehand,
cut where the time belongs, and joined with the time when they are sent.

Some events are *probes*: each leads to a result that is about it alone, and tells how long it took.
Among ad events it is a view of an ad of its own, whose campaign has no other view in its window.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate

import msgspec

from floodway.bench import ads

PREPARED = 20_000
"""So many events are made beforehand, and sent again and again."""

PROBE_MS = 5
"""How often a probe is sent: 200 a second."""

PROBES = 2_500
"""So many probes there are: more than are sent in one window."""

_MARK = 9_999_999_999_999  # stands where the time belongs; as long as any time from 2001 to 2286


def probe_name(number: int) -> str:
    """Return the ad of a probe, which is also its campaign."""
    return f"probe-{number % PROBES:04}"


def lookup() -> dict[str, str]:
    """Return the campaign of every ad, those of the probes among them."""
    return ads.campaigns() | {probe_name(n): probe_name(n) for n in range(PROBES)}


class Lines:
    """Lines of JSON without their time, and how often each was sent in which window.

    Examples
    --------
    >>> lines = Lines(ads.make_events(3))
    >>> text = lines.stamped(2, 1_700_000_000_000) + lines.stamped(2, 1_700_000_012_345)
    >>> [event.event_time for event in msgspec.json.Decoder(ads.AdSeen).decode_lines(text)]
    [1700000000000, 1700000000000, 1700000012345, 1700000012345]
    >>> lines.counts(ads.campaigns()) == ads.plain_count(text, ads.campaigns())
    True
    """

    def __init__(self, events: Sequence[msgspec.Struct]) -> None:
        marked = [msgspec.structs.replace(event, event_time=_MARK) for event in events]
        cut = [msgspec.json.encode(event).split(b"%d" % _MARK) for event in marked]
        self._heads = [head for head, _ in cut]
        self._tails = [tail + b"\n" for _, tail in cut]
        self._between = [
            tail + head for tail, head in zip(self._tails, self._heads[1:], strict=False)
        ]
        self._next = 0
        self._times: dict[int, list[int]] = {}

    def stamped(self, count: int, time_ms: int) -> bytes:
        """Return the next lines, all with the same time."""
        blocks = []
        while count > 0:
            first = self._next
            last = min(first + count, len(self._heads)) - 1
            pieces = [self._heads[first], *self._between[first:last], self._tails[last]]
            blocks.append((b"%d" % time_ms).join(pieces))
            self._note(first, last + 1, time_ms)
            self._next = (last + 1) % len(self._heads)
            count -= last + 1 - first
        return b"".join(blocks)

    def _note(self, first: int, stop: int, time_ms: int) -> None:
        # Differences: that a thousand lines were sent is two additions.
        window = time_ms - time_ms % ads.WINDOW_MS
        times = self._times.setdefault(window, [0] * (len(self._heads) + 1))
        times[first] += 1
        times[stop] -= 1

    def sent(self) -> list[int]:
        """Return how often each line was sent.

        >>> lines = Lines(ads.make_events(3))
        >>> lines.stamped(4, ads.START_MS).count(b"view"), lines.sent()
        (1, [2, 1, 1])
        """
        found = [0] * len(self._heads)
        for changes in self._times.values():
            for number, times in enumerate(accumulate(changes[:-1])):
                found[number] += times
        return found

    def counts(self, campaigns: dict[str, str]) -> Counter[tuple[str, int]]:
        """Return the views of each campaign and window, by a loop over the lines."""
        decode = msgspec.json.Decoder(ads.AdSeen).decode
        stamp = b"%d" % ads.START_MS
        events = [decode(h + stamp + t) for h, t in zip(self._heads, self._tails, strict=True)]
        counts: Counter[tuple[str, int]] = Counter()
        for window, changes in self._times.items():
            for event, times in zip(events, accumulate(changes), strict=False):
                if times and event.event_type == "view" and event.ad_id in campaigns:
                    counts[campaigns[event.ad_id], window] += times
        return counts


class Supply(ABC):
    """Events without end: those made beforehand, and the probes between them.

    Parameters
    ----------
    lines
        The events.
    probes
        One line each.
    """

    def __init__(self, lines: Lines, probes: Sequence[Lines]) -> None:
        self.lines = lines
        self._probes = probes
        self._probed = 0

    def due(self, ms: int, count: int, time_ms: int) -> bytes:
        """Return the events that are due in a millisecond."""
        return self.take(count, time_ms, probe=ms % PROBE_MS == 0)

    def take(self, count: int, time_ms: int, *, probe: bool) -> bytes:
        """Return the next events; the first may be a probe."""
        if not probe or not count:
            return self.lines.stamped(count, time_ms)
        line = self._probes[self._probed % len(self._probes)]
        self._probed += 1
        return line.stamped(1, time_ms) + self.lines.stamped(count - 1, time_ms)

    @property
    def probes(self) -> Sequence[Lines]:
        """The probes that were sent."""
        return self._probes[: self._probed]

    @abstractmethod
    def counts(self) -> Counter[tuple[str, int]]:
        """Return what a flow has to find in all that was sent: names, windows, and how often."""


class Events(Supply):
    """Ad events; with `hot`, half of them are about one ad."""

    def __init__(self, *, hot: bool = False) -> None:
        viewed = msgspec.structs.replace(ads.make_events(1)[0], event_type="view")
        events = [
            msgspec.structs.replace(event, ad_id=ads.ad_name(0)) if hot and number % 2 else event
            for number, event in enumerate(ads.make_events(PREPARED))
        ]
        super().__init__(
            Lines(events),
            [
                Lines([msgspec.structs.replace(viewed, ad_id=probe_name(number))])
                for number in range(PROBES)
            ],
        )

    def counts(self) -> Counter[tuple[str, int]]:
        """Return the views of each campaign and window."""
        known = lookup()
        counts = self.lines.counts(known)
        for probe in self.probes:
            counts.update(probe.counts(known))
        return counts


class HotEvents(Events):
    """Ad events of which half are about one ad."""

    def __init__(self) -> None:
        super().__init__(hot=True)
