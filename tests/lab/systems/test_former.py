"""Another version of Floodway is measured from its own checkout."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from floodway_lab.systems.former import OLDER, VARIABLE, former_systems
from floodway_lab.systems.registry import OWN


def checkout(folder: Path, *, lab: bool) -> Path:
    """Make what looks like a checkout, before there was a laboratory or after."""
    (folder / "src/floodway").mkdir(parents=True)
    if lab:
        (folder / "lab/floodway_lab").mkdir(parents=True)
    return folder


def test_nobody_is_former_unless_a_checkout_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert former_systems(OWN) == ()


@pytest.mark.parametrize("lab", [True, False])
def test_former_version_runs_its_own_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, lab: bool
) -> None:
    monkeypatch.setenv(VARIABLE, str(checkout(tmp_path, lab=lab)))
    found = {system.name: system for system in former_systems(OWN)}
    assert list(found) == ["former-dual", "former-data", "former-unbatched", "former-operation"]
    data = found["former-data"]
    assert data.ready
    assert data.program == (OWN[1].program if lab else OLDER)
    path = data.environment()["PYTHONPATH"].split(os.pathsep)
    assert path == [str(tmp_path / "src"), str(tmp_path / "lab")]
    assert data.options == {"mode": "data"}


def test_folder_without_floodway_is_refused(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "floodway", "bench", "run", "ads", "--sut", "former-data"]
    command += ["--rate", "1000"]
    done = subprocess.run(
        command,
        env={**os.environ, VARIABLE: str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert f"there is no floodway in {tmp_path / 'src'}" in done.stderr
    assert VARIABLE in done.stderr
