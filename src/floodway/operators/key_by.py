"""key_by: says which records belong together."""

from collections.abc import Mapping
from dataclasses import dataclass

from floodway.operators.code import CodeWriter, Snippet, tuple_source, unsure
from floodway.operators.facts import Facts, in_chain
from floodway.operators.stateless import Stateless


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class KeyBy(Stateless):
    """Gives each record the key that columns, expressions or a function make of it.

    Timestamp and value stay. Records of one key keep their order; joins, tables and keyed
    processing work within a key.

    Examples
    --------
    >>> from floodway import Flow
    >>> from floodway.testing import run
    >>> flow = Flow("parity")
    >>> keyed = flow.source("numbers", schema=int).key_by("value % 2 AS parity")
    >>> run(keyed, [(1, 10), (2, 21)], keys=True)
    [(1, 0, 10), (2, 1, 21)]
    """

    code: tuple[Snippet, ...]

    def details(self) -> Mapping[str, str]:
        """Return the key."""
        return {"by": ", ".join(snippet.text for snippet in self.code)}

    @property
    def rekeys(self) -> bool:
        """That is what it is for."""
        return True

    @property
    def facts(self) -> Facts:
        """Records leave with another key."""
        return in_chain(keys="scattered")

    def fragment(self, code: CodeWriter, failed: str) -> None:
        """Write ``k = ...``; a key of unknown type is tried first, so that `on_error` decides."""
        if unsure(self.code):
            made = f"u = {tuple_source(code, self.code)}"
            code.guarded(failed, made, "hash(u)", "k = u")
        else:
            code.guarded(failed, f"k = {tuple_source(code, self.code)}")
