"""Hypothesis strategies for streams and changelogs: disorder, lateness, skew, bursts, duplicates.

A property of a flow should hold for every stream, and above all for awkward ones. The strategies
make plain data, so that the same examples can be pushed into a driver and handed to an oracle.
Everything shrinks towards few records, small timestamps, no disorder, the first key::

    from hypothesis import given, strategies as st
    from floodway.testing.strategies import arrivals, streams


    @given(st.data(), streams(st.integers(), max_time=50))
    def test_order_does_not_matter(data, stream):
        assert totals(stream) == totals(data.draw(arrivals(stream)))

Needs the extra ``floodway[testing]``.
"""

from collections.abc import Sequence
from typing import Any, TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

T = TypeVar("T")
K = TypeVar("K")

TimedValue = tuple[int, T]
"""A record: timestamp and value."""

TableUpdate = tuple[int, K, T | None]
"""A table's update: timestamp, key and value; None deletes."""

_ONCE, _TWICE, _BURST = "once", "twice", "burst"
"""How a record comes: alone, with a duplicate, or at the timestamp of the one before it."""


def records(
    values: SearchStrategy[T], *, max_time: int = 100, nulls: bool = False
) -> SearchStrategy[TimedValue[T | None]]:
    """Return a strategy for single records, ``(timestamp, value)``.

    Parameters
    ----------
    values
        What the values are.
    max_time
        The largest timestamp, in milliseconds.
    nulls
        Whether a value may also be None.

    Examples
    --------
    >>> from hypothesis import given, strategies as st
    >>> @given(records(st.sampled_from("ab"), max_time=9))
    ... def check(record):
    ...     timestamp, value = record
    ...     assert 0 <= timestamp <= 9 and value in "ab"
    >>> check()
    """
    return st.tuples(_times(max_time), _nullable(values, nulls=nulls))


