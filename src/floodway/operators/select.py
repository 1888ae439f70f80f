"""select and with_columns: new columns from expressions."""

from collections.abc import Mapping
from dataclasses import dataclass

from floodway.operators.code import CodeWriter, Snippet
from floodway.operators.stateless import Stateless


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class Select(Stateless):
    """Makes each value a record of the given columns.

    ``select`` names all columns of the result; ``with_columns`` keeps the old ones and adds or
    replaces some. Timestamp and key stay.

    Examples
    --------
    >>> from floodway import Flow, Record
    >>> from floodway.testing import run
    >>> class Sale(Record):
    ...     price: int
    ...     pieces: int
    >>> sales = Flow("sales").source("sales", schema=Sale)
    >>> run(sales.select("price * pieces AS total"), [(1, Sale(3, 4))])
    [(1, Select(total=12))]
    >>> run(sales.with_columns(pieces="pieces + 1"), [(1, Sale(3, 4))])
    [(1, WithColumns(price=3, pieces=5))]
    """

    columns: tuple[tuple[str, Snippet], ...]

    def details(self) -> Mapping[str, str]:
        """Return the columns."""
        return {"columns": ", ".join(f"{snippet.text}" for _, snippet in self.columns)}

    def fragment(self, code: CodeWriter, failed: str) -> None:
        """Write ``v = Row(...)``."""
        row = self.outputs["main"].schema.python
        arguments = ", ".join(code.inline(snippet) for _, snippet in self.columns)
        code.guarded(failed, f"v = {code.bind(row.__name__, row)}({arguments})")
