"""Announcements of running flows are private, found, and removed when stale."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from floodway.core.errors import EngineError
from floodway.engine.metrics.announcements import (
    Announcement,
    announce,
    folder,
    running,
    withdraw,
)


@pytest.fixture(autouse=True)
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path / "floodway"


def announcement(flow: str = "ads", *, pid: int | None = None, age: float = 0.0) -> Announcement:
    return Announcement(
        url="http://127.0.0.1:1",
        pid=os.getpid() if pid is None else pid,
        flow=flow,
        started=time.time() - age,
    )


def dead_pid() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_nothing_runs_where_there_is_no_folder() -> None:
    assert running() == []


def test_newest_comes_first() -> None:
    made = [announcement("old"), announcement("new", age=-1.0)]
    for each in made:
        announce(each)
    assert running() == made[::-1]


def test_name_of_the_flow_may_be_anything(runtime: Path) -> None:
    made = announcement("../a flow/with\x00odd name")
    assert announce(made).parent == runtime
    assert running() == [made]


def test_announcement_of_a_dead_process_is_removed(runtime: Path) -> None:
    announce(announcement(pid=dead_pid()))
    assert running() == []
    assert list(runtime.iterdir()) == []


def test_announcement_of_a_process_whose_number_was_taken_over_is_removed(runtime: Path) -> None:
    announce(announcement(age=10 * 365 * 86_400))
    assert running() == []
    assert list(runtime.iterdir()) == []


def test_later_announcement_of_the_same_flow_stays() -> None:
    first, second = announcement(), announcement(age=-1.0)
    file = announce(first)
    announce(second)
    withdraw(file, first)
    assert running() == [second]
    withdraw(file, second)
    assert running() == []


def test_file_that_is_no_announcement_is_left_alone(runtime: Path) -> None:
    announce(announcement())
    (runtime / "notes.json").write_text("[]")
    assert len(running()) == 1
    assert (runtime / "notes.json").exists()


def test_folder_that_others_can_enter_is_refused(runtime: Path) -> None:
    runtime.mkdir()
    runtime.chmod(0o755)
    with pytest.raises(EngineError, match="is not private"):
        announce(announcement())
    with pytest.raises(EngineError, match="is not private"):
        running()


def test_link_to_another_folder_is_refused(runtime: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    runtime.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(EngineError, match="is not private"):
        announce(announcement())


def test_folder_that_cannot_be_made_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "file"))
    with pytest.raises(EngineError, match="cannot announce"):
        announce(announcement())


def test_temporary_folder_serves_where_there_is_no_runtime_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert folder() == tmp_path / f"floodway-{os.getuid()}"
