from html.parser import HTMLParser
from xml.etree import ElementTree

import msgspec
import pytest
from floodway_lab.reports.page import comparison_page
from floodway_lab.runs.comparing import Comparison
from floodway_lab.runs.experiment import Paradigm

from tests.lab.reports.factory import (
    MODELS,
    changed_run,
    eventful,
    everybody,
    left_out,
    made_comparison,
    made_system,
    switching,
)

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "</style></svg><script>alert('1')</script><img src=x onerror=\"y\"> & \x00\x1b[31m\ud800"


class Reader(HTMLParser):
    """Reads a page as a browser does: what elements there are, and what each asks for."""

    def __init__(self) -> None:
        super().__init__()
        self.kinds: set[str] = set()
        self.asked: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.kinds.add(tag)
        self.asked += [name for name, _ in attrs if name in ("src", "href") or name[:2] == "on"]


def read(page: str) -> ElementTree.Element:
    """Return a page as a tree: whatever is not closed or not escaped is found out."""
    return ElementTree.fromstring(page.removeprefix("<!DOCTYPE html>"))


def text_of(root: ElementTree.Element) -> str:
    return " ".join(" ".join(root.itertext()).split())


def part(found: Comparison, title: str) -> ElementTree.Element:
    """Return the section of a page whose title begins so."""
    sections = [
        each
        for each in read(comparison_page(found)).iter("section")
        if (each.findtext("h2") or "").startswith(title)
    ]
    assert len(sections) == 1, title
    return sections[0]


def charts(root: ElementTree.Element) -> list[ElementTree.Element]:
    return list(root.iter(f"{SVG}svg"))


def rows(root: ElementTree.Element) -> list[str]:
    return [text_of(row) for body in root.iter("tbody") for row in body.iter("tr")]


def test_page_names_every_system():
    shown = text_of(part(everybody(), "Summary"))
    for name, (title, *_) in MODELS.items():
        assert name in shown
        assert title in shown


def test_page_needs_nothing_else():
    reader = Reader()
    reader.feed(comparison_page(everybody()))
    assert reader.asked == []
    assert not reader.kinds & {"script", "link", "img", "iframe", "object"}


@pytest.mark.parametrize("found", [eventful(), everybody(), made_comparison([])])
def test_caveats_come_before_any_figure(found):
    page = comparison_page(found)
    for caveat in found.caveats:
        shown = caveat.replace("'", "&#x27;")
        assert page.index(shown) < page.index("<table")
        assert page.index(shown) < page.index("<svg")


def test_links_that_differ_are_a_caveat():
    assert "kafka: quix" in " ".join(part(eventful(), "Before").itertext())
    same = made_comparison([made_system("floodway-dual"), made_system("bytewax")])
    assert "same link" not in " ".join(part(same, "Before").itertext())


def test_more_warm_up_is_a_caveat():
    slow = made_system("floodway-dual")
    slow.starts_s = 5.0
    found = made_comparison([slow, made_system("bytewax")])
    assert "than the others: floodway-dual 5 s." in " ".join(part(found, "Before").itertext())


def test_partial_results_are_marked_before_all_else():
    stopped = made_comparison(
        [made_system("floodway-dual", rounds=2), made_system("bytewax", rounds=1)], complete=False
    )
    page = comparison_page(stopped)
    assert page.index("Partial results") < page.index("Before you read on")
    assert "1 or 2 of 3 rounds" in page


def test_complete_results_are_not_marked_as_partial():
    assert "Partial" not in comparison_page(eventful())


def test_page_says_where_and_how_it_was_measured():
    shown = text_of(part(eventful(), "Machine"))
    for word in ("AMD EPYC", "4 cores", "Python 3.12.11", "seed 1", "3 of 3", "0.80 ms late"):
        assert word in shown


def test_summary_has_rates_latencies_answers_and_links():
    (row,) = (row for row in rows(part(eventful(), "Summary")) if row.startswith("quix"))
    assert row == (
        "quix Quix Streams 3.28.1 22,850 21,540 to 24,160 140 548 255 997 781 3,056 right kafka"
    )


def test_wrong_answers_are_seen():
    wrong = changed_run(
        made_system("bytewax"), 2, 1, correct=False, void=True, why="3 wrong answers"
    )
    found = made_comparison([made_system("floodway-dual"), wrong])
    (row,) = (row for row in rows(part(found, "Summary")) if row.startswith("bytewax"))
    assert "WRONG" in row
    assert "Answers were wrong: Bytewax" in text_of(part(found, "Before"))


def test_answers_that_nobody_has_checked_are_not_right():
    unchecked = changed_run(made_system("loop", rounds=1), 0, 0, correct=None)
    for position in (1, 2):
        unchecked = changed_run(unchecked, 0, position, correct=None)
    (row,) = rows(part(made_comparison([unchecked]), "Summary"))
    assert "not known" in row


