"""``floodway plan``: plans on paper, checked configurations, and questions."""

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from floodway.cli.main import app
from floodway.plan.configuration import Configuration
from floodway.provisioning.applying import settings_of
from floodway.provisioning.paper import parse, read
from tests.cli.plans import ROAD, ROOT, plan, planned, runner
from tests.house.markdown import read_blocks
from tests.provisioning.linear_road import NAMES, linear_road

PAGE = ROOT / "docs" / "provisioning.md"

TWO_SOURCES = """
[platform]
c_fetch_ns = 1000
c_emit_ns = 500
bits_per_s = 1e9
cores = 2

[operators.clicks]
rate = 10_000
c_cpu_ns = 1000
record_bytes = 100

[operators.views]
rate = 30_000
c_cpu_ns = 1000
record_bytes = 100

[operators.count]
from = ["clicks", "views"]
c_cpu_ns = 50_000
"""


def dops(document: dict[str, Any]) -> list[int]:
    return [document["operators"][name]["dop"] for name in NAMES]


def batches(document: dict[str, Any]) -> list[int | None]:
    return [document["operators"][name]["b_out"] for name in NAMES]


@pytest.fixture
def two_sources(tmp_path: Path) -> str:
    file = tmp_path / "two_sources.toml"
    file.write_text(TWO_SOURCES)
    return str(file)


@pytest.fixture
def too_little(tmp_path: Path) -> str:
    """A configuration in which agg is a bottleneck."""
    file = tmp_path / "too_little.toml"
    assert plan("--out", str(file)).exit_code == 0
    text = file.read_text()
    file.write_text(re.sub(r'("agg"\]\ndop = )2', r"\g<1>1", text))
    return str(file)


def test_example_is_the_thesis_table() -> None:
    assert read(Path(ROAD)) == linear_road()


def test_plan_shows_every_operator_and_the_totals() -> None:
    result = plan()
    assert result.exit_code == 0, result.stderr
    rows = [line.split() for line in result.stdout.splitlines()]
    assert ["spout", "1", "15", "500,000", "500,000", "59", "%", "cpu"] in rows
    assert ["parse", "2", "387", "500,000", "495,000", "100", "%", "cpu"] in rows
    assert ["toll", "1", "-", "148", "148", "<1", "%", "cpu"] in rows
    assert "8 tasks" in result.stdout
    assert "no bottleneck: all 500,000 records/s come through" in result.stdout


def test_plan_as_json_has_the_printed_numbers_of_table_4_3() -> None:
    found = planned()
    assert dops(found) == [1, 2, 2, 1, 1, 1]
    assert batches(found) == [15, 387, 1, None, 1, None]
    assert (found["planned"], found["tasks"], found["rate"]) == (True, 8, 500_000)
    assert (found["throughput"], found["bottlenecks"]) == ({"spout": 500_000}, [])
    assert (found["servers"], found["cores"]) == (None, None)
    assert set(found["operators"]["agg"]) == {
        "dop",
        "b_out",
        "b_in",
        "rate_in",
        "rate_out",
        "rate_through",
        "cost_ns",
        "capacity",
        "utilisation",
        "binding",
        "wait_s",
    }


def test_plan_without_batching_follows_the_equations() -> None:
    found = planned("--no-batching")
    assert dops(found) == [2, 7, 5, 1, 1, 1]
    assert set(batches(found)) == {1, None}
    assert planned("--max-b-out", "1") == found


def test_batches_are_no_larger_than_allowed() -> None:
    found = planned("--max-b-out", "50")
    assert max(size or 0 for size in batches(found)) <= 50
    assert found["tasks"] == 8


def test_lean_batches_keep_the_tasks_and_wait_less() -> None:
    lean, first = planned("--lean"), planned()
    assert dops(lean) == dops(first)
    assert batches(lean) == [31, 10, 1, None, 1, None]
    assert lean["wait_s"] < first["wait_s"] / 10


def test_headroom_takes_tasks() -> None:
    found = planned("--headroom", "0.3")
    assert found["tasks"] > 8
    assert max(one["utilisation"] for one in found["operators"].values()) <= 0.7 * (1 + 1e-9)


def test_servers_are_counted_from_their_cores(two_sources: str) -> None:
    assert planned("--cores", "3")["servers"] == 3
    assert "8 tasks on 3 servers of 3 cores" in plan("--cores", "3").stdout
    assert planned(file=two_sources)["cores"] == 2


def test_cores_share_the_bandwidth_of_their_server(two_sources: str) -> None:
    found = [planned("--cores", cores, file=two_sources)["operators"] for cores in ("1", "200")]
    assert [one["views"]["binding"] for one in found] == ["cpu", "output network"]
    assert found[1]["views"]["capacity"] / found[1]["views"]["dop"] == pytest.approx(
        1e9 / 200 / 800
    )


def test_rate_is_shared_out_in_the_mix_of_the_file(two_sources: str) -> None:
    assert planned("--rate", "80_000", file=two_sources)["workload"] == {
        "clicks": 20_000,
        "views": 60_000,
    }


