"""Environments for systems under test: each has its own, with exactly the versions named here."""

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

from floodway.core.errors import EngineError

INSTALL_S = 900.0
"""How long an installation may take."""

DONE = ".complete"
"""The file that says that an environment is complete; it has the requirements."""


def home() -> Path:
    """Return where environments are: `FLOODWAY_BENCH_HOME`, or in the user's cache."""
    given = os.environ.get("FLOODWAY_BENCH_HOME")
    if given:
        return Path(given)
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "floodway" / "bench"


def python_of(name: str) -> Path:
    """Return the interpreter of a system's environment."""
    return home() / name / "bin" / "python"


def installed(name: str, requirements: tuple[str, ...]) -> bool:
    """Return whether a system's environment is there, with the versions that are wanted."""
    try:
        return (home() / name / DONE).read_text().split() == list(requirements)
    except OSError:
        return False


def install(name: str, requirements: tuple[str, ...]) -> Path:
    """Make a system's environment; return where it is. What was there of it is replaced."""
    place = home() / name
    if installed(name, requirements):
        return place
    shutil.rmtree(place, ignore_errors=True)
    try:
        venv.create(place, with_pip=True)
        command = [str(python_of(name)), "-m", "pip", "install", "--quiet", *requirements]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=INSTALL_S, check=False
        )
    except (OSError, subprocess.SubprocessError) as error:
        shutil.rmtree(place, ignore_errors=True)
        raise _cannot(name, str(error)) from error
    if done.returncode:
        shutil.rmtree(place, ignore_errors=True)
        raise _cannot(name, (done.stderr.strip() or "pip failed").splitlines()[-1])
    (place / DONE).write_text("\n".join(requirements))
    return place


def _cannot(name: str, why: str) -> EngineError:
    version = ".".join(map(str, sys.version_info[:2]))
    return EngineError(
        f"{name} cannot be installed: {why}",
        remedy="see whether this machine reaches a package index, and whether the system has a "
        f"package for Python {version}; the others can be measured without it",
    )
