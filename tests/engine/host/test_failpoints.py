"""Fail points: armed from outside, each kills one process."""

import ast
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from floodway.core.errors import EngineError
from floodway.engine.host import failpoints
from floodway.engine.host.failpoints import FAIL_POINTS, VARIABLE, reach

SOURCES = Path(failpoints.__file__).parents[1]

REACHES = "from floodway.engine.host.failpoints import reach; reach('prune.before'); print('lives')"


def run(armed: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", REACHES],
        env=os.environ | {VARIABLE: armed},
        capture_output=True,
        text=True,
        check=False,
    )


def reached() -> Iterator[str]:
    """Every argument that the source gives to `reach`, as source."""
    for file in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == "reach":
                yield ast.unparse(node.args[0])


def test_fail_point_that_is_not_armed_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    reach("prune.before")


def test_first_process_is_killed_and_the_next_goes_on(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    first = run(f"prune.before={marker}")
    assert (first.returncode, first.stdout) == (-signal.SIGKILL, "")
    assert marker.exists()
    second = run(f"prune.before={marker}")
    assert (second.returncode, second.stdout) == (0, "lives\n")


def test_another_fail_point_does_not_kill(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    assert run(f"prune.middle={marker}").stdout == "lives\n"
    assert not marker.exists()


def test_several_can_be_armed(tmp_path: Path) -> None:
    done = run(f"prune.middle={tmp_path / 'one'},prune.before={tmp_path / 'two'}")
    assert done.returncode == -signal.SIGKILL
    assert [path.name for path in tmp_path.iterdir()] == ["two"]


@pytest.mark.parametrize("armed", ["prune.before", "prune.before=", "prune.befoer=x", ","])
def test_what_is_no_fail_point_is_refused(armed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, armed)
    with pytest.raises(EngineError) as caught:
        reach("prune.middle")
    assert "prune.before" in caught.value.remedy


def test_simulation_is_told_what_is_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    monkeypatch.setattr(failpoints, "hook", seen.append)
    reach("commit.before_record")
    reach("commit.after_record")
    assert seen == ["commit.before_record", "commit.after_record"]


def test_every_fail_point_of_the_source_is_listed_and_every_listed_one_is_there() -> None:
    assert {*reached()} == {repr(name) for name in FAIL_POINTS}
