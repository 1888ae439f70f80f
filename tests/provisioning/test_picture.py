"""The picture: well-formed, complete, and with its bottlenecks marked."""

import re
from xml.etree import ElementTree

from hypothesis import given, settings

from floodway.provisioning.cost import OperatorCosts, Platform, Setting, detect, minimize
from floodway.provisioning.picture import ALARM, HEIGHT, WIDTH, picture
from tests.provisioning.graphs import Case, cases, chain, wide
from tests.provisioning.linear_road import NAMES, linear_road

SVG = "{http://www.w3.org/2000/svg}"


def words(drawn: str) -> str:
    root = ElementTree.fromstring(drawn)
    return " | ".join("".join(text.itertext()) for text in root.iter(f"{SVG}text"))


def boxes(drawn: str) -> list[tuple[float, float]]:
    root = ElementTree.fromstring(drawn)
    found = [rect for group in root.iter(f"{SVG}g") for rect in group.iter(f"{SVG}rect")]
    return [(float(rect.attrib["x"]), float(rect.attrib["y"])) for rect in found]


def test_every_operator_has_its_box_with_dop_batches_and_load() -> None:
    paper = linear_road()
    plan = minimize(paper.graph, paper.workload).settings
    drawn = picture(paper.graph, detect(paper.graph, paper.workload, plan), title="Linear Road")
    said = words(drawn)
    assert all(name in said for name in NAMES)
    assert "dop 2, b_out 387 | 500,000 records/s in | 100 % used (cpu)" in said
    assert "Linear Road" in said
    assert "bottleneck:" not in said


def test_bottleneck_is_marked_in_colour_and_in_words() -> None:
    paper = linear_road()
    plan = dict(minimize(paper.graph, paper.workload).settings)
    plan["agg"] = Setting(1, 1)
    drawn = picture(paper.graph, detect(paper.graph, paper.workload, plan))
    assert words(drawn).count("bottleneck: cpu") == 1
    root = ElementTree.fromstring(drawn)
    marked = [rect for rect in root.iter(f"{SVG}rect") if rect.get("stroke") == ALARM]
    assert len(marked) == 1
    assert "raise its dop from 1 to 2" in drawn


@settings(max_examples=30)
@given(cases())
def test_boxes_never_overlap_and_lie_on_their_levels(case: Case) -> None:
    drawn = picture(case.graph, detect(case.graph, case.workload, case.settings))
    found = boxes(drawn)
    assert len(found) == len(case.graph.operators)
    assert len({x for x, _ in found}) == len(case.graph.levels)
    for number, (x, y) in enumerate(found):
        for other_x, other_y in found[number + 1 :]:
            assert abs(x - other_x) >= WIDTH or abs(y - other_y) >= HEIGHT


def test_connections_are_drawn() -> None:
    paper = linear_road()
    plan = minimize(paper.graph, paper.workload).settings
    drawn = picture(paper.graph, detect(paper.graph, paper.workload, plan))
    paths = list(ElementTree.fromstring(drawn).iter(f"{SVG}path"))
    titles = [path.findtext(f"{SVG}title") for path in paths]
    assert "parse to agg: 495,000 records/s, hash" in titles
    assert len(paths) == 5


def test_line_passes_between_the_boxes_of_levels_that_it_skips() -> None:
    names = ["a", "b", "c", "d"]
    operators = [OperatorCosts(name=name, c_cpu_ns=1) for name in names]
    graph = wide(operators, "a-b b-c c-d a-d", Platform())
    plan = {name: Setting(1, 1) for name in names}
    drawn = picture(graph, detect(graph, {"a": 5}, plan))
    (path,) = [
        path
        for path in ElementTree.fromstring(drawn).iter(f"{SVG}path")
        if (path.findtext(f"{SVG}title") or "").startswith("a to d:")
    ]
    straight = re.findall(r"L(\d+) (\d+)", path.attrib["d"])
    assert len(straight) == 2
    for x, y in straight:
        inside = [top for left, top in boxes(drawn) if left + WIDTH == int(x)]
        assert inside
        assert not any(top <= int(y) <= top + HEIGHT for top in inside)


def test_names_cannot_break_the_picture() -> None:
    name = 'a<b>&"c"' + "x" * 60
    graph = chain(OperatorCosts(name=name, c_cpu_ns=0))
    drawn = picture(graph, detect(graph, {name: 5}, {name: Setting(1)}), title="<&>")
    assert "…" in words(drawn)
    assert any(name in text for text in ElementTree.fromstring(drawn).itertext())
