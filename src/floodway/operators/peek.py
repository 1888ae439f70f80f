"""peek: looks at each record as it passes."""

from collections.abc import Mapping
from dataclasses import dataclass

from floodway.operators.code import CodeWriter, Snippet
from floodway.operators.stateless import Stateless


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class Peek(Stateless):
    """Calls a function with each value, for its effect, and passes the record on unchanged.

    After a failure, the records since the last committed epoch pass again, and are seen again. In a
    stream with updates the function sees new values, not those that they replace (unless `on_error`
    drops records that fail: then it is called for these, too, to find out which were dropped).

    Examples
    --------
    >>> from floodway import Flow
    >>> from floodway.testing import run
    >>> flow, seen = Flow("watch"), []
    >>> run(flow.source("numbers", schema=int).peek(seen.append), [(1, 10)]), seen
    ([(1, 10)], [10])
    """

    code: Snippet

    @property
    def passes_all(self) -> bool:
        """A record that fails stops the flow, so all others pass."""
        return self.on_error == "fail"

    def details(self) -> Mapping[str, str]:
        """Return the function."""
        return {"with": self.code.text}

    def fragment(self, code: CodeWriter, failed: str) -> None:
        """Write the call."""
        code.guarded(failed, code.inline(self.code))