def test_range_of_rates_shows_what_changes_from_one_to_the_next() -> None:
    found = planned("--rate", "200000:500000:100000")["steps"]
    assert [(step["rate"], step["tasks"]) for step in found] == [
        (200_000, 6),
        (300_000, 7),
        (400_000, 8),
        (500_000, 8),
    ]
    shown = plan("--rate", "200000:500000:100000", "--cores", "4").stdout
    assert re.search(r"300,000 +7 +2 +parse 1 to 2", shown)
    assert re.search(r"500,000 +8 +2 +the same", shown)


def test_range_goes_on_after_a_rate_that_nothing_reaches() -> None:
    options = ("--rate", "100000:900000:400000", "--what-if", "parse.max_dop=2")
    found = planned(*options)["steps"]
    assert [step["problem"] is None for step in found] == [True, True, False]
    assert "parse: no configuration reaches this rate" in plan(*options).stdout


def test_range_with_a_configuration_shows_what_comes_through(too_little: str) -> None:
    result = plan("--configuration", too_little, "--rate", "300000:500000:200000")
    assert result.exit_code == 0
    assert re.search(r"300,000 +300,000 +-", result.stdout)
    assert re.search(r"500,000 +\d+,\d+ +agg \(cpu\)", result.stdout)


def test_largest_rate_for_so_many_tasks_is_planned() -> None:
    found = planned("--max-tasks", "7")
    assert (found["rate"], found["tasks"], found["bottlenecks"]) == (388_389, 7, [])
    assert "the largest rate with 7 tasks: 388,389 records/s" in plan("--max-tasks", "7").stdout
    assert planned("--max-tasks", "7", "--rate", "388389")["tasks"] == 7


def test_what_if_shows_the_plan_after_the_change_and_what_differs() -> None:
    found = planned("--what-if", "parse.selectivity*=2")
    assert found["operators"]["agg"]["dop"] == 3
    differences = {one["figure"]: one for one in found["comparison"]["differences"]}
    assert (differences["tasks"]["before"], differences["tasks"]["after"]) == (8, 9)
    shown = plan("--what-if", "parse.selectivity*=2").stdout
    assert re.search(r"difference +before +after", shown)
    assert re.search(r"agg\.dop +2 +3", shown)


def test_changes_add_up() -> None:
    options = ("--what-if", "parse.c_cpu_ns=1500", "--what-if", "spout.rate*=0.5")
    found = planned(*options)
    assert found["rate"] == 250_000
    assert found["operators"]["parse"]["dop"] == 1


def test_change_that_changes_nothing_is_said() -> None:
    assert "before and after are the same" in plan("--what-if", "parse.c_cpu_ns=3500").stdout


def test_change_can_make_a_rate_possible_that_was_not(tmp_path: Path) -> None:
    file = tmp_path / "narrow.toml"
    file.write_text(
        Path(ROAD).read_text().replace("c_cpu_ns = 3500", "c_cpu_ns = 3500\nmax_dop = 1")
    )
    result = plan("--what-if", "parse.max_dop=4", file=str(file))
    assert result.exit_code == 0
    assert "before: parse: no configuration reaches this rate" in result.stdout


def test_configuration_with_a_bottleneck_is_an_answer_of_no(too_little: str) -> None:
    result = plan("--configuration", too_little, "--json", "-")
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    (bottleneck,) = found["bottlenecks"]
    assert (bottleneck["operator"], bottleneck["kinds"]) == ("agg", ["cpu"])
    assert "raise its dop from 1 to 2" in bottleneck["remedy"]
    assert found["planned"] is False
    assert found["throughput"]["spout"] < 500_000
    assert found["held_back_by"]["spout"] == "agg"


def test_bottleneck_is_shown_with_remedy_and_back_pressure(too_little: str) -> None:
    shown = plan("--configuration", too_little).stdout
    assert re.search(r"bottleneck: agg \(cpu\); 495,000 records/s arrive, it can take \d+", shown)
    assert "remedy  raise its dop from 1 to 2" in shown
    assert re.search(r"back-pressure: \d+,\d+ of 500,000 records/s come through \(7\d %\)", shown)


def test_operators_beside_a_bottleneck_get_less_too(tmp_path: Path) -> None:
    file = tmp_path / "beside.toml"
    file.write_text(
        "[operators.read]\nrate = 1000\nc_cpu_ns = 1\n"
        "[operators.fast]\nfrom = 'read'\nc_cpu_ns = 1\n"
        "[operators.slow]\nfrom = 'read'\nc_cpu_ns = 2_000_000\n"
    )
    configuration = tmp_path / "configuration.toml"
    configuration.write_text("dop = 1\n")
    result = plan("--configuration", str(configuration), "--json", "-", file=str(file))
    operators = json.loads(result.stdout)["operators"]
    assert operators["fast"]["rate_through"] == operators["slow"]["rate_through"] == 500


