"""Environments for systems under test: each has its own, with exactly the versions named here."""

import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from xml.sax.saxutils import escape

from floodway.core.errors import EngineError

INSTALL_S = 1_800.0
"""How long each step of an installation may take."""

DONE = ".complete"
"""The file that says that an environment is complete; it has what was asked for."""

_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>floodway</groupId><artifactId>jars</artifactId><version>1</version>
  <packaging>pom</packaging>
  <dependencies>{}</dependencies>
</project>
"""
_DEPENDENCY = """
    <dependency>
      <groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>
      <exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>
    </dependency>"""


def home() -> Path:
    """Return where environments are: `FLOODWAY_BENCH_HOME`, or in the user's cache."""
    given = os.environ.get("FLOODWAY_BENCH_HOME")
    if given:
        return Path(given)
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "floodway" / "bench"


def python_of(name: str) -> Path:
    """Return the interpreter of an environment; the jars beside it are in `sys.prefix`/jars."""
    return home() / name / "bin" / "python"


def installed(name: str, requirements: tuple[str, ...], jars: tuple[str, ...] = ()) -> bool:
    """Return whether an environment is there, with the versions that are wanted."""
    try:
        return (home() / name / DONE).read_text().split() == [*requirements, *jars]
    except OSError:
        return False


def install(name: str, requirements: tuple[str, ...], jars: tuple[str, ...] = ()) -> Path:
    """Make an environment; return where it is. What was there of it is replaced.

    Parameters
    ----------
    name
        What it is called.
    requirements
        What pip installs.
    jars
        What Maven fetches, and nothing besides: ``group:artifact:version``.
    """
    place = home() / name
    if installed(name, requirements, jars):
        return place
    shutil.rmtree(place, ignore_errors=True)
    try:
        venv.create(place, with_pip=True)
        _call([str(python_of(name)), "-m", "pip", "install", "--quiet", *requirements])
        if jars:
            _fetch(jars, place / "jars")
    except (OSError, subprocess.SubprocessError) as error:
        shutil.rmtree(place, ignore_errors=True)
        raise _cannot(name, _told(error)) from error
    (place / DONE).write_text("\n".join([*requirements, *jars]))
    return place


def _fetch(jars: tuple[str, ...], place: Path) -> None:
    """Have Maven put jars into a folder."""
    wanted = [_DEPENDENCY.format(*map(escape, jar.split(":"))) for jar in jars]
    with tempfile.TemporaryDirectory() as folder:
        pom = Path(folder) / "pom.xml"
        pom.write_text(_POM.format("".join(wanted)))
        goal = ["dependency:copy-dependencies", "-DincludeScope=runtime"]
        _call(["mvn", "-B", "-q", "-f", str(pom), *goal, f"-DoutputDirectory={place}"])


def _call(command: list[str]) -> None:
    subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=INSTALL_S,
        check=True,
    )


def _told(error: Exception) -> str:
    """Return what went wrong, in a line."""
    if isinstance(error, subprocess.CalledProcessError):
        words: list[str] = (error.stderr.strip() or error.stdout.strip()).splitlines()
        errors = [line for line in words if "ERROR" in line]  # pip and Maven go on after the first
        return (errors or words or [f"{error.cmd[0]} failed"])[0]
    return str(error)


def _cannot(name: str, why: str) -> EngineError:
    version = ".".join(map(str, sys.version_info[:2]))
    return EngineError(
        f"{name} cannot be installed: {why}",
        remedy="see whether this machine reaches a package index, and Maven's if jars are needed, "
        f"and whether the system has a package for Python {version}; the others can be measured "
        "without it",
    )
