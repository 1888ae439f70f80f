"""Operators that look at one record at a time: a fragment of generated code each.

All of them are special cases of flatMap (thesis, definition 62): output records inherit the
timestamp of the input record, and nothing is remembered, so any order of arrival gives an
equivalent result.

On a stream with updates the same fragment is applied to the old and the new record of a revision;
results are paired by position, so a record that stops passing a filter is retracted downstream.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from floodway.operators.base import DEAD, MAIN, Fact, Kernel, Operator, Outputs, Revision
from floodway.operators.code import CodeWriter
from floodway.operators.facts import Facts, State, in_chain
from floodway.operators.on_error import ErrorHandler, OnError
from floodway.operators.partitioning import FORWARD, Partitioning


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class Stateless(Operator):
    """The description of an operator without state."""

    on_error: OnError = "fail"

    def fragment(self, code: CodeWriter, failed: str) -> None:
        """Write this operator's statements; `failed` names its error handler."""
        raise TypeError(f"{self.label} has no fragment")  # pragma: no cover

    @property
    def facts(self) -> Facts:
        """Records stay where they are, and any task can do the work."""
        return in_chain(keys="kept")

    def state(self, *, versioned: bool = False) -> State | None:
        """Remember nothing."""
        return None

    def partitioning(self, port: int) -> Partitioning:
        """Take what the task before has."""
        return FORWARD

    def arms(self) -> tuple[str, ...]:
        """Return the output ports that receive records, besides dead letters."""
        return (MAIN,)

    @property
    def multiplies(self) -> bool:
        """Whether one record may become several."""
        return False

    @property
    def rekeys(self) -> bool:
        """Whether records leave with another key."""
        return False

    @property
    def passes_all(self) -> bool:
        """Whether every record leaves as it came, so that an old one need not be tried again."""
        return False

    @property
    def selective(self) -> bool:
        """Whether the number of records that leave differs from the number that come."""
        return self.multiplies

    def kernel(self, outputs: Outputs, *, versioned: bool = False) -> Kernel:
        """Return a kernel that runs this operator alone."""
        if self.inputs and self.inputs[0].output.kind == "revisions":
            return RevisionKernel(self, outputs)
        return ChainKernel((self,), (outputs,))


class ChainKernel(Kernel):
    """Runs neighbouring stateless operators as one generated function.

    `outputs` has one mapping for each operator; of all but the last only the dead letters are
    used. Nothing is counted per record that can be known otherwise: from how many records came and
    left, and how many failed, the counts of all operators follow if at most one of them is
    selective. Each further selective operator has a counter in the generated code.
    """

    def __init__(self, chain: Sequence[Stateless], outputs: Sequence[Outputs]) -> None:
        self.code = CodeWriter()
        self.chain = tuple(chain)
        self.handlers = [
            ErrorHandler(operator, operator.on_error, own)
            for operator, own in zip(chain, outputs, strict=True)
        ]
        selective = [index for index, operator in enumerate(chain) if operator.selective]
        self._counted = dict.fromkeys(selective[:-1], 0)
        self._run = write_chain(self.code, chain, self.handlers, outputs[-1], self._counted)

    def process(self, port: int, rows: Sequence[Any]) -> None:
        """Run all rows through the chain."""
        counts = self._run(rows)
        if counts:
            self.add(counts)

    def add(self, counts: Sequence[int]) -> None:
        """Add what the generated code has counted."""
        for index, count in zip(self._counted, counts, strict=True):
            self._counted[index] += count

    @property
    def counted(self) -> tuple[int, ...]:
        """What the generated code has counted so far."""
        return tuple(self._counted.values())

    def counts(self, received: int, sent: int) -> list[tuple[int, int]]:
        """Return how many records each operator took and passed on.

        `received` came into the chain and `sent` left it.
        """
        failures = [handler.failures for handler in self.handlers]
        taken, passed = [received] * len(self.chain), [sent] * len(self.chain)
        known = [i for i, op in enumerate(self.chain) if not op.selective or i in self._counted]
        for index in range(len(self.chain)):
            if index not in known:
                break
            lost = failures[index]
            passed[index] = self._counted.get(index, taken[index] - lost)
            if index + 1 < len(self.chain):
                taken[index + 1] = passed[index]
        for index in reversed(range(len(self.chain))):
            if index + 1 < len(self.chain):
                passed[index] = taken[index + 1]
            if index not in known or index in self._counted:
                break
            taken[index] = passed[index] + failures[index]
        return list(zip(taken, passed, strict=True))


def members(chain: Sequence[Operator]) -> list[Stateless]:
    """Return the operators of a chain as what they are: nothing else says `Facts.chained`."""
    found = [operator for operator in chain if isinstance(operator, Stateless)]
    assert len(found) == len(chain)
    return found


def write_chain(
    code: CodeWriter,
    chain: Sequence[Stateless],
    handlers: Sequence[ErrorHandler],
    outputs: Outputs,
    counted: Collection[int] = (),
) -> Any:
    """Write the loop for `chain` over rows and return the compiled function."""
    code.line("def run(rows):").indent()
    write_counters(code, counted)
    code.line("for t, k, v in rows:").indent()
    write_body(code, chain, handlers, outputs, counted)
    if counted:
        code.line(f"return {counters(counted)},")
    return code.compile("run")


def counters(counted: Collection[int]) -> str:
    """Return the source of the counters' values."""
    return ", ".join(f"n{index}" for index in counted)


def write_counters(code: CodeWriter, counted: Collection[int]) -> None:
    """Write the start of the counters of selective operators."""
    if counted:
        code.line(" = ".join(f"n{index}" for index in counted) + " = 0")


def write_body(
    code: CodeWriter,
    chain: Sequence[Stateless],
    handlers: Sequence[Callable[..., None]],
    outputs: Outputs,
    counted: Collection[int],
    *,
    after_first: Sequence[str] = (),
) -> None:
    """Write what happens to one record, given as ``t``, ``k`` and ``v``, and leave the loop.

    `after_first` has lines to write after the first operator.
    """
    depth = code.depth
    for port in chain[-1].arms():
        code.names[f"emit_{port}"] = outputs[port].append
    for index, (operator, handler) in enumerate(zip(chain, handlers, strict=True)):
        saves = operator.multiplies and any(later.rekeys for later in chain[index + 1 :])
        if saves:  # each of several results starts with the key that the record had
            code.line(f"k{index} = k")
        operator.fragment(code, code.bind(f"failed_{operator.name}", handler))
        if saves:
            code.line(f"k = k{index}")
        if index in counted:
            code.line(f"n{index} += 1")
        if index == 0:
            for line in after_first:
                code.line(line)
    if chain[-1].arms() == (MAIN,):
        code.line(f"emit_{MAIN}((t, k, v))")
    while code.depth >= depth:
        code.dedent()


class RevisionKernel(Kernel):
    """Runs one stateless operator over a stream with updates."""

    def __init__(self, operator: Stateless, outputs: Outputs) -> None:
        self._outputs = outputs
        self._results: dict[str, list[Any]] = {port: [] for port in outputs}
        self._arms = operator.arms()
        self._many = operator.multiplies
        self._inner = ChainKernel((operator,), (self._results,))
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
        counts = self.handlers[0].skipped, self.handlers[0].failures
        taken = self._apply(fact)
        self.handlers[0].skipped, self.handlers[0].failures = counts
        return taken

    def _apply(self, fact: Fact | None) -> dict[str, list[Any]]:
        if fact is not None:
            self._inner.process(0, (fact,))
        taken = {port: list(results) for port, results in self._results.items()}
        for results in self._results.values():
            results.clear()
        return taken
