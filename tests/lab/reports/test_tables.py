import msgspec
from floodway_lab.reports.tables import markdown_table
from floodway_lab.systems.system import System

from tests.lab.reports.factory import (
    MODELS,
    changed_run,
    eventful,
    everybody,
    left_out,
    made_comparison,
    made_system,
)

UNABLE = System("sql-only", "A system", "a.py", frozenset({"mean"}), cannot={"ads": "no | joins"})
ABLE = System("able", "Another", "b.py", frozenset({"ads"}))


def rows(table: str) -> dict[str, list[str]]:
    """Return the cells of each row by the system's name."""
    lines = [line for line in table.splitlines() if line.startswith("| `")]
    cells = [[cell.strip() for cell in line[1:-1].split(" | ")] for line in lines]
    return {row[0].strip("`"): row for row in cells}


def test_every_system_has_a_row():
    assert set(rows(markdown_table([everybody()], systems=()))) == set(MODELS)


def test_row_has_rate_latencies_link_and_answers():
    row = rows(markdown_table([eventful()], systems=()))["bytewax"]
    assert row == [
        "`bytewax`",
        "415,900 (391,900 to 439,900)",
        "0.52",
        "6.2 / 24",
        "11 / 44",
        "35 / 135",
        "tcp",
        "right",
    ]


def test_all_rows_are_as_wide_as_the_head():
    table = markdown_table([eventful()], systems=[UNABLE])
    lines = [line for line in table.splitlines() if line.startswith("|")]
    assert {line.replace(r"\|", "").count("|") for line in lines} == {9}


def test_system_that_cannot_do_a_workload_has_a_row_that_says_why():
    found = rows(markdown_table([eventful()], systems=[UNABLE, ABLE]))
    assert found["sql-only"][1] == r"cannot: no \| joins"
    assert "able" not in found


def test_system_left_out_has_a_row_that_says_why():
    found = made_comparison([made_system("floodway-dual"), left_out("quix", "code 1:\n  a|b <i>")])
    assert rows(markdown_table([found], systems=()))["quix"][1] == (
        r"left out: code 1: a\|b &lt;i>"
    )


def test_each_workload_has_a_table_of_its_own():
    other = msgspec.structs.replace(eventful(), case="mean", title="windowed aggregation")
    table = markdown_table([eventful(), other], systems=[UNABLE])
    assert table.count("| system |") == 2
    assert table.index("### `ads`") < table.index("### `mean`")
    assert table.count("`sql-only`") == 1


def test_comparisons_of_one_workload_share_a_table():
    over_kafka = made_comparison([made_system("spark-realtime")])
    table = markdown_table([eventful(), over_kafka], systems=())
    assert table.count("| system |") == 1
    assert {"bytewax", "spark-realtime"} <= set(rows(table))


def test_partial_results_and_void_runs_are_marked():
    table = markdown_table([msgspec.structs.replace(eventful(), complete=False)], systems=())
    assert "**Partial results" in table
    assert "Void runs, not in these figures: 1." in table


def test_wrong_answers_stand_out():
    wrong = changed_run(made_system("loop"), 0, 0, correct=False, void=True, why="wrong")
    assert rows(markdown_table([made_comparison([wrong])], systems=()))["loop"][-1] == "**wrong**"


def test_without_floodway_nothing_is_relative_to_it():
    found = made_comparison([made_system("loop")])
    assert rows(markdown_table([found], systems=()))["loop"][2] == "-"
