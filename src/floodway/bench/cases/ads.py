"""Ad analytics: receive, parse, filter, join with a table, count in windows, store."""

import random
from typing import Any

import msgspec

from floodway.bench import ads
from floodway.bench.cases.base import PREPARED, Case, Sent, Shape
from floodway.bench.data.keys import Keys
from floodway.bench.data.lines import HOLE

_MARK = 9_999_999_999_999  # stands where the time belongs


class Ads(Case):
    """Views per campaign in windows of ten seconds."""

    name = "ads"
    title = "ad analytics: six operators, views per campaign in windows of 10 s"
    keys = Keys(ads.ADS)

    def lines(self, shape: Shape) -> list[bytes]:
        """Return ad events of about 240 bytes, a third of them views."""
        numbers = (shape.keys or self.keys).draw(PREPARED, random.Random(shape.seed))
        events = ads.make_events(PREPARED, seed=shape.seed)
        encode = msgspec.json.Encoder().encode
        return [
            encode(
                msgspec.structs.replace(
                    event, ad_id=ads.ad_name(number % ads.ADS), event_time=_MARK
                )
            ).replace(b"%d" % _MARK, HOLE)[:-1]
            + shape.end()
            for event, number in zip(events, numbers, strict=True)
        ]

    def hints(self) -> dict[str, Any]:
        """Return the campaigns, and the windows."""
        return {"campaigns": ads.campaigns(), "window_ms": ads.WINDOW_MS}

    def expected(self, sent: Sent) -> dict[tuple[Any, int], Any]:
        """Count with a plain loop over the lines, once for each window."""
        decode = msgspec.json.Decoder(ads.AdSeen).decode
        known = ads.campaigns()
        events = [decode(line.replace(HOLE, b"0")) for line in sent.lines]
        keys = [known.get(e.ad_id) if e.event_type == "view" else None for e in events]
        sums = sent.per_window(keys, [1] * len(keys), ads.WINDOW_MS)
        return {(key, w): int(n) for w, counts in sums.items() for key, n in counts.items()}
