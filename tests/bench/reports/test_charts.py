import math
import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from floodway.bench.reports.charts.axes import Axis
from floodway.bench.reports.charts.bands import Row, Span, band_chart
from floodway.bench.reports.charts.bars import Bar, bar_chart
from floodway.bench.reports.charts.lines import Line, line_chart
from floodway.bench.reports.charts.scales import scaled
from floodway.bench.reports.charts.svg import number, width_of
from floodway.bench.reports.looks import LOOKS, look_of
from tests.bench.reports.factory import MODELS

SVG = "{http://www.w3.org/2000/svg}"
ACROSS = {"x", "x1", "x2", "cx"}
DOWN = {"y", "y1", "y2", "cy"}

anything = st.floats(allow_nan=True, allow_infinity=True)
"""Measurements that no run should have, and that may not break a page."""

texts = st.text(max_size=60)
"""Also what no file can hold."""

points = st.lists(st.tuples(anything, st.none() | anything), max_size=12)
intervals = st.none() | st.tuples(anything, anything)


def drawn(chart: str) -> ElementTree.Element:
    """Return a chart, all of which is inside of it."""
    chart.encode()
    root = ElementTree.fromstring(chart)
    _, _, width, height = (float(part) for part in root.attrib["viewBox"].split())
    for each in root.iter():
        for name, value in each.attrib.items():
            if name in ACROSS:
                assert 0 <= float(value) <= width, (each.tag, name, value)
            if name in DOWN:
                assert 0 <= float(value) <= height, (each.tag, name, value)
        if each.tag == f"{SVG}rect":
            assert float(each.attrib["width"]) >= 0
            assert float(each.attrib["x"]) + float(each.attrib["width"]) <= width + 0.02
        for pair in each.attrib.get("points", "").split():
            x, y = map(float, pair.split(","))
            assert 0 <= x <= width
            assert 0 <= y <= height
    return root


def words_of(root: ElementTree.Element) -> list[str]:
    return [each.text or "" for each in root.iter(f"{SVG}text")]


@given(names=st.lists(texts, max_size=4), all_points=st.lists(points, min_size=4, max_size=4))
@pytest.mark.parametrize("log", [False, True])
def test_lines_of_any_values_stay_inside_their_chart(log, names, all_points):
    lines = [Line(name, each) for name, each in zip(names, all_points, strict=False)]
    axes = Axis("x", log=log), Axis("y", log=log)
    for legend in (True, False):
        drawn(line_chart("any", lines, *axes, legend=legend, shade=(0.0, 5.0, "warm-up")))


@given(
    bars=st.lists(
        st.builds(
            Bar, texts, anything, intervals, st.lists(anything, max_size=3), text=texts, note=texts
        ),
        max_size=6,
    ),
    log=st.booleans(),
)
def test_bars_of_any_length_stay_inside_their_chart(bars, log):
    drawn(bar_chart("any", bars, Axis("x", log=log), origin=float(log), sides=("less", "more")))


@given(rows=st.lists(st.builds(Row, texts, st.lists(st.builds(Span, anything, anything, texts)))))
def test_bands_of_any_length_stay_inside_their_chart(rows):
    drawn(band_chart("any", rows, Axis("x"), {"data": "#123456"}))


@pytest.mark.parametrize(
    "chart",
    [
        line_chart("none", [], Axis(), Axis(log=True)),
        line_chart("none", [Line("a", [])], Axis(log=True), Axis()),
        bar_chart("none", [], Axis()),
        band_chart("none", [], Axis(), {}),
    ],
)
def test_chart_without_values_says_so(chart):
    assert "nothing was measured" in words_of(drawn(chart))


def test_chart_has_a_name_for_those_who_cannot_see_it():
    root = drawn(line_chart('latency of "a" & <b>', [], Axis(), Axis()))
    assert root.attrib["role"] == "img"
    assert root.attrib["aria-label"] == 'latency of "a" & <b>'


def test_single_point_is_seen():
    root = drawn(line_chart("one", [Line("a", [(1.0, 2.0)])], Axis(), Axis()))
    assert root.find(f".//{SVG}circle") is not None


def test_line_is_broken_where_nothing_was_measured():
    gap = [(0.0, 1.0), (1.0, 2.0), (2.0, None), (3.0, 4.0), (4.0, 5.0)]
    root = drawn(line_chart("gap", [Line("a", gap)], Axis(), Axis()))
    assert len(root.findall(f".//{SVG}polyline")) == 2


def test_bar_is_as_long_as_its_value():
    bars = [Bar("a", 100.0), Bar("b", 50.0), Bar("c", 0.0)]
    root = drawn(bar_chart("lengths", bars, Axis()))
    first, second, third = (float(e.attrib["width"]) for e in root.iter(f"{SVG}rect"))
    assert second == pytest.approx(first / 2, abs=0.02)
    assert third == 0


def test_very_wide_interval_does_not_make_bars_small():
    root = drawn(bar_chart("wide", [Bar("a", 100.0, (-5_000.0, 9_000.0))], Axis()))
    (bar,) = root.iter(f"{SVG}rect")
    assert float(bar.attrib["width"]) > 500


def test_line_and_its_name_are_one_group():
    root = drawn(line_chart("two", [Line(n, [(0, 1), (1, 2)]) for n in "ab"], Axis(), Axis()))
    groups = [each for each in root.iter(f"{SVG}g") if each.attrib.get("class") == "series"]
    assert [words_of(group) for group in groups] == [["a"], ["b"]]


@given(
    low=st.floats(1e-6, 1e9),
    factor=st.floats(1, 1e9),
    log=st.booleans(),
    length=st.integers(120, 1000),
)
def test_marks_are_in_order_and_keep_apart(low, factor, log, length):
    scale = scaled([low, low * factor], 0, length, log=log)
    most = max(length // 75, 2)
    marks = scale.ticks(most)
    assert 1 <= len(marks) <= most + 1
    places = [scale.at(mark) for mark in marks]
    assert all(later - earlier > 15 for earlier, later in pairwise(places))


@given(value=st.floats(1e-6, 1e12), log=st.booleans())
def test_scale_holds_its_values(value, log):
    scale = scaled([value], 0, 100, log=log)
    assert scale.low <= value * (1 + 1e-6)
    assert scale.high >= value * (1 - 1e-6)
    assert 0 <= scale.at(value) <= 100


def test_marks_of_long_charts_do_not_overlap():
    axis = Axis("ms", log=True, show=lambda value: f"{value:,.0f} ms")
    root = drawn(line_chart("long", [Line("a", [(1, 1), (1e7, 2)])], axis, Axis()))
    marks = [e for e in root.iter(f"{SVG}text") if re.fullmatch(r"[\d,]+ ms", e.text or "")]
    places = [(float(e.attrib["x"]), width_of(e.text or "")) for e in marks]
    assert len(places) > 3
    for (left, its_width), (right, other) in pairwise(places):
        assert right - left > (its_width + other) / 2


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


def test_place_that_is_none_is_refused():
    with pytest.raises(ValueError, match="no place"):
        number(math.nan)
