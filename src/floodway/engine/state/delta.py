"""What has changed in an epoch, as bytes; and several such parts as one.

A part has scalars, dropped namespaces and rows. Rows come in blocks of some thousands, each pickled
at once: few calls, and whoever reads a part has one block in memory at a time and gives other
threads a chance in between. Dropping comes before the rows of the same part.

Parts are gone through from the newest to the oldest. What a newer part says about a row holds, and
what it dropped is gone, so each surviving row is met once and can be put where it belongs at once.
"""

import struct
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from floodway.engine.state.pickling import Pickling, unreadable
from floodway.operators.keyed import GONE

MAGIC = b"FWST"
VERSION = 1
BLOCK_ROWS = 4096

_HEAD = struct.Struct("<4sHI")
_LENGTHS = struct.Struct("<HI")

StoredRows = dict[Any, Any]

Compartment = tuple[str, str, Any]
"""Where rows belong: operator, space, namespace (None in a space without namespaces)."""


class Parts(Sequence[bytes]):
    """Parts, the oldest first, each of which is read when it is asked for.

    Attributes
    ----------
    total
        How many bytes they have together.
    """

    total: int


class PartWriter:
    """Makes a part, operator by operator."""

    def __init__(self, pickling: Pickling) -> None:
        self._pickling = pickling
        self._scalars: dict[str, bytes] = {}
        self._drops: list[Compartment] = []
        self._operator = ""
        self._waiting: list[tuple[str, Any, StoredRows]] = []
        self._count = 0
        self._blocks: list[bytes] = []

    def scalars(self, operator: str, scalars: Mapping[str, Any]) -> None:
        """Add the scalars of an operator."""
        self._scalars[operator] = self._pickling.dumps(dict(scalars))

    def pickled_scalars(self, operator: str, scalars: bytes) -> None:
        """Add the scalars of an operator, as another part has them."""
        self._scalars[operator] = scalars

    def drop(self, place: Compartment) -> None:
        """Say that a namespace was dropped, before the rows that are added for it."""
        self._drops.append(place)

    def rows(self, place: Compartment, rows: StoredRows) -> None:
        """Add rows; they must stay as they are until `flush` is called."""
        if len(rows) <= BLOCK_ROWS:
            if rows:
                self._add(place, rows)
        else:
            self.stream(place, iter(rows.items()))

    def stream(self, place: Compartment, rows: Iterator[tuple[Any, Any]]) -> None:
        """Add rows one after another, so that they need not all be in memory."""
        while block := dict(islice(rows, BLOCK_ROWS)):
            self._add(place, block)

    def _add(self, place: Compartment, rows: StoredRows) -> None:
        operator, space, namespace = place
        if operator != self._operator or self._count + len(rows) > BLOCK_ROWS:
            self.flush()
        self._operator = operator
        self._waiting.append((space, namespace, rows))
        self._count += len(rows)

    def flush(self) -> None:
        """Make bytes of the rows added so far."""
        if self._waiting:
            self._blocks.append(_block(self._operator, self._pickling.dumps(self._waiting)))
            self._waiting, self._count = [], 0

    def finish(self) -> bytes:
        """Return the part."""
        self.flush()
        first = _block("", self._pickling.dumps((self._scalars, self._drops)))
        head = _HEAD.pack(MAGIC, VERSION, 1 + len(self._blocks))
        return b"".join((head, first, *self._blocks))


class Part:
    """A part that is read: its scalars and drops now, its rows block by block.

    Attributes
    ----------
    scalars
        The scalars of each operator, pickled.
    drops
        The namespaces that were dropped.
    """

    def __init__(self, data: bytes, pickling: Pickling) -> None:
        self._pickling = pickling
        (_, first), *self._blocks = _blocks(data)
        self.scalars: dict[str, bytes]
        self.drops: list[Compartment]
        self.scalars, self.drops = pickling.loads(first)

    def rows(
        self,
        operators: Container[str] | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> Iterator[tuple[Compartment, StoredRows]]:
        """Go through places and their rows, of some operators or all.

        Blocks of other operators are not looked into: nobody may know their classes any more.
        `progress` is told how many bytes each block has.
        """
        for operator, block in self._blocks:
            if operators is None or operator in operators:
                for space, namespace, rows in self._pickling.loads(block):
                    yield (operator, space, namespace), rows
            if progress is not None:
                progress(len(block))


def _block(operator: str, content: bytes) -> bytes:
    name = operator.encode()
    return b"".join((_LENGTHS.pack(len(name), len(content)), name, content))


def _blocks(data: bytes) -> list[tuple[str, memoryview]]:
    """Return operator and content of each block; raise CorruptError if they are not all there."""
    view = memoryview(data)
    try:
        magic, version, count = _HEAD.unpack_from(view)
        if (magic, version) != (MAGIC, VERSION):
            raise unreadable("it does not begin as a part of the state does")
        blocks, offset = [], _HEAD.size
        while offset < len(data):
            name, content = _LENGTHS.unpack_from(view, offset)
            start = offset + _LENGTHS.size
            offset = start + name + content
            operator = str(view[start : start + name], "utf-8")
            blocks.append((operator, view[start + name : offset]))
    except (struct.error, UnicodeDecodeError) as error:
        raise unreadable(str(error)) from None
    if offset != len(data) or len(blocks) != count or not blocks:
        raise unreadable("it does not end where it should")
    return blocks


class Survivors:
    """Goes through parts from the newest to the oldest and lets through what holds.

    Attributes
    ----------
    scalars
        The newest scalars of each operator in the parts gone through so far, pickled.
    drops
        All namespaces that were dropped in the parts gone through so far.
    """

    def __init__(self) -> None:
        self.scalars: dict[str, bytes] = {}
        self.drops: dict[Compartment, None] = {}  # in order: the same parts give the same bytes
        self._seen: dict[Compartment, set[Any]] = {}

    def of(
        self,
        part: Part,
        *,
        oldest: bool = False,
        operators: Container[str] | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> Iterator[tuple[Compartment, StoredRows]]:
        """Go through the rows of the next older part that hold, `GONE` among them.

        What the oldest part says need not be remembered.
        """
        for place, rows in part.rows(operators, progress):
            if place in self.drops:
                continue
            seen = self._seen.get(place)
            fresh = {k: v for k, v in rows.items() if k not in seen} if seen else rows
            if not oldest:
                self._seen.setdefault(place, set()).update(rows)
            yield place, fresh
        self.drops.update(dict.fromkeys(part.drops))
        self.scalars = {**part.scalars, **self.scalars}


def merged(
    older: Sequence[bytes],
    newest: bytes,
    pickling: Pickling,
    *,
    base: bool,
    operators: Container[str] | None = None,
) -> bytes:
    """Return one part that says what several say; `older` has the oldest first.

    With `base` there is nothing before them, and nothing has to be said about what is gone. If
    `operators` are given, nothing is said about others.
    """
    survivors, writer = Survivors(), PartWriter(pickling)
    for left in range(len(older), -1, -1):
        # One at a time: a sequence may read its parts when it is asked for them.
        part = Part(newest if left == len(older) else older[left], pickling)
        for place, rows in survivors.of(part, oldest=left == 0, operators=operators):
            writer.rows(place, alive(rows) if base else rows)
    for operator, scalars in survivors.scalars.items():
        if operators is None or operator in operators:
            writer.pickled_scalars(operator, scalars)
    if not base:
        for place in survivors.drops:
            writer.drop(place)
    return writer.finish()


def alive(rows: StoredRows) -> StoredRows:
    """Return the rows that are not gone."""
    return {key: row for key, row in rows.items() if row is not GONE}
