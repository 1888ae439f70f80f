"""``floodway story``: a story as it was written, for people, as JSON, and lived through again."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from floodway.cli.main import app
from floodway.cli.story import compare
from floodway.engine.scheduler.decisions import SetBatch, SwitchTo
from floodway.engine.scheduler.loads import StageLoad, Topology
from floodway.engine.scheduler.replay import Decided
from floodway.engine.scheduler.scheduler import Scheduler
from floodway.engine.scheduler.settings import SchedulerSettings
from floodway.engine.scheduler.story import Story

FLOOD = StageLoad(stage="count", arrival_per_s=5012.0, queue_records=9_000, data_per_s=1000.0)
T0 = 1_790_000_000_000


def write(file: Path, *, loads: bool = True, until: int = 3) -> Path:
    """Write the story of a stage that is flooded, asked to switch, and has switched."""
    with file.open("wb") as out:
        story = Story(lambda line: out.write(line + b"\n"), loads=loads)
        scheduler = Scheduler(Topology(("count",)), SchedulerSettings(warm_ms=0), story)
        for step in range(1, until):
            scheduler.observe([FLOOD], T0 + 100 * step)
        if until > 2:
            scheduler.switched("count", T0 + 250, 1500)
    return file


def run(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["story", *map(str, arguments)], env={"COLUMNS": "80"})
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.exit_code, result.stdout, result.stderr


def test_decisions_are_told_with_time_and_reason(tmp_path: Path) -> None:
    code, out, _ = run(write(tmp_path / "story"))
    assert code == 0
    assert "began 2026-09-21 14:13:20 UTC" in out
    assert "0.1 s  count: data → operation" in out
    assert "0.1 s  count works in the operation paradigm, after a pause of 1.5 ms" in out
    words = " ".join(out.split())
    assert "count holds 9,000 records, 11,006 in 0.50 s (L_up 447) at 5,012/s of 1,000/s" in words
    assert max(map(len, out.splitlines())) <= 80


def test_story_without_decisions_is_told_too(tmp_path: Path) -> None:
    code, out, _ = run(write(tmp_path / "story", until=1), "--replay")
    assert code == 0
    assert "Nothing was decided" in out
    assert "0 decisions then, 0 now: the same" in out


def test_replay_decides_the_same(tmp_path: Path) -> None:
    code, out, _ = run(write(tmp_path / "story"), "--replay")
    assert code == 0
    assert "replayed: 1 decisions then, 1 now: the same" in out


def test_replay_of_a_story_that_was_changed_is_not_the_same(tmp_path: Path) -> None:
    file = write(tmp_path / "story")
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(line for line in lines if b'"what":"switch",' not in line))
    code, out, _ = run(file, "--replay")
    assert code == 1
    assert "NOT the same" in out
    assert f"decision 1 was not made, and is operation for count at {T0 + 200} ms now" in out


def test_first_difference_is_named() -> None:
    same = Decided(1, SetBatch("views", 1000))
    found = compare(
        [same, Decided(2, SetBatch("views", 10))], [same, Decided(2, SwitchTo("a", "data"))]
    )
    assert (found.recorded, found.replayed, found.same) == (2, 2, False)
    assert found.first_difference == (
        "decision 2 was b_out 10 for views at 2 ms, and is data for a at 2 ms now"
    )


def test_replay_needs_the_loads(tmp_path: Path) -> None:
    code, _, err = run(write(tmp_path / "story", loads=False), "--replay")
    assert code == 2
    assert "not the loads that led to them" in err


def test_json_has_entries_and_the_replay(tmp_path: Path) -> None:
    code, out, _ = run(write(tmp_path / "story"), "--replay", "--json", "-")
    told = json.loads(out)
    assert code == 0
    assert told["began_ms"] == T0 + 100
    assert [entry["what"] for entry in told["entries"]] == ["switch", "switched"]
    assert told["entries"][0]["point"]["l_up"] == 447.4
    assert told["replay"] == {"recorded": 1, "replayed": 1, "same": True, "first_difference": None}


def test_broken_last_line_is_not_there_yet(tmp_path: Path) -> None:
    file = write(tmp_path / "story")
    file.write_bytes(file.read_bytes() + b'{"type":"obs')
    assert run(file)[0] == 0


@pytest.mark.parametrize("content", [None, b"no story\nat all\n"])
def test_what_is_no_story_is_an_error(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "story"
    if content is not None:
        file.write_bytes(content)
    code, _, err = run(file)
    assert code == 2
    assert "cannot be read" in err
