"""The hash of keys: equal for equal keys, the same everywhere, even over groups and tasks."""

import datetime as dt
import enum
import json
import os
import subprocess
import sys
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floodway import Record
from floodway.engine.transport.hashing import canonical, key_group, partition
from tests.waiting import DEADLINE_S


class Pair(Record, frozen=True):
    a: Any
    b: Any


class Colour(str, enum.Enum):  # noqa: UP042 - unlike StrEnum, its str() is not its value
    RED = "red"


class Size(enum.IntEnum):
    LARGE = 3


class Corner(NamedTuple):
    x: int
    y: int


UTC = dt.datetime(2024, 3, 1, 12, tzinfo=dt.UTC)
EQUAL: dict[str, list[Any]] = {
    "one": [1, 1.0, True, Decimal(1), Decimal("1.00"), Fraction(1), complex(1)],
    "zero": [0, -0.0, 0.0, False],
    "large": [2**70, float(2**70), Decimal(2**70)],
    "half": [0.5, Decimal("0.5"), Fraction(1, 2)],
    "nested": [(1, ("a", 2.0)), (True, ("a", Decimal(2)))],
    "instant": [UTC, UTC.astimezone(dt.timezone(dt.timedelta(hours=5, minutes=30)))],
    "enum that is text": ["red", Colour.RED],
    "enum that is a number": [3, Size.LARGE],
    "named tuple": [(1, 2), Corner(1, 2), (1.0, 2)],
    "records": [Pair(1, "x"), Pair(1.0, "x")],
    "sets": [frozenset({1, 2, "a"}), frozenset({"a", 2.0, 1})],
}


@pytest.mark.parametrize("keys", EQUAL.values(), ids=EQUAL)
def test_equal_keys_have_equal_hashes(keys: list[Any]) -> None:
    assert len(set(keys)) == 1
    assert len({canonical(key) for key in keys}) == 1
    assert len({key_group(key, 128) for key in keys}) == 1


NUMBERS = st.one_of(
    st.integers(-(2**70), 2**70), st.floats(allow_nan=False), st.decimals(allow_nan=False),
    st.booleans(), st.fractions(),
)  # fmt: skip


@settings(max_examples=200)
@given(NUMBERS, NUMBERS)
def test_numbers_hash_by_value(one: Any, other: Any) -> None:
    if one == other:
        assert canonical(one) == canonical(other)
    if isinstance(one, int) and abs(one) < 2**53:
        assert canonical(one) == canonical(float(one)) == canonical(Decimal(one))


SHAPES: list[Any] = [
    "",
    "a",
    "ab",
    b"",
    b"ab",
    None,
    0,
    12,
    (),
    ("a",),
    ("a", "b"),
    ("ab",),
    ("ab", ""),
]
SHAPES += [(("a",), "b"), ("a", ("b",)), frozenset({"ab"}), dt.date(1970, 1, 1), dt.timedelta(0)]


def test_different_keys_are_told_apart() -> None:
    assert len({canonical(key) for key in SHAPES}) == len(SHAPES)


@pytest.mark.parametrize("key", [[], {}, set(), object(), Colour, ("a", [])])
def test_what_cannot_be_a_key_is_refused(key: Any) -> None:
    with pytest.raises(TypeError, match="cannot be a key"):
        canonical(key)


OTHER_PROCESS = """
import datetime as dt, json
from decimal import Decimal
from floodway.engine.transport.hashing import key_group
keys = [*map(str, range(50)), *range(-20, 20), 0.25, None, b"x", ("a", 1), frozenset("abc"),
        dt.date(2024, 1, 1), dt.datetime(2024, 1, 1), dt.timedelta(5), Decimal("1.5")]
print(json.dumps([key_group(key, 32768) for key in keys]))
"""


def test_other_processes_have_the_same_hashes() -> None:
    found = [
        json.loads(
            subprocess.run(
                [sys.executable, "-c", OTHER_PROCESS],
                env=os.environ | {"PYTHONHASHSEED": seed},
                check=True,
                capture_output=True,
                timeout=DEADLINE_S,
            ).stdout
        )
        for seed in ("1", "2")
    ]
    assert found[0] == found[1]
    assert len(set(found[0])) > 50


@pytest.mark.parametrize(
    "keys",
    [range(40_000), [f"user-{n}" for n in range(40_000)], [(n, "x") for n in range(40_000)]],
    ids=["numbers", "texts", "tuples"],
)
def test_keys_are_spread_evenly(keys: Any) -> None:
    groups = Counter(key_group(key, 128) for key in keys)
    assert set(groups) == set(range(128))
    mean = 40_000 / 128
    assert all(0.6 * mean < count < 1.4 * mean for count in groups.values())
    tasks = Counter(partition(key, 128, 3) for key in keys)
    assert all(0.9 < count / (40_000 / 3) < 1.1 for count in tasks.values())


@given(st.integers(1, 512), st.data())
def test_tasks_have_neighbouring_whole_groups(groups: int, data: st.DataObject) -> None:
    dop = data.draw(st.integers(1, groups))
    keys = data.draw(st.lists(st.one_of(st.text(max_size=5), st.integers()), max_size=40))
    placed = sorted((key_group(key, groups), partition(key, groups, dop)) for key in keys)
    tasks = [task for _, task in placed]
    assert tasks == sorted(tasks)
    assert len({group for group, _ in placed}) == len(set(placed))
    assert all(0 <= task < dop for task in tasks)


@given(st.integers(1, 256), st.data())
def test_every_task_has_groups_and_as_many_as_the_others(groups: int, data: st.DataObject) -> None:
    dop = data.draw(st.integers(1, groups))
    shares = Counter(group * dop // groups for group in range(groups))
    assert set(shares) == set(range(dop))
    assert max(shares.values()) - min(shares.values()) <= 1


@given(
    st.lists(st.text(max_size=4), unique=True, max_size=60), st.integers(1, 64), st.integers(1, 64)
)
def test_new_dop_moves_whole_groups(keys: list[str], before: int, after: int) -> None:
    moves: dict[int, set[tuple[int, int]]] = {}
    for key in keys:
        move = partition(key, 64, before), partition(key, 64, after)
        moves.setdefault(key_group(key, 64), set()).add(move)
    assert all(len(group) == 1 for group in moves.values())
