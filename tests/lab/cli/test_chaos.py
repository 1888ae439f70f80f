"""``floodway chaos``: faults that a flow survives, and a judge that notices if it does not."""

import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from floodway_lab.chaos import KINDS, Branch, Order, Result, Suffered, Times
from floodway_lab.chaos.kinds import mixed
from floodway_lab.chaos.schedule import SOON_S, plan
from floodway_lab.chaos.striking import STOPPED_S
from floodway_lab.chaos.verdict import judge, judge_windows
from floodway_lab.chaos.watch import Strike
from floodway_lab.chaos.words import Word
from floodway_lab.chaos.workload import IDLE_MS, SLOWLY, Workload, item, plain_windows
from floodway_lab.cli.chaos import show
from rich.console import Console
from typer.testing import CliRunner

from floodway.cli.main import app
from tests.connectors.servers_fixtures import kafka, redis_server  # noqa: F401 - fixtures
from tests.waiting import wait_for

RECORDS = 5000
STAGES = ("items", "passed", "counts")


def chaos(file: Path, *options: str) -> dict[str, Any]:
    result = CliRunner().invoke(app, ["chaos", "--json", str(file), *options])
    found: dict[str, Any] = json.loads(file.read_text())
    assert result.exit_code == 0, (result.output, result.stderr, found)
    assert (found["lost"], found["duplicated"], found["wrong"], found["left"]) == (0, 0, 0, 0)
    return found


def counts(found: dict[str, Any]) -> dict[str, int]:
    return {kind: suffered["count"] for kind, suffered in found["faults"].items()}


@pytest.mark.spark
@pytest.mark.slow
def test_a_flow_survives_killed_tasks(tmp_path: Path) -> None:
    found = chaos(tmp_path / "r.json", "--kills", "2", "--records", "20000", "--epoch", "100ms")
    assert counts(found) == {"task": 2}
    killed = found["faults"]["task"]
    assert len(killed["running_ms"]["all"]) == len(killed["committed_ms"]["all"]) == 2
    assert 0 < killed["running_ms"]["p50"] <= killed["running_ms"]["worst"]
    lines = {name: branch["lines"] for name, branch in found["branches"].items()}
    assert lines.pop("windows") == 200
    assert set(lines.values()) == {20000}


@pytest.mark.spark
@pytest.mark.slow
def test_a_flow_survives_kills_while_its_stages_change_their_paradigm(tmp_path: Path) -> None:
    found = chaos(tmp_path / "r.json", "--kills", "3", "--records", "30000", "--switches")
    assert counts(found) == {"task": 3}
    assert found["switches"] >= 3
    lines = {name: branch["lines"] for name, branch in found["branches"].items()}
    assert lines.pop("totals") > 0
    assert lines.pop("windows") == 300
    assert set(lines.values()) == {30000}


@pytest.mark.spark
@pytest.mark.slow
def test_chaos_that_is_told_to_end_leaves_nothing(tmp_path: Path) -> None:
    options = ("--kills", "1", "--records", "1000", "--folder", str(tmp_path / "kept"))
    with subprocess.Popen([sys.executable, "-m", "floodway", "chaos", *options]) as command:
        there = psutil.Process(command.pid)
        flow = tmp_path / "kept" / "workload.json"
        wait_for(lambda: flow.exists() and len(there.children(recursive=True)) > 1, "the flow")
        started = there.children(recursive=True)
        command.terminate()
        assert command.wait() == 128 + signal.SIGTERM
    assert psutil.wait_procs(started, 60)[1] == []


@pytest.mark.spark
@pytest.mark.slow
def test_a_flow_survives_a_killed_driver_which_leaves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    options = ("--kills", "1", "--driver-kills", "1", "--records", "20000", "--dop", "1")
    found = chaos(tmp_path / "r.json", *options, "--folder", str(folder))
    assert counts(found) == {"task": 1, "driver": 1}
    assert len(found["faults"]["driver"]["running_ms"]["all"]) == 1
    assert (folder / "log").exists()


@pytest.mark.spark
@pytest.mark.slow
def test_a_flow_survives_resets_stops_dead_daemons_and_clocks_that_are_set(tmp_path: Path) -> None:
    options = ("--resets", "2", "--stops", "1", "--daemon-kills", "1", "--clock-jumps", "2")
    found = chaos(tmp_path / "r.json", *options, "--records", "20000", "--dop", "1")
    assert counts(found) == {"reset": 2, "stop": 1, "daemon": 1, "clock": 2}


