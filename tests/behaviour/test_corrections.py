"""What corrections cost does not grow with what they correct, and nothing is kept for ever."""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import floodway as fw
from floodway import Flow, emit
from floodway.core.errors import EmitError, WindowRequiredError
from floodway.operators.base import Kernel
from floodway.operators.keyed import GONE, Space, Windowed
from floodway.testing import fold
from floodway.testing.strategies import cuts, skewed, streams
from tests.behaviour.kernels import kernel_of, weight
from tests.engines import Engine

Row = tuple[str, int]


class Counting:
    """A sum that counts how often its parts are called."""

    def __init__(self) -> None:
        self.calls = 0

    def lift(self, row: Row) -> int:
        self.calls += 1
        return row[1]

    def combine(self, a: int, b: int) -> int:
        self.calls += 1
        return a + b

    def subtract(self, a: int, b: int) -> int:
        self.calls += 1
        return a - b

    def lower(self, a: int) -> int:
        self.calls += 1
        return a


def revised(flow: Flow) -> Any:
    """A stream with updates."""
    table = flow.table("prices", schema=tuple, key=str)
    orders = flow.source("orders", schema=tuple)
    return orders.join(table, on=lambda row: row[0], joiner=lambda a, b: a, schema=tuple)


def rows_of(flow: Flow) -> Any:
    return flow.table("rows", schema=tuple, key=str)


def one(row: Row) -> int:
    return 1


def amount(row: Row) -> int:
    return row[1]


def revision(number: int, value: int | None, old: int | None = None) -> Any:
    """A record at a timestamp of its own, and what it was before."""

    def fact(amount: int | None) -> Any:
        return None if amount is None else (number, "a", ("a", amount))

    return (number, fact(old), fact(value))


def change(number: int, value: int | None, old: int | None = None) -> Any:
    def row(amount: int | None) -> Any:
        return None if amount is None else ("a", amount)

    return (number, f"row {number}", row(value), row(old), None)


INPUTS: dict[str, tuple[Callable[[Flow], Any], Callable[..., Any]]] = {
    "revisions": (revised, revision),
    "changes": (rows_of, change),
}


@pytest.mark.parametrize("source", INPUTS)
def test_a_correction_does_as_much_among_many_records_as_among_few(source: str) -> None:
    build, make = INPUTS[source]
    calls = []
    for records in (10, 1000):
        of = Counting()
        kernel, _ = kernel_of(
            lambda flow, of=of: (
                build(flow)
                .group_by(one)
                .aggregate(
                    of.lift, of.combine, of.lower, subtract=of.subtract, schema=int, name="op"
                )
            ),
            versioned=False,
        )
        kernel.process(0, [make(number, number) for number in range(records)])
        of.calls = 0
        kernel.process(0, [make(0, 7, 0)])  # the oldest
        calls.append(of.calls)
    assert calls[0] == calls[1] > 0


def changed(kernel: Kernel) -> list[Any]:
    """Return what there is to store."""
    found: list[Any] = []
    for space in kernel.spaces().values():
        parts = space.take()[0].values() if isinstance(space, Windowed) else [space.take()]
        found += [item for part in parts for item in part.items()]
    return found


AGGREGATES: dict[str, Callable[[Any], Any]] = {
    "sum": lambda g: g.sum(amount, name="op"),
    "max": lambda g: g.max(amount, name="op"),
    "top": lambda g: g.top(3, amount, name="op"),
    "several": lambda g: g.agg(name="op", n=fw.count(), least=fw.min(amount), most=fw.max(amount)),
}


@pytest.mark.parametrize("aggregate", AGGREGATES)
@pytest.mark.parametrize("source", INPUTS)
def test_as_much_is_stored_of_a_correction_among_many_records_as_among_few(
    source: str, aggregate: str
) -> None:
    build, make = INPUTS[source]
    sizes = []
    for records in (10, 1000):

        def write(flow: Flow) -> Any:
            grouped = build(flow).group_by(one)
            if source == "revisions":
                grouped = grouped.window(fw.tumbling(10_000))
            return AGGREGATES[aggregate](grouped)

        kernel, _ = kernel_of(write, versioned=False)
        kernel.process(0, [make(number, number) for number in range(records)])
        changed(kernel)
        kernel.process(0, [make(0, 7, 0)])
        sizes.append(weight([key if row is GONE else row for key, row in changed(kernel)]))
    assert sizes[0] == sizes[1] > 0


