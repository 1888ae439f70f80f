"""Planning on paper: what a file may say, and what is said of a bad one."""

from itertools import pairwise
from pathlib import Path

import pytest

from floodway.core.errors import CycleError, FloodwayError, OptionError, UndefinedError
from floodway.provisioning.cost import Connection, minimize
from floodway.provisioning.paper import parse, read
from tests.provisioning.linear_road import TEXT, linear_road


def test_file_becomes_a_graph_and_a_workload(tmp_path: Path) -> None:
    path = tmp_path / "linear_road.toml"
    path.write_text(TEXT)
    paper = read(path)
    assert paper == linear_road()
    assert paper.workload == {"spout": 500_000}
    assert paper.graph.operators["parse"].selectivity == 0.99
    assert paper.graph.inputs["agg"] == (Connection("parse", "agg", "hash"),)
    assert paper.graph.levels[-1] == ("toll",)


def test_inputs_are_one_or_several_with_or_without_details() -> None:
    paper = parse(
        """
        [operators.a]
        rate = 1
        c_cpu_ns = 1
        [operators.b]
        rate = 2
        c_cpu_ns = 1
        [operators.c]
        from = ["a", { operator = "b", share = 0.5 }]
        c_cpu_ns = 1
        """
    )
    assert paper.graph.inputs["c"] == (Connection("a", "c"), Connection("b", "c", share=0.5))


def test_bandwidth_of_a_server_is_shared_by_its_cores() -> None:
    text = "[platform]\nbits_per_s = 1e9\ncores = 4\n[operators.a]\nrate = 1\nc_cpu_ns = 1\n"
    paper = parse(text)
    assert paper.cores == 4
    assert paper.graph.platform.out_bits_per_s == 250e6


def test_operator_may_have_costs_of_its_own() -> None:
    paper = parse(TEXT.replace("c_cpu_ns = 3500", "c_cpu_ns = 3500\nc_fetch_ns = 1\nmax_dop = 3"))
    assert paper.graph.c_fetch_ns("parse") == 1
    assert paper.graph.operators["parse"].max_dop == 3


def refused(text: str, error: type[FloodwayError] = OptionError) -> FloodwayError:
    with pytest.raises(error) as caught:
        parse(text)
    return caught.value


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        ("c_cpu_ns = 3500", "c_cpu_ns = -1", "c_cpu_ns=-1.0, is below zero"),
        ("selectivity = 0.99", "selectivity = -0.5", "selectivity=-0.5, is below zero"),
        ("c_cpu_ns = 3500", "c_cpu_ns = nan", "not a finite number"),
        ("c_cpu_ns = 3500", "c_cpu_ns = 'much'", "got `str` - at `$.c_cpu_ns`"),
        ("c_cpu_ns = 3500", "", "missing required field `c_cpu_ns`"),
        ("c_cpu_ns = 3500", "c_cpu_ns = 1\ncpu = 5", "unknown field `cpu`"),
        ("c_cpu_ns = 3500", "c_cpu_ns = 1\nmax_dop = 0", "leaves no task"),
        ("c_cpu_ns = 3500", "c_cpu_ns = 1\nrate = 5", "not a source"),
        ('from = "spout"', 'from = ["spout", "spout"]', "'parse' reads 'spout' twice"),
        ('from = "spout"', 'from = { operator = "spout", share = 0.0 }', "share of 0.0"),
        (
            'from = "spout"',
            'from = { operator = "spout", partitioning = "broadcast" }',
            "invalid enum value 'broadcast'",
        ),
        ('from = "spout"', "", "the source has no rate"),
    ],
)
def test_bad_operator_is_named_with_the_reason(before: str, after: str, problem: str) -> None:
    error = refused(TEXT.replace(before, after, 1))
    assert error.operator == "parse"
    assert problem in error.problem
    assert error.remedy


def test_missing_operator_is_named_with_who_asks_for_it() -> None:
    error = refused(TEXT.replace('from = "spout"', 'from = "spuot"'), UndefinedError)
    assert error.operator == "parse"
    assert "'parse' is connected to an operator 'spuot' that is not there" in error.problem
    assert "spout" in error.remedy


def test_cycle_is_shown_all_round() -> None:
    text = TEXT.replace('from = "spout"', 'from = ["spout", "mv"]')
    error = refused(text, CycleError)
    assert error.operator in {"parse", "agg", "mv"}
    steps = error.problem.removeprefix("the graph has a cycle: ").split(" -> ")
    assert steps[0] == steps[-1]
    assert set(pairwise(steps)) == {("parse", "agg"), ("agg", "mv"), ("mv", "parse")}


def test_operator_that_reads_itself_is_a_cycle() -> None:
    error = refused(TEXT.replace('from = "spout"', 'from = ["spout", "parse"]'), CycleError)
    assert error.problem == "the graph has a cycle: parse -> parse"


def test_graph_of_a_cycle_alone_is_refused() -> None:
    text = '[operators.a]\nfrom = "b"\nc_cpu_ns = 1\n[operators.b]\nfrom = "a"\nc_cpu_ns = 1\n'
    assert "cycle" in refused(text, CycleError).problem


def test_rate_that_no_configuration_reaches_names_the_operator() -> None:
    paper = parse(TEXT.replace("c_cpu_ns = 3500", "c_cpu_ns = 3500\nmax_dop = 1"))
    with pytest.raises(OptionError, match="no configuration reaches this rate") as caught:
        minimize(paper.graph, paper.workload)
    assert caught.value.operator == "parse"
    assert "285,714" in caught.value.remedy


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        ("c_fetch_ns = 7400", "c_fetch_ns = -1", "c_fetch_ns=-1.0, is below zero"),
        ("c_fetch_ns = 7400", "bits_per_s = 0", "carries nothing"),
        ("c_fetch_ns = 7400", "cores = 0", "cores=0"),
        ("c_fetch_ns = 7400", "speed = 1", "unknown field `speed`"),
        ("[platform]", "[machine]", "unknown field `machine`"),
        ("[platform]", "[platform", "not TOML"),
        ("rate = 500_000", "rate = -5", "rate of -5.0 records"),
    ],
)
def test_bad_file_is_refused_with_the_reason(before: str, after: str, problem: str) -> None:
    assert problem in refused(TEXT.replace(before, after, 1)).problem


def test_file_without_operators_is_refused() -> None:
    assert "no operators" in refused("[operators]").problem


def test_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"nowhere\.toml cannot be read"):
        read(tmp_path / "nowhere.toml")
