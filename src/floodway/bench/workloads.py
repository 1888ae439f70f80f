"""What flows are measured with: events, a flow, and what it has to find in them."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import floodway as fw
from floodway.bench import ads, words
from floodway.bench.supplies import lookup
from floodway.bench.timing import TimingSink
from floodway.connectors.tcp import TcpSource
from floodway.testing import ListSink

Found = Callable[[], Counter[tuple[str, int]]]
"""Says what a flow has found, when it is over: names, windows, and how often."""


@dataclass(frozen=True)
class Workload:
    """A flow, and where its events come from.

    Attributes
    ----------
    name
        What it is called.
    supply, hot
        The events, and those of which half have one key; see `Sender`.
    build
        Takes a port and a folder for timings; gives the flow, and how to learn what it has found.
    aside
        The stages, by the names of their first operators, that no probe goes through.
    """

    name: str
    supply: str
    build: Callable[[int, str], tuple[fw.Flow, Found]]
    hot: str | None = None
    aside: frozenset[str] = frozenset()


def _ads(port: int, folder: str) -> tuple[fw.Flow, Found]:
    out = ListSink()
    flow = ads.build(_source(port), out, dashboard=TimingSink(folder), lookup=lookup())
    return flow, lambda: ads.final_counts(out.records)


def _words(port: int, folder: str) -> tuple[fw.Flow, Found]:
    flow = words.count_words(_source(port), words.TallySink(folder))
    return flow, lambda: words.tallied(folder)


def _grep(port: int, folder: str) -> tuple[fw.Flow, Found]:
    flow = words.grep(_source(port), words.TallySink(folder, lines=True))
    return flow, lambda: words.tallied(folder)


def _source(port: int) -> TcpSource:
    return TcpSource("127.0.0.1", port)


_HERE = "floodway.bench"

WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload(
            "ads",
            f"{_HERE}.supplies:Events",
            _ads,
            hot=f"{_HERE}.supplies:HotEvents",
            aside=frozenset({"campaigns.changelog", "campaigns", "updates", "results"}),
        ),
        Workload("words", f"{_HERE}.words:Words", _words, hot=f"{_HERE}.words:HotWords"),
        Workload("grep", f"{_HERE}.words:Matches", _grep),
    )
}
"""All workloads, by name."""