def streams(
    values: SearchStrategy[T],
    *,
    max_time: int = 100,
    min_size: int = 0,
    max_size: int = 25,
    lateness: int | None = None,
    nulls: bool = False,
    duplicates: bool = True,
    bursts: bool = True,
) -> SearchStrategy[list[TimedValue[T | None]]]:
    """Return a strategy for streams: lists of ``(timestamp, value)`` in order of arrival.

    Parameters
    ----------
    values
        What the values are.
    max_time
        The largest timestamp, in milliseconds.
    min_size, max_size
        How many records; an empty stream is allowed unless `min_size` says otherwise.
    lateness
        How far a record may lie behind the largest timestamp before it: 0 gives ordered streams,
        None any disorder.
    nulls
        Whether values may also be None.
    duplicates
        Whether a record may come several times, with the same timestamp and value.
    bursts
        Whether several values may come at one timestamp, next to each other.

    Examples
    --------
    >>> from hypothesis import given, strategies as st
    >>> @given(streams(st.integers(), max_time=50, lateness=5))
    ... def check(stream):
    ...     latest = 0
    ...     for timestamp, _ in stream:
    ...         assert timestamp >= latest - 5
    ...         latest = max(latest, timestamp)
    >>> check()
    """
    shapes = [_ONCE] * 6 + [_TWICE] * duplicates + [_BURST] * 2 * bursts
    steps = st.tuples(
        _times(max_time) if lateness is None else st.integers(0, max(1, max_time // 5)),
        _nullable(values, nulls=nulls),
        st.sampled_from(shapes),
        st.integers(0, lateness or 0),
    )
    drawn = st.lists(steps, min_size=min_size, max_size=max_size)
    return drawn.map(lambda steps: _stream(steps, max_time, max_size, ordered=lateness is not None))


def skewed(keys: Sequence[K]) -> SearchStrategy[K]:
    """Return a strategy that draws the first key often, the second half as often, and so on.

    The hot key of a Zipf-like distribution finds what an even spread does not: one group that
    fills while others stay almost empty.

    Examples
    --------
    >>> from hypothesis import given
    >>> @given(skewed(["hot", "warm", "cold"]))
    ... def check(key):
    ...     assert key in ("hot", "warm", "cold")
    >>> check()
    """
    weighted = [key for rank, key in enumerate(keys) for _ in range(len(keys) // (rank + 1))]
    return st.sampled_from(weighted)


def changelogs(
    keys: SearchStrategy[K],
    values: SearchStrategy[T],
    *,
    max_time: int = 100,
    min_size: int = 0,
    max_size: int = 20,
    lateness: int | None = None,
    deletes: bool = True,
) -> SearchStrategy[list[TableUpdate[K, T]]]:
    """Return a strategy for a table's updates, ``(timestamp, key, value)``, in order of arrival.

    Updates come out of order, several at one timestamp, and to one key and timestamp twice.

    Parameters
    ----------
    keys, values
        What the keys and values are; few keys make many updates of each.
    max_time, min_size, max_size, lateness
        As for `streams`.
    deletes
        Whether rows are deleted too: updates with the value None.

    Examples
    --------
    >>> from hypothesis import given, strategies as st
    >>> @given(changelogs(skewed("ab"), st.integers(), max_time=9))
    ... def check(updates):
    ...     for timestamp, key, value in updates:
    ...         assert 0 <= timestamp <= 9 and key in "ab"
    >>> check()
    """
    pairs = st.tuples(keys, _nullable(values, nulls=deletes))
    drawn = streams(
        pairs, max_time=max_time, min_size=min_size, max_size=max_size, lateness=lateness
    )
    return drawn.map(lambda stream: [(time, *pair) for time, pair in stream if pair is not None])


def arrivals(stream: Sequence[T]) -> SearchStrategy[list[T]]:
    """Return a strategy for the orders in which the records of a stream may arrive.

    Shrinks towards the order of `stream`.

    Examples
    --------
    >>> from hypothesis import given
    >>> @given(arrivals([(1, "a"), (2, "b"), (2, "b")]))
    ... def check(arrived):
    ...     assert sorted(arrived) == [(1, "a"), (2, "b"), (2, "b")]
    >>> check()
    """
    return st.permutations(list(stream))


def interleavings(*streams: Sequence[Any]) -> SearchStrategy[list[tuple[int, Any]]]:
    """Return a strategy for the ways in which several sources may take turns.

    Each example is a list of ``(index of the stream, record)``; the records of one stream keep
    their order. Shrinks towards one stream after the other.

    Examples
    --------
    >>> from hypothesis import given
    >>> @given(interleavings("ab", "xy"))
    ... def check(turns):
    ...     assert [record for source, record in turns if source == 0] == ["a", "b"]
    ...     assert [record for source, record in turns if source == 1] == ["x", "y"]
    >>> check()
    """
    turns = [index for index, stream in enumerate(streams) for _ in stream]

    def deal(order: list[int]) -> list[tuple[int, Any]]:
        rest = [iter(stream) for stream in streams]
        return [(index, next(rest[index])) for index in order]

    return st.permutations(turns).map(deal)


def cuts(stream: Sequence[T]) -> SearchStrategy[list[list[T]]]:
    """Return a strategy for the ways to cut a stream into pushes, none of them empty.

    Shrinks towards one push of everything.

    Examples
    --------
    >>> from hypothesis import given
    >>> @given(cuts([1, 2, 3, 4]))
    ... def check(pushes):
    ...     assert [record for push in pushes for record in push] == [1, 2, 3, 4]
    ...     assert all(pushes)
    >>> check()
    """
    # One bit for each place between two records: drawn and shrunk as a whole.
    places = max(len(stream) - 1, 0)
    return st.integers(0, 2**places - 1).map(lambda bits: _cut(stream, bits))


def _times(max_time: int) -> SearchStrategy[int]:
    return st.integers(0, max_time)


def _nullable(values: SearchStrategy[T], *, nulls: bool) -> SearchStrategy[T | None]:
    return st.one_of(values, st.none()) if nulls else values


def _stream(
    steps: list[tuple[int, T, str, int]], max_time: int, size: int, *, ordered: bool
) -> list[TimedValue[T]]:
    """Return the records that steps describe: a time or, if ordered, an advance and a delay."""
    clock, stream = 0, list[TimedValue[T]]()
    for time, value, shape, delay in steps:
        clock = min(clock + time, max_time) if ordered else time
        timestamp = max(clock - delay, 0)
        if shape == _BURST and stream:
            clock, timestamp = clock if ordered else stream[-1][0], stream[-1][0]
        stream += [(timestamp, value)] * (2 if shape == _TWICE else 1)
    return stream[:size]


def _cut(stream: Sequence[T], bits: int) -> list[list[T]]:
    pushes: list[list[T]] = [[record] for record in stream[:1]]
    for place, record in enumerate(stream[1:]):
        if bits >> place & 1:
            pushes.append([record])
        else:
            pushes[-1].append(record)
    return pushes
