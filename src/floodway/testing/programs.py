"""Programs that tests run beside themselves: finding them, and ending with whoever runs them."""

import os
import shutil
import subprocess
from typing import Any


class ServerUnavailable(Exception):
    """A server cannot be had on this machine; `reason` says what is missing."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def find(program: str, what: str) -> str:
    """Return the path of a program; say `what` to install if there is none."""
    home = os.environ.get("JAVA_HOME") if program == "java" else None
    found = shutil.which(os.path.join(home, "bin", program) if home else program)
    if found is None:
        raise ServerUnavailable(f"{program} is not on the path; install {what}")
    return found


def bound_to_us(command: list[str]) -> list[str]:
    """Return the command such that the kernel ends it when we die without a chance to do it."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL", "--", *command] if setpriv else command


def run(command: list[str], what: str, seconds: float) -> None:
    """Run a command to its end, which has to be a good one."""
    options: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    try:
        done = subprocess.run(
            bound_to_us(command), stdin=subprocess.DEVNULL, timeout=seconds, check=False, **options
        )
    except subprocess.TimeoutExpired:
        raise ServerUnavailable(f"{what} took more than {seconds:.0f} seconds") from None
    if done.returncode:
        words = done.stdout.decode(errors="replace").strip().splitlines()[-15:]
        raise ServerUnavailable(f"{what} failed:\n" + "\n".join(words))
