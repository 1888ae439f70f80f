import math
import re
from xml.etree import ElementTree

import pytest
from floodway_lab.reports.charts import Axis, Bar, Line, band_chart, bar_chart, line_chart
from floodway_lab.reports.looks import LOOKS, look_of
from hypothesis import given, settings
from hypothesis import strategies as st

from floodway.demo.drawing import Span
from tests.lab.reports.factory import MODELS

SVG = "{http://www.w3.org/2000/svg}"

anything = st.floats(allow_nan=True, allow_infinity=True)
"""Measurements that no run should have, and that may not break a page."""

texts = st.text(max_size=60)
"""Also what no file can hold."""

points = st.lists(st.tuples(anything, st.none() | anything), max_size=12)
intervals = st.none() | st.tuples(anything, anything)
few = settings(max_examples=12, deadline=None)  # each is a picture


def read(chart: str) -> ElementTree.Element:
    """Return a chart, which stands in a page as it is."""
    chart.encode()
    return ElementTree.fromstring(chart)


def words_of(root: ElementTree.Element) -> list[str]:
    return [each.text or "" for each in root.iter(f"{SVG}text")]


def groups_of(root: ElementTree.Element) -> list[ElementTree.Element]:
    return [each for each in root.iter(f"{SVG}g") if each.attrib.get("class") == "series"]


def lengths_of(root: ElementTree.Element) -> list[float]:
    """Return how wide what is drawn first in each group is."""
    found = []
    for group in groups_of(root):
        (path, *_) = group.iter(f"{SVG}path")
        across = [float(x) for x, _ in re.findall(r"([\d.]+) ([\d.]+)", path.attrib["d"])]
        found.append(max(across) - min(across))
    return found


@few
@given(
    names=st.lists(texts, max_size=4),
    all_points=st.lists(points, min_size=4, max_size=4),
    legend=st.booleans(),
)
@pytest.mark.parametrize("log", [False, True])
def test_lines_of_any_values_can_be_drawn(log, legend, names, all_points):
    lines = [Line(name, each) for name, each in zip(names, all_points, strict=False)]
    axes = Axis("x", log=log), Axis("y", log=log)
    read(line_chart("any", lines, *axes, legend=legend, shade=(1.0, 5.0, "warm-up")))


@few
@given(
    bars=st.lists(
        st.builds(
            Bar, texts, anything, intervals, st.lists(anything, max_size=3), text=texts, note=texts
        ),
        max_size=6,
    ),
    log=st.booleans(),
)
def test_bars_of_any_length_can_be_drawn(bars, log):
    read(bar_chart("any", bars, Axis("x", log=log), origin=float(log), sides=("less", "more")))


@few
@given(
    rows=st.dictionaries(texts, st.lists(st.builds(Span, anything, anything, texts)), max_size=4)
)
def test_bands_of_any_length_can_be_drawn(rows):
    read(band_chart("any", rows, Axis("x"), {"data": "#123456"}))


@pytest.mark.parametrize(
    "chart",
    [
        line_chart("none", [], Axis(), Axis(log=True)),
        line_chart("none", [Line("a", [])], Axis(log=True), Axis()),
        bar_chart("none", [], Axis()),
        band_chart("none", {}, Axis(), {}),
    ],
)
def test_chart_without_values_says_so(chart):
    assert "nothing was measured" in words_of(read(chart))


def test_chart_has_a_name_for_those_who_cannot_see_it():
    root = read(line_chart('latency of "a" & <b>', [], Axis(), Axis()))
    assert root.attrib["role"] == "img"
    assert root.attrib["aria-label"] == 'latency of "a" & <b>'


def test_chart_has_the_colours_of_the_page_it_stands_in():
    chart = line_chart("one", [Line("a", [(1.0, 2.0), (2.0, 3.0)])], Axis("x"), Axis("y"))
    assert "currentColor" in chart
    assert not re.search(r"fill: #(222222|000000|ffffff)", chart)


def test_same_chart_is_the_same_text():
    made = [line_chart("one", [Line("a", [(1, 2), (2, 3)])], Axis(), Axis()) for _ in range(2)]
    assert made[0] == made[1]


def test_single_point_is_seen():
    (group,) = groups_of(read(line_chart("one", [Line("a", [(1.0, 2.0)])], Axis(), Axis())))
    assert group.find(f".//{SVG}use") is not None


def test_line_is_broken_where_nothing_was_measured():
    gap = [(0.0, 1.0), (1.0, 2.0), (2.0, None), (3.0, 4.0), (4.0, 5.0)]
    (group,) = groups_of(read(line_chart("gap", [Line("a", gap)], Axis(), Axis(), legend=False)))
    (path,) = (each for each in group.iter(f"{SVG}path") if "L" in each.attrib["d"])
    assert path.attrib["d"].count("M") == 2
    assert group.find(f".//{SVG}use") is None


def test_bar_is_as_long_as_its_value():
    bars = [Bar("a", 100.0), Bar("b", 50.0), Bar("c", 0.0)]
    first, second, third = lengths_of(read(bar_chart("lengths", bars, Axis())))
    assert second == pytest.approx(first / 2, rel=0.001)
    assert third == 0


def test_very_wide_interval_does_not_make_bars_small():
    root = read(bar_chart("wide", [Bar("a", 100.0, (-5_000.0, 9_000.0))], Axis()))
    assert lengths_of(root)[0] > 300


def test_line_and_its_name_are_one_group_and_say_what_they_are():
    lines = [Line(n, [(0, 1), (1, 2)], note=f"this is {n}") for n in "ab"]
    groups = groups_of(read(line_chart("two", lines, Axis(), Axis())))
    assert [words_of(group) for group in groups] == [["a"], ["b"]]
    assert [group.findtext(f"{SVG}title") for group in groups] == ["this is a", "this is b"]


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("name", [*LOOKS, *(f"some-system-{n}" for n in range(20))])
def test_colours_can_be_seen_on_light_and_on_dark_pages(name):
    for page in ("#ffffff", "#15181c"):
        dark, light = sorted((_luminance(look_of(name).colour), _luminance(page)))
        assert (light + 0.05) / (dark + 0.05) >= 3


def test_all_systems_look_different():
    assert len({look_of(name) for name in MODELS}) == len(MODELS)


def test_place_that_is_none_is_left_out():
    lines = [Line("a", [(1.0, math.inf), (2.0, math.nan)])]
    assert "nothing was measured" in words_of(read(line_chart("none", lines, Axis(), Axis())))
