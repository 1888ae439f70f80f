"""process: the low-level API, a state per key in the user's hands."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from floodway.operators.base import MAIN, Fact, Kernel, Operator, Outputs
from floodway.operators.facts import Facts, State, passing
from floodway.operators.keyed import Space
from floodway.operators.on_error import ErrorHandler, OnError
from floodway.operators.partitioning import BY_KEY, Partitioning

Init = Callable[[Any], Any]
Update = Callable[[int, Any, Any, Any], tuple[Any, Iterable[Fact]]]


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class Process(Operator):
    """Calls ``update(time, key, value, state)`` for each record of a key.

    ``init(key)`` makes the state of a key that is seen for the first time. ``update`` returns the
    new state (None forgets the key) and the records to send, each a ``(time, key, value)``.
    Records come in the order of arrival, so the result may depend on it; use event time from the
    arguments where that matters. The state must be plain data.

    Examples
    --------
    >>> from floodway import Flow
    >>> from floodway.testing import run
    >>> def update(time, word, value, count):
    ...     count += 1
    ...     return count, [(time, word, count)] if count == 3 else []
    >>> words = Flow("frequent").source("words", schema=str)
    >>> frequent = words.key_by("value").process(
    ...     init=lambda word: 0, update=update, schema=int, name="frequent"
    ... )
    >>> run(frequent, [(1, "a"), (2, "b"), (3, "a"), (4, "a")], keys=True)
    [(4, 'a', 3)]
    """

    init: Init
    update: Update
    on_error: OnError = "fail"

    @property
    def facts(self) -> Facts:
        """The function may send records of any key."""
        return passing(keys="scattered", away="no", held=None, emit=None, joins=None)

    def state(self, *, versioned: bool = False) -> State:
        """Remember a state per key."""
        return State(kernel=ProcessKernel, layout="", versions=False, inputs="nothing")

    def details(self) -> Mapping[str, str]:
        """Return the update function."""
        return {"update": getattr(self.update, "__name__", "function")}

    def partitioning(self, port: int) -> Partitioning:
        """All records of a key meet in one task."""
        return BY_KEY

    def kernel(self, outputs: Outputs, *, versioned: bool = False) -> Kernel:
        """Return a kernel that keeps the states."""
        return ProcessKernel(self, outputs)


class ProcessKernel(Kernel):
    """Keeps a state per key."""

    remembers = ("state",)
    keyed = ("state",)

    def __init__(self, operator: Process, outputs: Outputs) -> None:
        self._init, self._update = operator.init, operator.update
        self._out = outputs[MAIN]
        self.handlers = [ErrorHandler(operator, operator.on_error, outputs)]
        self.state: Space[Any, Any] = Space()

    def process(self, port: int, rows: Sequence[Fact]) -> None:
        """Update the records' states."""
        space, hot, dirty = self.state, self.state.hot, self.state.dirty
        for timestamp, key, value in rows:
            state = None
            try:
                state = hot.get(key)
                if state is None:
                    state = space.fetch(key)
                if state is None:
                    state = self._init(key)
                state, outputs = self._update(timestamp, key, value, state)
                sent = [as_fact(output) for output in outputs]
            except Exception as error:
                if state is not None and key in hot:  # it may have been changed in place
                    space.touch(key)
                self.handlers[0](error, timestamp, key, value)
                continue
            if state is None:
                space.pop(key, None)
            else:
                hot[key] = dirty[key] = state
            self._out.extend(sent)


def as_fact(output: Any) -> Fact:
    """Return a user's output as a record, or say what is wrong with it."""
    if isinstance(output, tuple) and len(output) == 3 and isinstance(output[0], int):
        return output
    raise TypeError(f"an output must be a tuple (time, key, value), not {output!r}")
