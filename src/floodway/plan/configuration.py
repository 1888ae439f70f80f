"""The configuration: dop, b_out and linger for every operator (thesis, definition 41)."""

import tomllib
from collections.abc import Mapping
from pathlib import Path

import msgspec

from floodway.core.duration import to_ms
from floodway.core.errors import FloodwayError, OptionError
from floodway.model.flow import Flow
from floodway.model.tuning import Batching, Pin, Tuning

DEFAULT = Tuning(dop=1, b_out=100, linger=0, batching="distinct", paradigm="auto")
"""What holds where nobody says otherwise.

With a linger of zero a batch is sent as soon as its task has nothing else to do: while the load is
calm each record leaves at once, and under load batches fill by themselves.
"""


class Configuration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a flow's operators run: a default, and what is said of single operators.

    Examples
    --------
    >>> configuration = Configuration(Tuning(dop=2), {"counts": Tuning(b_out=500)})
    >>> configuration.operators["counts"].b_out
    500
    """

    default: Tuning = Tuning()
    operators: Mapping[str, Tuning] = msgspec.field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> "Configuration":
        """Read a TOML file: the default at the top, operators in ``[operators.NAME]`` tables."""
        try:
            found = tomllib.loads(path.read_text())
            operators = found.pop("operators", {})
            return cls(
                _tuning(found), {name: _tuning(tuning) for name, tuning in operators.items()}
            )
        except (OSError, ValueError, AttributeError) as error:
            raise OptionError(
                f"the configuration {path} cannot be read: {error}",
                remedy="write TOML: dop, b_out, linger, batching, paradigm at the top, and the "
                "same in [operators.NAME] for single operators",
            ) from None

    def of(self, flow: Flow) -> dict[str, Tuning]:
        """Return the tuning of every operator: given here, said in the flow, or the default."""
        known = {operator.name for operator in flow.operators}
        for name in self.operators:
            if name not in known:
                raise OptionError(
                    f"the configuration names an operator {name!r} that the flow does not have",
                    remedy=f"use one of: {', '.join(sorted(known))}",
                )
        return {name: self._tuning(flow, name) for name in known}

    def _tuning(self, flow: Flow, name: str) -> Tuning:
        own = self.operators.get(name, Tuning()).over(flow.tunings.get(name, Tuning()))
        place = next(operator.place for operator in flow.operators if operator.name == name)
        try:
            complete = own.over(self.default).over(DEFAULT)
            complete.check()
            to_ms(complete.linger or 0, what="linger", zero=True)
        except FloodwayError as error:
            raise error.at(name, place) from None
        # Whether a dop was asked for decides if it may be lowered; see `plan.stages`.
        return msgspec.structs.replace(complete, dop=own.dop)

    @property
    def dop(self) -> int:
        """The degree of parallelism where none is asked for."""
        return self.default.dop or DEFAULT.dop or 1


class _Written(msgspec.Struct, forbid_unknown_fields=True):
    """A tuning as a file has it: a linger is a number or a text there."""

    dop: int | None = None
    b_out: int | None = None
    linger: int | str | None = None
    batching: Batching | None = None
    isolate: bool = False
    paradigm: Pin | None = None


def _tuning(found: object) -> Tuning:
    return Tuning(**msgspec.structs.asdict(msgspec.convert(found, _Written)))
