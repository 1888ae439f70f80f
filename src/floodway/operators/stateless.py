"""Operators that look at one record at a time: a fragment of generated code each.

All of them are special cases of flatMap (thesis, definition 62): output records inherit the
timestamp of the input record, and nothing is remembered, so any order of arrival gives an
equivalent result.

On a stream with updates the same fragment is applied to the old and the new record of a revision;
results are paired by position, so a record that stops passing a filter is retracted downstream.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from floodway.operators.base import DEAD, MAIN, Fact, Kernel, Operator, Outputs, Revision
from floodway.operators.code import CodeWriter
from floodway.operators.on_error import ErrorHandler, OnError


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class Stateless(Operator):
    """The description of an operator without state."""

    on_error: OnError = "fail"

    def fragment(self, code: CodeWriter, failed: str) -> None:
        """Write this operator's statements; `failed` names its error handler."""
        raise TypeError(f"{self.label} has no fragment")  # pragma: no cover

    def arms(self) -> tuple[str, ...]:
        """Return the output ports that receive records, besides dead letters."""
        return (MAIN,)

    @property
    def multiplies(self) -> bool:
        """Whether one record may become several."""
        return False

    @property
    def passes_all(self) -> bool:
        """Whether every record leaves as it came, so that an old one need not be tried again."""
        return False

    def kernel(self, outputs: Outputs, *, versioned: bool = False) -> Kernel:
        """Return a kernel that runs this operator alone."""
        if self.inputs and self.inputs[0].output.kind == "revisions":
            return RevisionKernel(self, outputs)
        return ChainKernel((self,), outputs)


class ChainKernel(Kernel):
    """Runs neighbouring stateless operators as one generated function."""

    def __init__(self, chain: Sequence[Stateless], outputs: Outputs) -> None:
        self.code = CodeWriter()
        self.handlers = [ErrorHandler(operator, operator.on_error, outputs) for operator in chain]
        self._run = write_chain(self.code, chain, self.handlers, outputs)

    def process(self, port: int, rows: Sequence[Any]) -> None:
        """Run all rows through the chain."""
        self._run(rows)


def write_chain(
    code: CodeWriter,
    chain: Sequence[Stateless],
    handlers: Sequence[ErrorHandler],
    outputs: Outputs,
) -> Any:
    """Write the loop for `chain` and return the compiled function."""
    code.line("def run(rows):").indent().line("for t, k, v in rows:").indent()
    for port in chain[-1].arms():
        code.names[f"emit_{port}"] = outputs[port].append
    for operator, handler in zip(chain, handlers, strict=True):
        operator.fragment(code, code.bind(f"failed_{operator.name}", handler))
    if chain[-1].arms() == (MAIN,):
        code.line(f"emit_{MAIN}((t, k, v))")
    return code.compile("run")


class RevisionKernel(Kernel):
    """Runs one stateless operator over a stream with updates."""

    def __init__(self, operator: Stateless, outputs: Outputs) -> None:
        self._outputs = outputs
        self._results: dict[str, list[Any]] = {port: [] for port in outputs}
        self._arms = operator.arms()
        self._many = operator.multiplies
        self._inner = ChainKernel((operator,), self._results)
        self._passes_all = operator.passes_all
        self.handlers = self._inner.handlers

    def process(self, port: int, rows: Sequence[Revision]) -> None:
        """Apply the operator to both sides of every revision."""
        for identity, old, new in rows:
            # What failed on the old record was reported when that record was new.
            before, after = self._apply_again(old), self._apply(new)
            if DEAD in self._outputs:
                self._outputs[DEAD].extend(after[DEAD])
            for arm in self._arms:
                self._pair(identity, before[arm], after[arm], self._outputs[arm])

    def _pair(self, identity: Any, before: list[Fact], after: list[Fact], out: list[Any]) -> None:
        for index, (was, now) in enumerate(zip_longest(before, after)):
            out.append(((identity, index) if self._many else identity, was, now))

    def _apply_again(self, fact: Fact | None) -> dict[str, list[Any]]:
        if self._passes_all:
            return {MAIN: [] if fact is None else [fact]}
        skipped = self.handlers[0].skipped
        taken = self._apply(fact)
        self.handlers[0].skipped = skipped
        return taken

    def _apply(self, fact: Fact | None) -> dict[str, list[Any]]:
        if fact is not None:
            self._inner.process(0, (fact,))
        taken = {port: list(results) for port, results in self._results.items()}
        for results in self._results.values():
            results.clear()
        return taken
