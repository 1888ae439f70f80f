"""Every stateful operator goes on as if nothing had been, wherever its rows have been meanwhile."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import floodway as fw
from floodway.engine.program.program import Program
from floodway.engine.program.wiring import classes_of
from floodway.engine.state.delta import merged
from floodway.engine.state.keeper import Keeper
from floodway.engine.state.pickling import Pickling
from floodway.plan import Plan


class Item(fw.Record):
    key: str
    number: int


def build() -> Plan:
    flow = fw.Flow("everything")
    left = flow.source("left", schema=Item).key_by("key")
    right = flow.source("right", schema=Item).key_by("key")
    one = flow.table("one", schema=Item, key=str, versions=True)
    other = flow.table("other", schema=Item, key=str)
    grouped = left.group_by("key")
    grouped.agg(n=fw.count(), best=fw.max("number"), name="totals")
    counts = grouped.window(fw.tumbling(10)).count(name="counts")
    grouped.window(fw.hopping(10, advance=5)).collect("number", name="hopping", retention=20)
    grouped.window(fw.session(4)).sum("number", name="sessions")
    grouped.count(name="versions", versions=True, retention=20)
    counts.changes(emit=fw.emit.final(), name="final").to("final.out")
    counts.changes(emit=fw.emit.at_most_every(5), name="seldom").to("seldom.out")
    left.process(
        init=lambda key: [], update=lambda t, k, v, s: ([*s, v], [(t, k, len(s))]), name="process"
    ).to("process.out")
    grouped.window(fw.tumbling(10)).process(
        init=lambda key, window: {},
        update=lambda t, k, w, v, s: {**s, v.number: t},
        finalize=lambda key, window, state: [(window.end, key, sorted(state))],
        name="windows",
    ).to("windows.out")
    for how in ("inner", "full"):
        left.join(right, within=6, how=how, joiner=pair, schema=str, name=how).to(f"{how}.out")
    left.join(one, joiner=pair, schema=str, name="lookup").to("lookup.out")
    left.join(one, joiner=pair, schema=str, late_updates="ignore", name="facts").to("facts.out")
    one.join(other, how="full", joiner=pair, schema=str, name="tables")
    one.join(other, on="key", how="left", joiner=pair, schema=str, name="foreign")
    other.group_by("key").agg(total=fw.sum("number"), name="rows")
    return Plan.of(flow)


def pair(left: Item | None, right: Item | None) -> str:
    return f"{left and left.number}-{right and right.number}"


PLAN = build()
CLASSES = classes_of(PLAN)
FACTS = ("totals", "counts", "hopping", "sessions", "versions", "process", "windows", "inner")
CHANGES = ("tables", "foreign", "rows", "final", "seldom")
OPERATORS = (*FACTS, "full", "lookup", "facts", *CHANGES)

ITEMS = st.builds(Item, st.sampled_from("abc"), st.integers(0, 9))
TIMES = st.integers(0, 40)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("row"), st.integers(0, 1), TIMES, st.sampled_from("abcde"), ITEMS),
        st.tuples(st.just("delete"), st.integers(0, 1), TIMES, st.sampled_from("abcde")),
        st.tuples(st.sampled_from(["advance", "tick"]), TIMES),
        st.tuples(st.sampled_from(["epoch", "epoch", "restart", "restart"])),
    ),
    max_size=30,
)


class Run:
    """One operator of the flow, to which the same may happen in two ways."""

    def __init__(self, operator: str) -> None:
        self.operator = operator
        self.stage = next(s for s in PLAN.stages if operator in [op.name for op in s.operators])
        self.begin()

    def begin(self) -> None:
        self.program = Program(PLAN, self.stage, 0)
        self.node = self.program.node(self.operator)

    def write(self) -> Counter[str]:
        """Return what the kernel has sent, in any order."""
        sent = Counter(f"{port.name} {row!r}" for port in self.node.ports for row in port.rows)
        for port in self.node.ports:
            port.rows.clear()
        return sent


class KeptRun(Run):
    """Stores what has changed, and goes on from there in new kernels."""

    def __init__(self, operator: str, folder: Path) -> None:
        self._folder, self._keepers = folder, 0
        self._parts: list[bytes] = []
        super().__init__(operator)

    def begin(self) -> None:
        super().begin()
        self._keepers += 1
        folder = self._folder / str(self._keepers)
        self.keeper = Keeper(self.program, CLASSES, budget=600, folder=folder)

    def epoch(self) -> None:
        self._parts.append(self.keeper.changes())
        self.keeper.relieve()
        if len(self._parts) > 2:
            *older, newest = self._parts
            self._parts = [merged(older, newest, Pickling(CLASSES), base=True)]

    def restart(self) -> None:
        self.epoch()
        self.keeper.close()
        self.begin()
        self.keeper.load(self._parts)
        self.keeper.adopt()


def happens(run: Run, step: tuple[Any, ...], latest: dict[Any, Any]) -> None:
    """Do one thing to a kernel; rows of tables say what they replace."""
    kernel = run.node.kernel
    inputs = PLAN.graph.inputs[run.operator]
    match step:
        case ("advance", time):
            kernel.advance(time)
        case ("tick", time):
            kernel.tick(time)
        case ("row" | "delete", port, time, key, *value):
            edge = inputs[port % len(inputs)]
            if edge.output.kind == "records":
                kernel.process(port % len(inputs), [(time, key, item) for item in value])
                return
            if run.operator in ("final", "seldom"):
                key = (key, time - time % 10, time - time % 10 + 10)
            new, place = (value[0] if value else None), (port % len(inputs), key)
            before, old = latest.get(place, (-1, None))
            if time > before and (new is not None or old is not None):
                latest[place] = (time, new)
                kernel.process(port % len(inputs), [(time, key, new, old, None)])


@pytest.mark.parametrize("operator", OPERATORS)
@settings(max_examples=12)
@given(steps=STEPS)
def test_an_operator_goes_on_as_if_nothing_had_been(
    tmp_path_factory: pytest.TempPathFactory, operator: str, steps: list[Any]
) -> None:
    plain = Run(operator)
    kept = KeptRun(operator, tmp_path_factory.mktemp("kept"))
    horizon = 0
    latest: tuple[dict[Any, Any], dict[Any, Any]] = ({}, {})
    try:
        for step in [*steps, ("restart",), ("advance", 60)]:
            if step[0] in ("epoch", "restart"):
                getattr(kept, step[0])()
                continue
            if step[0] == "advance":
                horizon = max(horizon, step[1])
                step = ("advance", horizon)
            for run, known in zip((plain, kept), latest, strict=True):
                happens(run, step, known)
            assert kept.write() == plain.write(), step
        for run in (plain, kept):
            run.node.kernel.finish()
        assert kept.write() == plain.write()
    finally:
        kept.keeper.close()
