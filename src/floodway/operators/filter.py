"""filter: keeps the records for which a predicate holds (thesis, definition 63)."""

from collections.abc import Mapping
from dataclasses import dataclass

from floodway.operators.code import CodeWriter, Snippet
from floodway.operators.stateless import Stateless


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class Filter(Stateless):
    """Keeps a record if its predicate is true; false and null drop it.

    Timestamp, key and value stay. Order is kept.

    Examples
    --------
    >>> from floodway import Flow
    >>> from floodway.testing import run
    >>> flow = Flow("big")
    >>> big = flow.source("numbers", schema=int).filter("value > 10")
    >>> run(big, [(1, 10), (2, 20)])
    [(2, 20)]
    """

    predicate: Snippet

    def details(self) -> Mapping[str, str]:
        """Return the predicate."""
        return {"where": self.predicate.text}

    @property
    def selective(self) -> bool:
        """Some records leave, some do not."""
        return True

    def fragment(self, code: CodeWriter, failed: str) -> None:
        """Write ``if not p: continue``."""
        code.guarded(failed, f"if not {code.inline(self.predicate)}: continue")
