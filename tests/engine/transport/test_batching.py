"""Routing and batching: every record to its task, in order, in frames of at most b_out."""

import zlib
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floodway import Flow
from floodway.core.errors import OperatorError
from floodway.engine.transport import batching
from floodway.engine.transport.frame import (
    BORN,
    EPOCH,
    EXCHANGE,
    KIND,
    RECORDS,
    SENDER,
    SIZE,
    Kind,
    parse,
    payload,
)
from floodway.operators.aggregate import Aggregate
from floodway.operators.code import Snippet
from floodway.operators.partitioning import BY_KEY, Broadcast, Hash, Random, Range
from tests.engine.transport.lanes import GROUPS, Wires


def snippet(code: str | Callable[[Any], Any]) -> Snippet:
    numbers = Flow("snippets").source("numbers", schema=int)
    made = numbers.group_by(code).count().edge.operator
    assert isinstance(made, Aggregate)
    return made.group[0]


BY_TENTHS = Hash((snippet("value % 10 AS tenth"),))
BY_FAILING = Hash((snippet(lambda value: 10 // value),))
RANGES = Range(snippet("value AS number"), (-5, 0, 40))


def text_of(key: Any) -> bytes:
    """Return what the oracle hashes: the documented form of numbers and texts."""
    return b"s" + key.encode() if isinstance(key, str) else b"0" if key is None else b"n%d" % key


def task_of(key: Any, dop: int) -> int:
    return zlib.crc32(text_of(key)) % GROUPS * dop // GROUPS


def range_of(value: int, dop: int) -> int:
    return sum(value >= bound for bound in (-5, 0, 40)) * dop // 4


ORACLES: dict[str, tuple[Any, Callable[[Any, int, int], int]]] = {
    "by key": (BY_KEY, lambda key, value, dop: task_of(key, dop)),
    "by expression": (BY_TENTHS, lambda key, value, dop: task_of(value % 10, dop)),
    "by range": (RANGES, lambda key, value, dop: range_of(value, dop)),
    "by failing function": (
        BY_FAILING,
        lambda key, value, dop: task_of(10 // value, dop) if value else 0,
    ),
}

KEYS = st.sampled_from(["a", "b", None, 3, "long key"])
FACTS = st.lists(st.tuples(st.integers(0, 9), KEYS, st.integers(0, 99)), max_size=40)
DOPS = st.integers(1, 5)
SIZES = st.integers(1, 7)


@settings(max_examples=100)
@given(FACTS, DOPS, SIZES, st.integers(1, 9))
@pytest.mark.parametrize(("spread", "place"), ORACLES.values(), ids=ORACLES)
def test_record_reaches_its_task_in_order(
    spread: Any, place: Any, facts: list[Any], dop: int, b_out: int, piece: int
) -> None:
    wires = Wires((spread, dop), b_out=b_out)
    for start in range(0, len(facts), piece):
        wires.take(facts[start : start + piece])
    sizes = [len(rows) for _, rows in wires.data()]
    assert all(size == b_out for size in sizes)  # nothing leaves before it is full
    assert wires.outlet.waiting == len(facts) - sum(sizes)
    wires.flush()
    assert all(1 <= len(rows) <= b_out for _, rows in wires.data())
    expected: dict[int, list[Any]] = {task: [] for task in range(dop)}
    for time, key, value in facts:
        expected[place(key, value, dop)].append((time, key, value))
    assert wires.received() == expected


@given(FACTS, DOPS, SIZES)
def test_header_counts_what_the_frame_carries(facts: list[Any], dop: int, b_out: int) -> None:
    wires = Wires((BY_KEY, dop), b_out=b_out)
    wires.take(facts)
    wires.flush()
    for _, header, frame in wires.frames:
        assert header[RECORDS] == len(wires.codec.decode(payload(frame)))
        assert (header[EXCHANGE], header[SENDER]) == (0, 7)
    outlet = wires.outlet
    assert outlet.records_out == len(facts)
    assert outlet.frames_out == len(wires.frames)
    assert outlet.bytes_out == sum(len(frame) for _, _, frame in wires.frames)
    sent = Counter[int]()
    for target, _, frame in wires.frames:
        sent[target] += len(frame)
    assert {lane.target: lane.outstanding for lane in wires.lanes[0]} == {
        target: sent[target] for target in range(dop)
    }


@given(FACTS, DOPS, SIZES)
def test_broadcast_reaches_all(facts: list[Any], dop: int, b_out: int) -> None:
    wires = Wires((Broadcast(), dop), b_out=b_out)
    wires.take(facts)
    wires.flush()
    assert wires.received() == dict.fromkeys(range(dop), facts)
    assert wires.codec.encoded == len(facts)


@given(st.integers(0, 60), DOPS, SIZES)
def test_random_takes_turns(count: int, dop: int, b_out: int) -> None:
    wires = Wires((Random(), dop), b_out=b_out)
    facts = [(0, None, number) for number in range(count)]
    wires.take(facts)
    wires.flush()
    assert [row for _, rows in wires.data() for row in rows] == facts
    frames = Counter(target for target, _ in wires.data())
    shares = [frames[target] for target in range(dop)]
    assert max(shares) - min(shares) <= 1


@given(st.sets(st.integers(0, 3), max_size=3), st.integers(1, 12))
def test_random_avoids_who_has_enough(full: set[int], count: int) -> None:
    wires = Wires((Random(), 4), window=1000)
    for target in full:
        wires.lanes[0][target].outstanding = 1001
    wires.take([(0, None, number) for number in range(count)])
    assert not full & {target for target, _ in wires.data()}
    assert not wires.outlet.blocked


def test_random_is_blocked_when_all_have_enough_and_not_before() -> None:
    wires = Wires((Random(), 2), window=1000)
    for lane in wires.lanes[0]:
        assert not wires.outlet.blocked
        lane.outstanding = 1001
    assert wires.outlet.blocked


def test_hash_is_blocked_when_one_has_enough() -> None:
    wires = Wires((BY_KEY, 2), window=1000)
    assert not wires.outlet.blocked
    wires.lanes[0][1].outstanding = 1001
    assert wires.outlet.blocked


def test_linger_sends_what_has_waited_long_enough() -> None:
    wires = Wires((Broadcast(), 1), b_out=10, linger_us=500)
    assert wires.outlet.due() is None
    wires.take([(0, None, 1)], born=90, now=100)
    wires.take([(0, None, 2)], born=300, now=400)
    assert wires.outlet.due() == 600
    wires.flush(599)
    assert not wires.frames
    wires.flush(600)
    assert [rows for _, rows in wires.data()] == [[(0, None, 1), (0, None, 2)]]
    assert wires.frames[0][1][7] == 90  # of the oldest
    assert wires.outlet.due() is None
    wires.take([(0, None, 3)], born=700, now=800)
    assert wires.outlet.due() == 1300


def test_rest_of_a_full_batch_lingers_from_then_on() -> None:
    wires = Wires((Broadcast(), 1), b_out=2, linger_us=500)
    wires.take([(0, None, 1)], born=1, now=100)
    wires.take([(0, None, 2), (0, None, 3)], born=2, now=400)
    assert wires.outlet.due() == 900
    wires.flush()
    assert [rows for _, rows in wires.data()] == [[(0, None, 1), (0, None, 2)], [(0, None, 3)]]
    assert [header[BORN] for _, header, _ in wires.frames] == [1, 2]


def test_mark_comes_after_all_that_was_taken_before_it() -> None:
    wires = Wires((BY_KEY, 3), b_out=100)
    wires.take([(0, key, 1) for key in "abcdef"])
    wires.outlet.announce(Kind.MARK, b"now", epoch=4)
    wires.take([(0, "a", 2)])
    wires.flush()
    kinds: dict[int, list[tuple[int, int]]] = {}
    for target, header, _ in wires.frames:
        kinds.setdefault(target, []).append((header[KIND], header[EPOCH]))
    assert all((Kind.MARK, 4) in sent for sent in kinds.values())
    assert len(kinds) == 3
    late = next(t for t, rows in wires.data() if (0, "a", 2) in rows)
    assert kinds[late][-2:] == [(Kind.MARK, 4), (Kind.DATA, 4)]


# --------------------------------------------------------------------- changes and revisions

TIMES = st.integers(0, 9)
VALUES = st.none() | st.integers(1, 30)
LETTERS = st.text(max_size=1)
CHANGES = st.lists(st.tuples(TIMES, LETTERS, VALUES, VALUES, st.none() | TIMES), max_size=20)
SIDES = st.none() | st.tuples(TIMES, LETTERS, st.integers(1, 30))
REVISIONS = st.lists(st.tuples(st.integers(), SIDES, SIDES), max_size=20)


def sides_of_changes(rows: list[Any]) -> Counter[Any]:
    """Return what is gained and what is lost, by whom does not matter."""
    gained = Counter(("new", t, k, new, until) for t, k, new, _, until in rows if new is not None)
    lost = Counter(("old", t, k, old, until) for t, k, _, old, until in rows if old is not None)
    return gained + lost


@settings(max_examples=200)
@given(CHANGES, DOPS, SIZES)
def test_change_is_split_between_the_tasks_of_its_sides(
    changes: list[Any], dop: int, b_out: int
) -> None:
    wires = Wires((BY_TENTHS, dop), kind="changes", b_out=b_out)
    wires.take(changes)
    wires.flush()
    got = wires.received()
    both = [row for rows in got.values() for row in rows]
    assert sides_of_changes(both) == sides_of_changes(changes)
    for task, rows in got.items():
        for _, _, new, old, _ in rows:
            sides = [side for side in (new, old) if side is not None]
            assert all(task_of(side % 10, dop) == task for side in sides)


@settings(max_examples=200)
@given(REVISIONS, DOPS, SIZES)
@pytest.mark.parametrize("spread", ["key", "expression"])
def test_revision_is_split_between_the_tasks_of_its_sides(
    spread: str, revisions: list[Any], dop: int, b_out: int
) -> None:
    wires = Wires((BY_KEY if spread == "key" else BY_TENTHS, dop), kind="revisions", b_out=b_out)
    wires.take(revisions)
    wires.flush()
    got = wires.received()
    both = [row for rows in got.values() for row in rows]
    for side in (1, 2):
        sent, came = ([(r[0], r[side]) for r in rows if r[side]] for rows in (revisions, both))
        assert Counter(sent) == Counter(came)
    for task, rows in got.items():
        for fact in (fact for _, *sides in rows for fact in sides if fact is not None):
            assert task_of(fact[1] if spread == "key" else fact[2] % 10, dop) == task


def test_old_value_that_fails_is_nowhere() -> None:
    wires = Wires((BY_FAILING, 4), kind="changes")
    change = (1, "k", 3, 0, None)  # the old value was reported when it was new
    wires.take([change])
    assert wires.data() == [(task_of(10 // 3, 4), [change])]


class Unnamed:
    """A group that has a hash only in its own process."""


def test_group_without_a_hash_of_its_own_lies_with_the_first_task_on_both_sides() -> None:
    groups: dict[int, Any] = {1: Unnamed(), 2: "b", 3: "a"}
    by = Hash((snippet(lambda value: groups[value]),))
    wires = Wires((by, 4), kind="changes")
    other = next(v for v in (2, 3) if task_of(groups[v], 4) != 0)
    wires.take([(1, "k", 1, None, None), (2, "k", other, 1, None)])
    assert wires.received()[0] == [(1, "k", 1, None, None), (2, "k", None, 1, None)]
    assert wires.received()[task_of(groups[other], 4)] == [(2, "k", other, None, None)]


# --------------------------------------------------------------------- shared batches


@settings(max_examples=100)
@given(FACTS, DOPS, DOPS, SIZES)
def test_shared_batches_bring_the_same_as_distinct_ones(
    facts: list[Any], one: int, other: int, b_out: int
) -> None:
    consumers = (BY_KEY, one), (BY_TENTHS, other)
    distinct, shared = (Wires(*consumers, shared=s, b_out=b_out) for s in (False, True))
    for wires in (distinct, shared):
        wires.take(facts)
        wires.flush()
    for consumer in (0, 1):
        for task, rows in distinct.received(consumer).items():
            got = shared.received(consumer)[task]
            assert Counter(got) == Counter(rows)
            # Which buffer is full first differs; within one combination of tasks order holds.
            assert [row for row in got if row[1:] == rows[0][1:]] == [
                row for row in rows if row[1:] == rows[0][1:]
            ]
        assert all(1 <= len(rows) <= b_out for _, rows in shared.data(consumer))
    assert shared.codec.encoded == len(facts)
    assert distinct.codec.encoded == 2 * len(facts)


def test_shared_batch_has_a_buffer_for_each_combination_of_tasks() -> None:
    wires = Wires((BY_KEY, 2), (BY_TENTHS, 3), shared=True)
    assert len(wires.outlet.batches) == 6
    payloads = Counter[bytes]()
    wires.take([(0, str(n), n) for n in range(20)])
    for _, _, frame in wires.frames:
        payloads[frame[SIZE:]] += 1
    assert set(payloads.values()) == {2}  # each batch went to one task of each consumer


def test_broadcast_is_never_shared() -> None:
    wires = Wires((BY_KEY, 2), (Broadcast(), 2), shared=True)
    assert len(wires.outlets) == 2


# --------------------------------------------------------------------- size


@pytest.mark.parametrize("spread", [BY_KEY, Random(), Broadcast()], ids=str)
def test_batch_that_is_too_large_for_a_frame_becomes_several(
    spread: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batching, "MAX_PAYLOAD", 100)
    wires = Wires((spread, 2), b_out=16)
    facts = [(0, "a", f"{number:020}") for number in range(40)]
    wires.take(facts)
    wires.flush()
    assert all(len(frame) - SIZE <= 100 for _, _, frame in wires.frames)
    got = wires.received()
    copies = 2 if isinstance(spread, Broadcast) else 1
    assert Counter(row for rows in got.values() for row in rows) == Counter(facts * copies)
    assert all(rows == sorted(rows) for rows in got.values())
    assert wires.outlet.frames_out == len(wires.frames)
    assert wires.outlet.records_out == 40


def test_record_that_is_too_large_for_a_frame_names_its_operator(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(batching, "MAX_PAYLOAD", 100)
    wires = Wires((BY_KEY, 2), b_out=3)
    with pytest.raises(OperatorError, match="a frame has at most 100") as caught:
        wires.take([(0, "a", 1), (0, "a", "x" * 200), (0, "a", 2)])
    assert caught.value.operator == "sender"


def test_end_is_sent_to_everybody_after_everything() -> None:
    wires = Wires((BY_KEY, 2), b_out=9)
    wires.take([(0, key, 1) for key in "abcdef"])
    wires.outlet.announce(Kind.END)
    last = {target: parse(frame)[KIND] for target, _, frame in wires.frames}
    assert last == {0: Kind.END, 1: Kind.END}
    assert wires.outlet.waiting == 0
