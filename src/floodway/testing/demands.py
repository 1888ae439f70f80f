"""How checks of connectors compare what they find with what they expect, and say what is wrong."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

PAUSE_S = 0.002
"""How long to wait before looking again."""


def demand(kept: object, otherwise: str) -> None:
    """Raise an `AssertionError` unless something holds."""
    # Not an assert statement, which ``python -O`` would leave out.
    if not kept:
        raise AssertionError(otherwise)


def pickled(connector: Any) -> Any:
    """Return the description as it arrives in a task."""
    from pyspark import cloudpickle

    return cloudpickle.loads(cloudpickle.dumps(connector))  # type: ignore[no-untyped-call]


def same(values: Sequence[Any], others: Sequence[Any]) -> bool:
    """Return whether values are the same, in the same order."""
    # Not ==, since NaN is not equal to itself and 1 is equal to True.
    return list(map(repr, values)) == list(map(repr, others))


def count(values: Sequence[Any]) -> Counter[str]:
    """Return how often each value is there."""
    return Counter(map(repr, values))


def in_order(values: Sequence[Any], expected: Sequence[Any]) -> bool:
    """Return whether values are some of the expected ones, in their order."""
    rest = iter(map(repr, expected))
    return all(value in rest for value in map(repr, values))


def difference(values: Sequence[Any], expected: Sequence[Any]) -> str:
    """Return in what values differ from the expected ones, in words."""
    extra, missing = count(values) - count(expected), count(expected) - count(values)
    if not extra and not missing:
        return "the order differs"
    return f"missing {_few(missing)}, too many {_few(extra)}"


def _few(values: Counter[str]) -> str:
    shown = [value[:80] for value in list(values)[:3]]
    return ", ".join(shown) + (" ..." if len(values) > len(shown) else "") if shown else "nothing"


def arrives(
    read_back: Callable[[], Sequence[Any]], expected: Sequence[Any], deadline_s: float
) -> None:
    """Wait until what is there is what is expected, and no more."""
    give_up = time.monotonic() + deadline_s
    while not same(there := list(read_back()), expected):
        demand(
            time.monotonic() < give_up and len(there) <= len(expected),
            f"what is there is not what was written: {difference(there, expected)}",
        )
        time.sleep(PAUSE_S)
