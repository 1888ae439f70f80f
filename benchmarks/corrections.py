"""What a correction costs among n records of one group: how many per second, and what is stored.

    python benchmarks/corrections.py [--most 1000000]

A stream with updates is aggregated: n records of one group at n timestamps, then corrections of
records drawn at random. The kernel is measured by itself, with what an epoch stores for a thousand
corrections and how long a new kernel takes to go on from what was stored. Seconds are those of the
processor, so that others on the machine do not matter.
"""

import argparse
import pickle
import random
import time
from collections.abc import Callable
from typing import Any

import floodway as fw

SIZES = (250, 500, 1_000, 2_000, 10_000, 100_000, 1_000_000)
SECONDS = 2.0
CORRECTIONS = 1_000

Row = tuple[str, int]
AGGREGATES: dict[str, Callable[[Any], Any]] = {
    "sum": lambda grouped: grouped.sum(lambda row: row[1], name="op"),
    "max": lambda grouped: grouped.max(lambda row: row[1], name="op"),
}


def operator_of(aggregate: str) -> Any:
    """Return an aggregate of a stream with updates."""
    flow = fw.Flow("corrections")
    prices = flow.table("prices", schema=tuple, key=str)
    orders = flow.source("orders", schema=tuple)
    priced = orders.join(prices, on=lambda row: row[0], joiner=lambda a, b: a, schema=tuple)
    windows = priced.group_by(lambda row: row[0]).window(fw.tumbling("365d"))
    AGGREGATES[aggregate](windows)
    return next(op for op in flow.operators if op.name == "op")


def fact(number: int, amount: int) -> Any:
    """Return a record at a timestamp of its own."""
    return (number, "a", ("a", amount))


def measure(aggregate: str, records: int) -> tuple[float, int, float]:
    """Return corrections per second, bytes stored for a thousand, and seconds to go on from all."""
    operator, chance = operator_of(aggregate), random.Random(records)
    out: dict[str, list[Any]] = {port: [] for port in operator.outputs}
    kernel, amounts = operator.kernel(out), list(range(records))
    for number in range(records):
        kernel.process(0, [(number, None, fact(number, number))])
        out["main"].clear()

    def correct() -> None:
        number, amount = chance.randrange(records), chance.randrange(records)
        revision = (number, fact(number, amounts[number]), fact(number, amount))
        amounts[number] = amount
        kernel.process(0, [revision])
        out["main"].clear()

    began, done = time.process_time(), 0
    while time.process_time() - began < SECONDS:
        correct()
        done += 1
    rate = done / (time.process_time() - began)
    kernel.forget_changes()
    for _ in range(CORRECTIONS):
        correct()
    stored = len(pickle.dumps([space.take() for space in kernel.spaces().values()]))
    return rate, stored, seconds_to_load(operator, kernel)


def seconds_to_load(operator: Any, kernel: Any) -> float:
    """Return how long a new kernel takes to go on from all that was stored of another."""
    data = pickle.dumps(
        [
            (name, namespace, dict(space.everything()))
            for name, spaces in kernel.spaces().items()
            for namespace, space in spaces.items()
        ]
    )
    began = time.process_time()
    other = operator.kernel({port: [] for port in operator.outputs})
    for name, namespace, rows in pickle.loads(data):
        space = other.spaces()[name].space(namespace)
        for key, row in rows.items():
            space.load(key, row)
            other.loaded(name, namespace, key, row)
    return time.process_time() - began


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=SIZES[-1], help="the largest group")
    most = parser.parse_args().most
    print("| aggregate | records in the group | corrections/s | stored for 1,000 | to go on |")
    print("|---|---|---|---|---|")
    for aggregate in AGGREGATES:
        for records in (size for size in SIZES if size <= most):
            rate, stored, loading = measure(aggregate, records)
            print(
                f"| {aggregate} | {records:,} | {rate:,.0f} | {stored / 1024:,.0f} KiB "
                f"| {loading:.2f} s |",
                flush=True,
            )


if __name__ == "__main__":
    main()