@pytest.mark.spark
@pytest.mark.slow
def test_a_flow_on_a_cluster_survives_a_killed_executor(tmp_path: Path) -> None:
    options = ("--executor-kills", "1", "--records", "20000", "--dop", "1")
    found = chaos(tmp_path / "r.json", *options)
    assert counts(found) == {"executor": 1}
    assert found["recoveries"] >= 1


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.usefixtures("kafka", "redis_server")
def test_a_flow_survives_a_killed_broker_and_a_killed_redis(tmp_path: Path) -> None:
    options = ("--broker-kills", "1", "--redis-kills", "1", "--records", "20000", "--dop", "1")
    found = chaos(tmp_path / "r.json", *options)
    assert counts(found) == {"broker": 1, "redis": 1}
    lines = {name: branch["lines"] for name, branch in found["branches"].items()}
    assert (lines["in Kafka"], lines["in Redis"]) == (2000, 20000)


def test_a_folder_with_something_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    result = CliRunner().invoke(app, ["chaos", "--folder", str(tmp_path)])
    assert result.exit_code == 2
    assert "is not empty" in result.stderr


# ---------------------------------------------------------------------- the judge


def window_lines(counts: Counter[tuple[int, int]]) -> list[str]:
    return [
        json.dumps({"key": digit, "window": [start, start + 1000], "value": count})
        for (digit, start), count in counts.items()
    ]


@pytest.fixture
def workload(tmp_path: Path) -> Workload:
    """A workload with right results, as a flow of two tasks writes them."""
    made = Workload(str(tmp_path), RECORDS, per_second=1)
    lines: dict[str, list[list[str]]] = {name: [[], []] for name in ("seen", "counts", "sums")}
    counts: dict[int, int] = {}
    sums: dict[int, int] = {}
    for number in range(RECORDS):
        _, key, amount = item(number).number, item(number).key, 2 * item(number).amount
        seen = {"number": number, "key": key, "doubled": amount}
        lines["seen"][number % 2].append(json.dumps(seen))
        for name, table, step in (("counts", counts, 1), ("sums", sums, amount)):
            before = table.get(key)
            table[key] = (before or 0) + step
            change = {"key": key, "window": None, "value": table[key], "previous": before}
            lines[name][key % 2].append(json.dumps(change))
    closed = window_lines(plain_windows(RECORDS))
    lines["windows"] = [closed[::2], closed[1::2]]
    for name, parts in lines.items():
        made.out(name).mkdir(parents=True)
        for index, part in enumerate(parts):
            (made.out(name) / f"part-{index}.jsonl").write_text("\n".join(part) + "\n")
    return made


def test_right_results_are_right(workload: Workload) -> None:
    found = judge(workload)
    assert all(branch.sound for branch in found.values()), found
    assert found.pop("windows").lines == 50
    assert all(branch.lines == RECORDS for branch in found.values()), found


def dropped(lines: list[str]) -> None:
    del lines[700]


def doubled(lines: list[str]) -> None:
    lines.insert(701, lines[700])


def cut(lines: list[str]) -> None:
    lines[700] = lines[700][:-5]


def invented(lines: list[str]) -> None:
    lines.append(
        json.dumps({"number": RECORDS, "key": 1, "doubled": 2, "value": -1, "previous": 0})
    )


def swapped(lines: list[str]) -> None:
    changes = [json.loads(line) for line in lines]
    key = changes[0]["key"]
    first, second, *_ = [n for n, change in enumerate(changes) if change["key"] == key]
    lines[first], lines[second] = lines[second], lines[first]


@pytest.mark.parametrize("name", ["seen", "counts", "sums"])
@pytest.mark.parametrize(
    ("spoil", "fault"),
    [(dropped, "lost"), (doubled, "duplicated"), (cut, "wrong"), (invented, "wrong")],
)
def test_one_wrong_line_is_noticed(
    workload: Workload, name: str, spoil: Callable[[list[str]], None], fault: str
) -> None:
    file = workload.out(name) / "part-1.jsonl"
    lines = file.read_text().splitlines()
    spoil(lines)
    file.write_text("\n".join(lines) + "\n")
    found = judge(workload)
    assert getattr(found[name], fault) >= 1
    assert found[name].examples
    assert [branch for branch, faults in found.items() if not faults.sound] == [name]


@pytest.mark.parametrize("name", ["counts", "sums"])
def test_changes_in_another_order_are_wrong(workload: Workload, name: str) -> None:
    file = workload.out(name) / "part-1.jsonl"
    lines = file.read_text().splitlines()
    swapped(lines)
    file.write_text("\n".join(lines) + "\n")
    found = judge(workload)[name]
    assert found.wrong >= 1
    assert not found.sound


@pytest.mark.parametrize("name", ["seen", "counts", "sums"])
def test_a_file_that_is_missing_is_lost(workload: Workload, name: str) -> None:
    lines = len((workload.out(name) / "part-1.jsonl").read_text().splitlines())
    (workload.out(name) / "part-1.jsonl").unlink()
    assert judge(workload)[name].lost == lines


