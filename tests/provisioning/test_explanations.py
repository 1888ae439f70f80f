"""Every number says where it comes from, and its formula gives it."""

import math
import re

import pytest
from hypothesis import assume, given

from floodway.provisioning.cost import (
    CostGraph,
    Figure,
    OperatorCosts,
    Platform,
    detect,
    explain_load,
    explain_minimum,
    explain_throughput,
    minimize,
    predict,
)
from floodway.provisioning.cost.rounding import TOLERANCE
from tests.provisioning.graphs import Case, cases, chain
from tests.provisioning.linear_road import linear_road


def computed(figure: Figure) -> float:
    """Put the inputs into the formula and compute it; whole numbers as the planner rounds."""
    letters = sorted(figure.inputs, key=len, reverse=True)
    pattern = "|".join(rf"(?<!\w){re.escape(letter)}(?!\w|\()" for letter in letters)
    text = re.sub(pattern, lambda match: f"({figure.inputs[match.group()]!r})", figure.formula)
    names = {
        "inf": math.inf,
        "min": min,
        "max": max,
        "ceil": lambda number: max(1, math.ceil(number * (1 - TOLERANCE))),
        "floor": lambda number: math.floor(number * (1 + TOLERANCE)),
        "__builtins__": {},
    }
    return float(eval(text, names))


@given(cases())
def test_formulas_give_the_figures_of_a_load(case: Case) -> None:
    found = predict(case.graph, case.workload, case.settings)
    for name in case.graph.operators:
        for figure in explain_load(case.graph, found.diagnosis, name):
            assert computed(figure) == pytest.approx(figure.value), str(figure)
        figure = explain_throughput(case.graph, found, name)
        assert computed(figure) == pytest.approx(figure.value), str(figure)


@pytest.mark.parametrize("max_b_out", [None, 1, 100])
@given(case=cases())
def test_formulas_give_the_figures_of_a_plan(max_b_out: int | None, case: Case) -> None:
    found = minimize(case.graph, case.workload, max_b_out=max_b_out)
    # A batch of a million is one digit away from any other: nothing to check a formula with.
    assume(all((setting.b_out or 1) < 1_000_000 for setting in found.settings.values()))
    for name, setting in found.settings.items():
        figures = explain_minimum(case.graph, found, name)
        for figure in figures:
            assert computed(figure) == pytest.approx(figure.value), str(figure)
        last = {figure.name: figure.value for figure in figures}
        assert last["dop"] == setting.dop
        assert last.get("b_out", 1) == (setting.b_out or 1)


def test_batch_raised_for_a_consumer_names_it() -> None:
    paper = linear_road()
    found = minimize(paper.graph, paper.workload)
    told = [str(figure) for figure in explain_minimum(paper.graph, found, "spout")]
    assert told[-1] == (
        "b_out = 15 records: algorithm 3, line 24, b_in*(parse) with b_in*(parse) = 15"
    )


def test_figure_names_the_equation_and_its_inputs() -> None:
    paper = linear_road()
    found = minimize(paper.graph, paper.workload)
    diagnosis = detect(paper.graph, paper.workload, found.settings)
    told = {one.name: one for one in explain_load(paper.graph, diagnosis, "parse")}
    assert str(told["c_p"]) == (
        "c_p = 3,999.98 ns: equation 3.8, c_fetch / b_in + c_cpu + s * c_emit / b_out with "
        "c_cpu = 3,500, c_fetch = 7,400, b_in = 15, s = 0.99, c_emit = 2,600, b_out = 387"
    )


def test_network_limits_are_told_where_there_are_any() -> None:
    platform = Platform(in_bits_per_s=8_000, out_bits_per_s=4_000)
    graph: CostGraph = chain(
        OperatorCosts(name="read", c_cpu_ns=0, record_bytes=100),
        OperatorCosts(name="sink", c_cpu_ns=0),
        platform=platform,
    )
    found = minimize(graph, {"read": 25})
    diagnosis = detect(graph, {"read": 25}, found.settings)
    read = {one.name: one for one in explain_load(graph, diagnosis, "read")}
    sink = {one.name: one for one in explain_load(graph, diagnosis, "sink")}
    assert (read["C_o"].value, read["C_o"].equation) == (5, "3.33")
    assert (sink["C_i"].value, sink["C_i"].equation) == (10, "3.28")
    assert explain_minimum(graph, found, "read")[0].formula.endswith("ceil(R_in / C_o), 1)")
