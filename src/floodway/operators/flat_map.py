"""flat_map: one record in, any finite number out (thesis, definition 62)."""

from collections.abc import Mapping
from dataclasses import dataclass

from floodway.operators.code import CodeWriter, Snippet
from floodway.operators.stateless import Stateless


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class FlatMap(Stateless):
    """Replaces each value by all the values that a function returns for it.

    Every output record has the timestamp and key of the input record. The function may be a
    generator; with an expression, ``explode(...)`` gives one record per array element.

    Examples
    --------
    >>> from floodway import Flow
    >>> from floodway.testing import run
    >>> flow = Flow("words")
    >>> words = flow.source("lines", schema=str).flat_map("explode(split(value, ' '))")
    >>> run(words, [(1, "to be"), (2, "or")])
    [(1, 'to'), (1, 'be'), (2, 'or')]
    """

    code: Snippet

    @property
    def multiplies(self) -> bool:
        """One record may become several."""
        return True

    def details(self) -> Mapping[str, str]:
        """Return the function or expression."""
        return {"to": self.code.text}

    def fragment(self, code: CodeWriter, failed: str) -> None:
        """Write an inner loop; what follows in the chain is written inside it."""
        # The list is made before the loop so that a generator that raises half-way fails as a
        # whole: either all of a record's results appear or none.
        items = f"list({code.inline(self.code)})"
        if self.code.function is not None and self.code.schema.exact is not None:
            unlike, require = code.check(self.code.schema)
            items = f"[{require}(u) if {unlike} else u for u in {code.inline(self.code)}]"
        code.guarded(failed, f"items = {items}")
        code.line("for v in items:").indent()
