"""``floodway check-upgrade``: what a changed flow may keep, and what is in the way."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from floodway.cli.main import app
from tests.cli.words import FLOW
from tests.engine.checkpoint.checkpoints import write_checkpoint


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


def test_another_key_is_in_the_way(tmp_path: Path) -> None:
    result = check(tmp_path, by="length(value) AS word")
    assert result.exit_code == 1
    assert "incompatible" in result.stdout
    assert "the flow cannot go on" in " ".join(result.stdout.split())


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
