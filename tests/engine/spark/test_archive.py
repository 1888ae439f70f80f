"""The archive of Spark's classes: used where it can be trusted, and no harm where it cannot."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from floodway.core.errors import EngineError
from floodway.engine.spark.archive import KEPT, archive, archive_options, clear_up, make_archive
from tests.engine.spark.child import Child, Order
from tests.engine.spark.recovering import release


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of caches."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def stored(cache: Path) -> Path:
    """An archive, as far as anybody can see who does not look into it."""
    archive().parent.mkdir(mode=0o700)
    archive().write_bytes(b"no archive")
    archive().chmod(0o600)
    return archive()


def test_environment_that_was_made_anew_in_its_place_has_no_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    jar = tmp_path / "jars" / "spark.jar"
    jar.parent.mkdir()
    jar.write_bytes(b"classes")
    before = archive()
    assert archive() == before
    os.utime(jar, (1, 1))
    assert archive() != before


def test_no_archive_is_no_option(cache: Path) -> None:
    assert archive_options() == ""


def test_archive_of_this_user_is_used(stored: Path) -> None:
    assert f'"-XX:SharedArchiveFile={stored}"' in archive_options()


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_archive_that_others_may_write_to_is_not_used(stored: Path, mode: int) -> None:
    stored.chmod(mode)
    assert archive_options() == ""


def test_archive_in_a_folder_that_others_may_write_to_is_not_used(stored: Path) -> None:
    stored.parent.chmod(0o770)
    assert archive_options() == ""


def test_archive_that_is_a_link_is_not_used(stored: Path) -> None:
    stored.rename(stored.with_suffix(".other"))
    stored.symlink_to(stored.with_suffix(".other"))
    assert archive_options() == ""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
def test_archive_of_somebody_else_is_not_used(stored: Path) -> None:
    os.chown(stored, 12345, 12345)
    assert archive_options() == ""


def test_only_the_newest_archives_are_kept(stored: Path) -> None:
    for number in range(KEPT + 2):
        old = stored.with_name(f"spark-{number}.jsa")
        old.touch()
        os.utime(old, (number, number))
    clear_up(stored.parent)
    newest = {f"spark-{number}.jsa" for number in range(3, KEPT + 2)}
    assert {file.name for file in stored.parent.iterdir()} == {stored.name, *newest}


def test_java_that_makes_none_is_named_with_a_remedy(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    with pytest.raises(EngineError, match="has made no archive") as error:
        make_archive()
    assert "floodway doctor" in (error.value.remedy or "")
    assert not list(archive().parent.iterdir())  # nothing half made is left


def test_cache_that_cannot_be_written_to_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(file))
    with pytest.raises(EngineError, match="no archive of classes can be kept") as error:
        make_archive()
    assert "XDG_CACHE_HOME" in (error.value.remedy or "")


@pytest.mark.spark
def test_flow_runs_with_an_archive_that_java_does_not_take(
    stored: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("flow")
    release(folder)
    with Child(Order(folder=str(folder))) as child:
        assert child.wait() == 0, child.log
    assert "archive" not in child.log


@pytest.mark.spark
def test_spark_is_started_from_the_archive() -> None:
    if not archive_options():
        make_archive()
    code = (
        "from floodway.engine.spark.context import Lease; from pathlib import Path;"
        "process = Lease.take('x', 1, conf={}).context._gateway.proc;"
        "print(Path(f'/proc/{process.pid}/maps').read_text())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert archive().name in done.stdout
