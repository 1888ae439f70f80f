"""Bytewax: a dataflow of its operators, one worker process per task.

Tuning: lines come in chunks, which are decoded with msgspec in one call (`flat_map_batch`); what is
kept per key is in `stateful_batch`, which is called once per batch and key; results come out with
every batch, not at the end of a window, since that would be later. The windows of Bytewax are
written in Python, take each event by itself, and follow the system's clock: they would be several
times slower. Workers are processes, since threads would wait for each other in Python; if
there are more of them than data engines, chunks are handed on to all (`redistribute`). The garbage
collector is set as Floodway sets its own.
"""

import gc
import multiprocessing
import socket
from datetime import UTC, datetime, timedelta
from typing import Any

import bytewax.operators as op
from bytewax.dataflow import Dataflow
from bytewax.inputs import DynamicSource, StatelessSourcePartition
from bytewax.outputs import DynamicSink, StatelessSinkPartition
from bytewax.run import cli_main
from bytewax_flows import FLOWS, IN_ORDER, TALLIED
from kit import Link, Results, Task, run

LOOK = timedelta(milliseconds=1)


class Ports(DynamicSource):
    """Every worker has its share of the ports."""

    def __init__(self, ports: list[int]) -> None:
        self._ports = list(enumerate(ports))

    def build(self, step_id: str, worker_index: int, worker_count: int) -> Any:
        return Chunks(self._ports[worker_index::worker_count])


class Chunks(StatelessSourcePartition):
    """Chunks of whole lines, each with the number of its link."""

    def __init__(self, ports: list[tuple[int, int]]) -> None:
        self._links = {number: Link(port, blocking=False) for number, port in ports}
        self._awake: datetime | None = None

    def next_batch(self) -> list[tuple[int, bytes]]:
        found = []
        for number, link in list(self._links.items()):
            lines = link.read()
            if lines is None:
                del self._links[number]
            elif lines:
                found.append((number, lines))
        if not self._links and not found:
            raise StopIteration
        self._awake = None if found else datetime.now(UTC) + LOOK
        return found

    def next_awake(self) -> datetime | None:
        return self._awake


class ToResults(DynamicSink):
    """Hands results over."""

    def __init__(self, task: Task) -> None:
        self._task = task

    def build(self, step_id: str, worker_index: int, worker_count: int) -> Any:
        results = Results(self._task, worker_index)
        return Tallied(results) if self._task.case in TALLIED else Written(results)


class Written(StatelessSinkPartition):
    """The results of one worker, by key."""

    def __init__(self, results: Results) -> None:
        self._results = results

    def write_batch(self, items: list[Any]) -> None:
        self._results.put([(key, *found) for key, found in items])

    def close(self) -> None:
        self._results.close()


class Tallied(Written):
    """Results that count one by one."""

    def write_batch(self, items: list[Any]) -> None:
        self._results.tally([found for _, found in items])


def dataflow(task: Task) -> Dataflow:
    """Return the whole dataflow of a workload."""
    flow = Dataflow(task.case)
    chunks = op.input("chunks", flow, Ports(task.ports))
    if task.dop > len(task.ports) and task.case not in IN_ORDER:
        chunks = op.redistribute("to_all", chunks)
    op.output("out", FLOWS[task.case](task, chunks), ToResults(task))
    return flow


def work(task: Task, number: int, addresses: list[str]) -> None:
    """Be one of the processes, until all events have come."""
    gc.freeze()
    gc.set_threshold(50_000, 50, 50)
    cluster = {"process_id": number, "addresses": addresses} if addresses else {}
    cli_main(dataflow(task), workers_per_process=1, **cluster)


def start(task: Task) -> None:
    """Run the dataflow in as many processes as there are tasks."""
    addresses = _addresses(task.dop) if task.dop > 1 else []
    context = multiprocessing.get_context("spawn")
    others = [
        context.Process(target=work, args=(task, number, addresses), daemon=True)
        for number in range(1, task.dop)
    ]
    for other in others:
        other.start()
    work(task, 0, addresses)
    for other in others:
        other.join()
        if other.exitcode:
            raise SystemExit(f"a worker ended with code {other.exitcode}")


def _addresses(count: int) -> list[str]:
    """Return where processes may listen for each other."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    found = [f"127.0.0.1:{each.getsockname()[1]}" for each in sockets]
    for each in sockets:
        each.close()
    return found


if __name__ == "__main__":
    run(start)