def values(kernel: Any) -> dict[Any, Any]:
    """Return what the groups come to."""
    return {key: (value.n, value.most) for key, (_, value) in kernel.rows().items()}


@pytest.mark.parametrize("source", INPUTS)
def test_what_cannot_be_put_in_order_is_left_out_until_it_is_taken_back(source: str) -> None:
    build, make = INPUTS[source]

    def write(flow: Flow) -> Any:
        grouped = build(flow).group_by(one)
        if source == "revisions":
            grouped = grouped.window(fw.tumbling(100))
        return grouped.agg(name="op", n=fw.count(), most=fw.max(amount), on_error="skip")

    kernel: Any = kernel_of(write, versioned=False)[0]
    kernel.process(0, [make(1, 5), make(2, 7)])
    before, weighed = values(kernel), weight(kernel.snapshot())
    kernel.process(0, [make(2, "seven", 7), make(3, "eight")])
    assert kernel.handlers[0].skipped == 2
    without: Any = kernel_of(write, versioned=False)[0]
    without.process(0, [make(1, 5)])
    assert values(kernel) == values(without)
    kernel.process(0, [make(2, 7, "seven"), make(3, 6, "eight")])
    kernel.process(0, [make(3, None, 6)])
    assert kernel.handlers[0].skipped == 2
    assert (values(kernel), weight(kernel.snapshot())) == (before, weighed)


# ----------------------------------------------------------------------------- results that fit

Transfer = tuple[str, str, int]
ACCOUNTS = "abcd"
TRANSFERS = streams(
    st.tuples(skewed(ACCOUNTS), skewed(ACCOUNTS), st.integers(1, 9)), max_time=20, max_size=12
)


Known = dict[Any, int]
"""The rows of a table: by their keys, and windows."""

STRATEGIES = {
    "every": emit.every_update(),
    "latest": emit.latest(),
    "some": emit.at_most_every(5),
    "fitting": emit.consistent(),
}


def balance(gained: int | None, gave: int | None) -> int:
    return (gained or 0) - (gave or 0)


@cache
def bank() -> Flow:
    """Accounts from what was taken and what was given; all of them together have nothing."""
    flow = Flow("bank")
    transfers = flow.source("transfers", schema=tuple)
    debits = transfers.group_by(lambda t: t[0]).sum(lambda t: t[2], name="debits")
    gained = transfers.group_by(lambda t: t[1]).sum(lambda t: t[2], name="gained")
    balances = gained.join(debits, how="full", joiner=balance, schema=int, name="balances")
    tables = {
        "accounts": balances,
        "sum": balances.group_by(lambda balance: 1).sum("value", name="total"),
        "odd": balances.group_by(lambda balance: balance % 2).sum("value", name="odd"),
    }
    for strategy, how in STRATEGIES.items():
        for name, table in tables.items():
            log = f"{strategy}.{name}"
            table.changes(emit=how, name=f"{log}.changes").to(log)
    return flow


def after(transfers: Sequence[Transfer]) -> dict[str, Known]:
    """Return what the tables of the bank are after some transfers."""
    accounts: Known = {}
    for giver, taker, amount in transfers:
        accounts[giver] = accounts.get(giver, 0) - amount
        accounts[taker] = accounts.get(taker, 0) + amount
    odd: Known = {}
    for has in accounts.values():
        odd[has % 2] = odd.get(has % 2, 0) + has
    return {"accounts": accounts, "sum": {1: 0} if accounts else {}, "odd": odd}


