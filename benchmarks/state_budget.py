"""State four times its memory budget, beside the same state all in memory.

A flow counts records per key and adds up their amounts. It runs twice over the same records, as the
engine runs it (the generated kernel, what has changed taken at the end of each epoch): once with
all state in memory, once with a budget of a quarter of it. The rest is in RocksDB, on the disk that
TMPDIR is on. Both must give the same table. Keys are drawn evenly or as a Zipf law has them.

The table says how many records per second went through, the ends of epochs included, what share of
the keys that records asked for was in memory, how long the end of an epoch took (median and
longest), and how large the process grew. Seconds are those of the processor, all threads together,
so that others on the machine do not matter. Figures from one machine are only comparable as ratios.
``--json FILE`` writes them.
"""

import argparse
import json
import multiprocessing
import platform
import random
import statistics
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator
from itertools import accumulate
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import floodway as fw
from floodway.engine.datastream.task import Task
from floodway.engine.program.wiring import classes_of
from floodway.engine.state.keeper import Keeper
from floodway.plan import Plan

BATCH = 1000
QUARTER = 4


class Sale(fw.Record):
    article: int
    amount: int
    at: int


def build() -> Plan:
    flow = fw.Flow("sales")
    sales = flow.source("sales", schema=Sale, timestamp="at")
    sales.group_by("article").agg(count=fw.count(), total=fw.sum("amount"), name="totals")
    return Plan.of(flow)


def draw(kind: str, keys: int, count: int) -> list[int]:
    """Return the keys of all records."""
    chosen = random.Random(11)
    if kind == "uniform":
        return [chosen.randrange(keys) for _ in range(count)]
    weights = list(accumulate(1 / rank for rank in range(1, keys + 1)))
    ranks = chosen.choices(range(keys), cum_weights=weights, k=count)
    places = list(range(keys))  # so that keys used often do not lie side by side
    chosen.shuffle(places)
    return [places[rank] for rank in ranks]


def batches(drawn: list[int]) -> Iterator[list[tuple[int, None, Sale]]]:
    for start in range(0, len(drawn), BATCH):
        some = enumerate(drawn[start : start + BATCH], start)
        yield [(at, None, Sale(key, key % 100, at)) for at, key in some]


def run(drawn: list[int], keys: int, every: int, budget: int | None) -> dict[str, Any]:
    """Fill the state, then measure; return the figures and the sum over the table."""
    plan = build()
    stage = next(s for s in plan.stages if any(op.name == "totals" for op in s.operators))
    task = Task(plan, stage, 0, lambda number, frame: None, sampling=False)
    node = task.program.node("totals")
    with tempfile.TemporaryDirectory() as folder:
        keeper = Keeper(
            task.program,
            classes_of(plan),
            groups=plan.key_groups,
            budget=budget,
            folder=Path(folder) / "cold",
        )
        try:
            feed(node, keeper, list(range(keys)), every)
            size = keeper.state_bytes
            started = time.process_time()
            ends, fetched = feed(node, keeper, drawn, every)
            taken = time.process_time() - started
            found = 1 - fetched / len(drawn)
            aside = keeper.cold_keys / keeper.state_keys
            most = peak()
            rows = node.kernel.rows()
        finally:
            keeper.close()
    return {
        "records_per_second": len(drawn) / taken,
        "found_in_memory": found,
        "keys_aside": aside,
        "epoch_end_ms": statistics.median(ends) * 1000,
        "longest_epoch_end_ms": max(ends) * 1000,
        "state_bytes": size,
        "peak_bytes": most,
        "table": (len(rows), sum(zlib.crc32(repr(row).encode()) for row in rows.items())),
    }


def feed(node: Any, keeper: Keeper, keys: list[int], every: int) -> tuple[list[float], int]:
    """Let records run through the kernel.

    Return how long each end of an epoch took, and how many rows were fetched: within an epoch,
    rows that were put aside only come back.
    """
    ends, fetched, aside = [], 0, keeper.cold_keys
    rows = node.ports[0].rows
    for number, batch in enumerate(batches(keys), 1):
        node.kernel.process(0, batch)
        rows.clear()
        if number * BATCH % every == 0:
            fetched += aside - keeper.cold_keys
            started = time.process_time()
            keeper.changes()
            keeper.relieve()
            ends.append(time.process_time() - started)
            aside = keeper.cold_keys
    fetched += aside - keeper.cold_keys
    keeper.changes()
    keeper.relieve()
    return ends, fetched


def peak() -> int:
    """Return how much memory this process has had at most."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def apart(pipe: Connection, *arguments: Any) -> None:
    pipe.send(run(*arguments))


def in_a_process(*arguments: Any) -> dict[str, Any]:
    """Run in a process of its own, so that nobody's memory is in another's figures."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=apart, args=(theirs, *arguments))
    process.start()
    theirs.close()
    try:
        figures: dict[str, Any] = ours.recv()
    finally:
        process.join()
    return figures


def measure(keys: int, records: int, every: int) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for kind in ("uniform", "zipf"):
        drawn = draw(kind, keys, records)
        whole = in_a_process(drawn, keys, every, None)
        budget = whole["state_bytes"] // QUARTER
        less = in_a_process(drawn, keys, every, budget)
        if whole.pop("table") != less.pop("table"):
            raise SystemExit(f"{kind}: the answer depends on the budget")
        found[f"{kind}, in memory"], found[f"{kind}, a quarter"] = whole, less
    return found


def show(found: dict[str, dict[str, Any]]) -> None:
    print(f"{'':22}{'records/s':>11}{'in memory':>11}{'aside':>8}{'epoch end':>14}{'peak':>9}")
    for name, row in found.items():
        end = f"{row['epoch_end_ms']:.0f}-{row['longest_epoch_end_ms']:.0f} ms"
        print(
            f"{name:22}{row['records_per_second']:>11,.0f}{row['found_in_memory']:>11.1%}"
            f"{row['keys_aside']:>8.0%}{end:>14}{row['peak_bytes'] / 2**20:>6,.0f} MB"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--epoch", type=int, default=10_000, help="records in an epoch")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    found = measure(options.keys, options.records, options.epoch)
    if options.json != "-":
        print(f"{options.keys:,} keys, {options.records:,} records, epochs of {options.epoch:,}")
        show(found)
    if options.json:
        report = {
            "keys": options.keys,
            "records": options.records,
            "epoch": options.epoch,
            "python": platform.python_version(),
            "machine": platform.machine(),
            "cases": found,
        }
        text = json.dumps(report, indent=2)
        if options.json == "-":
            sys.stdout.write(text + "\n")
        else:
            Path(options.json).write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
