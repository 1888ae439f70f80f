"""What an operator says of itself, so that nobody has to know operators by name.

Whoever plans, stores or divides work asks for these facts and never for the class of an operator.
No fact has a default: who writes a new operator has to answer every question, and a wrong guess
cannot hide in the place that asks.
"""

from typing import Any, Literal

import msgspec

from floodway.operators.emit import Emit
from floodway.operators.lag import Held
from floodway.operators.windows import Windows

Keys = Literal["gathered", "kept", "scattered"]
"""Where what an operator sends about one key comes from: from the one task that the key belongs to,
whatever came in (``gathered``); from the task that its records were in (``kept``); from any."""

Away = Literal["yes", "with a copy", "no"]
"""Where an operator's work can be done besides the task that owns it: anywhere as long as it
remembers nothing, or anywhere that has a copy of the table it looks into, or nowhere else."""


JoinKind = Literal["streams", "lookup", "tables"]
"""What an inner join joins."""

Host = Literal["task", "driver"]
"""Where an operator runs: in tasks, or in the process that starts the flow."""


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What there is to know of an operator without running it.

    Attributes
    ----------
    keys
        Where what it sends about one key comes from.
    windows
        The windows of its table's rows, if it puts them into windows itself.
    keeps_windows
        Whether its table's rows are those of its first input, in the windows of that.
    reads_versions
        The inputs of which it looks into former versions.
    versionable
        Whether its table can keep versions: not where rows themselves change their place.
    away
        Whether its work can be done elsewhere.
    chained
        Whether its work is written into the generated loop of a chain (`Stateless`), so that it
        needs no kernel of its own there.
    held
        How long results are held back on purpose, if they are. Operators after it live in the past
        then, or they would take them for late.
    emit
        The strategy by which it subscribes to the table that it reads; None for no subscription:
        who reads a table without one sees every update.
    joins
        What it joins, if a record that finds no partner gives nothing; None for all others.
    host
        Where it runs.
    most
        How many tasks can share its work at the most, and why; None if it allows any number.
    """

    keys: Keys
    windows: Windows | None
    keeps_windows: bool
    reads_versions: frozenset[int]
    versionable: bool
    away: Away
    chained: bool
    held: Held | None
    emit: Emit | None
    joins: JoinKind | None
    host: Host
    most: tuple[int, str] | None


class State(msgspec.Struct, frozen=True, kw_only=True):
    """What an operator remembers, as far as another program has to agree to go on with it.

    Attributes
    ----------
    kernel
        The class of kernel that remembers it.
    layout
        What rows are made of, if that is not what it was at first; see `Kernel.layout`.
    versions
        Whether there is more of it where versions are asked for.
    inputs
        What of the inputs is in it: nothing, which ones there are, or their keys and values.
    """

    kernel: type[Any]
    layout: str
    versions: bool
    inputs: Literal["nothing", "names", "rows"]


def passing(
    *, keys: Keys, away: Away, held: Held | None, emit: Emit | None, joins: JoinKind | None
) -> Facts:
    """Return the facts of an operator that makes no table and reads no versions."""
    return Facts(
        keys=keys,
        windows=None,
        keeps_windows=False,
        reads_versions=frozenset(),
        versionable=False,
        away=away,
        chained=False,
        held=held,
        emit=emit,
        joins=joins,
        host="task",
        most=None,
    )


def in_chain(*, keys: Keys) -> Facts:
    """Return the facts of an operator that looks at one record at a time and remembers nothing."""
    facts = passing(keys=keys, away="yes", held=None, emit=None, joins=None)
    return msgspec.structs.replace(facts, chained=True)


def of_table(
    *,
    keys: Keys,
    windows: Windows | None,
    keeps_windows: bool,
    away: Away,
    joins: JoinKind | None,
) -> Facts:
    """Return the facts of an operator that makes a table which can keep versions.

    Updates of a table are never held back: who wants that subscribes to it.
    """
    return Facts(
        keys=keys,
        windows=windows,
        keeps_windows=keeps_windows,
        reads_versions=frozenset(),
        versionable=True,
        away=away,
        chained=False,
        held=None,
        emit=None,
        joins=joins,
        host="task",
        most=None,
    )


def connected(facts: Facts, connector: Any) -> Facts:
    """Return the facts of an operator with a connector: that says where it runs, and how often."""
    host: Host = getattr(connector, "place", "task")
    allowed: int | None = getattr(connector, "most", None)
    most = None if allowed is None else (allowed, f"{type(connector).__name__} allows {allowed}")
    if host == "driver":
        most = 1, "it runs in the process that starts the flow"
    return msgspec.structs.replace(facts, host=host, most=most)
