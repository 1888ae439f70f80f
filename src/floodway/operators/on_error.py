"""What happens to a record that makes an operator fail: the ``on_error`` policy.

``fail``
    The flow stops with an `OperatorError`. The default.
``skip``
    The record is dropped and counted.
``dead_letter``
    The record goes to the operator's dead-letter stream, with the error and its traceback.
"""

import re
import traceback
from typing import Any, Literal, get_args

import msgspec

from floodway.core.errors import FloodwayError, OperatorError, OptionError
from floodway.core.place import Place
from floodway.core.record import Record
from floodway.core.schema import Schema
from floodway.operators.base import DEAD, Key, Kind, Operator, Output, Outputs

OnError = Literal["fail", "skip", "dead_letter"]


class DeadLetter(Record, frozen=True):
    """A record that made an operator fail.

    Attributes
    ----------
    value
        The value the operator was given.
    operator, place
        The operator that failed and where it is written.
    error
        The error's type and message.
    traceback
        The Python traceback, innermost frame last.
    """

    value: Any
    operator: str
    place: str
    error: str
    traceback: str


class ErrorHandler:
    """Carries out one operator's policy; called only when a record has failed."""

    def __init__(self, operator: Operator, policy: OnError, outputs: Outputs) -> None:
        self._name = operator.name
        self._place = operator.place
        self._policy = policy
        self._dead = outputs.get(DEAD)
        self.skipped = 0
        self.failures = 0
        self.first_error: str | None = None

    def __call__(self, error: Exception, timestamp: int, key: Any, value: Any) -> None:
        """Deal with `error`, raised for the record ``(timestamp, key, value)``."""
        self.failures += 1
        if self.first_error is None:
            self.first_error = without_contents(error)
        if self._policy == "skip":
            self.skipped += 1
        elif self._policy == "dead_letter" and self._dead is not None:
            self._dead.append((timestamp, key, self._letter(error, value)))
        else:
            raise failure(self._name, self._place, error, value) from error

    @property
    def where(self) -> str:
        """The operator and where it was written."""
        return f"{self._name} ({self._place})"

    def _letter(self, error: Exception, value: Any) -> DeadLetter:
        trace = "".join(traceback.format_exception(error))
        return DeadLetter(value, self._name, str(self._place), _summary(error), trace)


def failure(operator: str, place: Place, error: Exception, value: Any) -> OperatorError:
    """Return the error that stops the flow because of one record."""
    shown = repr(value)
    shown = shown if len(shown) <= 200 else shown[:200] + "..."
    remedy = error.remedy if isinstance(error, FloodwayError) else "handle this value"
    return OperatorError(
        f"the record {shown} made the operator fail: {_summary(error)}",
        remedy=f"{remedy}; or give the operator on_error='skip' or on_error='dead_letter'",
        operator=operator,
        place=place,
    )


_NUMBER = re.compile(r"\d[\w.,:+-]*")
_QUOTED = re.compile(r"""(?<![\w'"])b?('(\\.|[^'\\])*('|$)|"(\\.|[^"\\])*("|$))""", re.DOTALL)
_LONGEST = 200


def without_contents(error: Exception) -> str:
    """Return how a record failed in words that have nothing of the record in them.

    They are shown to whoever may see how a flow is, which is more people than may see its records.
    Of our own messages and those of the decoder, what is quoted and all numbers are left out. What
    a user's code says may have anything in it, so of that only the kind and the place are told.

    >>> from floodway.core.errors import ExpressionError
    >>> without_contents(ExpressionError("'4111 1111' cannot be cast to INT", remedy=""))
    "ExpressionError: '…' cannot be cast to INT"
    >>> try:
    ...     {}["secret"]
    ... except KeyError as error:
    ...     print(without_contents(error).partition(" at ")[0])
    KeyError in <module>
    """
    kind = type(error).__name__
    if isinstance(error, FloodwayError | msgspec.MsgspecError):
        message = error.problem if isinstance(error, FloodwayError) else str(error)
        told = _NUMBER.sub("…", _QUOTED.sub("'…'", message))
        return f"{kind}: {told}"[:_LONGEST]
    trace = error.__traceback__
    if trace is None:
        return kind
    while trace.tb_next is not None:
        trace = trace.tb_next
    place = Place.of(trace.tb_frame.f_code.co_filename, trace.tb_lineno)
    return f"{kind} in {trace.tb_frame.f_code.co_name} at {place}"[:_LONGEST]


def check_policy(policy: str, operator: str, place: Place) -> None:
    """Refuse a policy that is not one of the three."""
    if policy not in get_args(OnError):
        raise OptionError(
            f"on_error={policy!r} is not a policy",
            remedy=f"use one of: {', '.join(get_args(OnError))}",
            operator=operator,
            place=place,
        )


def with_dead_letters(
    outputs: dict[str, Output], policy: OnError, key: Key | None
) -> dict[str, Output]:
    """Add the dead-letter port to an operator's outputs if its policy asks for one."""
    kind: Kind = "records"
    dead = {DEAD: Output(kind, Schema.of(DeadLetter), key)}
    return {**outputs, **dead} if policy == "dead_letter" else outputs


def _summary(error: Exception) -> str:
    message = error.problem if isinstance(error, FloodwayError) else str(error)
    return f"{type(error).__name__}: {message}"
