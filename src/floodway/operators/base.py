"""What every operator has: a frozen description, and a kernel made from it.

A description says *what*: name, place, inputs, and for each output port the kind of messages, the
schema of their values and the key. A kernel says *how*: plain Python, no I/O, no clock. An engine
makes one kernel per partition, hands it rows, and takes what it wrote to its outputs.

Three kinds of messages travel between operators, fixed for each port when the flow is built:

``records``
    Facts: ``(timestamp, key, value)``.
``revisions``
    A stream with updates (thesis, definition 70): ``(id, old, new)``, where ``old`` and ``new``
    are facts or None. ``new`` replaces what was sent before under the same ``id``.
``changes``
    Updates of an evolving table (definition 58): ``(timestamp, key, new, old, until)``: over the
    versions from ``timestamp`` up to, not including, ``until`` (None: for good) the value of
    ``key`` was ``old`` and is ``new``; None means there is no row.
"""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import msgspec

from floodway.core.place import Place
from floodway.core.schema import Schema
from floodway.core.types import Field
from floodway.operators.code import CodeWriter
from floodway.operators.facts import Facts, State
from floodway.operators.keyed import Space, Windowed
from floodway.operators.lag import Lag
from floodway.operators.partials import Combines, Partial
from floodway.operators.partitioning import Partitioning

if TYPE_CHECKING:
    from floodway.operators.on_error import ErrorHandler

Kind = Literal["records", "revisions", "changes"]
Fact = tuple[int, Any, Any]
Revision = tuple[Any, Fact | None, Fact | None]
RowChange = tuple[int, Any, Any, Any, int | None]

MAIN = "main"
LATE = "late"
DEAD = "dead_letters"

Outputs = Mapping[str, list[Any]]
"""Where a kernel writes: one list per output port, emptied by whoever runs the kernel."""


