"""A remote half gives the same result whether its kernels run one by one or fused."""

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import floodway as fw
from floodway.bench import ads
from floodway.connectors.discard import DiscardSink
from floodway.connectors.tcp import TcpSource
from floodway.engine.datastream.task import classes_of
from floodway.engine.opstream.blocks import (
    FRAME,
    KEYED,
    LINES,
    ROWS,
    Result,
    Unit,
    write_block,
)
from floodway.engine.opstream.remote import Context, Remote, encode_context
from floodway.engine.opstream.vectorised.fusing import Loop, NotFusable, fuse
from floodway.engine.state.pickling import Pickling
from floodway.engine.transport.plain import Plain
from floodway.model.tuning import Tuning
from floodway.operators.code import CodeWriter
from floodway.plan import Configuration, Plan

RUNS = 2
"""So many runs a block of these tests has; each has a stream time of its own."""


class Event(fw.Record, frozen=True):
    """What comes in."""

    kind: str
    number: int
    share: float | None
    ad: str | None
    at: int


class Ad(fw.Record, frozen=True):
    """What is looked up."""

    campaign: str
    price: int | None


def halved(event: Any) -> Any:
    return msgspec.structs.replace(event, number=10 // event.number)


def twice(event: Any) -> list[Any]:
    return [event] * (event.number % 3)


Step = Callable[[Any, Any], Any]

STEPS: dict[str, Step] = {
    "filter": lambda s, e: s.filter("kind = 'view' OR share IS NULL", on_error=e),
    "another filter": lambda s, e: s.filter("number % 3 <> 1", on_error=e),
    "null filter": lambda s, e: s.filter("share > 0.5", on_error=e),
    "in": lambda s, e: s.filter("kind IN ('view', 'click')", on_error=e),
    "divide": lambda s, e: s.filter("10 / number > 1", on_error=e),
    "overflow": lambda s, e: s.with_columns(number="number * 9223372036854775807", on_error=e),
    "case": lambda s, e: s.with_columns(
        number="CASE WHEN share > 0.5 THEN 1 ELSE number END", on_error=e
    ),
    "function": lambda s, e: s.map(halved, schema=Event, on_error=e),
    "several": lambda s, e: s.flat_map(twice, schema=Event, on_error=e),
    "peek": lambda s, e: s.peek(lambda event: 1 // (event.number - 5), on_error=e),
    "key": lambda s, e: s.key_by("kind", on_error=e),
}
WINDOWS: dict[str, Any] = {
    "none": None,
    "tumbling": fw.tumbling(10),
    "hopping": fw.hopping(10, advance=4),
}
AGGREGATES: dict[str, Callable[[Any], Any]] = {
    "count": lambda g: g.count(name="totals"),
    "sum": lambda g: g.agg(total=fw.sum("number"), name="totals"),
    "all": lambda g: g.agg(
        count=fw.count("share"),
        total=fw.sum("share"),
        least=fw.min("number"),
        most=fw.max("number"),
        mean=fw.mean("share"),
        name="totals",
    ),
}
JOINS: dict[str, Callable[..., Any]] = {
    "inner": lambda s, t, e: _joined(s, t, e, how="inner"),
    "left": lambda s, t, e: _joined(s, t, e, how="left"),
    "function": lambda s, t, e: s.join(
        t, on="ad", joiner=_join, schema=Event, late_updates="ignore", broadcast=True, on_error=e
    ),
}


def _join(event: Any, ad: Any) -> Any:
    return msgspec.structs.replace(event, number=event.number // ad.price)


def _joined(stream: Any, table: Any, on_error: str, *, how: str) -> Any:
    columns = ["kind", "number", "share", "ad", "at", "right.price AS price"]
    return stream.join(
        table,
        on="ad",
        how=how,
        select=[c if "right" in c else f"left.{c} AS {c}" for c in columns],
        late_updates="ignore",
        broadcast=True,
        on_error=on_error,
    )


def _bury(stream: Any, errors: str) -> Any:
    """Send dead letters somewhere, if there are any."""
    if errors == "dead_letter":
        stream.dead_letters.to(DiscardSink())
    return stream


class Made(msgspec.Struct):
    """A flow, planned, and what its sources are."""

    plan: Plan
    place: int
    table: str | None
    skips: bool


def built(
    steps: Sequence[str],
    join: str | None,
    after: Sequence[str],
    windows: str,
    aggregate: str | None,
    errors: str,
    dop: int,
) -> Made:
    flow = fw.Flow("events", retention=7)
    policy: Any = errors
    stream: Any = flow.source(
        "events", TcpSource("127.0.0.1", 1), schema=Event, timestamp="at", on_error=policy
    )
    _bury(stream, errors)
    for step in steps:
        stream = _bury(STEPS[step](stream, policy), errors)
    if join is not None:
        table = flow.table("ads", schema=Ad, key=str)
        stream = _bury(JOINS[join](stream, table, policy), errors)
        stream.late.to(DiscardSink(), name="late")
    for step in after:
        stream = _bury(STEPS[step](stream, policy), errors)
    if aggregate is None:
        stream.to(DiscardSink(), name="out")
    else:
        grouped = stream.group_by("kind")
        if WINDOWS[windows] is not None:
            grouped = grouped.window(WINDOWS[windows])
        rows = AGGREGATES[aggregate](grouped)
        rows.changes(emit=fw.emit.at_most_every("1s")).to(DiscardSink(), name="out")
    plan = Plan.of(flow, Configuration(Tuning(dop=dop)))
    stage = plan.stage_of("events")
    looks = [op.name for op in stage.operators if type(op).__name__ == "LookupJoin"]
    place = [source.name for source in stage.sources].index("events")
    return Made(plan, place, looks[0] if looks else None, errors == "skip")


def _run(remote: Remote, block: str, size: int, context: bytes) -> Result:
    """Return what comes of a block, but for the time it took."""
    result = msgspec.msgpack.decode(remote.run(block, 0, size, context), type=Result)
    return msgspec.structs.replace(result, took_us=0)


def result_of(
    made: Made, units: list[Unit], times: list[int | None], table: Any, *, fuse: bool
) -> Result:
    """Return what comes of a block, twice: nothing may be left from the first time."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cuts = write_block(folder / "block", units)
        tables = {}
        if made.table is not None:
            tables[made.table] = str(folder / "table")
            dumped = Pickling(classes_of(made.plan)).dumps(table)
            (folder / "table").write_bytes(dumped)
        remote = Remote(made.plan, made.plan.stage_of("events"), 0, fuse=fuse)
        context = encode_context(Context(times, tables))
        block = str(folder / "block")
        result, again = (_run(remote, block, cuts[-1][0], context) for _ in range(2))
        assert again == result
        if made.skips and result.failed is None:
            assert remote.again == 0
        return result


EVENTS = st.builds(
    Event,
    st.sampled_from(["view", "click", "buy"]),
    st.integers(-3, 12),
    st.none() | st.sampled_from([0.0, 0.5, 0.75, 1e300]),
    st.none() | st.sampled_from(["a", "b", "c", "d"]),
    st.integers(-20, 60),
)
BAD = st.sampled_from([b"{", b'{"kind": 5}', b"\xff", b"[]", b'{"kind":\r"x"}'])
LINE = st.one_of(*[EVENTS.map(msgspec.json.encode)] * 8, st.just(b"  "))
TABLE = [
    ("a", ([0], [Ad("x", 3)])),
    ("b", ([-5, 10, 30], [Ad("x", 0), None, Ad("y", 5)])),
    ("c", ([20], [Ad("z", None)])),
]
FLOWS = st.builds(
    built,
    st.lists(st.sampled_from(list(STEPS)), max_size=3),
    st.none() | st.sampled_from(list(JOINS)),
    st.lists(st.sampled_from(["filter", "divide", "key", "peek", "null filter"]), max_size=2),
    st.sampled_from(list(WINDOWS)),
    st.none() | st.sampled_from(list(AGGREGATES)),
    st.sampled_from(["skip", "skip", "fail", "dead_letter"]),
    st.integers(1, 2),
)
TIMES = st.lists(st.none() | st.integers(-20, 60), min_size=RUNS, max_size=RUNS)


@st.composite
def blocks(draw: st.DrawFn) -> list[Unit]:
    """Draw what a source has read: lines, some of them bad, or rows, or items with their time."""
    units = []
    for run in range(RUNS):
        for _ in range(draw(st.integers(0, 3))):
            lines = draw(st.lists(LINE, max_size=12))
            if draw(st.integers(0, 4)) == 0:
                lines.insert(draw(st.integers(0, len(lines))), draw(BAD))
            units.append(Unit(LINES, 0, run, len(lines), 3_000, b"\n".join(lines)))
    return units


@given(made=FLOWS, units=blocks(), times=TIMES)
def test_a_block_of_lines_gives_the_same(
    made: Made, units: list[Unit], times: list[int | None]
) -> None:
    units = [unit._replace(place=made.place) for unit in units]
    one_by_one = result_of(made, units, times, TABLE, fuse=False)
    assert result_of(made, units, times, TABLE, fuse=True) == one_by_one


@given(
    made=FLOWS,
    rows=st.lists(EVENTS, max_size=20),
    kind=st.sampled_from([ROWS, KEYED]),
    times=TIMES,
)
def test_rows_and_items_with_their_time_give_the_same(
    made: Made, rows: list[Event], kind: int, times: list[int | None]
) -> None:
    pack = Plain(classes_of(made.plan)).pack
    if kind == ROWS:
        packed = [pack((row.at, None, row)) for row in rows]
    else:
        packed = [pack((None, "k", msgspec.json.encode(row))) for row in rows]
    data = msgspec.msgpack.encode(packed)
    units = [Unit(kind, made.place, 0, len(rows), 3_000, data)]
    one_by_one = result_of(made, units, times, TABLE, fuse=False)
    assert result_of(made, units, times, TABLE, fuse=True) == one_by_one


# ---------------------------------------------------------------------- frames


def of_frames(windows: str, errors: str) -> Plan:
    flow = fw.Flow("frames", retention=7)
    policy: Any = errors
    stream: Any = flow.source("events", schema=Event, timestamp="at").rebalance(name="spread")
    stream = stream.filter("10 / number > 1", name="some", on_error=policy)
    _bury(stream, errors)
    stream = stream.join(
        flow.table("ads", schema=Ad, key=str),
        on="ad",
        select=["left.kind AS kind", "right.price AS price"],
        late_updates="ignore",
        broadcast=True,
        name="priced",
    )
    grouped = stream.group_by("kind")
    if WINDOWS[windows] is not None:
        grouped = grouped.window(WINDOWS[windows])
    rows = grouped.agg(total=fw.sum("price"), name="totals")
    rows.changes(emit=fw.emit.at_most_every("1s")).to(DiscardSink(), name="out")
    return Plan.of(flow, Configuration(Tuning(dop=2)))


@given(
    windows=st.sampled_from(list(WINDOWS)),
    errors=st.sampled_from(["skip", "fail", "dead_letter"]),
    frames=st.lists(st.lists(EVENTS, max_size=20), max_size=4),
    times=TIMES,
)
def test_frames_give_the_same(
    windows: str, errors: str, frames: list[list[Event]], times: list[int | None]
) -> None:
    plan = of_frames(windows, errors)
    stage = plan.stage_of("priced")
    (number,) = (e.number for e in plan.inputs(stage) if e.readers[0].operator == "spread")
    encode = msgspec.msgpack.encode
    units = [
        Unit(FRAME, number, i % RUNS, len(rows), 3_000, encode([(e.at, None, e) for e in rows]))
        for i, rows in sorted(enumerate(frames), key=lambda frame: frame[0] % RUNS)
    ]
    results = []
    for fuse_them in (False, True):
        with tempfile.TemporaryDirectory() as name:
            cuts = write_block(Path(name) / "block", units)
            (Path(name) / "table").write_bytes(Pickling(classes_of(plan)).dumps(TABLE))
            context = encode_context(Context(times, {"priced": f"{name}/table"}))
            remote = Remote(plan, stage, 0, fuse=fuse_them)
            results.append(_run(remote, f"{name}/block", cuts[-1][0], context))
    assert results[0] == results[1]


# ---------------------------------------------------------------------- what is fused


def test_the_ad_pipeline_is_one_loop_that_makes_no_record() -> None:
    plan = Plan.of(ads.build(TcpSource("127.0.0.1", 1), DiscardSink()))
    remote = Remote(plan, plan.stage_of("with_campaign"), 0)
    path = remote.paths["events"]
    assert [node.name for node in path.nodes] == ["events", "with_campaign"]
    source = path.source("values")
    assert source.count("for ") == 1
    hot = [line for line in source.splitlines() if "left" not in line]
    assert not any("Row" in line or "emit" in line for line in hot)


def test_a_block_that_has_a_dead_letter_is_done_one_by_one() -> None:
    made = built(["function"], None, [], "none", "count", "dead_letter", 1)
    lines = [msgspec.json.encode(Event("view", n, None, None, 5)) for n in (1, 0, 2)]
    units = [Unit(LINES, made.place, 0, 3, 3_000, b"\n".join(lines))]
    result = result_of(made, units, [None], [], fuse=True)
    assert result == result_of(made, units, [None], [], fuse=False)
    (counts,) = result.counts.values()
    assert counts.failures == [0, 1]


HEAD = "def run(rows):\n    for t, k, v in rows:\n"
LAST = HEAD + "        done((t, k, v))\n"


@pytest.mark.parametrize(
    "body",
    [
        "        emit((t, k, v))\n        late(v)\n",  # goes on after it
        "        try:\n            emit((t, k, v))\n        except Exception: pass\n",
        "        emit(v)\n",
        "        if v:\n            emit((t, k, v))\n        else:\n            emit((t, v, k))\n",
        "        print(v)\n",
    ],
)
def test_a_loop_of_another_shape_is_not_taken_apart(body: str) -> None:
    with pytest.raises(NotFusable):
        fuse([Loop(HEAD + body, {"emit": print, "late": print}, "emit"), Loop(LAST, {}, "")])


def test_a_row_whose_parts_are_changed_is_not_taken_apart() -> None:
    last = "def run(rows):\n    for row in rows:\n        t, k, v = row\n"
    last += "        t = 5\n        done(row, t)\n"
    first = HEAD + "        emit((t, k, v))\n"
    with pytest.raises(NotFusable):
        fuse([Loop(first, {"emit": None}, "emit"), Loop(last, {"done": print}, "")])


def test_a_variable_that_is_changed_further_on_is_not_shared() -> None:
    first = "def run(rows):\n    k = None\n    for v in rows:\n        emit((v, k, v))\n"
    second = HEAD + "        done((t, k, v))\n        k = v\n"
    done: list[Any] = []
    loop = fuse([Loop(first, {"emit": None}, "emit"), Loop(second, {"done": done.append}, "")])
    assert loop.run([1, 2]) == (2,)
    assert done == [(1, None, 1), (2, None, 2)]


@example(rows=[(1, None, 2), (2, None, 5)])
@given(rows=st.lists(st.tuples(st.integers(), st.none(), st.integers(-3, 9))))
def test_names_of_fused_loops_are_their_own(rows: list[Any]) -> None:
    first = HEAD + "        w = v + 1\n        for v in range(w):\n            emit((t, k, v))\n"
    second = "def run(rows, w):\n    m = 0\n    for row in rows:\n        t, k, v = row\n"
    second += "        if v == w: continue\n        m += v\n        done(row)\n    return m, w\n"
    done: list[Any] = []
    loop = fuse([Loop(first, {"emit": None}, "emit"), Loop(second, {"done": done.append}, "")])
    made = [(t, k, n) for t, k, v in rows for n in range(v + 1)]
    kept = [row for row in made if row[2] != 3]
    assert loop.run(rows, 3) == (sum(n for _, _, n in kept), 3, len(made))
    assert done == kept


def test_a_call_that_is_not_one_expression_is_not_inlined() -> None:
    code = CodeWriter()
    code.line("def join(l, r):").indent().line("x = l").line("return x")
    loop = Loop(
        HEAD + "        j = join(v, k)\n        emit((t, k, j))\n", {}, "emit", {"join": code}
    )
    with pytest.raises(NotFusable):
        fuse([loop, Loop(LAST, {}, "")])
