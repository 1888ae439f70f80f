"""``floodway check-upgrade``: what a changed flow may keep, and what is in the way."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import floodway as fw
from floodway.cli.main import app
from floodway.connectors import JsonLinesSink, JsonLinesSource
from floodway.engine.rud.commits import Commits
from floodway.engine.rud.records import VERSION, CommitRecord
from floodway.engine.rud.shape import FlowShape
from floodway.engine.rud.vault import FolderVault
from floodway.plan import Plan

FLOW = """\
import floodway as fw
from floodway.connectors import JsonLinesSink, JsonLinesSource

flow = fw.Flow({flow!r})
words = flow.source("words", JsonLinesSource("in.jsonl"), schema=str)
counts = words.group_by({by!r}).count(name={counts!r})
counts.changes(name="changes").to(JsonLinesSink("out"), name="results")
"""


def write_checkpoint(folder: Path, *, epoch: int = 12) -> None:
    """Write the checkpoint of a flow that counts words."""
    flow = fw.Flow("words")
    words = flow.source("words", JsonLinesSource("in.jsonl"), schema=str)
    counts = words.group_by("value AS word").count(name="counts")
    counts.changes(name="changes").to(JsonLinesSink("out"), name="results")
    with Commits(FolderVault(folder)) as commits:
        commits.write(
            CommitRecord(
                version=VERSION,
                flow="words",
                shape=FlowShape.of(Plan.of(flow)),
                epoch=epoch,
                attempt=1,
                stream_time=None,
                clock_ms=0,
                finished=False,
                tasks=[],
            )
        )


def check(
    folder: Path,
    *options: str,
    flow: str = "words",
    by: str = "value AS word",
    counts: str = "counts",
) -> Result:
    write_checkpoint(folder / "checkpoint")
    # A module is imported once, so each has a name of its own.
    file = folder / f"words_{abs(hash((str(folder), flow, by, counts)))}.py"
    file.write_text(FLOW.format(flow=flow, by=by, counts=counts))
    return CliRunner().invoke(
        app, ["check-upgrade", str(folder / "checkpoint"), str(file), *options]
    )


def verdicts(result: Result) -> dict[str, str]:
    return {each["operator"]: each["verdict"] for each in json.loads(result.stdout)["findings"]}


def test_an_unchanged_flow_keeps_everything(tmp_path: Path) -> None:
    result = check(tmp_path, "--json", "-")
    assert result.exit_code == 0, result.output
    assert set(verdicts(result).values()) == {"kept"}
    assert verdicts(result).keys() >= {"words", "counts", "results"}
    document = json.loads(result.stdout)
    assert (document["flow"], document["epoch"], document["compatible"]) == ("words", 12, True)


def test_a_table_shows_the_reasons(tmp_path: Path) -> None:
    result = check(tmp_path, "--dop", "2")
    assert result.exit_code == 0
    assert "checkpoint at epoch 12" in result.stdout
    assert "dop was 1 and is 2" in " ".join(result.stdout.split())
    assert "the flow can go on from this checkpoint" in result.stdout


def test_a_renamed_operator_begins_anew(tmp_path: Path) -> None:
    result = check(tmp_path, "--json", "-", counts="totals")
    found = verdicts(result)
    assert (found["totals"], found["counts"]) == ("new", "dropped")
    assert result.exit_code == 0


def test_another_key_is_in_the_way(tmp_path: Path) -> None:
    result = check(tmp_path, by="length(value) AS word")
    assert result.exit_code == 1
    assert "incompatible" in result.stdout
    assert "the flow cannot go on" in " ".join(result.stdout.split())


def test_the_checkpoint_of_another_flow_is_in_the_way(tmp_path: Path) -> None:
    result = check(tmp_path, "--json", "-", flow="letters")
    assert result.exit_code == 1
    assert verdicts(result)["letters"] == "incompatible"


def test_a_checkpoint_in_use_can_be_looked_at(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "checkpoint", epoch=11)
    with Commits(FolderVault(tmp_path / "checkpoint")):
        assert check_only(tmp_path).exit_code == 0


def check_only(folder: Path) -> Result:
    file = folder / "looked_at_words.py"
    file.write_text(FLOW.format(flow="words", by="value AS word", counts="counts"))
    return CliRunner().invoke(app, ["check-upgrade", str(folder / "checkpoint"), str(file)])


def test_a_folder_without_a_checkpoint_is_an_error(tmp_path: Path) -> None:
    result = check_only(tmp_path)
    assert result.exit_code == 2
    assert "there is no checkpoint in" in result.stderr
    assert not (tmp_path / "checkpoint").exists()


def test_a_damaged_checkpoint_is_an_error(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "checkpoint")
    (record,) = (tmp_path / "checkpoint" / "commits").iterdir()
    record.write_bytes(record.read_bytes()[:-1])
    result = check_only(tmp_path)
    assert result.exit_code == 2
    assert record.name in result.stderr


@pytest.fixture(autouse=True)
def _input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.jsonl").write_text('"a"\n')