def test_throughput_is_shown_for_each_of_several_sources(two_sources: str, tmp_path: Path) -> None:
    configuration = tmp_path / "configuration.toml"
    configuration.write_text("dop = 1\n")
    shown = plan("--configuration", str(configuration), file=two_sources).stdout
    assert re.search(r"clicks: [\d,]+ of 10,000, held back by count", shown)
    assert re.search(r"views: [\d,]+ of 30,000, held back by count", shown)


def test_configuration_that_is_enough_is_an_answer_of_yes(tmp_path: Path) -> None:
    file = tmp_path / "enough.toml"
    file.write_text("dop = 9\nb_out = 100\n")
    result = plan("--configuration", str(file))
    assert result.exit_code == 0
    assert "no bottleneck" in result.stdout


def test_headroom_that_a_configuration_does_not_leave_is_a_bottleneck(tmp_path: Path) -> None:
    file = tmp_path / "planned.toml"
    plan("--out", str(file))
    result = plan("--configuration", str(file), "--headroom", "0.2")
    assert result.exit_code == 1
    assert "less 20 % headroom" in result.stdout
    assert "all 500,000 records/s come through" in result.stdout


def test_two_configurations_are_compared(too_little: str, tmp_path: Path) -> None:
    enough = tmp_path / "enough.toml"
    plan("--out", str(enough))
    shown = plan("--configuration", str(enough), "--against", too_little).stdout
    assert re.search(r"difference +too_little\.toml +enough\.toml", shown)
    assert re.search(r"tasks +7 +8", shown)
    assert re.search(r"throughput +\d+,\d+ +500,000", shown)


def test_plan_is_compared_with_a_configuration(too_little: str) -> None:
    assert re.search(r"difference +too_little\.toml +plan", plan("--against", too_little).stdout)


def test_numbers_of_an_operator_are_explained() -> None:
    shown = plan("--explain", "parse").stdout
    assert "dop = 2 tasks: equation 4.23, floor(R_in * c_cpu / 1e9) + 1" in shown
    assert "with R_in = 500,000, c_cpu = 3,500" in shown
    assert "C = 500,002 records/s: equation 3.3, dop * C_t" in shown
    figures = planned("--explain", "parse")["explanation"]["parse"]
    assert figures[0]["inputs"] == {"R_in": 500_000, "c_cpu": 3500}


def test_lean_batches_are_not_explained_as_those_of_the_thesis() -> None:
    figures = planned("--explain", "parse", "--lean")["explanation"]["parse"]
    assert [figure["value"] for figure in figures if figure["name"] == "b_out"] == [10]


def test_given_configuration_is_explained_without_reasons_to_choose_it(too_little: str) -> None:
    result = plan("--configuration", too_little, "--explain", "agg")
    assert "equation 4.23" not in result.stdout
    assert "equation 3.8" in result.stdout


def test_written_configuration_is_what_was_planned(tmp_path: Path) -> None:
    file = tmp_path / "configuration.toml"
    found = planned("--out", str(file))
    settings = settings_of(linear_road().graph, Configuration.read(file))
    assert [settings[name].dop for name in NAMES] == dops(found)
    assert [settings[name].b_out for name in NAMES] == batches(found)
    assert file.read_text().startswith("# 8 tasks for 500,000 records/s, planned with linear_road")
    assert plan("--configuration", str(file)).exit_code == 0


def test_picture_is_drawn(tmp_path: Path) -> None:
    file = tmp_path / "road.svg"
    assert plan("--svg", str(file)).exit_code == 0
    words = "".join(ElementTree.fromstring(file.read_text()).itertext())
    assert "linear_road: 500,000 records/s" in words
    assert "dop 2, b_out 387" in words


def test_json_goes_to_a_file_beside_the_table(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    assert "8 tasks" in plan("--json", str(file)).stdout
    assert json.loads(file.read_text())["tasks"] == 8


def test_what_costs_nothing_has_no_limit(tmp_path: Path) -> None:
    file = tmp_path / "free.toml"
    file.write_text("[operators.read]\nrate = 5\nc_cpu_ns = 0\n")
    found = planned(file=str(file))["operators"]["read"]
    assert (found["capacity"], found["binding"], found["utilisation"]) == (None, None, 0)


def test_documentation_shows_what_the_command_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "examples").mkdir()
    shutil.copy(ROAD, tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    commands = 0
    for block in read_blocks(PAGE.read_text(encoding="utf-8")):
        if block.info != ("console",):
            continue
        line, *shown = block.text.splitlines()
        words = shlex.split(line.removeprefix("$ "))
        if words[0] != "floodway":
            subprocess.run(words, check=True, timeout=10)
            continue
        result = runner.invoke(app, words[1:])
        printed = (result.stdout + result.stderr).splitlines()
        assert [text.rstrip() for text in printed] == shown, f"{PAGE.name}:{block.line}"
        commands += 1
    assert commands >= 10


def test_file_in_the_documentation_can_be_planned_with() -> None:
    (block,) = [
        block for block in read_blocks(PAGE.read_text(encoding="utf-8")) if block.info == ("toml",)
    ]
    assert set(parse(block.text).graph.operators) == {"spout", "parse", "agg"}
