"""``floodway plan``: what is refused, and what is said then."""

from pathlib import Path

import pytest

from tests.cli.plans import ROAD, refused


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("c_cpu_ns = 3500", "c_cpu_ns = -1", ["c_cpu_ns=-1.0, is below zero", "parse"]),
        ('from = "spout"', 'from = "spuot"', ["'spuot' that is not there", "spout"]),
        ('from = "spout"', 'from = ["spout", "mv"]', ["the graph has a cycle: "]),
        ("c_cpu_ns = 3500", "c_cpu_ns = 1\ncpu = 1", ["unknown field `cpu`", "parse"]),
        (
            "c_cpu_ns = 3500",
            "c_cpu_ns = 3500\nmax_dop = 1",
            ["no configuration reaches this rate", "parse", "285,714"],
        ),
        ("[platform]", "[platform", ["this is not TOML"]),
    ],
)
def test_bad_file_is_refused_and_says_which_and_why(
    before: str, after: str, said: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "bad.toml"
    file.write_text(Path(ROAD).read_text().replace(before, after, 1))
    message = refused(file=str(file))
    assert [part for part in said if part not in message] == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--rate", "many"], "'many' is not a rate"),
        (["--rate", "-5"], "'-5' is not a rate"),
        (["--rate", "nan"], "'nan' is not a rate"),
        (["--rate", "1:2"], "'1:2' is not a rate"),
        (["--rate", "5:1:1"], "has no rates in it"),
        (["--rate", "1:5:0"], "has no rates in it"),
        (["--rate", "1:1000000:1"], "has 1,000,000 rates"),
        (["--what-if", "parse"], "'parse' is not a change"),
        (["--what-if", "parse.selectivity=much"], "is not a change"),
        (["--what-if", "prase.selectivity=2"], "'prase' that is not there"),
        (["--what-if", "parse.cpu=2"], "no 'cpu' to change"),
        (["--what-if", "parse.c_cpu_ns=-2"], "is below zero"),
        (["--what-if", "parse.max_dop*=2"], "does not give max_dop a whole number"),
        (["--what-if", "parse.max_dop=1.5"], "does not give max_dop a whole number"),
        (["--what-if", "parse.rate=5"], "not a source"),
        (["--what-if", "spout.rate=0", "--rate", "5"], "cannot be shared out"),
        (["--headroom", "1"], "headroom=1.0 is not a share"),
        (["--max-tasks", "3"], "3 tasks cannot run 6 operators"),
        (["--explain", "prase"], "'prase' that is not there"),
        (["--no-batching", "--max-b-out", "5"], "cannot go with --no-batching"),
        (["--rate", "1:2:1", "--svg", "a.svg"], "--svg cannot go with a range of rates"),
        (["--configuration", "a.toml", "--lean"], "--lean cannot go with --configuration"),
        (["--configuration", "nowhere.toml"], "nowhere.toml cannot be read"),
        (["--against", "nowhere.toml"], "nowhere.toml cannot be read"),
        (["--out", ROAD], "is the file with the costs"),
        (["--out", "no/such/folder.toml"], "cannot write 'no/such/folder.toml'"),
    ],
)
def test_bad_option_is_refused_and_says_why(options: list[str], said: str) -> None:
    assert said in refused(*options)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[operators.agg]\ndop = 0\n", ["dop=0 is not a number of at least 1", "agg"]),
        ("b_out = 0\n", ["b_out=0 is not a number of at least 1"]),
        ("[operators.aggr]\ndop = 1\n", ["'aggr' that is not there"]),
        ("dop = 'two'\n", ["cannot be read"]),
    ],
)
def test_bad_configuration_is_refused(text: str, said: list[str], tmp_path: Path) -> None:
    file = tmp_path / "configuration.toml"
    file.write_text(text)
    message = refused("--configuration", str(file))
    assert [part for part in said if part not in message] == []


def test_file_that_is_not_there_is_named() -> None:
    assert "nowhere.toml cannot be read" in refused(file="nowhere.toml")


def test_rate_that_takes_more_tasks_than_allowed_is_refused() -> None:
    said = refused("--max-tasks", "7", "--rate", "500000")
    assert "no configuration with 7 tasks reaches this rate: it takes 8" in said
    assert "388,389" in said


def test_largest_rate_of_what_costs_nothing_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "free.toml"
    file.write_text("[operators.read]\nrate = 5\nc_cpu_ns = 0\n")
    assert "there is no largest rate" in refused("--max-tasks", "3", file=str(file))