def test_ratios_are_shown_with_their_intervals():
    shown = rows(part(eventful(), "floodway-dual against"))
    assert [row.split()[0] for row in shown] == ["loop", "bytewax", "quix"]
    assert "1.93x (1.80 to 2.07) higher" in shown[1]


def test_ratio_without_an_interval_shows_nothing_clearly():
    found = made_comparison([made_system(n, rounds=1) for n in ("floodway-dual", "bytewax")])
    (row,) = rows(part(found, "floodway-dual against"))
    assert row.count("not clear") == 2


def test_comparison_without_floodway_has_no_ratios():
    found = made_comparison([made_system("loop"), made_system("bytewax")])
    assert "There are none" in text_of(part(found, "floodway-dual against"))
    assert "was not measured" in text_of(part(found, "How the stages"))


def test_charts_show_every_system_that_was_measured():
    for title in ("Sustainable rate", "Latency at 10", "Latency over time"):
        shown = " ".join(
            text.text or ""
            for chart in charts(part(everybody(), title))
            for text in chart.iter(f"{SVG}text")
        )
        for name in MODELS:
            assert name in shown, (title, name)


def test_void_runs_are_told_and_left_out_of_figures():
    section = part(eventful(), "Void runs")
    assert rows(section) == [
        "Bytewax 0.21.1 2 10 % the machine was too loaded: others had 31% of its cores, "
        "more than 15%"
    ]
    alone = changed_run(made_system("bytewax", rounds=1), 0, 0, void=True, why="too loaded")
    (row,) = rows(part(made_comparison([alone]), "Summary"))
    assert " - - 11 44 " in row


def test_systems_left_out_are_told_with_the_reason():
    (row,) = rows(part(eventful(), "Systems left out"))
    assert row.startswith("pathway")
    assert "no module 'pathway'" in row


def test_system_whose_turn_has_not_come_is_not_called_slow():
    waiting = msgspec.structs.replace(made_system("spark"), rounds=[])
    found = made_comparison([made_system("floodway-dual", rounds=1), waiting], complete=False)
    assert "its turn had not come yet" in text_of(part(found, "Systems left out"))


def test_timeline_shows_which_stage_worked_how():
    section = part(eventful(), "How the stages")
    (chart,) = charts(section)
    notes = [each.text for each in chart.iter(f"{SVG}title")]
    assert "parse: data, 9.4 to 12.0" in notes
    assert "count per campaign: operation, 1.9 to 20.0" in notes
    assert "round 3, 90 % load" in text_of(section)


def test_timeline_says_when_nothing_has_switched():
    section = part(made_comparison([made_system("floodway-dual", rounds=1)]), "How the stages")
    assert charts(section) == []
    assert "No stage switched in round 1, 10 % load" in text_of(section)


def test_switches_outside_of_a_run_are_drawn_at_its_ends():
    switches = [Paradigm("a", "operation", -3.0), Paradigm("a", "data", 99.0)]
    of = changed_run(made_system("floodway-dual"), 2, 0, paradigms=switches)
    (chart,) = charts(part(made_comparison([of]), "How the stages"))
    assert [each.text for each in chart.iter(f"{SVG}title")] == ["a: operation, 0.0 to 20.0"]


def test_tuning_and_versions_are_told():
    shown = text_of(part(eventful(), "Tuning"))
    assert "bytewax==1.0, msgspec==0.22.0" in shown
    assert "decoded with msgspec" in shown


def test_hostile_text_stays_text():
    hostile = msgspec.structs.replace(
        changed_run(
            switching(made_system("floodway-dual")),
            2,
            1,
            void=True,
            why=HOSTILE,
            paradigms=[Paradigm(HOSTILE, "operation", 1.0)],
        ),
        title=HOSTILE,
        tuning=HOSTILE,
        versions=[HOSTILE],
    )
    bad = msgspec.structs.replace(left_out("quix", HOSTILE), system=HOSTILE, title=HOSTILE)
    found = made_comparison([hostile, bad, made_system("loop")], title=HOSTILE, caveats=[HOSTILE])
    page = comparison_page(found)
    page.encode()
    read(page)
    reader = Reader()
    reader.feed(page)
    assert "script" not in reader.kinds
    assert reader.asked == []


@pytest.mark.parametrize(
    "systems",
    [
        [],
        [left_out("quix", "it does not start")],
        [msgspec.structs.replace(made_system("floodway-dual"), rounds=[])],
    ],
)
def test_page_without_any_figure_is_still_a_page(systems):
    page = comparison_page(made_comparison(systems, complete=False))
    assert "nothing was measured" in text_of(read(page))


def test_runs_without_results_are_no_trouble():
    of = made_system("floodway-dual", rounds=1)
    for position in range(3):
        of = changed_run(of, 0, position, latency_ms=None, cdf_ms=[], over_time=[{"t": 0.0}])
    (row,) = rows(part(made_comparison([of]), "Summary"))
    assert " - - - - - - right" in row
