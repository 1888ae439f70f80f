"""The JVM that Spark runs in: started once per process, and nothing secret on its command line.

Everybody on a machine can read command lines. PySpark would put every setting there; here they go
through a file that only this user may read, and that is gone once the JVM has read it. What the JVM
keeps in temporary files is in a folder of this process, too.
"""

import atexit
import os
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

from floodway.engine.host.scratch import make_scratch, remove_scratch

SUBMIT = "PYSPARK_SUBMIT_ARGS"
FILE_OPTION = "--properties-file"

ARENAS = "MALLOC_ARENA_MAX"

_homes: dict[int, Path] = {}


def home() -> Path:
    """Return the folder of the JVM; it is this process's, and goes with it."""
    own = os.getpid()  # a child that was forked has none yet
    if own not in _homes:
        _homes[own] = make_scratch()
    return _homes[own]


@atexit.register  # so early that it is called late, when flows that still ran have been stopped
def _leave() -> None:
    if os.getpid() in _homes:
        remove_scratch(_homes.pop(os.getpid()))


def alive(gateway: Any) -> bool:
    """Return whether a JVM, if it was started from this process, is still there."""
    process = getattr(gateway, "proc", None)
    return process is None or process.poll() is None


def open_gateway(settings: Mapping[str, str]) -> Any:
    """Return the way to the JVM of this process; if there is none, start it with settings."""
    from pyspark import SparkContext
    from pyspark.java_gateway import launch_gateway

    gateway = SparkContext._gateway  # noqa: SLF001 - a JVM that is there already is used again
    if gateway is not None and alive(gateway):
        forget_folders(gateway)
        return gateway
    # PySpark would go on asking the dead one.
    SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001
    # A signal for the process group, as Ctrl-C or a supervisor sends it, is for the driver: the
    # JVM and the tasks in it are to be stopped in order. It dies with the driver all the same.
    options = {"start_new_session": True, "stderr": subprocess.PIPE}
    with _submitted(settings), _few_arenas():
        gateway = launch_gateway(popen_kwargs=options)  # type: ignore[no-untyped-call]
    if gateway.proc is not None:
        _forward(gateway.proc.stderr)
    # A setting is for one context. Left among the JVM's properties, it would be for the next, too.
    for name in settings:
        gateway.jvm.System.clearProperty(name)
    SparkContext._ensure_initialized(gateway=gateway)  # noqa: SLF001
    return gateway


def forget_folders(gateway: Any) -> None:
    """Let a JVM forget the local folder of its former context.

    The next one would work there whatever its own settings say, and make the folder again that is
    gone with the flow: readable by all, and nobody's to remove.
    """
    utilities = getattr(gateway.jvm.org.apache.spark.util, "Utils$")
    getattr(utilities, "MODULE$").clearLocalRootDirs()


def remember_secret(gateway: Any, secret: str) -> None:
    """Let a JVM forget the secret that it made for a former context, and would still prefer."""
    hadoop = gateway.jvm.org.apache.hadoop
    credentials = hadoop.security.Credentials()
    credentials.addSecretKey(hadoop.io.Text("sparkCookie"), secret.encode())
    hadoop.security.UserGroupInformation.getCurrentUser().addCredentials(credentials)


@contextmanager
def _submitted(settings: Mapping[str, str]) -> Iterator[None]:
    """Let PySpark find settings in a file while it starts a JVM, after those of the user."""
    before = os.environ.get(SUBMIT)
    words = shlex.split(before or "pyspark-shell")
    file = home() / "spark.properties"
    text = "".join(Path(path).read_text() + "\n" for path in _property_files(words))
    descriptor = os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with open(descriptor, "w", encoding="utf-8") as written:
        written.write(text + properties(settings))
    # The last file wins, and what follows the name of the shell is not for Spark.
    end = words.index("pyspark-shell") if "pyspark-shell" in words else len(words)
    words[end:end] = ["--load-spark-defaults", FILE_OPTION, str(file)]
    os.environ[SUBMIT] = shlex.join(words)
    try:
        yield
    finally:
        file.unlink()
        if before is None:
            del os.environ[SUBMIT]
        else:
            os.environ[SUBMIT] = before


@contextmanager
def _few_arenas() -> Iterator[None]:
    """Let the JVM, and the tasks that come from it, have few heaps of C's allocator each.

    By default every thread gets one of its own, up to eight for a core, and each keeps its holes:
    what a process needs would go on growing as long as its threads come and go.
    """
    given = os.environ.get(ARENAS)
    if given is None:
        os.environ[ARENAS] = "2"
    try:
        yield
    finally:
        if given is None:
            del os.environ[ARENAS]


def _property_files(words: list[str]) -> list[str]:
    """Return the files of properties that the user has named.

    >>> _property_files(["--properties-file", "a.conf", "pyspark-shell"])
    ['a.conf']
    """
    after = [word for option, word in pairwise(words) if option == FILE_OPTION]
    joined = [word.partition("=")[2] for word in words if word.startswith(f"{FILE_OPTION}=")]
    return after + joined


def properties(settings: Mapping[str, str]) -> str:
    r"""Return settings as Java reads them from a file.

    >>> print(properties({"spark.app.name": " a\\b\nc", "spark.x": "#1 = é"}))
    spark.app.name=\ a\\b\nc
    spark.x=#1 = é
    <BLANKLINE>
    """
    return "".join(f"{_escaped(name, ' =:#!')}={_escaped(settings[name])}\n" for name in settings)


def _escaped(text: str, special: str = "") -> str:
    for character, written in (("\\", "\\\\"), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t")):
        text = text.replace(character, written)
    for character in special:
        text = text.replace(character, f"\\{character}")
    return f"\\{text}" if text.startswith(" ") else text


_CHATTER = (
    b"WARNING: Using incubator modules",
    b"Setting default log level",
    b"To adjust logging level",
    b"Using Spark's default log4j profile",
)


def _forward(stream: Any) -> None:
    """Pass on what the JVM says, but for the chatter of its start."""

    def pass_on() -> None:
        with stream:
            for line in stream:
                if not line.startswith(_CHATTER):
                    sys.stderr.buffer.write(line)
                    sys.stderr.flush()

    threading.Thread(target=pass_on, name="floodway-spark-stderr", daemon=True).start()
