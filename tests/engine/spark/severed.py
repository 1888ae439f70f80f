"""A flow whose connections the kernel kills; to be run where nobody else has connections.

``python -m tests.engine.spark.severed FOLDER`` runs the counting flow, kills its connections now
and then, and prints what came of it. Without a folder it only tries whether that can be done here.
"""

import json
import logging
import os
import socket
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import psutil

from floodway.engine.driver.job import Job
from tests.engine.spark.recovering import counting, ended, shown, started, until
from tests.waiting import wait_for

ROUNDS = 5
LINES = 2_000
"""So many lines the sink shows between two rounds."""

CANNOT = 3
"""The exit code that says that connections cannot be killed here."""


def kill(ports: Iterable[int]) -> int:
    """Let the kernel kill all connections to some ports; return how many ends they had."""
    ends = " or ".join(f"sport = :{port} or dport = :{port}" for port in sorted(ports))
    command = ["ss", "-K", "-H", "-t", "-n", "state", "established", f"( {ends} )"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return len(done.stdout.splitlines())


def inboxes(job: Job) -> set[int]:
    """Return the ports at which tasks and driver listen for each other; Spark has others."""
    pids = {os.getpid(), *(pid for _, pid in job.tasks.values())}
    found = (c for pid in pids for c in psutil.Process(pid).net_connections("tcp"))
    return {c.laddr.port for c in found if c.status == psutil.CONN_LISTEN}


def try_it() -> bool:
    """Return whether a connection is gone when it was killed."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as near, server.accept()[0] as far:
            kill([port])
            with suppress(OSError):
                near.sendall(b"x")
                far.settimeout(1)
                return far.recv(1) != b"x"
            return True


def run(folder: Path) -> None:
    """Run the flow, and kill its connections a few times."""
    out, killed = folder / "out", []
    with started(counting(folder), folder, transport="tcp", metrics_port=None) as job:
        for number in range(1, ROUNDS + 1):
            until(job, lambda: shown(out) >= number * LINES, "more results")  # noqa: B023
            ports = inboxes(job)
            wait_for(lambda: killed.append(kill(ports)) or killed[-1], "connections")  # noqa: B023
        ended(job, folder)
    again = sum(stage.counters.frames_again for stage in job.status.stages)
    sys.stdout.write(
        json.dumps({"killed": killed, "recoveries": job.recoveries, "again": again}) + "\n"
    )


if __name__ == "__main__":
    logging.basicConfig(format="%(name)s: %(message)s", level=logging.WARNING)
    if len(sys.argv) > 1:
        run(Path(sys.argv[1]))
    else:
        sys.exit(0 if try_it() else CANNOT)
