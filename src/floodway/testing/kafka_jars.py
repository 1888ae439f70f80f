"""The jars of a Kafka broker: fetched once by Maven, and kept in the user's cache.

What is fetched is in ``kafka_pom.xml`` beside this file, so it is there wherever Floodway is
installed, in a checkout as well as from a wheel.
"""

import fcntl
import hashlib
import os
import shutil
from pathlib import Path

from floodway.testing.programs import ServerUnavailable, find, run

_POM = Path(__file__).with_name("kafka_pom.xml")
_FETCH_SECONDS = 600.0


def home() -> Path:
    """Return where jars are kept: in the user's cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "floodway" / "kafka"


def kafka_jars() -> Path:
    """Return the folder of the broker's jars; Maven fetches them the first time."""
    # Named after the POM, so that other versions get another folder.
    jars = home() / hashlib.sha256(_POM.read_bytes()).hexdigest()[:12]
    try:
        jars.parent.mkdir(parents=True, exist_ok=True)
        with (jars.parent / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # two test workers may want them at once
            if not jars.exists():
                _fetch(jars)
    except OSError as error:
        raise ServerUnavailable(
            f"the jars of Kafka cannot be kept in {jars.parent} ({error.strerror}); "
            "let XDG_CACHE_HOME name a folder that can be written to"
        ) from error
    return jars


def _fetch(jars: Path) -> None:
    part = jars.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    maven = [find("mvn", "Maven"), "-B", "-q", "-f", str(_POM)]
    options = ["-DincludeScope=runtime", f"-DoutputDirectory={part}"]
    command = [*maven, "dependency:copy-dependencies", *options]
    run(command, "fetching Kafka with Maven", _FETCH_SECONDS)
    part.rename(jars)
