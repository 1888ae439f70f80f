"""branch: each record goes to the first arm that wants it."""

from collections.abc import Mapping
from dataclasses import dataclass

from floodway.operators.code import CodeWriter, Snippet
from floodway.operators.stateless import Stateless


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class Branch(Stateless):
    """Splits a stream: a record leaves through the first arm whose predicate is true.

    The last arm takes the records that no predicate wanted. Timestamp, key and value stay.

    Examples
    --------
    >>> from floodway import Flow
    >>> from floodway.testing import run
    >>> numbers = Flow("split").source("numbers", schema=int)
    >>> small, large, rest = numbers.branch("value < 10", "value > 100")
    >>> run(rest, [(1, 5), (2, 50), (3, 500)])
    [(2, 50)]
    """

    predicates: tuple[Snippet, ...]

    def arms(self) -> tuple[str, ...]:
        """Return one port per predicate and one for the rest."""
        return tuple(arm_name(index) for index in range(len(self.predicates) + 1))

    def details(self) -> Mapping[str, str]:
        """Return the predicates."""
        return {"arms": "; ".join(snippet.text for snippet in self.predicates)}

    def fragment(self, code: CodeWriter, failed: str) -> None:
        """Write one test per arm; the rest falls through."""
        for index, predicate in enumerate(self.predicates):
            code.guarded(
                failed,
                f"if {code.inline(predicate)}: emit_{arm_name(index)}((t, k, v)); continue",
            )
        code.line(f"emit_{arm_name(len(self.predicates))}((t, k, v))")


def arm_name(index: int) -> str:
    """Return the port name of an arm."""
    return f"arm_{index}"
