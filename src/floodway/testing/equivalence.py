"""When two streams, or two tables, say the same (thesis, definitions 60, 66 and 70)."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from floodway.connectors.list_items import Emitted


def latest(records: Iterable[Emitted]) -> list[Emitted]:
    """Return a stream with updates as facts: without what was replaced or taken back later.

    >>> latest([Emitted(1, "a", "x", 0), Emitted(2, "a", "y", 0), Emitted(3, "b", None, 1)])
    [Emitted(timestamp=2, key='a', value='y', id=0)]
    """
    facts = [record for record in records if record.id is None]
    by_id = {record.id: record for record in records if record.id is not None}
    return facts + [record for record in by_id.values() if record.value is not None]


def equivalent(one: Iterable[Emitted], other: Iterable[Emitted]) -> bool:
    """Return whether two streams have the same facts, each the same number of times, in any order.

    >>> a, b = Emitted(1, None, "x"), Emitted(2, None, "y")
    >>> equivalent([a, b], [b, a]), equivalent([a, b], [a])
    (True, False)
    """
    return _bag(latest(one)) == _bag(latest(other))


def fold(changes: Iterable[Emitted]) -> dict[Any, Any]:
    """Return the table that a changelog describes: the latest value of each key and window.

    >>> from floodway import Change
    >>> fold(
    ...     [Emitted(1, "a", Change("a", None, 1, None)), Emitted(2, "a", Change("a", None, 2, 1))]
    ... )
    {'a': 2}
    """
    rows: dict[Any, tuple[int, Any]] = {}
    for record in changes:
        change = record.value
        key = change.key if change.window is None else (change.key, change.window)
        # An update of an older version does not touch the latest one.
        if key not in rows or record.timestamp >= rows[key][0]:
            rows[key] = (record.timestamp, change.value)
    return {key: value for key, (_, value) in rows.items() if value is not None}


def _bag(records: Iterable[Emitted]) -> Counter[tuple[int, str]]:
    return Counter((record.timestamp, repr(record.value)) for record in records)