class Subscriber:
    """What somebody knows who has one emit strategy for all tables of the bank."""

    def __init__(self, driver: Any, strategy: str) -> None:
        self._driver, self._strategy = driver, strategy
        self.knows: dict[str, Known] = {"accounts": {}, "sum": {}, "odd": {}}

    def read(self) -> list[tuple[str, Any]]:
        """Take note of what was sent; return of which tables and rows."""
        sent = []
        for name, rows in self.knows.items():
            for record in self._driver.read(f"{self._strategy}.{name}"):
                sent.append((name, record.key))
                rows[record.key] = record.value.value
                if record.value.value is None:
                    del rows[record.key]
        return sent


def marked(engine: Engine, data: st.DataObject, transfers: Any) -> Iterator[tuple[Any, Any]]:
    """Push transfers, and let marks come; yield the driver before, and with what there is after."""
    done: list[Transfer] = []
    with engine(bank(), auto_mark=False) as driver:
        for push in data.draw(cuts(transfers)):
            driver.push_at("transfers", *push)
            done += [transfer for _, transfer in push]
            yield driver, None
            if data.draw(st.booleans()):
                driver.advance(data.draw(st.integers(0, 9)))
            else:
                driver.mark()
            yield driver, after(done)


@settings(max_examples=100)
@given(data=st.data(), transfers=TRANSFERS)
def test_what_is_consistent_adds_up_at_every_mark(
    engine: Engine, data: st.DataObject, transfers: Any
) -> None:
    subscriber = None
    for driver, there in marked(engine, data, transfers):
        subscriber = subscriber or Subscriber(driver, "fitting")
        sent = subscriber.read()
        if there is None:
            assert sent == []  # nothing between marks
            continue
        assert subscriber.knows == there
        assert sum(there["accounts"].values()) == 0
        assert there["accounts"] == driver.table("balances").values()
        assert len(set(sent)) == len(sent)


@settings(max_examples=100)
@given(data=st.data(), transfers=TRANSFERS)
@pytest.mark.parametrize("strategy", ["every", "latest"])
def test_what_was_sent_last_of_every_row_is_right_at_every_mark(
    engine: Engine, strategy: str, data: st.DataObject, transfers: Any
) -> None:
    subscriber = None
    for driver, there in marked(engine, data, transfers):
        subscriber = subscriber or Subscriber(driver, strategy)
        subscriber.read()
        if there is not None:
            assert subscriber.knows == there


@settings(max_examples=100)
@given(data=st.data(), transfers=TRANSFERS)
def test_what_is_sent_at_most_once_per_interval_fits_together_when_it_is_sent(
    engine: Engine, data: st.DataObject, transfers: Any
) -> None:
    subscriber = None
    for driver, there in marked(engine, data, transfers):
        subscriber = subscriber or Subscriber(driver, "some")
        sent = subscriber.read()
        if there is None:
            assert sent == []  # nothing between marks
        elif sent:
            assert subscriber.knows == there


def test_what_is_consistent_comes_out_when_the_flow_ends(engine: Engine) -> None:
    with engine(bank(), auto_mark=False) as driver:
        driver.push_at("transfers", (1, ("a", "b", 3)))
        assert driver.read("fitting.accounts") == []
        driver.finish()
        assert fold(driver.read("fitting.accounts")) == {"a": -3, "b": 3}


WIDTH, KEPT = 5, 10
AT_END = {
    "early": emit.after_window_end(),
    "fewer": emit.after_window_end(corrections=5),
    "final": emit.final(),
}


@cache
def windowed_bank() -> Flow:
    """The same for every window: money that is taken in one was given in the same."""
    flow = Flow("windowed_bank", retention=KEPT)
    transfers = flow.source("transfers", schema=tuple)
    windows = fw.tumbling(WIDTH)
    debits = transfers.group_by(lambda t: t[0]).window(windows).sum(lambda t: t[2], name="debits")
    gained = transfers.group_by(lambda t: t[1]).window(windows).sum(lambda t: t[2], name="gained")
    balances = gained.join(debits, how="full", joiner=balance, schema=int, name="balances")
    tables = {
        "accounts": balances,
        "sum": balances.group_by("window_end").sum("value", name="total"),
    }
    for strategy, how in AT_END.items():
        for name, table in tables.items():
            table.changes(emit=how, name=f"{strategy}.{name}.changes").to(f"{strategy}.{name}")
    debits.late.to("late")
    gained.late.to("late_as_well")
    return flow


