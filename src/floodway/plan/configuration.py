"""The configuration: dop, b_out and linger for every operator (thesis, definition 41)."""

import json
import tomllib
from collections.abc import Mapping
from datetime import timedelta
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
            found = tomllib.loads(path.read_text(encoding="utf-8"))
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

    def to_toml(self) -> str:
        """Return the configuration as a file that `read` and ``floodway run`` read.

        Examples
        --------
        >>> print(Configuration(Tuning(dop=2), {"counts": Tuning(b_out=500)}).to_toml())
        dop = 2
        <BLANKLINE>
        [operators."counts"]
        b_out = 500
        <BLANKLINE>
        """
        # A JSON string is a TOML string, whatever the name has in it.
        tables = [
            f"[operators.{json.dumps(name, ensure_ascii=False)}]\n{_lines(tuning)}"
            for name, tuning in self.operators.items()
        ]
        default = _lines(self.default)
        return "\n".join([default, *tables] if default else tables)

    def with_default(self, tuning: Tuning) -> "Configuration":
        """Return this configuration with another default, completed by its own.

        Examples
        --------
        >>> print(Configuration(Tuning(dop=2, b_out=50)).with_default(Tuning(dop=3)).to_toml())
        dop = 3
        b_out = 50
        <BLANKLINE>
        """
        return Configuration(tuning.over(self.default), self.operators)

    def check(self) -> None:
        """Refuse what makes no sense for any flow."""
        self.default.check()
        for name, tuning in self.operators.items():
            try:
                tuning.check()
            except OptionError as error:
                error.operator = name
                raise

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


def _lines(tuning: Tuning) -> str:
    """Return what a tuning says, as lines of TOML."""
    said = {name: getattr(tuning, name) for name in _Written.__struct_fields__}
    if isinstance(tuning.linger, timedelta):
        said["linger"] = to_ms(tuning.linger, what="linger", zero=True)
    chosen = {name: value for name, value in said.items() if value is not None}
    if not tuning.isolate:
        del chosen["isolate"]
    # A JSON value is a TOML value as long as it is a number, a text or a truth value.
    return "".join(
        f"{name} = {json.dumps(value, ensure_ascii=False)}\n" for name, value in chosen.items()
    )


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
