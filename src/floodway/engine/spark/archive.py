"""An archive of Spark's classes, made once per machine: with it, the JVM starts a second sooner.

A JVM that starts without one reads thousands of classes from some hundred JAR files, and checks
them every time. Java's own archives of classes ("class data sharing") hold them checked and ready.
The JVM compares an archive with its own version and with the JAR files before it uses it, and goes
on without it where they differ: an archive that is out of date costs time, never an answer.

What a JVM takes its code from is not for others to write: only a file that belongs to this user, in
a folder that nobody else may write to, is used.
"""

import hashlib
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from floodway.core.errors import EngineError

PATIENCE_S = 300.0
"""How long making an archive may take; on a busy machine it is half a minute."""

KEPT = 4
"""So many archives are kept: of the environments that this user works in."""

_QUIET = "-Xshare:auto -Xlog:cds=off -Xlog:cds+dynamic=off"
"""A JVM that does not take an archive says so on every start, though nothing is wrong."""


def archive() -> Path:
    """Return where the archive for this Spark and this Java is, or would be."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(home) / "floodway" / f"spark-{_what_for()}.jsa"


def archive_options() -> str:
    """Return the options of a JVM that is to use the archive; none if there is none to trust."""
    there = archive()
    if '"' in str(there) or not (_is_ours(there, stat.S_ISREG) and _is_ours(there.parent)):
        return ""
    return f'"-XX:SharedArchiveFile={there}" {_QUIET}'


def make_archive() -> Path:
    """Start a Spark that writes down the classes it has used; return where they are."""
    target = archive()
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix="making-", dir=target.parent))
    except OSError as error:
        raise EngineError(
            f"no archive of classes can be kept in {target.parent}: {error.strerror}",
            remedy="set XDG_CACHE_HOME to a folder that you may write to",
        ) from error
    try:
        made = folder / target.name
        _run(made)
        made.chmod(0o600)
        made.replace(target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    clear_up(target.parent)
    return target


def clear_up(folder: Path) -> None:
    """Remove the oldest archives: their Spark may be gone with the environment it was in."""
    archives = sorted(folder.glob("spark-*.jsa"), key=lambda file: file.stat().st_mtime)
    for old in archives[:-KEPT]:
        old.unlink(missing_ok=True)


def _run(made: Path) -> None:
    """Let another process make the archive: in this one, a JVM may be running already."""
    command = [sys.executable, "-m", __name__, str(made)]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_S
        )
        said = done.stderr.strip().splitlines()[-1:]
    except subprocess.TimeoutExpired:
        said = [f"it took longer than {PATIENCE_S:g} s"]
    if not made.is_file():
        raise EngineError(
            f"Java has made no archive of Spark's classes: {''.join(said) or 'it said nothing'}",
            remedy="run `floodway doctor`; flows run without it, and start a second later",
        )


def _what_for() -> str:
    """Return a name for this Spark and this Java: others need an archive of their own.

    So does an environment that was made anew in the same place: the JVM compares the times of all
    files with those that it has noted, and would take no archive from then on, without a word.
    """
    from pyspark.find_spark_home import _find_spark_home

    java_home = os.environ.get("JAVA_HOME")
    java = os.path.join(java_home, "bin", "java") if java_home else shutil.which("java") or ""
    jars = sorted(Path(_find_spark_home(), "jars").glob("*.jar"))
    parts = [_identity(file) for file in (Path(os.path.realpath(java)), *jars)]
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=8).hexdigest()


def _identity(file: Path) -> str:
    """Return what tells a file from another one, and from one that replaces it."""
    try:
        found = file.stat()
    except OSError:
        return str(file)
    return f"{file} {found.st_size} {found.st_mtime_ns}"


def _is_ours(path: Path, kind: Any = stat.S_ISDIR) -> bool:
    try:
        found = path.lstat()
    except OSError:
        return False
    return kind(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022


def _use_spark(made: str) -> None:
    """Do with Spark what flows do, and let its JVM end, which writes the archive."""
    from floodway.engine.spark.context import Lease

    options = {"spark.driver.extraJavaOptions": f'"-XX:ArchiveClassesAtExit={made}" {_QUIET}'}
    lease = Lease.take("archive", 2, conf=options)
    process = lease.context._gateway.proc  # noqa: SLF001 - no public way
    lease.context.parallelize(range(2), 2).map(str).collect()
    lease.release()
    process.stdin.close()
    process.wait()


if __name__ == "__main__":
    _use_spark(sys.argv[1])
