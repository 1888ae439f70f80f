"""What another user of the machine can do to a flow that runs.

``python -m tests.engine.spark.another_user``, as root, runs a flow, lets user 65534 try everything
and prints what was refused and what was not; with ``--open`` Spark authenticates nobody, which is
its own default, and with ``--tcp`` its tasks talk as they do between hosts. SECURITY.md says what
may be readable.
"""

# ruff: noqa: T201

import gc
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import psutil
import zmq

import floodway as fw
from floodway.connectors.json_lines import JsonLinesSink
from floodway.connectors.rate import RateSource
from floodway.core.errors import FloodwayError
from floodway.engine.control.messages import Failed, to_frame
from floodway.engine.driver.job import Job
from floodway.engine.driver.site import Transport
from floodway.engine.transport.sockets import CurveKeys, Network, connect_to
from tests.engine.spark.flows import active_spark, lives
from tests.waiting import wait_for

NOBODY = 65534
PASSWORD = "correct-horse-battery-staple"
STORE = "hunter2-of-the-key-store"
OFFERED = "offered-to-executors"
FILED = "what-only-executors-may-read"
LIE_MS = 2000  # what nobody lets in is given up after so long
LIE = "a task of yours has failed, says a stranger"

CONF = {
    "spark.broadcast.compress": "false",  # so that a password is seen in what was fetched
    "spark.ssl.keyStorePassword": STORE,
    "spark.python.task.killTimeout": "100ms",  # so that a task that is told to die does
}
OPEN = {"spark.authenticate": "false"}


class Found(msgspec.Struct, frozen=True):
    """What a stranger could do, what not and why not, and what it has read."""

    done: list[str]
    refused: dict[str, str]
    loot: list[str]

    @property
    def secrets(self) -> list[str]:
        """The secrets that it has read."""
        return [
            word for word in (PASSWORD, STORE, FILED) if any(word in text for text in self.loot)
        ]

    @property
    def keys(self) -> list[CurveKeys]:
        """The CURVE keys of flows of this process that it has read."""
        return [
            keys for keys in keys_here() if any(keys.secret.decode() in text for text in self.loot)
        ]


def flow_with_a_secret(folder: Path, rate: float = 500) -> fw.Flow:
    """A flow whose function knows a password."""
    flow = fw.Flow("private")
    numbers = flow.source("numbers", RateSource(rate), schema=int)
    numbers.map(lambda value, password=PASSWORD: value, schema=int, name="logs_in").to(
        JsonLinesSink(folder / "out")
    )
    return flow


@contextmanager
def running(folder: Path, transport: Transport = "ipc", **conf: str) -> Iterator[Job]:
    """Run the flow in a folder that everybody may enter, as careless users do."""
    folder.chmod(0o755)
    before = os.umask(0)
    try:
        flow = flow_with_a_secret(folder)
        offered = folder / OFFERED
        offered.touch(0o600)
        offered.write_text(FILED)
        conf = {**CONF, "spark.files": str(offered), **conf}
        with flow.start(
            checkpoint=folder / "checkpoint", epoch="200ms", conf=conf, transport=transport
        ) as job:
            wait_for(lambda: job.committed or job.wait(0), "a commit")
            yield job
    finally:
        os.umask(before)


def keys_here() -> list[CurveKeys]:
    """Return the CURVE keys that this process has: nobody shows them."""
    networks = [thing for thing in gc.get_objects() if isinstance(thing, Network)]
    return list(
        {network.keys.secret: network.keys for network in networks if network.keys}.values()
    )


def lie(at: list[int], keys: CurveKeys | None = None) -> None:
    """Say at ports, as a task would, that the flow's only task has failed, whichever it is now."""
    network = Network(host="127.0.0.1", keys=keys)
    context = zmq.Context()
    for port in at:
        way = connect_to(context, network, f"tcp://127.0.0.1:{port}")
        for launch in range(10):
            failed = Failed(0, launch, "EngineError", LIE, "give up")
            way.send(network.loose(to_frame(failed)))
        way.close(LIE_MS)
    context.term()


