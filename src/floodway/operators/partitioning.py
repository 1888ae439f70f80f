"""Partitioning: which task of the next stage a message goes to.

Each operator says of each of its inputs what it needs (thesis, section 2.2.2). An operator that
looks at one record at a time needs nothing: it takes what the task before it has (*forward*), and
that is what lets the two be fused. One that keeps state per key needs all messages of a key in one
place (*hash*).
"""

import msgspec

from floodway.operators.code import Snippet


class Forward(msgspec.Struct, frozen=True):
    """Task i to task i; where the numbers of tasks differ, as `Random`."""

    def __str__(self) -> str:
        return "forward"


class Random(msgspec.Struct, frozen=True):
    """Batches go to the tasks in turn."""

    def __str__(self) -> str:
        return "random"


class Broadcast(msgspec.Struct, frozen=True):
    """Every message goes to every task."""

    def __str__(self) -> str:
        return "broadcast"


class Single(msgspec.Struct, frozen=True):
    """Everything goes to one task, because the operator needs to see all of it."""

    def __str__(self) -> str:
        return "single"


class Hash(msgspec.Struct, frozen=True):
    """Messages with the same key stay together, or with the group that `by` computes."""

    by: tuple[Snippet, ...] = ()

    def __str__(self) -> str:
        return f"hash({', '.join(part.text for part in self.by) or 'key'})"


class ById(msgspec.Struct, frozen=True):
    """Updates of one record stay together, and so in order, but records go anywhere."""

    def __str__(self) -> str:
        return "by id"


class Range(msgspec.Struct, frozen=True):
    """Messages are spread by where a value lies between `bounds`: below the first, and so on."""

    by: Snippet
    bounds: tuple[float | int | str, ...]

    def __str__(self) -> str:
        return f"range({self.by.text}; {', '.join(map(str, self.bounds))})"


Partitioning = Forward | Random | Broadcast | Single | Hash | ById | Range

FORWARD = Forward()
BY_KEY = Hash()
