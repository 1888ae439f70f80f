"""What a changed program may keep of the state that another has left.

State belongs to an operator by its name. It is kept if what it consists of is the same: the kind of
operator, key, value, function, window. Functions are known by their names only; what a function of
the same name does differently is for its author to judge.
"""

from collections.abc import Iterator
from typing import Literal

import msgspec

from floodway.engine.checkpoint.shape import FlowShape, OperatorShape

Verdict = Literal["kept", "dropped", "new", "incompatible"]

EXACTLY_ONCE = "exactly once"


class Fate(msgspec.Struct, frozen=True):
    """What becomes of what is kept for an operator, and why."""

    operator: str
    verdict: Verdict
    why: str

    def __str__(self) -> str:
        return f"{self.operator}: {self.verdict}: {self.why}"


def compare(old: FlowShape, new: FlowShape) -> list[Fate]:
    """Return what becomes of each operator's state, each source's position, each sink's token.

    Operators that keep nothing do not matter. Findings are in the order of the new flow, then of
    the old.

    Examples
    --------
    >>> from floodway import Flow
    >>> from floodway.plan import Plan
    >>> def shape(expression):
    ...     flow = Flow("words")
    ...     flow.source("words", schema=str).group_by(expression).count(name="counts")
    ...     return FlowShape.of(Plan.of(flow))
    >>> for finding in compare(shape("value AS word"), shape("length(value) AS word")):
    ...     print(finding)
    words: kept: it goes on where it was
    counts: incompatible: its key was word STRING and is word INT; its grouping was value AS word
        and is length(value) AS word
    """
    before = {shape.name: shape for shape in old.operators if _keeps(shape)}
    after = {shape.name: shape for shape in new.operators if _keeps(shape)}
    everything = {shape.name: shape for shape in new.operators}
    findings = []
    for name, shape in after.items():
        found = before.pop(name, None)
        if found is None:
            findings.append(Fate(name, "new", _unknown(shape)))
        else:
            findings.append(_judged(found, shape, old, new))
    for name, shape in before.items():
        follower = everything.get(name)
        if follower is None:
            findings.append(Fate(name, "dropped", _gone(shape)))
        else:
            findings.append(_judged(shape, follower, old, new))
    return findings


def _keeps(shape: OperatorShape) -> bool:
    return shape.state is not None or shape.role == "source" or shape.delivery == EXACTLY_ONCE


def _judged(was: OperatorShape, now: OperatorShape, old: FlowShape, new: FlowShape) -> Fate:
    reasons = list(_obstacles(was, now, old, new))
    if reasons:
        return Fate(now.name, "incompatible", "; ".join(reasons))
    notes = list(_notes(was, now, old, new))
    return Fate(now.name, "kept", "; ".join(notes) or _same(now))


def _obstacles(
    was: OperatorShape, now: OperatorShape, old: FlowShape, new: FlowShape
) -> Iterator[str]:
    if was.label != now.label:
        yield f"its kind was {was.label} and is {now.label}"
        return
    if was.connector != now.connector:
        yield f"its connector was {was.connector} and is {now.connector}, which cannot go on there"
    if was.delivery != now.delivery:
        yield f"its delivery was {was.delivery} and is {now.delivery}"
    yield from _changes(was.state or {}, now.state or {})
    if was.state is not None and old.key_groups != new.key_groups:
        yield f"key_groups was {old.key_groups} and is {new.key_groups}"


def _changes(was: dict[str, str], now: dict[str, str]) -> Iterator[str]:
    for part in {**was, **now}:
        before, after = was.get(part, "none"), now.get(part, "none")
        if before != after:
            yield f"its {part} was {before} and is {after}"


def _notes(was: OperatorShape, now: OperatorShape, old: FlowShape, new: FlowShape) -> Iterator[str]:
    before, after = old.dop_of(was.name), new.dop_of(now.name)
    if before != after:
        what = "its state is" if now.state is not None else "its parts are"
        yield f"dop was {before} and is {after}: {what} dealt out anew"
    if was.retention != now.retention:
        yield f"retention was {was.retention} and is {now.retention}: it holds from now on"
    if was.numbered or now.numbered:
        yield _counted(now)


def _same(shape: OperatorShape) -> str:
    return "its state is what it was" if shape.state is not None else "it goes on where it was"


def _unknown(shape: OperatorShape) -> str:
    starts = "it starts empty" if shape.state is not None else "it starts at its beginning"
    return f"{starts}; {_counted(shape)}" if shape.numbered else starts


def _gone(shape: OperatorShape) -> str:
    lost = "its state is not read" if shape.state is not None else "where it was is forgotten"
    why = f"the flow has no {shape.name} any more: {lost}"
    return f"{why}; {_counted(shape)}" if shape.numbered else why


def _counted(shape: OperatorShape) -> str:
    return (
        f"the name {shape.name} is made by counting, so another {shape.label} may have had it: "
        "give it a name="
    )