def kill_orders() -> list[str]:
    """Return messages that tell a local Spark to kill its tasks, as Java writes them."""
    jvm = active_spark()._jvm  # noqa: SLF001 - any Java would do
    orders = []
    for task in range(8):
        out = jvm.java.io.ByteArrayOutputStream()
        order = jvm.org.apache.spark.scheduler.local.KillTask(task, True, "by a stranger")
        writer = jvm.java.io.ObjectOutputStream(out)
        writer.writeObject(order)
        writer.flush()
        orders.append(bytes(out.toByteArray()).hex())
    return orders


def family() -> list[psutil.Process]:
    """Return the processes of the flow: this one, the JVM and its workers."""
    me = psutil.Process()
    # Of one that has ended and that nobody has buried there is nothing to read.
    return [me, *filter(lives, me.children(recursive=True))]


def ports(processes: list[psutil.Process]) -> list[int]:
    """Return the TCP ports on which processes listen."""
    return sorted(
        {
            connection.laddr.port
            for process in processes
            for connection in process.net_connections("tcp")
            if connection.status == psutil.CONN_LISTEN
        }
    )


def sockets(processes: list[psutil.Process]) -> list[str]:
    """Return the paths of the Unix sockets of processes."""
    found = {
        connection.laddr
        for process in processes
        for connection in process.net_connections("unix")
        if connection.laddr
    }
    return sorted(path for path in found if Path(path).is_socket())


def scratches(processes: list[psutil.Process]) -> list[str]:
    """Return the temporary folders that processes hold."""
    opened = {file.path for process in processes for file in process.open_files()}
    return sorted({str(Path(path).parent) for path in opened if path.endswith("/owner")})


def orders(folder: Path, uid: int | None, **more: Any) -> dict[str, Any]:
    """Return what a stranger is to try; one that is the same user tries only the ports."""
    processes = family()
    everything: dict[str, Any] = {
        "uid": uid,
        "ports": ports(processes),
        "offered": [f"/files/{OFFERED}"],
        "messages": kill_orders(),
    }
    if uid is None:
        return {
            **everything,
            **dict.fromkeys(["sockets", "locks", "folders", "files", "processes"], ()),
            **more,
        }
    checkpoint = folder / "checkpoint"
    held = scratches(processes)
    return {
        **everything,
        "sockets": sockets(processes),
        "locks": [str(checkpoint / "lock")],
        "folders": [str(checkpoint), *held],
        # By name, too: a folder that cannot be listed may let through who knows what is in it.
        "files": [
            str(path) for root in (checkpoint, *held) for path in Path(root).rglob("*")
            if path.is_file()
        ],
        "processes": [process.pid for process in processes],
        **more,
    }  # fmt: skip


def let_in(given: dict[str, Any]) -> Found:
    """Let a stranger try, and return what it could do."""
    script = Path(__file__).with_name("stranger.py")
    done = subprocess.run(
        [sys.executable, "-I", str(script)],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return msgspec.json.decode(done.stdout.encode(), type=Found)


def main() -> None:
    """Run a flow, let a stranger try, and print what came of it."""
    conf = OPEN if "--open" in sys.argv else {}
    transport: Transport = "tcp" if "--tcp" in sys.argv else "ipc"
    with (
        tempfile.TemporaryDirectory(prefix="fw-") as name,
        running(Path(name), transport, **conf) as job,
    ):
        found = let_in(orders(Path(name), NOBODY if os.getuid() == 0 else None))
        for what, why in sorted(found.refused.items()):
            print(f"refused  {what}: {why}")
        for what in sorted(set(found.done)):
            print(f"DONE     {what}")
        print(f"secrets read: {', '.join(found.secrets) or 'none'}; keys read: {len(found.keys)}")
        try:
            committed = job.committed
            wait_for(lambda: job.committed > committed + 5 or job.wait(0), "commits")
            print(f"the flow goes on; recoveries: {job.recoveries}")
        except FloodwayError as error:
            print(f"the flow was stopped: {error}")


if __name__ == "__main__":
    main()