class Key(msgspec.Struct, frozen=True):
    """What a stream or table is keyed by: one column, or several as a tuple."""

    fields: tuple[Field, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the key columns."""
        return tuple(field.name for field in self.fields)

    def sources(self, key: str = "k") -> tuple[str, ...]:
        """Return the Python source of each key column, given the source of the key."""
        if len(self.fields) == 1:
            return (key,)
        return tuple(f"{key}[{i}]" for i in range(len(self.fields)))

    def __str__(self) -> str:
        return ", ".join(self.names)


class Output(msgspec.Struct, frozen=True):
    """What leaves an operator through one port."""

    kind: Kind
    schema: Schema
    key: Key | None = None


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class Operator:
    """The description of a node of the flow.

    Operators compare by identity: two filters with the same text are still two operators.
    """

    name: str
    place: Place
    inputs: tuple["Edge", ...]
    outputs: Mapping[str, Output]

    @property
    def label(self) -> str:
        """The operator's kind in words, for people: ``filter``, ``stream_join``."""
        name = type(self).__name__
        return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")

    @property
    def facts(self) -> Facts:
        """What there is to know of the operator without running it."""
        raise TypeError(f"{self.label} states no facts")  # pragma: no cover - a test of the house

    def state(self, *, versioned: bool = False) -> State | None:
        """Return what its kernel remembers between records; None for nothing.

        `versioned` as for `kernel`.
        """
        raise TypeError(f"{self.label} does not say what it remembers")  # pragma: no cover

    @property
    def counted_as(self) -> str | None:
        """What the flow calls operators like this one, and counts, if nobody has named them."""
        return None

    def details(self) -> Mapping[str, str]:
        """Return what `explain` shows beside the name."""
        return {}

    def partitioning(self, port: int) -> Partitioning:
        """Return how messages of input number `port` must be spread over this operator's tasks."""
        raise TypeError(f"{self.label} does not say where its input goes")  # pragma: no cover

    def combinable(self, consumers: "Consumers", *, versioned: bool) -> bool:
        """Return whether nobody can tell if it got records, or partials of them.

        `consumers` says who reads what in the flow. Those that can be given partials make a
        `combiner`, and their kernel can `merge`.
        """
        return False

    def combiner(self, lag: Lag, consumers: "Consumers") -> Combines:
        """Return what makes partials of its records, wherever they are."""
        raise TypeError(f"{self.label} takes no partials")  # pragma: no cover

    def combine_first(
        self, kernel: "Kernel", lag: Lag, consumers: "Consumers", *, versioned: bool
    ) -> None:
        """Let its kernel combine records that come together, if nobody can tell and it pays."""

    def kernel(self, outputs: Outputs, *, versioned: bool = False) -> "Kernel":
        """Return a new kernel that writes to `outputs`.

        `versioned` tells an operator that makes a table whether anything asks for its versions.
        """
        raise TypeError(f"{self.label} has no kernel")  # pragma: no cover - structural nodes only


class Edge(msgspec.Struct, frozen=True):
    """An output port of an operator, as somebody's input."""

    operator: Operator
    port: str = MAIN

    @property
    def output(self) -> Output:
        """What comes through."""
        return self.operator.outputs[self.port]


Consumers = Mapping[Edge, tuple[tuple[Operator, int], ...]]
"""For each output port, the operators that read it and as which of their inputs."""


class Kernel:
    """An operator's logic on one partition.

    Everything a kernel remembers is plain data in the attributes that `remembers` names, so that
    whoever runs it can take a snapshot and go back to it.

    Whoever stores state as it changes takes `spaces`, of which only what has changed need be
    stored, and `scalars`, which are few. A new kernel goes on from there when each row has been put
    into its space and shown to `loaded`, and then the scalars have been given to `adopt`.

    Attributes
    ----------
    remembers
        The names of the attributes that hold all that is remembered.
    keyed
        The names of those that are spaces, or ``attribute.space`` for a space within.
    derived
        The names of those that follow from the rows: they are not stored, `loaded` makes them anew.
    layout
        What rows are made of, if that is not what it was at first: state that was stored with
        another is refused, and not misread.
    row_classes
        The classes of its own that its rows are made of: slots that hold plain data. What is stored
        has their names, so a name stays, and no two classes share one.
    duplicates
        How many records it has left out because of others that it remembers, such as duplicates:
        neither late nor failed. It is shown and not stored.
    undated, ignored
        How many records of a source came without the timestamp that their reader should have
        brought, and how many came with one into a table that is taken for static.
    handlers
        Who is told of records that fail, one for each operator that it runs.
    code
        The code that was generated for it, if any was.
    combines
        Whether it combines records that come together, so that more of them at once cost less.
    """

    remembers: ClassVar[tuple[str, ...]] = ()
    keyed: ClassVar[tuple[str, ...]] = ()
    derived: ClassVar[tuple[str, ...]] = ()
    row_classes: ClassVar[tuple[type[Any], ...]] = ()
    layout: str = ""
    duplicates: int = 0
    undated: int = 0
    ignored: int = 0
    handlers: "Sequence[ErrorHandler]" = ()
    code: CodeWriter | None = None
    combines: bool = False

    @property
    def counted(self) -> tuple[int, ...]:
        """What generated code has counted so far, besides what comes in and goes out."""
        return ()

    def snapshot(self) -> dict[str, Any]:
        """Return a copy of all that the kernel remembers."""
        return {name: copy.deepcopy(getattr(self, name)) for name in self.remembers}

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Go back to a snapshot."""
        for name, value in snapshot.items():
            setattr(self, name, copy.deepcopy(value))

    def spaces(self) -> dict[str, Space[Any, Any] | Windowed[Any, Any, Any]]:
        """Return the state per key, by name."""
        return {name: attrgetter(name)(self) for name in self.keyed}

    def forget_changes(self) -> None:
        """Nobody stores what has changed: do not remember it any longer."""
        for space in self.spaces().values():
            space.take()

    def scalars(self) -> dict[str, Any]:
        """Return all that is remembered besides state per key and what follows from it."""
        aside = {*self.derived, *(name.partition(".")[0] for name in self.keyed)}
        return {name: getattr(self, name) for name in self.remembers if name not in aside}

    def adopt(self, saved: Sequence[Mapping[str, Any]]) -> None:
        """Go on from the scalars of the kernels whose rows this one has got.

        That is one kernel or, if the work was divided otherwise before, several; they agree, or
        the largest value holds.
        """
        for name in self.scalars():
            values = [scalars[name] for scalars in saved if scalars.get(name) is not None]
            if values:
                setattr(self, name, max(values))

    def loaded(self, name: str, namespace: Any, key: Any, row: Any) -> None:
        """See that a stored row of the space `name` is back; `namespace` is None without windows.

        Rows come in any order, and the scalars after them.
        """

    def route(self, name: str, key: Any) -> Any:
        """Return the key whose key group a row of the space `name` lies with."""
        return key

    def number(self, first: int, step: int) -> None:
        """Count results from `first` in steps of `step`.

        Whoever runs several kernels of one operator makes the numbers of each its own.
        """

    def process(self, port: int, rows: Sequence[Any]) -> None:
        """Take rows from input number `port`, in their order."""
        raise TypeError(f"{type(self).__name__} takes no input")  # pragma: no cover

    def merge(self, rows: Sequence[Partial]) -> None:
        """Take partials, each of many records."""
        raise TypeError(f"{type(self).__name__} takes no partials")  # pragma: no cover

    def advance(self, stream_time: int) -> None:
        """Stream time has reached `stream_time`: close windows, forget what is too old."""

    def tick(self, now: int) -> None:
        """See that the clock shows `now` (milliseconds)."""

    def marked(self) -> None:
        """See that a mark passes: all that was read before it, anywhere, has come as far as here.

        The last to be called at a mark, after `advance` and `tick`.
        """

    def ended(self, port: int) -> None:
        """Input number `port` has ended; the others may go on."""

    def finish(self) -> None:
        """All inputs have ended: hand out what was held back."""

    def drain(self) -> None:
        """Hand out what is held back only for a while; the flow stops, the stream has not ended."""


def row_classes() -> dict[str, type[Any]]:
    """Return the classes that rows of all kernels are made of, by name."""
    found: dict[str, type[Any]] = {}
    kernels: list[type[Kernel]] = [Kernel]
    while kernels:
        kernel = kernels.pop()
        kernels += kernel.__subclasses__()
        for python in kernel.row_classes:
            if found.setdefault(python.__name__, python) is not python:
                raise TypeError(f"rows of two classes are called {python.__name__}")
    return found


class CopyKernel(Kernel):
    """A kernel that looks records up in a table, and that can do so in a copy of the table.

    Attributes
    ----------
    changes
        How often changes of the table have come.
    """

    changes: int

    @property
    def table_size(self) -> int:
        """How many keys the table has."""
        raise TypeError(f"{type(self).__name__} has no table")  # pragma: no cover

    def table_rows(self) -> list[tuple[Any, Any]]:
        """Return the table: keys and what is known of them."""
        raise TypeError(f"{type(self).__name__} has no table")  # pragma: no cover

    def replace_table(self, rows: Sequence[tuple[Any, Any]]) -> None:
        """Look into another table from now on."""
        raise TypeError(f"{type(self).__name__} has no table")  # pragma: no cover

    def look_from(self, stream_time: int | None) -> None:
        """See stream time without forgetting anything: an earlier time may follow."""
        raise TypeError(f"{type(self).__name__} has no table")  # pragma: no cover


def beyond(numbers: Sequence[int], first: int, step: int) -> int:
    """Return the first of `first`, `first` + `step`, ... that is not below any of `numbers`.

    So results are named uniquely where others went on up to `numbers`.

    >>> beyond([6], 0, 3), beyond([6, 7, 5], 1, 2), beyond([], 1, 3)
    (6, 7, 1)
    """
    behind = max([0, *(number - first for number in numbers)])
    return first + -(-behind // step) * step


class View:
    """Reads a table: the value of a key now or at a version, and all rows."""

    def lookup(self, key: Any, at: int | None = None) -> Any:
        """Return the value of `key` in the latest version, or in version `at`, or None."""
        entry = self.entry(key, at)
        return None if entry is None else entry[1]

    def entry(self, key: Any, at: int | None = None) -> tuple[int, Any] | None:
        """Return the row's timestamp and value, or None."""
        raise TypeError(f"{type(self).__name__} is not a table")  # pragma: no cover

    def rows(self, at: int | None = None) -> dict[Any, tuple[int, Any]]:
        """Return all rows: key to timestamp and value."""
        raise TypeError(f"{type(self).__name__} is not a table")  # pragma: no cover

    def modified(self) -> dict[int, set[Any]]:
        """Return the modified key set of each kept version (definition 57)."""
        raise TypeError(f"{type(self).__name__} is not a table")  # pragma: no cover


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class TableOperator(Operator):
    """An operator whose main output is a table; `versions` asks for its versions to be kept."""

    versions: bool = False

    def view(self, kernel: Kernel, inputs: Sequence[View | None]) -> View:
        """Return a view of the table kept by `kernel`, given the views of the inputs."""
        raise TypeError(f"{self.label} keeps no table")  # pragma: no cover