class Windows:
    """What happens to the windowed bank, and what there is then in its tables, window by window."""

    def __init__(self, driver: Any, data: st.DataObject) -> None:
        self._driver, self._data = driver, data
        self._time = -1
        self.rows: dict[int, Known] = {}

    def push(self, transfers: Any) -> None:
        """Push transfers; what is late for one side has to be late for the other."""
        self._driver.push_at("transfers", *transfers)
        late = [(r.timestamp, r.value) for r in self._driver.read("late")]
        as_well = [(r.timestamp, r.value) for r in self._driver.read("late_as_well")]
        assert sorted(late) == sorted(as_well)
        for time, (giver, taker, amount) in transfers:
            if (time, (giver, taker, amount)) not in late:
                rows = self.rows.setdefault(time - time % WIDTH + WIDTH, {})
                rows[giver] = rows.get(giver, 0) - amount
                rows[taker] = rows.get(taker, 0) + amount

    def mark(self, over: int = 0) -> set[int]:
        """Let a mark come; return the ends of the windows that are over with it, and so much."""
        if self._data.draw(st.booleans()):
            self._driver.advance(self._data.draw(st.integers(0, 9)))
        else:
            self._driver.mark()
        before, self._time = self._time, self._driver.stream_time
        return {end for end in self.rows if before < end + over <= self._time}

    def sent(self, strategy: str) -> tuple[dict[int, Known], dict[int, int]]:
        """Return what was sent of the accounts, and of their sums, by the ends of windows."""
        accounts: dict[int, Known] = {}
        for record in self._driver.read(f"{strategy}.accounts"):
            accounts.setdefault(record.value.window.end, {})[record.key] = record.value.value
        return accounts, {r.key: r.value.value for r in self._driver.read(f"{strategy}.sum")}


@settings(max_examples=100)
@given(data=st.data(), transfers=TRANSFERS)
def test_first_results_of_windows_that_end_together_fit_together(
    engine: Engine, data: st.DataObject, transfers: Any
) -> None:
    with engine(windowed_bank(), auto_mark=False) as driver:
        windows = Windows(driver, data)
        for push in data.draw(cuts(transfers)):
            windows.push(push)
            windows.sent("early")  # corrections of windows that have ended before
            ended = windows.mark()
            accounts, sums = windows.sent("early")
            assert accounts == {end: windows.rows[end] for end in ended}
            assert sums == dict.fromkeys(ended, 0)


@settings(max_examples=100)
@given(data=st.data(), transfers=TRANSFERS)
def test_corrections_that_wait_fit_together_with_all_that_is_sent_with_them(
    engine: Engine, data: st.DataObject, transfers: Any
) -> None:
    with engine(windowed_bank(), auto_mark=False) as driver:
        windows = Windows(driver, data)
        for push in data.draw(cuts(transfers)):
            windows.push(push)
            assert windows.sent("fewer") == ({}, {})
            ended = windows.mark()
            accounts, sums = windows.sent("fewer")
            for end, rows in accounts.items():
                assert rows.items() <= windows.rows[end].items()
            assert {end: accounts[end] for end in ended} == {e: windows.rows[e] for e in ended}
            assert set(sums.values()) <= {0}


@settings(max_examples=100)
@given(data=st.data(), transfers=TRANSFERS)
def test_final_results_are_right_for_good_over_aggregates_of_aggregates(
    engine: Engine, data: st.DataObject, transfers: Any
) -> None:
    final: dict[int, Known] = {}
    with engine(windowed_bank(), auto_mark=False) as driver:
        windows = Windows(driver, data)
        for push in data.draw(cuts(transfers)):
            windows.push(push)
            assert windows.sent("final") == ({}, {})
            over = windows.mark(KEPT)
            accounts, sums = windows.sent("final")
            assert sums == dict.fromkeys(over, 0)
            assert accounts == {end: dict(windows.rows[end]) for end in over}
            final |= {end: dict(rows) for end, rows in accounts.items()}
        driver.finish()
        accounts, sums = windows.sent("final")
        assert sums == dict.fromkeys(accounts, 0)
        assert not accounts.keys() & final.keys()
        assert final | accounts == windows.rows


