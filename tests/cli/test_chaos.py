"""``floodway chaos``: kills that a flow survives, and a judge that notices when it does not."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from floodway.cli.chaos import show
from floodway.cli.main import app
from floodway.testing.chaos import Branch, Order, Result, Times
from floodway.testing.chaos.schedule import SOON_S, plan
from floodway.testing.chaos.verdict import judge
from floodway.testing.chaos.watch import Strike
from floodway.testing.chaos.words import Word
from floodway.testing.chaos.workload import Workload, item

RECORDS = 5000
STAGES = ("items", "passed", "counts")


def chaos(file: Path, *options: str) -> dict[str, object]:
    result = CliRunner().invoke(app, ["chaos", "--json", str(file), *options])
    found: dict[str, object] = json.loads(file.read_text())
    assert result.exit_code == 0, (result.output, result.stderr, found)
    return found


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_flow_survives_killed_tasks(tmp_path: Path) -> None:
    found = chaos(tmp_path / "r.json", "--kills", "2", "--records", "20000", "--epoch", "100ms")
    assert (found["kills"], found["driver_kills"]) == (2, 0)
    assert (found["lost"], found["duplicated"], found["wrong"], found["left"]) == (0, 0, 0, 0)
    assert len(found["recovery_ms"]["all"]) == len(found["committed_ms"]["all"]) == 2
    assert 0 < found["recovery_ms"]["p50"] <= found["recovery_ms"]["p99"]
    assert {branch["lines"] for branch in found["branches"].values()} == {20000}


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_flow_survives_kills_while_its_stages_change_their_paradigm(tmp_path: Path) -> None:
    found = chaos(tmp_path / "r.json", "--kills", "3", "--records", "30000", "--switches")
    assert found["switches"] >= found["kills"] == 3
    assert (found["lost"], found["duplicated"], found["wrong"], found["left"]) == (0, 0, 0, 0)
    lines = {name: branch["lines"] for name, branch in found["branches"].items()}
    assert lines.pop("totals") > 0
    assert set(lines.values()) == {30000}


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_flow_survives_a_killed_driver_which_leaves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    options = ("--kills", "1", "--driver-kills", "1", "--records", "20000", "--dop", "1")
    found = chaos(tmp_path / "r.json", *options, "--folder", str(folder))
    assert (found["kills"], found["driver_kills"]) == (1, 1)
    assert (found["lost"], found["duplicated"], found["wrong"], found["left"]) == (0, 0, 0, 0)
    assert len(found["driver_recovery_ms"]["all"]) == 1
    assert (folder / "log").exists()


def test_a_folder_with_something_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    result = CliRunner().invoke(app, ["chaos", "--folder", str(tmp_path)])
    assert result.exit_code == 2
    assert "is not empty" in result.stderr


# ---------------------------------------------------------------------- the judge


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
    for name, parts in lines.items():
        made.out(name).mkdir(parents=True)
        for index, part in enumerate(parts):
            (made.out(name) / f"part-{index}.jsonl").write_text("\n".join(part) + "\n")
    return made


def test_right_results_are_right(workload: Workload) -> None:
    found = judge(workload)
    assert all(branch.sound and branch.lines == RECORDS for branch in found.values()), found


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


# ---------------------------------------------------------------------- kills


def test_all_stages_are_hit_and_a_quarter_comes_soon() -> None:
    made = plan(STAGES, kills=30, driver_kills=5, seed=3)
    stages = [kill.stage for kill in made]
    assert {stages.count(stage) for stage in STAGES} == {10}
    assert stages.count(None) == 5
    assert stages[0] is not None
    soon = [kill for kill in made if kill.soon]
    assert len(soon) == 8
    assert all(kill.delay_s <= SOON_S for kill in soon)
    assert made != plan(STAGES, kills=30, driver_kills=5, seed=4)


def word(at: float, state: str, committed: int, pid: int | None) -> Word:
    return Word(at, state, committed, 0, [] if pid is None else [("counts", 1, pid)])


def test_a_kill_is_over_when_another_process_runs_and_commits() -> None:
    strike = Strike("counts", 1, 77, at=10.0, calm=True)
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


def test_the_summary_says_what_is_wrong() -> None:
    branches = {"seen": Branch(9, lost=1, examples=["number 3 is missing"]), "counts": Branch(10)}
    times = Times.of([0.5, 1.5])
    result = Result(
        kills=2,
        driver_kills=1,
        while_recovering=1,
        lost=1,
        duplicated=0,
        wrong=0,
        recovery_ms=times,
        committed_ms=times,
        driver_recovery_ms=Times.of([]),
        epochs=7,
        recoveries=2,
        switches=0,
        seconds=12.3,
        killed={"counts": 2},
        left=3,
        branches=branches,
        failure="it hangs",
        folder="/somewhere",
        order=Order(kills=2),
    )
    assert not result.sound
    console = Console(width=100, highlight=False)
    with console.capture() as capture:
        show(result, console)
    text = capture.get()
    for part in ("number 3 is missing", "it hangs", "3 processes were left", "/somewhere"):
        assert part in text
    assert "until all tasks run again: p50 0.50 s, p99 1.50 s" in text
    assert "once, and right" not in text
