"""Tables that come first: which sources may read, and when the others may."""

from collections.abc import Iterable

from floodway.engine.transport.numbering import Numbering
from floodway.plan.stages import Plan


class Loading:
    """Lets the sources of preloaded tables read first, and the others when those are complete.

    Parameters
    ----------
    sources
        The names of all sources.
    """

    def __init__(self, plan: Plan, numbering: Numbering, sources: Iterable[str]) -> None:
        self._first = sorted(plan.preloaded) or sorted(sources)
        self._others = sorted(set(sources) - set(self._first))
        self._inputs = {
            (numbering.number(receiver.name, index), exchange.number)
            for exchange in plan.exchanges
            if exchange.number in plan.fed_by(plan.preloaded)
            for receiver in (plan.stage(exchange.receiver),)
            for index in range(receiver.dop)
        }
        self._open = set(self._inputs)
        self._released = not plan.preloaded
        self._complete_at: int | None = None

    def allowed(self) -> list[str]:
        """Return the sources that may read."""
        return self._first + self._others if self._released else self._first

    def ended(self, task: int, exchange: int) -> None:
        """Take note that a task has processed the end of an exchange."""
        self._open.discard((task, exchange))

    def again(self, tasks: Iterable[int]) -> None:
        """Wait again for tasks that go back, unless the tables are committed."""
        if not self._released:
            known = set(tasks)
            self._open |= {pair for pair in self._inputs if pair[0] in known}
            self._complete_at = None

    @property
    def complete(self) -> bool:
        """Whether the tables are there and the other sources still wait."""
        return not self._open and not self._released

    def complete_at(self, epoch: int) -> int:
        """Return the last mark before the tables were complete, `epoch` if that is now."""
        if self._complete_at is None:
            self._complete_at = epoch
        return self._complete_at

    def release(self) -> list[str]:
        """Let the other sources read, and return them."""
        self._released = True
        return self._others