# ----------------------------------------------------------------------------- fewer corrections

RETENTION, INTERVAL = 30, 10
ITEMS = streams(skewed("ab"), max_time=60, max_size=14)


@cache
def corrected() -> Flow:
    flow = Flow("corrected", retention=RETENTION)
    items = flow.source("items", schema=str)
    counts = items.group_by("value AS item").window(fw.tumbling(7)).count(name="counts")
    counts.changes(emit=emit.after_window_end(), name="all").to("at_once")
    fewer = emit.after_window_end(corrections=INTERVAL)
    counts.changes(emit=fewer, name="some").to("throttled")
    return flow


@settings(max_examples=150)
@given(data=st.data(), stream=ITEMS)
def test_corrections_come_at_most_once_per_interval_and_the_last_one_always(
    engine: Engine, data: st.DataObject, stream: Any
) -> None:
    at_once: list[Any] = []
    throttled: list[Any] = []
    corrected_at: dict[Any, int] = {}
    first: dict[Any, int] = {}
    clock = 0
    with engine(corrected()) as driver:
        for push in [*data.draw(cuts(stream)), None]:
            if push is None:
                driver.finish()
            else:
                driver.push_at("items", *push)
                step = data.draw(st.integers(0, 15))
                driver.advance(step)
                clock += step
            at_once += driver.read("at_once")
            new = driver.read("throttled")
            throttled += new
            for record in new:
                row = (record.value.key, record.value.window)
                if row not in first:
                    first[row] = clock
                elif push is not None:
                    assert clock - corrected_at.get(row, -INTERVAL) >= INTERVAL
                    corrected_at[row] = clock
    assert fold(throttled) == fold(at_once)
    assert len(throttled) <= len(at_once)
    seen: dict[Any, Any] = {}
    for record in throttled:
        row = (record.value.key, record.value.window)
        assert record.value.previous == seen.get(row)
        seen[row] = record.value.value


def test_first_result_of_a_window_does_not_wait_for_the_interval(engine: Engine) -> None:
    with engine(corrected()) as driver:
        driver.push_at("items", (1, "a"), (8, "a"))
        assert [r.value.value for r in driver.read("throttled")] == [1]
        driver.push_at("items", (2, "a"), (3, "a"))
        driver.push_at("items", (4, "a"))
        assert driver.read("throttled") == []
        driver.advance(INTERVAL)
        (correction,) = driver.read("throttled")
        assert (correction.value.value, correction.value.previous) == (4, 1)


# ----------------------------------------------------------------------------- windows close

WINDOWED: dict[str, Callable[[Any], Any]] = {
    "count over all": lambda t: t.group_by("count % 2 AS odd").count(name="op"),
    "max over all": lambda t: t.group_by("count % 2 AS odd").max("count", name="op"),
    "top over all": lambda t: t.group_by("count % 2 AS odd").top(2, name="op"),
    "several over all": lambda t: t.group_by("count % 2 AS odd").agg(
        name="op", n=fw.count(), least=fw.min("count"), most=fw.max("count")
    ),
    "by start": lambda t: t.group_by("window_start", "count % 2 AS odd").max("count", name="op"),
    "by end": lambda t: t.group_by("window_end").collect(name="op"),
}


def windowed_rows(start: int, old: int | None, new: int) -> Any:
    return (start, ("a", start, start + 5), new, old, None)


# The start of a session does not tell when it is closed.
CLOSING = [("tumbling", case) for case in WINDOWED]
CLOSING += [("session", case) for case in WINDOWED if case != "by start"]