def test_window_that_lacks_a_late_record_is_noticed() -> None:
    counts = plain_windows(RECORDS)
    lines = window_lines(counts - Counter({(3, 1000): 2}) + Counter({(4, 1000): 1}))
    found = judge_windows([line.encode() for line in [*lines, lines[0]]], counts)
    (first, *_) = counts.values()
    assert (found.lost, found.wrong, found.duplicated) == (2, first + 1, 1)
    assert f"the window (3, 1000) has {counts[3, 1000] - 2}" in str(found.examples)


def test_idle_is_shorter_than_what_happens_and_longer_than_a_source_waits() -> None:
    assert Workload("", 1000, per_second=5000).idle_ms == IDLE_MS < 1000 * STOPPED_S
    assert Workload("", 1000, per_second=10).idle_ms > 1000 * 2 / (10 * SLOWLY)


# ---------------------------------------------------------------------- kills


def test_all_stages_are_hit_and_a_quarter_comes_soon() -> None:
    made = plan(STAGES, {"task": 30, "driver": 5, "reset": 5}, seed=3)
    stages = [fault.stage for fault in made if fault.kind == "task"]
    assert {stages.count(stage) for stage in STAGES} == {10}
    assert [fault.kind for fault in made].count("driver") == 5
    assert made[0].kind == "task"
    soon = [fault for fault in made if fault.soon]
    assert len(soon) == 10
    assert all(fault.delay_s <= SOON_S for fault in soon)
    assert made != plan(STAGES, {"task": 30, "driver": 5, "reset": 5}, seed=4)


def test_mixed_faults_are_of_all_kinds_that_can_be_had() -> None:
    assert sum(mixed(60).values()) == 60
    assert set(mixed(60).values()) == {6, 7}
    assert set(mixed(60)) == set(KINDS)
    assert set(mixed(60, without=["broker"])) == set(KINDS) - {"broker"}


def word(at: float, state: str, committed: int, pid: int | None) -> Word:
    return Word(at, state, committed, 0, [] if pid is None else [("counts", 1, pid)])


def test_a_kill_is_over_when_another_process_runs_and_commits() -> None:
    strike = Strike("task", "counts/1", 10.0, calm=True, lost=[("counts", 1, 77)], over_at=10.0)
    for said in (
        word(9.9, "running", 4, 70),  # before
        word(10.1, "running", 4, 77),  # nobody has noticed
        word(10.2, "running", 5, 77),  # an epoch that was complete already
        word(10.3, "recovering", 5, None),
        word(10.9, "recovering", 5, 78),  # there, not running
    ):
        strike.hear(said)
        assert strike.running_at is None
    strike.hear(word(11.0, "running", 5, 78))
    assert (strike.running_at, strike.settled) == (11.0, False)
    strike.hear(word(11.2, "running", 6, 78))
    assert strike.committed_at == 11.2


def test_a_fault_that_lasts_is_over_before_the_flow_is_well() -> None:
    strike = Strike("broker", "kafka", at=10.0, calm=True)
    strike.hear(word(10.1, "running", 4, 77))
    strike.over_at = 15.0
    strike.hear(word(14.9, "running", 5, 77))  # said before that, and heard only now
    assert strike.running_at is None
    strike.hear(word(15.1, "running", 5, 77))
    strike.hear(word(15.3, "running", 6, 77))
    assert (strike.running_at, strike.committed_at) == (15.1, 15.3)


def test_the_summary_says_what_is_wrong() -> None:
    branches = {"seen": Branch(9, lost=1, examples=["number 3 is missing"]), "counts": Branch(10)}
    times = Times.of([0.5, 1.5])
    result = Result(
        faults={"task": Suffered(2, {"counts": 2}, times, times)},
        wanted={"task": 2, "driver": 1},
        without={"broker": "java is not on the path"},
        while_recovering=1,
        lost=1,
        duplicated=0,
        wrong=0,
        running_ms=times,
        committed_ms=times,
        epochs=7,
        recoveries=2,
        switches=0,
        seconds=12.3,
        left=3,
        branches=branches,
        failure="it hangs",
        folder="/somewhere",
        order=Order(),
    )
    assert not result.sound
    console = Console(width=120, highlight=False)
    with console.capture() as capture:
        show(result, console)
    text = capture.get()
    for part in ("number 3 is missing", "it hangs", "3 processes were left", "/somewhere"):
        assert part in text
    assert "without broker killed: java is not on the path" in text
    assert "0.50 s, worst 1.50" in text
    assert "once, and right" not in text
