"""map: one record in, one record out, with another value (thesis, section 5.2.1)."""

from collections.abc import Mapping
from dataclasses import dataclass

from floodway.operators.code import CodeWriter, Snippet
from floodway.operators.stateless import Stateless


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class Map(Stateless):
    """Replaces each value by what a function or expression makes of it.

    Timestamp and key stay. Order is kept.

    Examples
    --------
    >>> from floodway import Flow
    >>> from floodway.testing import run
    >>> flow = Flow("double")
    >>> doubled = flow.source("numbers", schema=int).map(lambda number: number * 2, schema=int)
    >>> run(doubled, [(1, 10), (2, 20)])
    [(1, 20), (2, 40)]
    """

    code: Snippet

    def details(self) -> Mapping[str, str]:
        """Return the function or expression."""
        return {"to": self.code.text}

    def fragment(self, code: CodeWriter, failed: str) -> None:
        """Write ``v = f(v)``; what a function returns is looked at, as it may be anything."""
        if self.code.function is None or self.code.schema.exact is None:
            code.guarded(failed, f"v = {code.inline(self.code)}")
            return
        unlike, require = code.check(self.code.schema)
        code.guarded(
            failed,
            f"u = {code.inline(self.code)}",
            f"if {unlike}: u = {require}(u)",
            "v = u",
        )
