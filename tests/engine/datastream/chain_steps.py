"""The steps that chains are made of: how each is written, and what it makes of one record."""

from collections.abc import Callable
from functools import partial
from typing import Any

from floodway import Stream

Fact = tuple[int, Any, int]


def failing_filter(n: int, value: int) -> bool:
    return 12 // (value - n) > 0


def failing_map(n: int, value: int) -> int:
    return 60 // (value - n)


def several(n: int, value: int) -> list[int]:
    return [value + i for i in range(abs(value) % (n + 1))]


def failing_several(n: int, value: int) -> list[int]:
    return [value, 10 // (value - n)]


def seen(n: int, value: int) -> None:
    if value == n:
        raise ValueError("seen enough")


def filtered(function: Callable[[int, int], bool], n: int, fact: Fact) -> list[Fact]:
    return [fact] if function(n, fact[2]) else []


Step = tuple[Callable[..., Stream], Callable[[int, Fact], list[Fact]]]
STEPS: dict[str, Step] = {
    "filter": (
        lambda s, n, **o: s.filter(f"value > {n}", **o),
        lambda n, f: [f] if f[2] > n else [],
    ),
    "failing_filter": (
        lambda s, n, **o: s.filter(partial(failing_filter, n), **o),
        partial(filtered, failing_filter),
    ),
    "map": (
        lambda s, n, **o: s.map(f"value * 2 - {n}", **o),
        lambda n, f: [(f[0], f[1], f[2] * 2 - n)],
    ),
    "failing_map": (
        lambda s, n, **o: s.map(partial(failing_map, n), schema=int, **o),
        lambda n, f: [(f[0], f[1], failing_map(n, f[2]))],
    ),
    "flat_map": (
        lambda s, n, **o: s.flat_map(partial(several, n), schema=int, **o),
        lambda n, f: [(f[0], f[1], v) for v in several(n, f[2])],
    ),
    "failing_flat_map": (
        lambda s, n, **o: s.flat_map(partial(failing_several, n), schema=int, **o),
        lambda n, f: [(f[0], f[1], v) for v in failing_several(n, f[2])],
    ),
    "key_by": (
        lambda s, n, **o: s.key_by(partial(failing_map, n), **o),
        lambda n, f: [(f[0], failing_map(n, f[2]), f[2])],
    ),
    "key_by_expression": (
        lambda s, n, **o: s.key_by(f"value % {n + 1} AS rest", **o),
        # Spark's % has the sign of the dividend.
        lambda n, f: [(f[0], abs(f[2]) % (n + 1) * (1 if f[2] >= 0 else -1), f[2])],
    ),
    "peek": (
        lambda s, n, **o: s.peek(partial(seen, n), **o),
        lambda n, f: [(f[0], f[1], f[2])] if seen(n, f[2]) is None else [],
    ),
}
