"""Flows that between them have every operator, most of them one to look into, named ``op``."""

from collections.abc import Callable
from typing import Any

import floodway as fw
from floodway import Flow
from floodway.operators.base import Operator
from tests.behaviour.kernels import (
    OF_CHANGES,
    OF_RECORDS,
    grouped,
    key,
    pair,
    tables,
    tables_of,
)

Build = Callable[[Flow], Any]


def counted(flow: Flow, **options: Any) -> Any:
    """A table with windows, as the input of something."""
    return grouped(flow).window(fw.tumbling(5)).count(name="counts", **options)


def windowed_pairs(flow: Flow) -> Any:
    other = flow.source("more", schema=tuple).group_by(key).window(fw.tumbling(5)).count(name="o")
    return counted(flow).join(other, how="full", joiner=pair, name="op")


def listing(time: int, name: str, value: Any, seen: list[Any]) -> Any:
    seen.append(value)  # in place, and also if it fails then
    if value[1] == 0:
        raise ValueError
    return (None if value[1] == 5 else seen), [(time, name, len(seen))]


def ignoring(flow: Flow, **options: Any) -> Any:
    orders, rows = flow.source("in", schema=tuple), tables(flow)[1]
    return orders.join(rows, on=key, joiner=pair, late_updates="ignore", name="op", **options)


def target(row: Any) -> str:
    """Return a key of the other table; several rows point to the same, and to others later."""
    return "ab"[row[1] % 2]


def processed(flow: Flow) -> Any:
    keyed = flow.source("in", schema=tuple).key_by(key)
    return keyed.process(init=lambda name: [], update=listing, on_error="skip", name="op")


def corrected(flow: Flow, **options: Any) -> Any:
    """A table over a stream with updates."""
    found = flow.source("in", schema=tuple).join(tables(flow)[1], on=key, joiner=lambda a, b: a)
    return found.group_by(key).count(name="op", **options)


def corrected_windows(flow: Flow, **options: Any) -> Any:
    found = flow.source("in", schema=tuple).join(tables(flow)[1], on=key, joiner=lambda a, b: a)
    windows = found.group_by(key).window(fw.hopping(6, advance=4))
    return windows.agg(name="op", n=fw.count(), least=fw.min(size), best=fw.top(2, size), **options)


def size(value: Any) -> int:
    """Return the number in a row; rows that a test makes up have a name beside it."""
    return value[1] if isinstance(value, tuple) else value


def parity(value: Any) -> int:
    return size(value) % 2


FACTS: dict[str, Build] = {k: write for k, write in OF_RECORDS.items() if k != "lookup"} | {
    "all": lambda f: grouped(f).count(name="op"),
    "all versions": lambda f: grouped(f).count(versions=True, name="op"),
    "process": processed,
}
CHANGES: dict[str, Build] = {k: write for k, write in OF_CHANGES.items() if k != "lookup"} | {
    "pointing": lambda f: tables(f)[0].join(tables_of(f)[1], on=target, joiner=pair, name="op"),
    "interval": lambda f: tables(f)[0].changes(emit=fw.emit.at_most_every(3), name="op"),
}
OF_WINDOWS: dict[str, Build] = {
    "ends": lambda f: counted(f).changes(emit=fw.emit.after_window_end(), name="op"),
    "final": lambda f: counted(f).changes(emit=fw.emit.final(), name="op"),
    "interval": lambda f: counted(f).changes(emit=fw.emit.at_most_every(3), name="op"),
    "every": lambda f: counted(f, versions=True).changes(name="op"),
    "pairs": windowed_pairs,
    "throttled": lambda f: counted(f).changes(
        emit=fw.emit.after_window_end(corrections=3), name="op"
    ),
    "consistent": lambda f: counted(f).changes(emit=fw.emit.consistent(), name="op"),
    "by window": lambda f: counted(f).group_by("window_end").max(size, name="op"),
    "over windows": lambda f: counted(f).group_by(parity).top(2, size, name="op"),
    "ends of groups": lambda f: (
        counted(f).group_by("window_start").count(name="n").changes(emit=fw.emit.final(), name="op")
    ),
}
LOOKUPS: dict[str, Build] = {"corrects": OF_RECORDS["lookup"], "ignores": ignoring}
CASES = {**FACTS, **CHANGES, **OF_WINDOWS, **LOOKUPS, "corrected": corrected}


def operator_of(write: Build) -> Operator:
    flow = Flow("stored", retention=5)
    write(flow)
    return next(op for op in flow.operators if op.name == "op")


def stateless() -> Flow:
    """A flow of the operators that remember nothing, and of updates that are merged."""
    flow = Flow("stateless")
    numbers = flow.source("numbers", schema=int)
    kept = numbers.filter("value > 1").map("value * 2").flat_map("explode(array(value, value))")
    small, rest = kept.peek(print).select("value AS a").branch("a < 5")
    again = flow.declare("again", schema=int)
    flow.define("again", numbers)
    again.key_by("value").rebalance().to("spread")
    counts = numbers.group_by("value").count(name="counts")
    counts.filter("value > 1").map_values("value + 1").changes(emit=fw.emit.latest()).to("counted")
    numbers.merge(again).to("facts")
    small.merge(rest).to("rest")
    rows = flow.table("rows", schema=int, key=int)
    updates = numbers.join(rows, on="value", joiner=lambda a, b: a, schema=int)
    updates.map("value + 1").merge(numbers).to("updates")
    return flow
