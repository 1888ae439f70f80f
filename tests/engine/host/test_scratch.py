"""Temporary folders: private, and swept when their owner is dead."""

import os
import signal
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from floodway.engine.host.scratch import OWNER, make_scratch, remove_scratch, sweep

MAKE = "from floodway.engine.host.scratch import make_scratch; print(make_scratch(), flush=True); "
DIE = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
LIVE = "import sys; sys.stdin.read()"


@pytest.fixture(autouse=True)
def temporary(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def left_by_the_dead() -> Path:
    """Return a folder with content whose owner has been killed."""
    made = subprocess.run([sys.executable, "-c", MAKE + DIE], capture_output=True, text=True)
    assert made.returncode == -signal.SIGKILL, made.stderr
    folder = Path(made.stdout.strip())
    (folder / "spark" / "blockmgr-1").mkdir(parents=True)
    (folder / "spark" / "blockmgr-1" / "block").write_text("records")
    return folder


def test_only_the_owner_may_enter_whatever_the_umask() -> None:
    before = os.umask(0)
    try:
        folder = make_scratch()
    finally:
        os.umask(before)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / OWNER).stat().st_mode) == 0o600
    remove_scratch(folder)
    assert not folder.exists()


def test_folder_of_the_dead_goes_when_the_next_one_is_made() -> None:
    dead = left_by_the_dead()
    assert dead.exists()
    new = make_scratch()
    assert not dead.exists()
    assert new.exists()
    remove_scratch(new)


def test_folders_of_the_living_stay(temporary: Path) -> None:
    own = make_scratch()
    with subprocess.Popen(
        [sys.executable, "-c", MAKE + LIVE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout is not None
        theirs = Path(other.stdout.readline().strip())
        assert sweep(temporary) == []
        assert own.exists()
        assert theirs.exists()
        other.communicate("")
    assert sweep(temporary) == [theirs]
    remove_scratch(own)


def test_links_are_not_followed(temporary: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    precious = tmp_path_factory.mktemp("precious")
    precious.chmod(0o700)
    (precious / OWNER).write_text("")
    (precious / "data").write_text("mine")
    (temporary / "floodway-link").symlink_to(precious)
    dead = left_by_the_dead()
    (dead / "link").symlink_to(precious)
    assert sweep(temporary) == [dead]
    assert (precious / "data").read_text() == "mine"
    assert (precious / OWNER).exists()


@pytest.mark.parametrize("strange", ["no owner", "open to others", "another user's"])
def test_what_may_be_somebody_elses_stays(strange: str, temporary: Path) -> None:
    folder = left_by_the_dead()
    if strange == "no owner":
        (folder / OWNER).unlink()
    elif strange == "open to others":
        folder.chmod(0o755)
    elif os.getuid() == 0:
        os.chown(folder, 65534, 65534)
    else:
        pytest.skip("only root can give a folder away")
    assert sweep(temporary) == []
    assert (folder / "spark").exists()
