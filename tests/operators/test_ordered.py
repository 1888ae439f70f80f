"""Values that are kept in order: how often they are compared, however many there are."""

import math
import random
from typing import Any, ClassVar

import pytest

import floodway as fw
from floodway.operators.aggregates.ordered import Member, Ordered
from floodway.operators.table_aggregate import TableAggregate
from floodway.operators.tallies import Tallies

MANY, FEWER = 100_000, 5_000


class Counting:
    """A number that counts how often it is compared."""

    compared: ClassVar[int] = 0

    def __init__(self, number: int) -> None:
        self.number = number

    def __lt__(self, other: "Counting") -> bool:
        Counting.compared += 1
        return self.number < other.number

    def __eq__(self, other: object) -> bool:
        Counting.compared += 1
        return isinstance(other, Counting) and self.number == other.number

    def __hash__(self) -> int:
        return hash(self.number)

    def __repr__(self) -> str:
        return f"Counting({self.number})"


AGGREGATES = {"min": fw.min(Counting), "max": fw.max(Counting), "top": fw.top(3, Counting)}


def tallies(aggregate: str) -> Tallies:
    """Return what keeps the groups of a table, of which there is one."""
    flow = fw.Flow("ordered")
    numbers = flow.table("numbers", schema=int, key=str)
    numbers.group_by("1 AS all").agg(found=AGGREGATES[aggregate], name="op")
    operator = next(op for op in flow.operators if isinstance(op, TableAggregate))
    return Tallies(operator.function.retractable())


def change(of: Tallies, *steps: tuple[int, int]) -> Any:
    """Let numbers join (1) and leave (-1), and return what the group comes to."""
    lift = of.function.lift
    return of.change(None, 1, 0, [(sign, lift(0, "", n), "") for sign, n in steps])[1]


def filled(aggregate: str, numbers: list[int]) -> Tallies:
    found = tallies(aggregate)
    change(found, *((1, number) for number in numbers))
    return found


def loaded(aggregate: str, stored: Tallies) -> Tallies:
    """Return tallies that go on from the rows of others."""
    found = tallies(aggregate)
    for name in ("groups", "members"):
        for namespace, space in getattr(stored, name).items():
            target = getattr(found, name).space(namespace)
            for key, row in space.everything():
                target.load(key, row)
                found.loaded(f"_tallies.{name}", namespace, key, row)
    found.all_loaded()
    return found


def shuffled(count: int) -> list[int]:
    return random.Random(1).sample(range(count), count)


def member(number: int) -> Member:
    return (Counting(number), str(number), None, number, number)


def test_correction_compares_a_value_with_few_others() -> None:
    kept = Ordered()
    kept.extend(map(member, range(MANY)))
    most = 0
    for number in random.Random(2).sample(range(MANY), 300):
        Counting.compared = 0
        found = kept.find(*member(number)[:3])
        assert found is not None
        kept.remove(found)
        kept.add(member(number))
        most = max(most, Counting.compared)
    assert 0 < most <= 10 * math.log2(MANY)
    assert [value for _, _, value in kept] == list(range(MANY))


@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_correction_of_a_group_compares_a_value_with_few_others(aggregate: str) -> None:
    kept = filled(aggregate, shuffled(FEWER))
    Counting.compared = 0
    for number in range(0, FEWER, 100):
        change(kept, (-1, number), (1, number))
    assert 0 < Counting.compared <= 10 * math.log2(FEWER) * FEWER / 100


@pytest.mark.parametrize("aggregate", AGGREGATES)
@pytest.mark.parametrize(
    ("numbers", "each"),
    [(list(range(FEWER)), 4.0), (shuffled(FEWER), 2.5 * math.log2(FEWER))],
    ids=["in order", "in no order"],
)
def test_large_group_that_was_stored_is_sorted_once(
    aggregate: str, numbers: list[int], each: float
) -> None:
    """Values that came in their order, or nearly so, are only compared with their neighbours."""
    kept = filled(aggregate, numbers)
    Counting.compared = 0
    again = loaded(aggregate, kept)
    change(again, (-1, 7), (1, FEWER))
    assert 0 < Counting.compared <= each * FEWER
    assert change(again, (-1, FEWER), (1, 7)).found == change(kept, (-1, 7), (1, 7)).found
