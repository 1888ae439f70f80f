"""What was seen over time: what follows from it, and its picture."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from floodway.demo import drawing
from floodway.demo.page import page
from floodway.demo.pictures import Picture, draw
from floodway.demo.series import Latencies, Phase, Sample, figures, percentile, rates, spans
from floodway.demo.timing import Timed
from floodway.engine.scheduler.story import Entry

T0 = 1_700_000_000_000
PHASES = (Phase("calm", 2, 100), Phase("flood", 2, 1_000), Phase("calm again", 2, 100))
SWITCH = Entry(
    time_ms=T0 + 2_300,
    what="switch",
    stage="views",
    before="data",
    after="operation",
    why="views holds <9,000> records & more",
)


def seen() -> list[Sample]:
    """Return six seconds of a flow that does 500 events a second while a thousand are due."""
    found, due, processed = [], 0.0, 0.0
    for step in range(25):
        t = step / 4
        found.append(
            Sample(
                t,
                int(due),
                int(due),
                int(processed),
                {"views": int(due - processed)},
                {"events": "data", "views": "operation" if 2.5 <= t < 4.5 else "data"},
            )
        )
        due += 250 if 2 <= t < 4 else 25
        processed += min(125, due - processed)
    return found


TIMED = [Timed(T0 + 10 * n, 5.0 if n < 200 else 500.0 + n) for n in range(600)]
LATE = Latencies.of(TIMED, T0)


def picture() -> Picture:
    return Picture(
        "ads: a calm & a flood",
        PHASES,
        seen(),
        LATE.over(0.5),
        [SWITCH],
        T0,
        figures(PHASES, seen(), LATE),
    )


def test_rates_are_those_of_the_last_second() -> None:
    found = dict(rates(seen(), "due"))
    assert (found[2.0], found[3.0], found[3.5], found[6.0]) == (100, 1_000, 1_000, 100)
    assert dict(rates(seen(), "processed"))[3.5] == 500


@pytest.mark.parametrize(
    ("count", "share", "expected"), [(1, 0.99, 1), (100, 0.99, 99), (100, 0.5, 50), (101, 1.0, 101)]
)
def test_percentiles(count: int, share: float, expected: int) -> None:
    assert percentile(range(1, count + 1), share) == expected


def test_latency_is_that_of_the_events_due_then() -> None:
    found = LATE.over(1.0)
    assert [point.t for point in found] == [0.5, 1.5, 2.5, 3.5, 4.5, 5.5]
    assert (found[1].count, found[1].p50, found[1].p99) == (100, 5.0, 5.0)
    assert (found[2].p50, found[2].p99) == (749.0, 798.0)


def test_probes_are_as_many_at_all_times_and_wait_for_results_that_are_late() -> None:
    # A result each ten milliseconds in the first second; then one in half a second, of its end.
    timed = [Timed(T0 + 10 * n, 5.0) for n in range(100)]
    timed += [Timed(T0 + 1_499, 101.0), Timed(T0 + 1_999, 101.0)]
    late = Latencies.of(timed, T0).probed()
    assert [len(late.took(start, start + 0.5)) for start in (0, 0.5, 1, 1.5)] == [100] * 4
    assert set(late.took(0, 1)) == {5.0}
    slow = late.took(1, 1.5)
    assert (slow[0], slow[-1]) == (101.0, pytest.approx(575.0))
    assert percentile(slow, 0.5) == pytest.approx(325.0, abs=51)


def test_spans_of_a_paradigm() -> None:
    found = [(span.start, span.stop, span.kind) for span in spans(seen(), "views")]
    assert found == [(0.0, 2.5, "data"), (2.5, 4.5, "operation"), (4.5, 6.0, "data")]


def test_figures_of_the_phases() -> None:
    calm, flood, again = figures(PHASES, seen(), LATE)
    assert calm.latency_ms == {"p50": 5.0, "p90": 5.0, "p99": 5.0, "max": 5.0}
    assert (flood.probes, flood.latency_ms["max"]) == (200, 899.0)
    assert flood.processed_per_s == pytest.approx(500)
    assert flood.waiting == 1_000
    assert (calm.paradigms["views"], again.paradigms["events"]) == ({"data": 1.0}, {"data": 1.0})
    assert flood.paradigms["views"]["operation"] == pytest.approx(7 / 9, abs=0.001)


def test_figures_of_a_phase_of_which_nothing_was_seen() -> None:
    (only,) = figures(PHASES[:1], [], Latencies([]))
    assert (only.latency_ms, only.probes, only.processed_per_s) == ({}, 0, 0.0)


@pytest.fixture
def drawn(tmp_path: Path) -> dict[str, Path]:
    pytest.importorskip("matplotlib")
    return draw(picture(), tmp_path)


def test_png_is_one(drawn: dict[str, Path]) -> None:
    assert drawn["png"].read_bytes().startswith(b"\x89PNG")


class Tags(HTMLParser):
    """Collects tags that fetch something, and the words of the page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.fetches: list[str] = []
        self.words = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("src", "href", "xlink:href") and not (value or "").startswith("#"):
                self.fetches.append(f"{tag} {name}={value}")

    def handle_data(self, data: str) -> None:
        self.words += data


def test_page_needs_nothing_else(drawn: dict[str, Path]) -> None:
    text = drawn["html"].read_text(encoding="utf-8")
    assert Tags(text).fetches == []
    assert not re.search(r"url\((?!#)|@import|<script|<link", text)


def test_page_has_picture_phases_and_story(drawn: dict[str, Path]) -> None:
    words = " ".join(Tags(drawn["html"].read_text(encoding="utf-8")).words.split())
    for expected in (
        "events per second",
        "latency, from when an event was due to its result (log scale)",
        "paradigm of each operator",
        "seconds since the first event",
        "flood: 1,000/s",
        "views: data → operation",
        "views holds <9,000> records & more",
        "calm again",
    ):
        assert expected in words


def test_nothing_is_drawn_without_the_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drawing, "can_draw", lambda: False)
    assert draw(picture(), tmp_path) == {}


def test_flow_that_nothing_was_seen_of_can_be_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    nothing = Picture("nothing", PHASES, [], [], [], T0, [])
    assert draw(nothing, tmp_path)["png"].exists()


def test_page_without_decisions_says_so() -> None:
    assert page("t", "<svg/>", [], [], began_ms=T0).count(">None.</p>") == 2