@pytest.mark.parametrize(("windows", "case"), CLOSING)
@pytest.mark.parametrize("versioned", [False, True])
def test_aggregate_of_a_windowed_table_does_not_grow(
    windows: str, case: str, versioned: bool
) -> None:
    def write(flow: Flow) -> Any:
        items = flow.source("items", schema=str)
        of = fw.tumbling(5) if windows == "tumbling" else fw.session(5)
        return WINDOWED[case](items.group_by("value AS item").window(of).count(name="counts"))

    kernel, _ = kernel_of(write, versioned=versioned)
    sizes = []
    for number in range(400):
        start = number * 5
        kernel.process(0, [windowed_rows(start, None, 1), windowed_rows(start, 1, 2 + number % 5)])
        kernel.advance(start)
        if number % 100 == 99:
            sizes.append(weight(kernel.snapshot()))
    assert len(set(sizes)) == 1
    assert sum(len(s) for space in kernel.spaces().values() for s in _each(space)) < 40


def _each(space: Any) -> list[Space[Any, Any]]:
    return list(space.values()) if isinstance(space, Windowed) else [space]


@cache
def over_windows(windows: str, *, versions: bool) -> Flow:
    flow = Flow("over", retention=10)
    items = flow.source("items", schema=str)
    of = fw.tumbling(5) if windows == "tumbling" else fw.session(3)
    counts = items.group_by("value AS item").window(of).count(name="counts")
    counts.to("counts.log")
    counts.group_by("item").agg(
        name="lasting", versions=versions, n=fw.count(), total=fw.sum("count"),
        most=fw.max("count"), least=fw.min("count"), best=fw.top(2, "count"),
    ).to("lasting.log")  # fmt: skip
    ends = counts.group_by("window_end").agg(name="ends", n=fw.count(), most=fw.max("count"))
    ends.to("ends.log")
    ends.changes(emit=emit.final(), name="final.changes").to("final")
    ends.changes(emit=emit.after_window_end(), name="early.changes").to("early")
    return flow


@pytest.mark.parametrize(
    ("windows", "versions"), [("tumbling", False), ("tumbling", True), ("session", False)]
)
@settings(max_examples=100)
@given(data=st.data(), stream=streams(skewed("ab"), max_time=80, max_size=16))
def test_closed_windows_still_count_and_groups_of_windows_close_with_them(
    engine: Engine, windows: str, versions: bool, data: st.DataObject, stream: Any
) -> None:
    with engine(over_windows(windows, versions=versions)) as driver:
        for push in data.draw(cuts(stream)):
            driver.push_at("items", *push)
        kept = {window.end for _, window in driver.table("counts").values()}
        assert set(driver.table("ends").values()) == kept
        driver.finish()
        counts = fold(driver.read("counts.log"))
        lasting = fold(driver.read("lasting.log"))
        assert lasting == driver.table("lasting").values()
        assert set(lasting) == {item for item, _ in counts}
        for item, row in lasting.items():
            values = sorted(count for (key, _), count in counts.items() if key == item)
            assert (row.n, row.total, row.most, row.least) == (
                len(values), sum(values), values[-1], values[0],
            )  # fmt: skip
            assert row.best == values[::-1][:2]
        by_end: dict[int, list[int]] = {}
        for (_, window), count in counts.items():
            by_end.setdefault(window.end, []).append(count)
        expected = {end: (len(found), max(found)) for end, found in by_end.items()}
        for log in ("ends.log", "early", "final"):
            records = driver.read(log)
            assert {k: (v.n, v.most) for k, v in fold(records).items()} == expected, log
            if log == "final":
                assert len(records) == len(expected)


def test_what_keeps_every_value_of_every_window_is_refused() -> None:
    flow = Flow("lists")
    items = flow.source("items", schema=str)
    counts = items.group_by("value AS item").window(fw.tumbling(5)).count()
    with pytest.raises(WindowRequiredError, match="group by window_end, too"):
        counts.group_by("item").collect()
    counts.group_by("item", "window_end").collect()


def test_groups_that_are_not_of_a_window_never_end() -> None:
    flow = Flow("ends")
    items = flow.source("items", schema=str)
    counts = items.group_by("value AS item").window(fw.tumbling(5)).count()
    with pytest.raises(EmitError, match="group the rows of windows by window_end"):
        counts.group_by("item").count(name="per_item").changes(emit=emit.final())
