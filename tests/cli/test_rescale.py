"""``floodway rescale``: another number of tasks, and every key is still there."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from floodway.cli.main import app
from floodway.engine.driver.job import start
from floodway.model.loading import load_flow
from tests.cli.words import FLOW
from tests.engine.checkpoint.checkpoints import write_checkpoint
from tests.waiting import wait_for

WORDS = [f"word {number * number % 211}" for number in range(4000)]

COUNTING = """\
import floodway as fw
from floodway.connectors import JsonLinesSink, JsonLinesSource

def build():
    flow = fw.Flow("words")
    words = flow.source("words", JsonLinesSource({folder!r} + "/in"), schema=str)
    counts = words.group_by("value AS word").count(name="counts")
    counts.changes(name="changes").to(JsonLinesSink({folder!r} + "/out"), name="results")
    return flow
"""


def rescale(folder: Path, file: Path, *options: str) -> Result:
    checkpoint = ("--checkpoint", str(folder / "checkpoint"))
    return CliRunner().invoke(app, ["rescale", str(file), *checkpoint, *options])


@pytest.fixture
def counting(tmp_path: Path) -> Path:
    """A file with a flow that counts words of four files."""
    (tmp_path / "in").mkdir()
    for part in range(4):
        lines = [json.dumps(word) for word in WORDS[part::4]]
        (tmp_path / "in" / f"{part}.jsonl").write_text("\n".join(lines) + "\n")
    file = tmp_path / f"counting_{tmp_path.name}.py"
    file.write_text(COUNTING.format(folder=str(tmp_path)))
    return file


def run_for_a_while(file: Path, checkpoint: Path) -> None:
    """Count some of the words, and stop."""
    job = start(load_flow(f"{file}:build"), dop=1, checkpoint=checkpoint, epoch="50ms", b_out=10)
    job.throttle("words", 500)
    job.wait_running()
    wait_for(lambda: job.committed > 0 and job.status.totals.records_in > 200, "some words")
    job.drain()
    job.wait()


def changes(folder: Path) -> dict[str, list[int]]:
    """Return the counts of each word, in their order within a file."""
    found: dict[str, list[int]] = {}
    for file in sorted((folder / "out").glob("part-*.jsonl")):
        for line in file.read_text().splitlines():
            change: dict[str, Any] = json.loads(line)
            found.setdefault(change["key"], []).append(change["value"])
    return found


@pytest.mark.spark
@pytest.mark.slow
def test_a_flow_goes_on_with_more_tasks(counting: Path) -> None:
    folder = counting.parent
    run_for_a_while(counting, folder / "checkpoint")
    before = sum(map(len, changes(folder).values()))
    assert 0 < before < len(WORDS)

    result = rescale(folder, Path(f"{counting}:build"), "--dop", "3", "--json", "-")
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    tasks = {each["stage"]: (each["before"], each["after"]) for each in document["stages"]}
    assert document["changed"]
    assert tasks["counts"] == (1, 3)

    again = rescale(folder, Path(f"{counting}:build"), "--dop", "3")
    assert "nothing to do" in again.stdout

    job = start(load_flow(f"{counting}:build"), dop=3, checkpoint=folder / "checkpoint")
    job.wait()
    assert job.start_epoch == document["epoch"]
    found = {word: sorted(values) for word, values in changes(folder).items()}
    assert found == {word: list(range(1, n + 1)) for word, n in Counter(WORDS).items()}


def test_state_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "checkpoint")
    file = tmp_path / f"other_{tmp_path.name}.py"
    file.write_text(FLOW.format(flow="words", by="length(value) AS word", counts="counts"))
    result = rescale(tmp_path, file, "--dop", "2")
    assert result.exit_code == 2
    assert "cannot go on" in result.stderr
    assert "check-upgrade" in result.stderr


def test_there_has_to_be_a_checkpoint(tmp_path: Path) -> None:
    file = tmp_path / f"none_{tmp_path.name}.py"
    file.write_text(FLOW.format(flow="words", by="value AS word", counts="counts"))
    result = rescale(tmp_path, file, "--dop", "2")
    assert result.exit_code == 2
    assert "there is no checkpoint in" in result.stderr


def test_stages_and_their_tasks_are_shown(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "checkpoint")
    file = tmp_path / f"same_{tmp_path.name}.py"
    file.write_text(FLOW.format(flow="words", by="value AS word", counts="counts"))
    result = rescale(tmp_path, file)
    assert result.exit_code == 0, result.stderr
    assert "tasks before" in result.stdout
    assert "nothing to do: words has these tasks already" in result.stdout
