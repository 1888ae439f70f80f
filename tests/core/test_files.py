"""Files that are written again: whole, and for the eyes they were for."""

import stat
from pathlib import Path

import pytest

from floodway.core.files import write_whole


@pytest.mark.parametrize("mode", [0o600, 0o640])
def test_who_may_read_a_file_is_as_before(tmp_path: Path, mode: int) -> None:
    # Its successor was for everybody.
    file = tmp_path / "secret.json"
    file.write_bytes(b"1")
    file.chmod(mode)
    write_whole(file, b"2")
    assert file.read_bytes() == b"2"
    assert stat.S_IMODE(file.stat().st_mode) == mode


def test_link_stays_one_and_nothing_is_left_beside(tmp_path: Path) -> None:
    file, link = tmp_path / "file", tmp_path / "link"
    link.symlink_to(file)
    write_whole(link, b"1")
    write_whole(link, b"2")
    assert link.is_symlink()
    assert file.read_bytes() == b"2"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "link"]


def test_what_cannot_be_put_in_place_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    file = tmp_path / "file"
    file.write_bytes(b"before")
    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        write_whole(file, b"after")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert file.read_bytes() == b"before"
