"""Ad analytics: receive, parse, filter, join with a table, count in windows, store."""

import random
from typing import Any

from floodway.demo import ads
from floodway.demo.sending.lines import PREPARED
from floodway_lab.cases.base import Case, Shape
from floodway_lab.cases.keys import Keys
from floodway_lab.sending.sent import CaseSent


class Ads(Case):
    """Views per campaign in windows of ten seconds."""

    name = "ads"
    title = "ad analytics: six operators, views per campaign in windows of 10 s"
    keys = Keys(ads.ADS)

    def lines(self, shape: Shape) -> list[bytes]:
        """Return ad events of about 240 bytes, a third of them views."""
        numbers = (shape.keys or self.keys).draw(PREPARED, random.Random(shape.seed))
        return ads.lines(numbers, seed=shape.seed, end=shape.end())

    def hints(self) -> dict[str, Any]:
        """Return the campaigns, and the windows."""
        return {"campaigns": ads.campaigns(), "window_ms": ads.WINDOW_MS}

    def expected(self, sent: CaseSent) -> dict[tuple[Any, int], Any]:
        """Count with a plain loop over the lines, once for each window."""
        return dict(ads.expected(sent))
